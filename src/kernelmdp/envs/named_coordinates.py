"""Names for the coordinates of a Box: constraints, angles and printed agents can then use them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from kernelmdp.envs.flat_spaces import FlatSpace, flat_part
from kernelmdp.errors import ArgumentError


class NamedBox(spaces.Box):
    """A Box whose coordinates have names.

    Args:
        box: The Box.
        names: A name for each coordinate. Boxes of several axes are numbered row by row.

    Attributes:
        names: The names.

    Raises:
        ArgumentError: If there are more or fewer names than coordinates, or two are the same.

    >>> NamedBox(spaces.Box(-1.0, 1.0, (2,)), ["angle", "speed"]).names
    ('angle', 'speed')
    """

    def __init__(self, box: spaces.Box, names: Sequence[str]) -> None:
        dtype: Any = box.dtype
        super().__init__(box.low, box.high, box.shape, dtype)
        self.names = tuple(names)
        count = int(np.prod(box.shape))
        if isinstance(names, str) or len(self.names) != count or len(set(self.names)) != count:
            raise ArgumentError("names", f"{count} different names", repr(names))


class NamedCoordinates(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Names the coordinates of the observations of an environment. Nothing else changes.

    Args:
        env: The environment, whose observations are a Box.
        names: A name for each coordinate.

    Raises:
        ArgumentError: If observations are no Box, or the names do not fit.

    >>> import kernelmdp as km
    >>> env = NamedCoordinates(gymnasium.make("MountainCar-v0"), ["position", "velocity"])
    >>> km.from_gymnasium(env).coordinate_names
    ('position', 'velocity')
    """

    def __init__(self, env: gymnasium.Env[Any, Any], names: Sequence[str]) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, spaces.Box):
            raise ArgumentError("env", "observations that are a Box", space)
        self.observation_space = NamedBox(space, names)


@flat_part.register
def _named(space: NamedBox, kind: str, name: str) -> FlatSpace:
    flat = flat_part.dispatch(spaces.Box)(space, kind, name)
    part = "" if name == kind else name  # a clock makes a plain observation a part
    names = tuple(f"{part}.{each}" if part else each for each in space.names)
    return dataclasses.replace(flat, names=names)
