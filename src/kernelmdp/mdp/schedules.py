"""Schedules: values of known coordinates over the time of an episode, which plans see ahead."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from kernelmdp.domains import Domain
from kernelmdp.errors import DataError, DomainError, ShapeError
from kernelmdp.mdp.problem import Problem
from kernelmdp.numerics.checks import float_array


def needs_clock(known: Mapping[str, Any] | None) -> bool:
    """Return whether a known coordinate follows a schedule, so that states must tell the time.

    Args:
        known: The setting ``known``.

    Returns:
        Whether a value is not a function of state and action.
    """
    return any(not callable(value) for value in (known or {}).values())


def has_tables(known: Mapping[str, Any] | None) -> bool:
    """Return whether schedules differ between episodes.

    Args:
        known: The setting ``known``.

    Returns:
        Whether a value is a table with a row for each episode.
    """
    return any(not callable(value) and np.ndim(value) == 2 for value in (known or {}).values())


def schedules_of(
    known: Mapping[str, Any] | None, episode: int, problem: Problem
) -> dict[str, Float[np.ndarray, " H1"]]:
    """Return the schedules of an episode.

    Args:
        known: The setting ``known``.
        episode: The number of the episode, counted from 0. Schedules of several episodes begin anew
            after the last one.
        problem: The problem.

    Returns:
        Values at the times 0 to H, by coordinate name.
    """
    tables = {}
    names, space = observed_coordinates(problem)
    for name, values in (known or {}).items():
        if not callable(values):
            table = np.asarray(float_array(values, f"known[{name!r}]"), float)
            several = table.ndim == 2 and len(table) > 0
            row = table[episode % len(table)] if several else table
            tables[name] = checked_schedule(name, row, problem.horizon, space, names.index(name))
    return tables


def checked_schedule(
    name: str, values: Any, horizon: int, space: Domain, axis: int
) -> Float[np.ndarray, " H1"]:
    """Check the schedule of a coordinate.

    Args:
        name: The name of the coordinate.
        values: Values at the times 0 to H.
        horizon: H.
        space: The space of observations.
        axis: The number of the coordinate.

    Returns:
        The values.

    Raises:
        ShapeError: If their number is wrong.
        DataError: If one is not finite.
        DomainError: If one is beyond the limits of the coordinate.
    """
    table = np.asarray(float_array(values, f"known[{name!r}]"), float)
    if table.shape != (horizon + 1,):
        expected = f"a function of (state, action), or values at the times 0 to {horizon}"
        raise ShapeError(f"known[{name!r}]", expected, f"shape {table.shape}")
    if not np.isfinite(table).all():
        raise DataError(f"known[{name!r}]", "finite numbers", table[~np.isfinite(table)][0])
    low, high = (float(end[axis]) for end in space.bounds)
    outside = (table < low) | (table > high)
    if axis not in space.periodic and outside.any():
        expected = f"values from {low:g} to {high:g}, the limits of the coordinate"
        raise DomainError(f"known[{name!r}]", expected, table[outside][0])
    return table


def observed_coordinates(problem: Problem) -> tuple[tuple[str, ...], Domain]:
    """Return the coordinates of observations.

    Args:
        problem: The problem.

    Returns:
        Their names, and their space.
    """
    space = problem.states if problem.memory is None else problem.memory.states
    m = space.dimension
    return problem.coordinates[:m] or tuple(_default_names(m)), space


def scheduled_episodes(known: Mapping[str, Any] | None) -> int:
    """Count the episodes for which there are schedules.

    Args:
        known: The setting ``known``.

    Returns:
        The largest number of rows of a table, or 0 without tables.
    """
    tables = [values for values in (known or {}).values() if not callable(values)]
    return max((len(values) for values in tables if np.ndim(values) == 2), default=0)


def _default_names(m: int) -> list[str]:
    return ["state"] if m == 1 else [f"state[{j}]" for j in range(m)]
