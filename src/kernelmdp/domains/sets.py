"""Boxes, finite sets and whole spaces."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import qmc

from kernelmdp.domains.base import Domain
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.types import AnyArray


@dataclasses.dataclass(frozen=True, init=False)
class Box(Domain):
    """All points between ``low`` and ``high``, coordinate by coordinate.

    Along the axes in ``periodic`` the two ends are the same place, as for an angle: what leaves
    at one end comes in at the other. Elsewhere it is clipped.

    >>> Box(low=[0, 0], high=[1, 2]).dimension
    2
    >>> Box([-1.0, -1.0], [1.0, 1.0], periodic=[0]).nearest(np.array([[1.5, 1.5]])).tolist()
    [[-0.5, 1.0]]
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    periodic: tuple[int, ...]

    def __init__(self, low: Any, high: Any, periodic: Sequence[int] = ()) -> None:
        object.__setattr__(self, "periodic", tuple(int(axis) for axis in periodic))
        object.__setattr__(self, "low", _numbers("low", low))
        object.__setattr__(self, "high", _numbers("high", high))
        if len(self.low) != len(self.high):
            raise ShapeError("high", f"{len(self.low)} numbers like low", f"{len(self.high)}")
        if not all(a < b for a, b in zip(self.low, self.high, strict=True)):
            raise ArgumentError("low", "below high in every coordinate", f"{self.low}, {self.high}")
        if not set(self.periodic) <= set(range(len(self.low))):
            raise ArgumentError("periodic", f"axes below {len(self.low)}", list(self.periodic))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.low), np.array(self.high)

    def net(self, budget: int) -> tuple[np.ndarray, np.ndarray]:
        per_axis = max(2, int(budget ** (1 / self.dimension) + 1e-9))
        axes = [np.linspace(a, b, per_axis) for a, b in zip(self.low, self.high, strict=True)]
        low, high = self.bounds
        return cartesian(axes), (high - low) / (per_axis - 1)

    def spread(self, count: int) -> np.ndarray:
        low, high = self.bounds
        power = max(1, int(np.ceil(np.log2(count))))
        unit = qmc.Sobol(self.dimension, scramble=True, rng=0).random_base2(power)
        # The variance of a conditioned process peaks at the border, which no interior set sees.
        corners = itertools.product([0.0, 1.0], repeat=self.dimension)
        border = np.array(list(itertools.islice(corners, max(4, count // 4))))
        faces = unit[: len(unit) // 2].copy()
        # One run of the sequence per axis: taken in turns, its regularity would miss whole faces.
        place = np.arange(len(faces))
        axis = place * self.dimension // len(faces)
        faces[place, axis] = np.round(faces[place, axis])
        return low + (high - low) * np.concatenate([border, faces, unit])

    def project(self, positions: Sequence[int]) -> "Box":
        around = [place for place, i in enumerate(positions) if i in self.periodic]
        return Box([self.low[i] for i in positions], [self.high[i] for i in positions], around)

    def nearest(self, points: AnyArray) -> jax.Array:
        low, high = (jnp.asarray(end, points.dtype)[None, :] for end in self.bounds)
        around = np.isin(np.arange(self.dimension), self.periodic)[None, :]
        wrapped = low + jnp.mod(points - low, high - low)
        return jnp.where(around, wrapped, jnp.clip(points, low, high))

    def difference(self, points: AnyArray, others: AnyArray) -> jax.Array:
        low, high = (jnp.asarray(end, points.dtype)[None, :] for end in self.bounds)
        around = np.isin(np.arange(self.dimension), self.periodic)[None, :]
        straight, turn = points - others, high - low
        return jnp.where(around, straight - turn * jnp.round(straight / turn), straight)

    def distance_outside(self, points: np.ndarray) -> np.ndarray:
        low, high = self.bounds
        return np.maximum(np.maximum(low - points, points - high), 0.0)

    def __repr__(self) -> str:
        around = f", periodic={list(self.periodic)}" if self.periodic else ""
        return f"Box(low={list(self.low)}, high={list(self.high)}{around})"


@dataclasses.dataclass(frozen=True, init=False)
class FiniteSet(Domain):
    """Finitely many points, given as rows.

    >>> FiniteSet([[0.0], [1.0], [2.0]]).count
    3
    """

    points: tuple[tuple[float, ...], ...]

    def __init__(self, points: Any) -> None:
        array = _floats("points", points)
        if array.ndim != 2 or array.size == 0:
            raise ShapeError("points", "an array of shape (n, d)", f"shape {array.shape}")
        if not np.isfinite(array).all():
            raise ArgumentError("points", "finite numbers", array[~np.isfinite(array)][0])
        object.__setattr__(self, "points", tuple(tuple(map(float, row)) for row in array))

    @staticmethod
    def range(*sizes: int) -> "FiniteSet":
        """All tuples of integers below ``sizes``: the points of a table."""
        return FiniteSet(cartesian([np.arange(size, dtype=float) for size in sizes]))

    @property
    def count(self) -> int:
        """Number of points."""
        return len(self.points)

    @property
    def finite(self) -> bool:
        return True

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        array = np.array(self.points)
        return array.min(axis=0), array.max(axis=0)

    def net(self, budget: int) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.points), np.zeros(len(self.points[0]))

    def spread(self, count: int) -> np.ndarray:
        return np.array(self.points)

    def project(self, positions: Sequence[int]) -> "FiniteSet":
        return FiniteSet(np.unique(np.array(self.points)[:, list(positions)], axis=0))

    def nearest(self, points: AnyArray) -> jax.Array:
        array = jnp.asarray(np.array(self.points), points.dtype)
        gaps = jnp.sum((points[:, None, :] - array[None, :, :]) ** 2, axis=2)
        return array[jnp.argmin(gaps, axis=1)]

    def distance_outside(self, points: np.ndarray) -> np.ndarray:
        array = np.array(self.points)
        nearest = np.abs(points[:, None, :] - array[None, :, :]).sum(axis=2).argmin(axis=1)
        return np.abs(points - array[nearest])

    def __repr__(self) -> str:
        return f"FiniteSet({self.count} points in {self.dimension} coordinates)"


@dataclasses.dataclass(frozen=True)
class Unbounded(Domain):
    """All of R^d. Points are spread over [−typical, typical]^d, which bounds nothing.

    >>> Unbounded(2, typical=3.0).extent[1].tolist()
    [3.0, 3.0]
    """

    size: int
    typical: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", integer("size", self.size, least=1))
        object.__setattr__(self, "typical", positive_number("typical", self.typical))

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.full(self.size, -np.inf), np.full(self.size, np.inf)

    @property
    def extent(self) -> tuple[np.ndarray, np.ndarray]:
        return np.full(self.size, -self.typical), np.full(self.size, self.typical)

    def net(self, budget: int) -> tuple[np.ndarray, np.ndarray]:
        raise ArgumentError("domain", "a bounded domain: no finite net covers a whole space", self)

    def spread(self, count: int) -> np.ndarray:
        return Box(*self.extent).spread(count)

    def project(self, positions: Sequence[int]) -> "Unbounded":
        return Unbounded(len(positions), self.typical)

    def nearest(self, points: AnyArray) -> jax.Array:
        return jnp.asarray(points)

    def distance_outside(self, points: np.ndarray) -> np.ndarray:
        # NaN for what is not finite, which no comparison calls inside.
        return 0.0 * np.where(np.isfinite(points), points, np.nan)

    def __repr__(self) -> str:
        return f"Unbounded({self.size}, typical={self.typical!r})"


def cartesian(axes: Sequence[np.ndarray]) -> np.ndarray:
    """All points of the net with these coordinates along each axis, (n, d)."""
    return np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")], axis=1)


def _numbers(argument: str, value: Any) -> tuple[float, ...]:
    array = np.atleast_1d(_floats(argument, value))
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise ArgumentError(argument, "a vector of finite numbers", repr(value))
    return tuple(float(x) for x in array)


def _floats(argument: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(argument, "numbers", f"{value!r} ({error})") from None
