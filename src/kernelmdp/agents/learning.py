"""The loop between an agent and a system: ask, play, tell, and what each episode was worth."""

import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelmdp.agents.regret import Judge
from kernelmdp.envs import Environment
from kernelmdp.mdp import MDP, Episode, step
from kernelmdp.mdp.policy import Player
from kernelmdp.numerics.modules import jit
from kernelmdp.types import Key

#: Points at which sets are checked against a known truth.
CHECKED = 400


def interact(agent: Any, task: Any, episodes: int) -> Iterator[dict[str, Any]]:
    """Play ``episodes`` more episodes; a row of the table after each.

    The system's randomness comes from the agent's seed and the episode's number, apart from the
    agent's own: two agents with one seed meet the same noise.
    """
    judge = Judge(task) if isinstance(task, Environment) else None
    checked = jnp.asarray(agent.problem.points.spread(CHECKED))
    world = jax.random.fold_in(jax.random.key(agent.seed), 2**31 - 1)
    for _ in range(episodes):
        start_key, play_key = _keys(world, agent.episode)
        start: Any = task.starts(start_key) if judge is not None else None
        begin = time.perf_counter()
        policy = agent.ask(start)
        planned = time.perf_counter()
        stepwise = Stepwise(agent) if agent.update == "step" else None
        if judge is None:
            number = int(jax.random.randint(play_key, (), 0, 2**31 - 1))
            player, watch = (stepwise or policy.player()), (stepwise and stepwise.watch)
            episode = task.play(player, seed=number, watch=watch)
        elif stepwise is not None:
            episode = play_by_step(task.mdp, stepwise, start, key=play_key)
        else:
            episode = jax.tree.map(np.asarray, task.play(policy, start, key=play_key))
        start = jnp.asarray(episode.states[0])
        row: dict[str, Any] = {"episode": agent.episode + 1, "return": episode.total}
        row |= agent.diagnostics()
        row["planned_value"] = agent.planned.value(start)
        row["planning_error"] = agent.planned.error
        if judge is not None:
            optimum = judge.optimum(start)
            value = judge.value(policy, start, episode)
            agent.cumulative_regret += optimum.value - value
            row |= {
                "value": value,
                "optimal_value": optimum.value,
                "optimal_value_error": optimum.error,
                "regret": optimum.value - value,
                "cumulative_regret": agent.cumulative_regret,
            }
            if hasattr(agent, "sets"):
                row |= _coverage(agent.sets, task, checked)
        row |= widths(agent, episode.points)
        row["plan_seconds"] = planned - begin
        begin = time.perf_counter()
        told = (episode.states, episode.actions, episode.rewards, episode.outcomes)
        if episode.terminated or len(episode.rewards) == agent.problem.horizon:
            ending = {"terminated": True} if episode.terminated else {}
        else:
            ending = {"truncated": True}
        agent.tell(*told, **ending)
        jax.block_until_ready(getattr(agent, "beliefs", None))
        row["update_seconds"] = time.perf_counter() - begin
        row["gain_reward"], row["gain_transition"] = agent.gains
        yield row


@jax.jit
def _keys(world: Key, episode: Any) -> tuple[Key, Key]:
    """For the start of an episode and for its noise; one program is faster than three."""
    start, play = jax.random.split(jax.random.fold_in(world, episode))
    return start, play


class Stepwise:
    """An agent that learns and plans anew at every step of an episode (``update="step"``).

    What a policy remembers is handed to the one that follows it.
    """

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.player = Player(agent.ask())

    def __call__(self, state: Any, period: int) -> np.ndarray:
        self.player.policy = self.agent.ask(state)
        return self.player(state, period)

    def watch(self, state: Any, action: Any, reward: float, outcome: Any, terminated: bool) -> None:
        """What came of the action."""
        self.agent.see(state, action, reward, outcome, terminated=terminated)


def play_by_step(mdp: MDP, player: Stepwise, start: Any, *, key: Key) -> Episode:
    """One episode in a known MDP, watched; its noise is that of ``play`` with the same key."""
    states, rows = [np.asarray(start)], []
    ended = False
    for period in range(mdp.horizon):
        action = player(states[-1], period)
        point = jnp.asarray(np.concatenate([states[-1], action])[None, :])
        found = _step(mdp, point, jax.random.fold_in(key, period))
        reward, outcome, after, ended = (np.asarray(row)[0] for row in found)
        player.watch(states[-1], action, reward, outcome, bool(ended))
        rows.append((action, reward, outcome))
        states.append(after)
        if ended:
            break
    actions, rewards, outcomes = (
        jnp.asarray(np.stack(column)) for column in zip(*rows, strict=True)
    )
    states_seen = jnp.asarray(np.stack(states))
    return Episode(states_seen, actions, rewards, outcomes, terminated=bool(ended))


@jit
def _step(mdp: MDP, point: Array, key: Key) -> tuple[Array, ...]:
    m = mdp.states.dimension
    rewards, outcomes, after = step(mdp, point[:, :m], point[:, m:], key=key)
    ended = jnp.zeros(1, bool) if mdp.termination is None else mdp.termination(point, after)
    return rewards, outcomes, after, ended


def widths(agent: Any, points: np.ndarray) -> dict[str, float]:
    """How little was known, before the episode, where it went: sums over points (H, d).

    Half-widths β_R σ_R and ρ of the sets; σ_R and ‖σ_P‖ for agents that have none. Twice the first
    and 2L times the second are this episode's share of a regret certificate (``theory``).
    """
    if agent.update == "step":  # what was known before the episode is not kept
        return {}
    beliefs, count = getattr(agent, "beliefs", None), len(points)
    # Episodes that ended early are filled up: one program serves every length.
    missing = agent.problem.horizon - count
    z = jnp.asarray(np.concatenate([points, np.repeat(points[-1:], missing, axis=0)]))
    if hasattr(agent, "sets"):
        reward, transition = agent.sets.half_widths(z)
    elif beliefs is not None and agent.learns:
        reward = beliefs.predict_reward(z)[1]
        transition = np.linalg.norm(np.asarray(beliefs.transition.predict(z)[1]), axis=1)
    else:
        return {}
    return {
        "width_reward": float(np.sum(np.asarray(reward)[:count])),
        "width_transition": float(np.sum(np.asarray(transition)[:count])),
    }


def _coverage(sets: Any, environment: Environment, points: Array) -> dict[str, float]:
    found = sets.coverage(environment.seen.model, points)
    return {
        "covered_reward": float(found.reward),
        "covered_transition": float(found.transition),
    }
