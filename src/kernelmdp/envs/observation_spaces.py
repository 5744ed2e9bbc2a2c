"""The state space of an observation space: bounds, angles, axes without bounds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from kernelmdp.domains import Box, Domain, FiniteSet
from kernelmdp.envs.flat_spaces import flat_space
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.numerics.checks import with_suggestion

#: Provisional bound of an axis that has none. It is far beyond any state. Learners replace it by
#: the range of the data.
PROVISIONAL_BOUND = 1e6
#: Bounds beyond this count as infinite. Some environments write "no bound" as the largest float.
LARGEST_BOUND = 1e30
#: Half of the width that an axis gets whose two bounds are equal. Every axis needs some width.
CONSTANT_HALF_WIDTH = 0.5


def state_domain(
    space: spaces.Space[Any], states: Domain | None, angles: Sequence[int | str]
) -> tuple[Box | FiniteSet, tuple[int, ...]]:
    """Make the state space of an observation space.

    A Discrete space is a table. All others are boxes. Their axes are the coordinates of
    ``flat_space``.

    Args:
        space: The observation space.
        states: The bounds to use instead of those of the space, or None.
        angles: Numbers or names of coordinates that are angles in radians.

    Returns:
        The state space, and the axes whose bounds are provisional.

    Raises:
        ArgumentError: If the space cannot be written as vectors, or an angle does not exist.
        ShapeError: If ``states`` has another number of coordinates.

    >>> velocity = spaces.Box(-np.inf, np.inf, ())
    >>> arm = spaces.Dict({"angle": spaces.Box(-3, 3, ()), "velocity": velocity})
    >>> state_domain(arm, None, ["angle"])[1]
    (1,)
    """
    if isinstance(space, spaces.Discrete) and states is None:
        if len(angles):
            raise ArgumentError("angles", "none: states are numbers of a table", list(angles))
        return FiniteSet.range(int(space.n)), ()
    flat = flat_space(space, "observation")
    m = len(flat.names)
    if states is not None and states.dimension != m:
        raise ShapeError("states", f"a Box of {m} coordinates", states)
    numbers = {name: axis for axis, name in enumerate(flat.names)} | {i: i for i in range(m)}
    if not set(angles) <= set(numbers):
        expected = f"coordinates below {m}, or of {', '.join(flat.names)}"
        wrong = next(angle for angle in angles if angle not in numbers)
        raise ArgumentError("angles", expected, with_suggestion(wrong, flat.names))
    angle_axes = [numbers[angle] for angle in angles]
    bounds = (flat.low, flat.high) if states is None else states.bounds
    low, high = (np.array(bound, dtype=float) for bound in bounds)
    periodic = sorted({*(states.periodic if states is not None else ()), *angle_axes})
    low[angle_axes], high[angle_axes] = -np.pi, np.pi
    open_below, open_above = ~(np.abs(low) < LARGEST_BOUND), ~(np.abs(high) < LARGEST_BOUND)
    unbounded = tuple(int(i) for i in np.flatnonzero(open_below | open_above))
    low[open_below] = np.minimum(-PROVISIONAL_BOUND, high[open_below] - PROVISIONAL_BOUND)
    high[open_above] = np.maximum(PROVISIONAL_BOUND, low[open_above] + PROVISIONAL_BOUND)
    constant = low == high
    low[constant], high[constant] = (
        low[constant] - CONSTANT_HALF_WIDTH,
        high[constant] + CONSTANT_HALF_WIDTH,
    )
    return Box(low, high, periodic), unbounded
