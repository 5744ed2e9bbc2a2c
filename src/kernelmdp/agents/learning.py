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
from kernelmdp.mdp import play

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
        start_key, play_key = jax.random.split(jax.random.fold_in(world, agent.episode))
        start: Any = task.starts(start_key) if judge is not None else None
        begin = time.perf_counter()
        policy = agent.ask(start)
        planned = time.perf_counter()
        if judge is not None:
            episode = jax.tree.map(np.asarray, play(task.mdp, policy, start, key=play_key))
        else:
            number = int(jax.random.randint(play_key, (), 0, 2**31 - 1))
            episode = task.play(policy, seed=number)
            start = episode.states[0]
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
        row["plan_seconds"] = planned - begin
        begin = time.perf_counter()
        agent.tell(episode.states, episode.actions, episode.rewards, episode.outcomes)
        jax.block_until_ready(getattr(agent, "beliefs", None))
        row["update_seconds"] = time.perf_counter() - begin
        row["gain_reward"], row["gain_transition"] = agent.gains
        yield row


def _coverage(sets: Any, environment: Environment, points: Array) -> dict[str, float]:
    found = sets.coverage(environment.seen.model, points)
    return {
        "covered_reward": float(found.reward),
        "covered_transition": float(found.transition),
    }
