"""What a run did near its limits, from its stored episodes, in the file ``safety.npz``.

For every constrained quantity the file has its range in each episode, and its path in a few
episodes. Where there is a fallback, these episodes are planned again to tell when it acted.
"""

import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp import archive
from kernelmdp.agents import Agent
from kernelmdp.experiments.replay import StoredRun, read_run
from kernelmdp.experiments.run_files import CHECKPOINT_FILE
from kernelmdp.experiments.safe_sets import restore_spent_risk
from kernelmdp.experiments.safety_columns import constraints_of
from kernelmdp.experiments.state_maps import write_arrays
from kernelmdp.mdp import Constraint, Episode

#: The file in the run's folder.
SAFETY_FILE = "safety.npz"
#: Most episodes whose paths are stored, besides the worst one. More are hard to tell apart.
MAX_PATHS = 5
#: Seconds of planning that the marks of the fallback may take. Slow planners get fewer paths.
MAX_PLANNING_SECONDS = 30.0
#: Largest difference of two shares of steps that count as the same. It allows for rounding.
SHARE_TOLERANCE = 1e-6


@dataclasses.dataclass(frozen=True)
class _Quantity:
    """A constrained coordinate, or a function that must stay at or below 0.

    Attributes:
        name: Its name, with the unit.
        state_coordinate: The number of the coordinate of the state; −1 for others.
        values: Its values in each episode: one a visited state, or one a step.
        limits: Texts and values of its limits, and signs: 1 for an upper limit, −1 for a lower one.
    """

    name: str
    state_coordinate: int
    values: list[np.ndarray]
    limits: list[tuple[str, float, float]]


def write_safety(folder: Any, *, replan: bool = True) -> str | None:
    """Write ``safety.npz``, unless it exists for the same number of episodes.

    Args:
        folder: The run's folder.
        replan: Whether to plan a few episodes again, to tell when the fallback acted.

    Returns:
        Why there is no such file, or None if there is.

    >>> import tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "random"), folder, episodes=1)
    ...     write_safety(folder)
    'no constraints'
    """
    path = pathlib.Path(folder) / SAFETY_FILE
    if not (pathlib.Path(folder) / CHECKPOINT_FILE).is_file():
        return "no checkpoint"
    stored = read_run(folder)
    if _is_current(path, stored.episodes, replan):
        return None
    agent = stored.config.make_agent()
    violation = constraints_of(agent)
    if violation is None:
        return "no constraints"
    quantities = _quantities(violation.constraints, stored.history)
    limits = [(q, *limit) for q, each in enumerate(quantities) for limit in each.limits]
    numbers = _episodes_to_show(stored, quantities)
    longest = max(len(stored.history[number]) for number in numbers)
    paths = np.full((len(numbers), longest + 1, len(quantities)), math.nan)
    for row, number in enumerate(numbers):
        for q, quantity in enumerate(quantities):
            values = quantity.values[number]
            paths[row, : len(values), q] = values
    acts = np.full((len(numbers), longest), math.nan)
    if replan and agent.problem.fallback is not None:
        _mark_fallback(agent, stored, numbers, acts)
    lows, highs = (
        np.array([[end(values) for values in each.values] for each in quantities]).T
        for end in (np.min, np.max)
    )
    arrays = {
        "total": np.array(stored.episodes),
        "replanned": np.array(replan),
        "quantities": np.array([each.name for each in quantities]),
        "state_coordinates": np.array([each.state_coordinate for each in quantities]),
        "lows": lows,
        "highs": highs,
        "limit_quantities": np.array([limit[0] for limit in limits]),
        "limit_names": np.array([limit[1] for limit in limits]),
        "limits": np.array([limit[2] for limit in limits]),
        "limit_signs": np.array([limit[3] for limit in limits]),
        "path_episodes": np.array(numbers) + 1,
        "paths": paths,
        "fallback_acts": acts,
    }
    write_arrays(path, arrays)
    return None


def _is_current(path: pathlib.Path, episodes: int, replan: bool) -> bool:
    """Return whether a file shows all episodes, with the marks that are asked for."""
    if not path.is_file():
        return False
    try:
        with np.load(path, allow_pickle=False) as file:
            return int(file["total"]) == episodes and bool(file["replanned"]) >= replan
    except archive.READ_ERRORS:
        return False  # The file is incomplete or of an older format. It is written again.


def _quantities(constraints: Sequence[Constraint], history: Sequence[Episode]) -> list[_Quantity]:
    """Return what is constrained. Two limits of one coordinate are about one quantity."""
    quantities: dict[Any, _Quantity] = {}
    for number, constraint in enumerate(constraints):
        unit = f" {constraint.unit}" if constraint.unit else ""
        if not constraint.is_limit:
            name = constraint.name + (f" ({constraint.unit})" if unit else "")
            values = [_values(constraint, episode) for episode in history]
            quantities[number, "function"] = _Quantity(name, -1, values, [("limit 0", 0.0, 1.0)])
            continue
        limit: Any = getattr(constraint.function, "limit", constraint.function)
        symbol = "<=" if limit.sign > 0 else ">="
        name = constraint.name.removesuffix(f"{symbol} {limit.bound:g}").strip()
        key = (limit.coordinate, constraint.on_actions)
        if key not in quantities:
            rows = [episode.actions if key[1] else episode.states for episode in history]
            values = [np.asarray(each, float)[:, limit.coordinate] for each in rows]
            label = name + (f" ({constraint.unit})" if unit else "")
            quantities[key] = _Quantity(label, -1 if key[1] else limit.coordinate, values, [])
        text = f"{name} {symbol} {limit.bound:g}{unit}"
        quantities[key].limits.append((text, limit.bound, limit.sign))
    return list(quantities.values())


def _values(constraint: Constraint, episode: Episode) -> np.ndarray:
    """Return the values of a constraint at the visited states, or at the steps."""
    states = jnp.asarray(episode.states, float)
    if not constraint.on_actions:
        return np.asarray(constraint.values(states, None))
    return np.asarray(constraint.values(states[:-1], jnp.asarray(episode.actions, float)))


def _episodes_to_show(stored: StoredRun, quantities: Sequence[_Quantity]) -> list[int]:
    """Return some episodes, counted from 0: mostly early ones, and the one closest to a limit."""
    seconds = float(np.nanmedian(np.r_[stored.columns["plan_seconds"], 0.0]))
    count = int(np.clip(MAX_PLANNING_SECONDS / max(seconds, 1e-3), 2, MAX_PATHS))
    numbers = np.geomspace(1, stored.episodes, count) - 1
    margins = [
        [max(sign * (v - bound)) for v in each.values]
        for each in quantities
        for _, bound, sign in each.limits
    ]
    # Margins of different quantities have different units. Each is compared with its own spread.
    spreads = np.ptp(margins, axis=1, keepdims=True)
    scaled = np.array(margins) / np.where(spreads > 0, spreads, 1.0)
    worst = int(np.argmax(np.max(scaled, axis=0)))
    return sorted({worst, *(round(number) for number in numbers)})


def _mark_fallback(
    agent: Agent, stored: StoredRun, numbers: Sequence[int], acts: np.ndarray
) -> None:
    """Plan episodes again, and note the steps of the fallback where their share is as stored."""
    for number, episode in enumerate(stored.history[: numbers[-1] + 1]):
        if number in numbers:
            restore_spent_risk(agent, stored.columns["planned_risk"])
            agent.ask(episode.states[0])
            plan = agent.planned
            assert plan is not None
            states, actions = (
                np.asarray(part, float) for part in (episode.states, episode.actions)
            )
            marks = plan.fallback_acts(states[:-1], actions)
            share = stored.columns["fallback_share"][number]
            if abs(float(np.mean(marks)) - share) <= SHARE_TOLERANCE:
                acts[list(numbers).index(number), : len(marks)] = marks
        agent.replay(episode)
