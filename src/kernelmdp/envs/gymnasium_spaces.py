"""Convert Gymnasium spaces to domains: boxes and finite sets, angles, axes without bounds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from kernelmdp.domains import Box, Domain, FiniteSet
from kernelmdp.errors import ArgumentError, ShapeError

#: Provisional bound of an axis that has none. It is far beyond any state. Learners replace it by
#: the range of the data.
PROVISIONAL_BOUND = 1e6
#: Bounds beyond this count as infinite. Some environments write "no bound" as the largest float.
LARGEST_BOUND = 1e30


def state_domain(
    space: spaces.Space[Any], states: Domain | None, angles: Sequence[int]
) -> tuple[Box | FiniteSet, tuple[int, ...]]:
    """Make the state space of an observation space.

    Args:
        space: The observation space.
        states: The bounds to use instead of those of the space, or None.
        angles: Coordinates that are angles in radians.

    Returns:
        The state space, and the axes whose bounds are provisional.

    Raises:
        ArgumentError: If the space is not Discrete or a Box of one axis, or an angle does not
            exist.
        ShapeError: If ``states`` has another number of coordinates.
    """
    if isinstance(space, spaces.Discrete) and states is None:
        if len(angles):
            raise ArgumentError("angles", "none: states are numbers of a table", list(angles))
        return FiniteSet.range(int(space.n)), ()
    if not isinstance(space, spaces.Box) or len(space.shape) != 1:
        raise ArgumentError("env", "Discrete observations, or a Box of one axis", space)
    m = space.shape[0]
    if states is not None and states.dimension != m:
        raise ShapeError("states", f"a Box of {m} coordinates", states)
    if not all(isinstance(i, int | np.integer) and 0 <= i < m for i in angles):
        raise ArgumentError("angles", f"coordinates below {m}", list(angles))
    bounds = (space.low, space.high) if states is None else states.bounds
    low, high = (np.array(bound, dtype=float) for bound in bounds)
    periodic = sorted({*(states.periodic if states is not None else ()), *map(int, angles)})
    for axis in angles:
        low[axis], high[axis] = -np.pi, np.pi
    open_below, open_above = ~(np.abs(low) < LARGEST_BOUND), ~(np.abs(high) < LARGEST_BOUND)
    unbounded = tuple(int(i) for i in np.flatnonzero(open_below | open_above))
    low[open_below] = np.minimum(-PROVISIONAL_BOUND, high[open_below] - PROVISIONAL_BOUND)
    high[open_above] = np.maximum(PROVISIONAL_BOUND, low[open_above] + PROVISIONAL_BOUND)
    return Box(low, high, periodic), unbounded


def action_domain(space: spaces.Space[Any]) -> Domain:
    """Make the domain of an action space.

    Args:
        space: The action space.

    Returns:
        A box, or the numbers of a Discrete space as a finite set of rows.

    Raises:
        ArgumentError: If the space is not Discrete or a Box of one axis, or has no finite bounds.
    """
    if isinstance(space, spaces.Discrete):
        numbers = int(space.start) + np.arange(int(space.n), dtype=float)
        return FiniteSet(numbers[:, None])
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        if not (np.isfinite(space.low) & np.isfinite(space.high)).all():
            raise ArgumentError("env", "actions with finite bounds", space)
        return Box(space.low, space.high)
    raise ArgumentError("env", "Discrete actions, or a Box of one axis", space)
