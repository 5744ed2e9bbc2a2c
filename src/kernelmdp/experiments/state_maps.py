"""Maps of what an agent knew and planned as it learned, for states of one or two coordinates.

The agent of a run's folder is made anew and told its episodes again; at a few of them its beliefs
and its plan are looked at over the states. They go into ``maps.npz`` beside the run: plain arrays.
"""

import io
import math
import os
import pathlib
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp import archive
from kernelmdp.agents import Agent
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.replay import StoredRun, read_run
from kernelmdp.mdp import Policy
from kernelmdp.numerics.modules import jit
from kernelmdp.planners import Plan

#: Maps of a run, and seconds of planning that may go into them.
FRAMES, PATIENCE = 8, 30.0
#: States along an axis by the number of axes; fewer where every one is planned by itself.
STATES, STATES_BY_MPC = {1: 101, 2: 31}, {1: 31, 2: 11}
#: Visited states that are kept.
VISITED = 2000


def write_maps(folder: Any) -> str | None:
    """Write ``maps.npz`` unless it is there for as many episodes; or why there are no maps."""
    place = pathlib.Path(folder) / "maps.npz"
    if not (pathlib.Path(folder) / "checkpoint").is_file():
        return "no checkpoint"
    stored = read_run(folder)
    if place.is_file() and _total(place) == stored.episodes:
        return None
    agent = stored.config.make_agent()
    if agent.problem.states.dimension > 2:
        return f"states have {agent.problem.states.dimension} coordinates"
    states = _states(agent)
    if len(states) > STATES[2] ** 2:
        return f"there are {len(states)} states"
    numbers = _frames(agent, stored)
    frames = []
    for told, episode in enumerate([*stored.history, None]):
        if told in numbers:
            frames.append(_layers(agent, states, _start(stored, told)))
        if episode is not None:
            agent.replay(episode)
    names = [name for name in frames[0] if all(name in frame for frame in frames)]
    if not names:
        return f"{agent.name} neither learns nor plans"
    seen = [told.states[:-1] for told in agent.history]
    when = np.repeat(np.arange(1, len(seen) + 1), [len(rows) for rows in seen])
    kept = np.linspace(0, len(when) - 1, min(VISITED, len(when))).astype(int)
    arrays: dict[str, Any] = {
        "total": np.array(stored.episodes),
        "episodes": np.array(numbers),
        "states": states,
        "names": np.array(names),
        "layers": np.array([[frame[name] for name in names] for frame in frames]),
        "visited": np.concatenate(seen)[kept],
        "visited_episode": when[kept],
    }
    _write(place, arrays)
    return None


def _total(place: pathlib.Path) -> int:
    try:
        with np.load(place, allow_pickle=False) as file:
            return int(file["total"])
    except archive.UNREADABLE:
        return -1  # half-written, or of an older kind: it is made again


def _states(agent: Agent) -> np.ndarray:
    """(N, m), the last coordinate running fastest."""
    space = agent.problem.states
    if space.finite:
        return np.array(space.spread(1))
    counts = STATES_BY_MPC if agent.planner.replans else STATES
    count = counts[space.dimension]
    axes = [np.linspace(low, high, count) for low, high in zip(*space.extent, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, space.dimension)


def _frames(agent: Agent, stored: StoredRun) -> list[int]:
    """After how many episodes: more of the early ones, in which more is learned."""
    first, last = (1 if agent.first_episode == "random" else 0), stored.episodes
    seconds = float(np.nanmedian(np.r_[stored.columns["plan_seconds"], 0.0]))
    count = int(np.clip(PATIENCE / max(seconds, 1e-3), 2, FRAMES))
    numbers = np.geomspace(1, last - first + 1, count) + first - 1
    return sorted({round(number) for number in numbers})


def _start(stored: StoredRun, told: int) -> np.ndarray:
    """Where the coming episode starts, as far as it is known."""
    return np.asarray(stored.history[min(told, stored.episodes - 1)].states[0])


def _layers(agent: Agent, states: np.ndarray, start: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers at every state, at the action that the policy of the coming episode takes there."""
    agent.ask(start)
    plan = agent.planned
    assert plan is not None
    found: dict[str, np.ndarray] = {}
    if not plan.planned:
        return found
    actions = np.asarray(_actions(plan.policy, jnp.asarray(states)))
    beliefs = agent.learner.beliefs(agent.state)
    if beliefs is not None and agent.learns:
        points = jnp.asarray(np.concatenate([states, actions], axis=1))
        mean, deviation = beliefs.predict_reward(points)
        found["mean reward"] = np.asarray(mean)
        if not beliefs.reward_known:
            found["standard deviation of the reward"] = np.asarray(deviation)
        after, spread = beliefs.predict_state(points)
        if after.shape[1] == states.shape[1]:  # not the probabilities of a table
            for axis, moved in enumerate((np.asarray(after) - states).T, start=1):
                found[f"mean change of state coordinate {axis}"] = moved
        sizes = np.linalg.norm(np.asarray(spread), axis=1)
        found["standard deviation of the transition"] = sizes
    values = _values(plan, states)
    if np.isfinite(values).any():
        found["planned value"] = values
    for axis, column in enumerate(actions.T[:2], start=1):
        found[f"policy, action coordinate {axis}"] = column
    return found


def _values(plan: Plan, states: np.ndarray) -> Any:
    if plan.table is not None:
        values, grid = plan.table
        return np.asarray(grid.value_at(values[0], jnp.asarray(states)))
    if math.isnan(plan.value(states[0])):
        return np.full(len(states), math.nan)
    return np.array([plan.value(state) for state in states])


@jit
def _actions(policy: Policy, states: Float[Array, "n m"]) -> Float[Array, "n q"]:
    return policy.actions(states, jnp.asarray(0))


def _write(place: pathlib.Path, arrays: dict[str, Any]) -> None:
    """Beside, then renamed."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    beside = place.with_name(place.name + ".part")
    try:
        with beside.open("wb") as file:
            file.write(buffer.getvalue())
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    except OSError as error:
        raise ArgumentError(
            "folder", "a folder that can be written", f"{place} ({error})"
        ) from None
