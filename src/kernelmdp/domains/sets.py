"""Boxes, finite sets and all of R^d."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its parts are loaded at their first use; some take a second

from kernelmdp.domains.base import Domain
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.types import AnyArray


@dataclasses.dataclass(frozen=True, init=False)
class Box(Domain):
    """All points between ``low`` and ``high``, coordinate by coordinate.

    Along a periodic axis the two ends are the same point, as for an angle. ``nearest`` wraps points
    around along periodic axes and clips them along all others.

    Args:
        low: Lowest value of each coordinate, (d,). A single number makes a box of one coordinate.
        high: Highest value of each coordinate, (d,), above ``low``.
        periodic: Indices of the periodic axes; none by default.

    Attributes:
        low: Lowest value of each coordinate.
        high: Highest value of each coordinate.
        periodic: Indices of the periodic axes.

    Raises:
        ShapeError: If ``low`` and ``high`` differ in length.
        ArgumentError: If ``low`` is not below ``high``, a bound is not finite, or a periodic axis
            does not exist.

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

    def spread_points(self, count: int) -> np.ndarray:
        low, high = self.bounds
        power = max(1, int(np.ceil(np.log2(count))))
        unit = scipy.stats.qmc.Sobol(self.dimension, scramble=True, rng=0).random_base2(power)
        # The variance of a conditioned process peaks at the border, which interior points miss.
        # So add corners, and points on the faces.
        corners = itertools.product([0.0, 1.0], repeat=self.dimension)
        corner_points = np.array(list(itertools.islice(corners, max(4, count // 4))))
        faces = unit[: len(unit) // 2].copy()
        # Each axis gets a contiguous run of the sequence. If axes took turns, the regularity of
        # the Sobol sequence would leave whole faces without points.
        row = np.arange(len(faces))
        axis = row * self.dimension // len(faces)
        faces[row, axis] = np.round(faces[row, axis])
        return low + (high - low) * np.concatenate([corner_points, faces, unit])

    def project(self, positions: Sequence[int]) -> "Box":
        periodic = [axis for axis, i in enumerate(positions) if i in self.periodic]
        return Box([self.low[i] for i in positions], [self.high[i] for i in positions], periodic)

    def nearest(self, points: AnyArray) -> jax.Array:
        low, high = (jnp.asarray(bound, points.dtype)[None, :] for bound in self.bounds)
        periodic = np.isin(np.arange(self.dimension), self.periodic)[None, :]
        wrapped = low + jnp.mod(points - low, high - low)
        return jnp.where(periodic, wrapped, jnp.clip(points, low, high))

    def difference(self, points: AnyArray, origins: AnyArray) -> jax.Array:
        low, high = (jnp.asarray(bound, points.dtype)[None, :] for bound in self.bounds)
        periodic = np.isin(np.arange(self.dimension), self.periodic)[None, :]
        direct, period = points - origins, high - low
        return jnp.where(periodic, direct - period * jnp.round(direct / period), direct)

    def distance_outside(self, points: np.ndarray) -> np.ndarray:
        low, high = self.bounds
        return np.maximum(np.maximum(low - points, points - high), 0.0)

    def __repr__(self) -> str:
        periodic = f", periodic={list(self.periodic)}" if self.periodic else ""
        return f"Box(low={list(self.low)}, high={list(self.high)}{periodic})"


@dataclasses.dataclass(frozen=True, init=False)
class FiniteSet(Domain):
    """Finitely many points.

    Args:
        points: The points as rows, (n, d).

    Attributes:
        points: The points, a tuple of n tuples of d numbers.

    Raises:
        ShapeError: If ``points`` is empty or has not two axes.
        ArgumentError: If a coordinate is not a finite number.

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
        """Return all tuples of integers from 0 to below the sizes: the cells of a table.

        Args:
            *sizes: Number of values of each coordinate.

        Returns:
            The finite set. Its last coordinate varies fastest.
        """
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

    def spread_points(self, count: int) -> np.ndarray:
        return np.array(self.points)

    def project(self, positions: Sequence[int]) -> "FiniteSet":
        return FiniteSet(np.unique(np.array(self.points)[:, list(positions)], axis=0))

    def nearest(self, points: AnyArray) -> jax.Array:
        array = jnp.asarray(np.array(self.points), points.dtype)
        squared_distances = jnp.sum((points[:, None, :] - array[None, :, :]) ** 2, axis=2)
        return array[jnp.argmin(squared_distances, axis=1)]

    def distance_outside(self, points: np.ndarray) -> np.ndarray:
        array = np.array(self.points)
        nearest = np.abs(points[:, None, :] - array[None, :, :]).sum(axis=2).argmin(axis=1)
        return np.abs(points - array[nearest])

    def __repr__(self) -> str:
        return f"FiniteSet({self.count} points in {self.dimension} coordinates)"


@dataclasses.dataclass(frozen=True)
class Unbounded(Domain):
    """All of R^d.

    ``spread`` draws its points from [−typical, typical]^d. That cube does not bound the domain.

    Attributes:
        size: Number of coordinates d.
        typical: Typical absolute value of a coordinate, > 0; 1 by default.

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

    def spread_points(self, count: int) -> np.ndarray:
        return Box(*self.extent).spread_points(count)

    def project(self, positions: Sequence[int]) -> "Unbounded":
        return Unbounded(len(positions), self.typical)

    def nearest(self, points: AnyArray) -> jax.Array:
        return jnp.asarray(points)

    def distance_outside(self, points: np.ndarray) -> np.ndarray:
        # Infinite coordinates become NaN, which ``require_inside`` counts as outside.
        return 0.0 * np.where(np.isfinite(points), points, np.nan)

    def __repr__(self) -> str:
        return f"Unbounded({self.size}, typical={self.typical!r})"


def cartesian(axes: Sequence[np.ndarray]) -> np.ndarray:
    """Return all points whose coordinates come from one array for each axis.

    Args:
        axes: The values along each axis, d arrays of one axis each.

    Returns:
        The points (n, d), n being the product of the lengths. The last axis varies fastest.
    """
    return np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")], axis=1)


def _numbers(argument: str, value: Any) -> tuple[float, ...]:
    """A vector of finite numbers as a tuple."""
    array = np.atleast_1d(_floats(argument, value))
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise ArgumentError(argument, "a vector of finite numbers", repr(value))
    return tuple(float(x) for x in array)


def _floats(argument: str, value: Any) -> np.ndarray:
    """An array of floats of any shape, or an error that names the argument."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ArgumentError(argument, "numbers", f"{value!r} ({error})") from None
