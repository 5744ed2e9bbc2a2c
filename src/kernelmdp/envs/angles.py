"""Convert angles to cosines and sines and back, and find cosines and sines in data."""

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

#: How far x² + y² of a cosine and a sine may be from 1. It allows for rounding to 32 bits.
ROUNDING = 1e-6


@dataclasses.dataclass(frozen=True)
class AngleEmbedding:
    """Replaces each angle of a state by its cosine and sine.

    Attributes:
        dimension: The number of coordinates of a state, m.
        angles: The coordinates that are angles.

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

    def decode_points(self, points: Float[Array, "n D"]) -> Float[Array, "n d"]:
        """Convert points (embedded state, action) to points (state, action).

        Args:
            points: The points, (n, D).

        Returns:
            The points with the state instead of its embedding, (n, d).
        """
        columns, position = [], 0
        for axis in range(self.dimension):
            if axis in self.angles:
                columns.append(jnp.arctan2(points[:, position + 1], points[:, position]))
            else:
                columns.append(points[:, position])
            position += 2 if axis in self.angles else 1
        return jnp.concatenate([jnp.stack(columns, axis=1), points[:, position:]], axis=1)

    def box(self, states: Domain) -> Box:
        """Return the bounds of embedded states.

        Args:
            states: The state space.

        Returns:
            A box. Cosines and sines lie in [−1, 1].
        """
        low, high = (
            [(sign, sign) if axis in self.angles else (x,) for axis, x in enumerate(end)]
            for sign, end in zip((-1.0, 1.0), states.bounds, strict=True)
        )
        return Box(np.concatenate(low), np.concatenate(high))


class EmbeddedFunction(Module):
    """A function of points (state, action), applied to points (embedded state, action).

    Attributes:
        function: The function of points (n, d).
        embedding: The embedding of states.
    """

    function: Callable[..., Any]
    embedding: AngleEmbedding = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n D"]) -> Array:
        return self.function(self.embedding.decode_points(points))


def cos_sin_pairs(observations: Any) -> list[tuple[int, int]]:
    """Find pairs of columns that are the cosine and sine of an angle.

    Such a pair lies on the unit circle in every row, and has at least three different values. The
    data do not tell which of the two is the cosine.

    Args:
        observations: Observations, (n, m).

    Returns:
        Pairs of column numbers, each with the smaller first.

    >>> angles = np.linspace(0, 3, 7)
    >>> cos_sin_pairs(np.stack([angles, np.cos(angles), np.sin(angles)], axis=1))
    [(1, 2)]
    """
    rows = np.asarray(as_points("observations", observations), dtype=float)
    moving = [i for i in range(rows.shape[1]) if len(np.unique(rows[:, i])) >= 3]
    pairs: list[tuple[int, int]] = []
    paired: set[int] = set()
    for i in moving:
        for j in moving:
            if i < j and not {i, j} & paired:
                radius = rows[:, i] ** 2 + rows[:, j] ** 2
                if (np.abs(radius - 1) <= ROUNDING).all():
                    pairs.append((i, j))
                    paired |= {i, j}
    return pairs


@dataclasses.dataclass(frozen=True)
class AnglePairs:
    """Converts observations to states: each pair (cosine, sine) becomes one angle.

    The angle takes the place of the first of the pair. It does not matter which of the two is
    called the cosine.

    Attributes:
        pairs: Pairs of coordinates of an observation.

    >>> AnglePairs(((0, 1),))(np.array([0.0, 1.0, 3.0])).round(4).tolist()
    [1.5708, 3.0]
    """

    pairs: tuple[tuple[int, int], ...] = ()

    def __call__(self, observation: np.ndarray) -> np.ndarray:
        state = np.array(observation, dtype=float)
        for first, second in self.pairs:
            state[first] = np.arctan2(observation[second], observation[first])
        return np.delete(state, [second for _, second in self.pairs])

    def observations(self, states: Float[Array, "n m"]) -> Float[Array, "n k"]:
        """Convert states to observations.

        Args:
            states: The states, (n, m), as arrays of NumPy or of JAX.

        Returns:
            The observations, (n, k).
        """
        axes = self.observation_axes(states.shape[1] + len(self.pairs))
        columns = dict(zip(axes, jnp.asarray(states).T, strict=True))
        for first, second in self.pairs:
            angle = columns[first]
            columns[first], columns[second] = jnp.cos(angle), jnp.sin(angle)
        return jnp.stack([columns[axis] for axis in sorted(columns)], axis=1)

    def observation_axes(self, dimension: int) -> list[int]:
        """Return the coordinate of an observation from which each coordinate of the state comes.

        Args:
            dimension: The number of coordinates of an observation.

        Returns:
            One coordinate for each coordinate of the state; for an angle the first of its pair.
        """
        dropped = {second for _, second in self.pairs}
        return [i for i in range(dimension) if i not in dropped]

    def box(self, observations: Domain) -> Box:
        """Return the bounds of states.

        Args:
            observations: The bounds of observations.

        Returns:
            A box, periodic along angles.
        """
        low, high = (end.copy() for end in observations.bounds)
        firsts = [first for first, _ in self.pairs]
        low[firsts], high[firsts] = -np.pi, np.pi
        axes = self.observation_axes(observations.dimension)
        periodic = {*firsts, *observations.periodic}
        return Box(low[axes], high[axes], [n for n, axis in enumerate(axes) if axis in periodic])
