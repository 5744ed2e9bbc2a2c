"""Play episodes in which an agent learns and plans again at every step (``update="step"``)."""

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
    """Plays an episode of an agent that plans again at every step.

    The memory of a policy is passed on to the next policy.

    Args:
        agent: The agent, with ``update="step"``.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.player = PolicyPlayer(agent.ask())

    def __call__(self, state: ArrayLike, period: int) -> np.ndarray:
        self.player.policy = self.agent.ask(state)
        return self.player(state, period)

    def observe(
        self,
        state: ArrayLike,
        action: ArrayLike,
        reward: float,
        outcome: ArrayLike,
        terminated: bool,
    ) -> None:
        """Let the agent learn from a step.

        Args:
            state: The state before the step, (m,).
            action: The action, (q,).
            reward: The reward.
            outcome: The next state before it was projected to the state space, (m,).
            terminated: Whether the system ended the episode.
        """
        self.agent.observe_step(state, action, reward, outcome, terminated=terminated)


def play_by_step(mdp: MDP, player: StepwisePlayer, start: np.ndarray, *, key: Key) -> Episode:
    """Play one episode in a known MDP. The agent learns from every step at once.

    Args:
        mdp: The true MDP.
        player: Chooses the actions and observes the steps.
        start: The first state, (m,).
        key: Decides the noise, which is the same as in ``play`` with this key.

    Returns:
        The episode.
    """
    states, rows = [start], []
    terminated = False
    for period in range(mdp.horizon):
        action = player(states[-1], period)
        point = jnp.asarray(np.concatenate([states[-1], action])[None, :])
        reward, outcome, next_state, ended = (
            np.asarray(row)[0] for row in _step(mdp, point, jax.random.fold_in(key, period))
        )
        terminated = bool(ended)
        player.observe(states[-1], action, reward, outcome, terminated)
        rows.append((action, reward, outcome))
        states.append(next_state)
        if terminated:
            break
    actions, rewards, outcomes = (np.stack(column) for column in zip(*rows, strict=True))
    return Episode(np.stack(states), actions, rewards, outcomes, terminated=terminated)


@jit
def _step(mdp: MDP, point: Array, key: Key) -> tuple[Array, ...]:
    m = mdp.states.dimension
    states, actions = point[:, :m], point[:, m:]
    rewards, outcomes, next_states = step(mdp, states, actions, key=key)
    points = state_action(states, actions)
    ended = jnp.zeros(1, bool) if mdp.termination is None else mdp.termination(points, next_states)
    return rewards, outcomes, next_states, ended
