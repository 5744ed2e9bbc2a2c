"""The actions of a Gymnasium environment: a box, or a finite set of rows."""

import math
from typing import Any

import numpy as np
from gymnasium import spaces

from kernelmdp.domains import Box, Domain, FiniteSet
from kernelmdp.domains.sets import cartesian
from kernelmdp.envs.flat_spaces import FlatSpace, flat_space
from kernelmdp.errors import ArgumentError

#: Largest number of combinations of several finite choices. Planners try them all at every step.
MOST_COMBINATIONS = 256


def action_domain(space: spaces.Space[Any], *, numbered: bool = False) -> Domain:
    """Make the domain of an action space.

    Args:
        space: The action space.
        numbered: Whether finite actions are the numbers 0, 1, …, as tables need them.

    Returns:
        A box, or all combinations of finite choices as rows.

    Raises:
        ArgumentError: If the space cannot be written as vectors, has no finite bounds, mixes
            finite and continuous parts, or has too many combinations.

    >>> action_domain(spaces.MultiDiscrete([2, 2])).points
    ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
    """
    flat = flat_space(space, "action")
    if flat.finite:
        rows = action_rows(flat)
        return FiniteSet.range(len(rows)) if numbered else FiniteSet(rows)
    if any(values is not None for values in flat.choices):
        expected = (
            "actions that are all finite or all continuous; "
            "gymnasium.wrappers.TransformAction converts one part"
        )
        raise ArgumentError("env", expected, space)
    for low, high, name in zip(flat.low, flat.high, flat.names, strict=True):
        if not (math.isfinite(low) and math.isfinite(high)):
            expected = (
                "actions with finite bounds; set them with gymnasium.wrappers.TransformAction("
                "env, lambda action: action, gymnasium.spaces.Box(low, high))"
            )
            raise ArgumentError("env", expected, f"{name} in [{low:g}, {high:g}]")
        if low >= high:
            raise ArgumentError("env", "actions to choose from", f"{name} in [{low:g}, {high:g}]")
    return Box(flat.low, flat.high)


def action_rows(space: FlatSpace) -> np.ndarray:
    """List all combinations of finite choices.

    Args:
        space: A space whose coordinates have finitely many values.

    Returns:
        The combinations as rows, (n, q). The last coordinate varies fastest.

    Raises:
        ArgumentError: If there are more than ``MOST_COMBINATIONS`` of several coordinates.

    >>> action_rows(flat_space(spaces.MultiBinary(2), "action")).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    axes = [values for values in space.choices if values is not None]
    count = math.prod(len(values) for values in axes)
    if len(axes) > 1 and count > MOST_COMBINATIONS:
        expected = f"at most {MOST_COMBINATIONS} combinations of finite actions"
        raise ArgumentError("env", expected, f"{count} of {len(axes)} choices")
    return cartesian(axes)
