"""Maps of beliefs and plans over the states, for states of one or two coordinates.

The agent of a run is made again and replays its episodes. After a few of them, its beliefs and its
plan are evaluated over the states. The maps are stored as plain arrays in ``maps.npz``, in the
run's folder.
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
from kernelmdp.agents.agent_summary import coordinate_names
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.replay import StoredRun, read_run
from kernelmdp.experiments.safe_sets import restore_spent_risk, safe_set_layers
from kernelmdp.mdp import Policy
from kernelmdp.numerics.modules import jit
from kernelmdp.planners import Plan

#: Most maps of a run. More of them show learning in finer steps and take longer to compute.
MAX_MAPS = 8
#: Seconds of planning that the maps of a run may take. Slow planners get fewer maps.
MAX_PLANNING_SECONDS = 30.0
#: States along an axis, by the number of axes. More of them give finer maps.
GRID_STATES = {1: 101, 2: 31}
#: The same for planners that plan every state on its own, which is slow.
GRID_STATES_MPC = {1: 31, 2: 11}
#: Most visited states that are stored. It limits the size of the file.
MAX_VISITED = 2000


def write_maps(folder: Any) -> str | None:
    """Write ``maps.npz``, unless it exists for the same number of episodes.

    Args:
        folder: The run's folder.

    Returns:
        Why there are no maps, or None if there are.
    """
    path = pathlib.Path(folder) / "maps.npz"
    if not (pathlib.Path(folder) / "checkpoint").is_file():
        return "no checkpoint"
    stored = read_run(folder)
    if path.is_file() and _episodes_in(path) == stored.episodes:
        return None
    agent = stored.config.make_agent()
    if agent.problem.states.dimension > 2:
        return f"states have {agent.problem.states.dimension} coordinates"
    states = _grid_states(agent)
    if len(states) > GRID_STATES[2] ** 2:
        return f"there are {len(states)} states"
    numbers = _episodes_to_map(agent, stored)
    maps = []
    for learned, episode in enumerate([*stored.history, None]):
        if learned in numbers:
            if "planned_risk" in stored.columns:
                restore_spent_risk(agent, stored.columns["planned_risk"])
            maps.append(_layers(agent, states, _next_start(stored, learned)))
        if episode is not None:
            agent.replay(episode)
    names = [name for name in maps[0] if all(name in layers for layers in maps)]
    if not names:
        return f"{agent.name} neither learns nor plans"
    visited = [episode.states[:-1] for episode in agent.history]
    visited_in = np.repeat(np.arange(1, len(visited) + 1), [len(rows) for rows in visited])
    count = min(MAX_VISITED, len(visited_in))
    chosen = np.linspace(0, len(visited_in) - 1, count).astype(int)
    arrays: dict[str, Any] = {
        "total": np.array(stored.episodes),
        "episodes": np.array(numbers),
        "states": states,
        "coordinates": np.array(coordinate_names(agent.problem)[0]),
        "names": np.array(names),
        "layers": np.array([[layers[name] for name in names] for layers in maps]),
        "visited": np.concatenate(visited)[chosen],
        "visited_episode": visited_in[chosen],
    }
    write_arrays(path, arrays)
    return None


def _episodes_in(path: pathlib.Path) -> int:
    """Return the number of episodes that the maps of a file show."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return int(file["total"]) if "coordinates" in file else -1
    except archive.READ_ERRORS:
        return -1  # The file is incomplete or of an older format. It is written again.


def _grid_states(agent: Agent) -> np.ndarray:
    """Return the states of the maps, (N, m). The last coordinate varies fastest."""
    space = agent.problem.states
    if space.finite:
        return np.array(space.spread_points(1))
    counts = GRID_STATES_MPC if agent.planner.replans else GRID_STATES
    count = counts[space.dimension]
    axes = [np.linspace(low, high, count) for low, high in zip(*space.extent, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, space.dimension)


def _episodes_to_map(agent: Agent, stored: StoredRun) -> list[int]:
    """Return after how many episodes maps are made. Most are early, when most is learned."""
    first, last = (1 if agent.first_episode != "prior" else 0), stored.episodes
    seconds = float(np.nanmedian(np.r_[stored.columns["plan_seconds"], 0.0]))
    count = int(np.clip(MAX_PLANNING_SECONDS / max(seconds, 1e-3), 2, MAX_MAPS))
    numbers = np.geomspace(1, last - first + 1, count) + first - 1
    return sorted({round(number) for number in numbers})


def _next_start(stored: StoredRun, learned: int) -> np.ndarray:
    """Return where the next episode starts; after the last one, where that one started."""
    return np.asarray(stored.history[min(learned, stored.episodes - 1)].states[0])


def _layers(agent: Agent, states: np.ndarray, start: np.ndarray) -> dict[str, np.ndarray]:
    """Evaluate beliefs and plan at every state, with the action of the next episode's policy."""
    agent.ask(start)
    plan = agent.planned
    assert plan is not None
    layers: dict[str, np.ndarray] = {}
    if not plan.planned:
        return layers
    state_names, action_names = coordinate_names(agent.problem)
    actions = np.asarray(_actions(plan.policy, jnp.asarray(states)))
    beliefs = agent.learner.beliefs(agent.state)
    if beliefs is not None and agent.learns:
        points = jnp.asarray(np.concatenate([states, actions], axis=1))
        mean, deviation = beliefs.predict_reward(points)
        layers["mean reward"] = np.asarray(mean)
        if not beliefs.reward_known:
            layers["standard deviation of the reward"] = np.asarray(deviation)
        next_states, deviations = beliefs.predict_state(points)
        # In a table, the outputs are probabilities and not coordinates of a state.
        if next_states.shape[1] == states.shape[1]:
            changes = (np.asarray(next_states) - states).T
            for name, change in zip(state_names, changes, strict=True):
                layers[f"mean change of {name}"] = change
        sizes = np.linalg.norm(np.asarray(deviations), axis=1)
        layers["standard deviation of the transition"] = sizes
    values = _values(plan, states)
    if np.isfinite(values).any():
        layers["planned value"] = values
    for name, column in list(zip(action_names, actions.T, strict=True))[:2]:
        layers[f"policy, {name}"] = column
    return layers | safe_set_layers(agent, plan, states)


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


def write_arrays(path: pathlib.Path, arrays: dict[str, Any]) -> None:
    """Write arrays to a temporary file, then rename it.

    Args:
        path: The file, which ends in .npz.
        arrays: The arrays by name.

    Raises:
        ArgumentError: If the folder cannot be written.
    """
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    temporary = path.with_name(path.name + ".part")
    try:
        with temporary.open("wb") as file:
            file.write(buffer.getvalue())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise ArgumentError("folder", "a folder that can be written", f"{path} ({error})") from None
