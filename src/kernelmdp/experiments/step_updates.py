"""Episodes in which an agent learns and plans anew at every step (``update="step"``)."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelmdp.agents import Agent
from kernelmdp.mdp import MDP, Episode, state_action, step
from kernelmdp.mdp.policy import PolicyPlayer
from kernelmdp.numerics.modules import jit
from kernelmdp.types import ArrayLike, Key


class StepwisePlayer:
    """An agent that learns and plans anew at every step of an episode.

    What a policy remembers is handed to the one that follows it.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.player = PolicyPlayer(agent.ask())

    def __call__(self, state: ArrayLike, period: int) -> np.ndarray:
        self.player.policy = self.agent.ask(state)
        return self.player(state, period)

    def watch(
        self,
        state: ArrayLike,
        action: ArrayLike,
        reward: float,
        outcome: ArrayLike,
        terminated: bool,
    ) -> None:
        """What came of the action."""
        self.agent.observe_step(state, action, reward, outcome, terminated=terminated)


def play_by_step(mdp: MDP, player: StepwisePlayer, start: np.ndarray, *, key: Key) -> Episode:
    """One episode in a known MDP, watched; its noise is that of ``play`` with the same key."""
    states, rows = [start], []
    ended = False
    for period in range(mdp.horizon):
        action = player(states[-1], period)
        point = jnp.asarray(np.concatenate([states[-1], action])[None, :])
        reward, outcome, after, over = (
            np.asarray(row)[0] for row in _step(mdp, point, jax.random.fold_in(key, period))
        )
        ended = bool(over)
        player.watch(states[-1], action, reward, outcome, ended)
        rows.append((action, reward, outcome))
        states.append(after)
        if ended:
            break
    actions, rewards, outcomes = (np.stack(column) for column in zip(*rows, strict=True))
    return Episode(np.stack(states), actions, rewards, outcomes, terminated=ended)


@jit
def _step(mdp: MDP, point: Array, key: Key) -> tuple[Array, ...]:
    m = mdp.states.dimension
    states, actions = point[:, :m], point[:, m:]
    rewards, outcomes, after = step(mdp, states, actions, key=key)
    points = state_action(states, actions)
    ended = jnp.zeros(1, bool) if mdp.termination is None else mdp.termination(points, after)
    return rewards, outcomes, after, ended
