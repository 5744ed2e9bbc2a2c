"""Angles seen as a cosine and a sine, and recognised as such in data."""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Box, Domain
from kernelmdp.numerics.checks import as_points
from kernelmdp.numerics.modules import Module

#: x² + y² of a cosine and a sine in 32 bits is this close to 1.
ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True)
class AngleEmbedding:
    """States of some coordinates with each of ``angles`` replaced by its cosine and sine.

    >>> AngleEmbedding(2, (0,))(np.array([0.0, 3.0])).tolist()
    [1.0, 0.0, 3.0]
    """

    dimension: int
    angles: tuple[int, ...]

    def __call__(self, state: np.ndarray) -> np.ndarray:
        parts = [
            [np.cos(x), np.sin(x)] if axis in self.angles else [x] for axis, x in enumerate(state)
        ]
        return np.concatenate(parts)

    def back(self, points: Float[Array, "n D"]) -> Float[Array, "n d"]:
        """Points that begin with what is seen of a state, with the state in its place."""
        columns, place = [], 0
        for axis in range(self.dimension):
            if axis in self.angles:
                columns.append(jnp.arctan2(points[:, place + 1], points[:, place]))
            else:
                columns.append(points[:, place])
            place += 2 if axis in self.angles else 1
        return jnp.concatenate([jnp.stack(columns, axis=1), points[:, place:]], axis=1)

    def box(self, states: Domain) -> Box:
        """Where what is seen of these states lies."""
        low, high = (
            [(sign, sign) if axis in self.angles else (x,) for axis, x in enumerate(end)]
            for sign, end in zip((-1.0, 1.0), states.bounds, strict=True)
        )
        return Box(np.concatenate(low), np.concatenate(high))


class EmbeddedFunction(Module):
    """A function of points (state, action) as one of points (what is seen of the state, action)."""

    function: Callable[..., Any]
    view: AngleEmbedding = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n D"]) -> Array:
        return self.function(self.view.back(points))


def cos_sin_pairs(observations: Any) -> list[tuple[int, int]]:
    """Pairs of columns of observations (n, m) that are a cosine and a sine: on the unit circle in
    every row, and not still. Which of the two is the cosine, data do not say.

    >>> angles = np.linspace(0, 3, 7)
    >>> cos_sin_pairs(np.stack([angles, np.cos(angles), np.sin(angles)], axis=1))
    [(1, 2)]
    """
    rows = np.asarray(as_points("observations", observations), dtype=float)
    moving = [i for i in range(rows.shape[1]) if len(np.unique(rows[:, i])) >= 3]
    pairs: list[tuple[int, int]] = []
    taken: set[int] = set()
    for i in moving:
        for j in moving:
            if i < j and not {i, j} & taken:
                radius = rows[:, i] ** 2 + rows[:, j] ** 2
                if (np.abs(radius - 1) <= ROUNDING).all():
                    pairs.append((i, j))
                    taken |= {i, j}
    return pairs


@dataclasses.dataclass(frozen=True)
class AnglePairs:
    """Observations with each pair of columns (cosine, sine) taken for one angle.

    The angle stands where the first of the pair was; which of the two is called the cosine does
    not matter.

    >>> AnglePairs(((0, 1),))(np.array([0.0, 1.0, 3.0])).round(4).tolist()
    [1.5708, 3.0]
    """

    pairs: tuple[tuple[int, int], ...] = ()

    def __call__(self, observed: np.ndarray) -> np.ndarray:
        state = np.array(observed, dtype=float)
        for first, second in self.pairs:
            state[first] = np.arctan2(observed[second], observed[first])
        return np.delete(state, [second for _, second in self.pairs])

    def places(self, dimension: int) -> list[int]:
        """Which coordinate of an observation each coordinate of the state stands for."""
        dropped = {second for _, second in self.pairs}
        return [i for i in range(dimension) if i not in dropped]

    def box(self, observations: Domain) -> Box:
        """Where states are when observations are in this box."""
        low, high = (end.copy() for end in observations.bounds)
        firsts = [first for first, _ in self.pairs]
        low[firsts], high[firsts] = -np.pi, np.pi
        places = self.places(observations.dimension)
        around = {*firsts, *observations.periodic}
        return Box(
            low[places], high[places], [n for n, place in enumerate(places) if place in around]
        )
