"""Gymnasium's spaces as domains: boxes and finite sets, angles, and axes without bounds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from kernelmdp.domains import Box, Domain, FiniteSet
from kernelmdp.errors import ArgumentError, ShapeError

#: Provisional ends of an axis that has none, far from anything: to be replaced from data.
FAR = 1e6
#: Some write "no bound" as the largest float.
HUGE = 1e30


def state_domain(
    space: spaces.Space[Any], given: Domain | None, angles: Sequence[int]
) -> tuple[Box | FiniteSet, tuple[int, ...]]:
    """The states of an observation space, and which axes have no bounds and were given none."""
    if isinstance(space, spaces.Discrete) and given is None:
        if len(angles):
            raise ArgumentError("angles", "none: states are numbers of a table", list(angles))
        return FiniteSet.range(int(space.n)), ()
    if not isinstance(space, spaces.Box) or len(space.shape) != 1:
        raise ArgumentError("env", "Discrete observations, or a Box of one axis", space)
    m = space.shape[0]
    if given is not None and given.dimension != m:
        raise ShapeError("states", f"a Box of {m} coordinates", given)
    if not all(isinstance(i, int | np.integer) and 0 <= i < m for i in angles):
        raise ArgumentError("angles", f"coordinates below {m}", list(angles))
    ends = (space.low, space.high) if given is None else given.bounds
    low, high = (np.array(end, dtype=float) for end in ends)
    around = sorted({*(given.periodic if given is not None else ()), *map(int, angles)})
    for axis in angles:
        low[axis], high[axis] = -np.pi, np.pi
    open_below, open_above = ~(np.abs(low) < HUGE), ~(np.abs(high) < HUGE)
    unbounded = tuple(int(i) for i in np.flatnonzero(open_below | open_above))
    low[open_below] = np.minimum(-FAR, high[open_below] - FAR)
    high[open_above] = np.maximum(FAR, low[open_above] + FAR)
    return Box(low, high, around), unbounded


def action_domain(space: spaces.Space[Any]) -> Domain:
    """The actions of an action space: a box, or the numbers of a Discrete space as rows."""
    if isinstance(space, spaces.Discrete):
        numbers = int(space.start) + np.arange(int(space.n), dtype=float)
        return FiniteSet(numbers[:, None])
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        if not (np.isfinite(space.low) & np.isfinite(space.high)).all():
            raise ArgumentError("env", "actions with finite bounds", space)
        return Box(space.low, space.high)
    raise ArgumentError("env", "Discrete actions, or a Box of one axis", space)
