"""Where points live: boxes, finite sets, whole spaces and their products.

A domain is a plain, hashable description. It knows how to lay a net over itself (with the spacing
along each axis, from which sup norms are certified), how to spread points when a net would be too
large, and how to say which coordinate of a point lies outside.
"""

import abc
import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import qmc

from kernelmdp.errors import ArgumentError, DomainError, ShapeError
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.numerics.factor import is_traced
from kernelmdp.types import AnyArray

#: Points may leave the domain by this fraction of an axis: round-off of a clip is no error.
SLACK = 1e-9


class Domain(abc.ABC):
    """A set of points in d coordinates.

    >>> isinstance(Box([0.0], [1.0]), Domain)
    True
    """

    #: Coordinates that come round: their two ends are one place.
    periodic: tuple[int, ...] = ()

    @property
    @abc.abstractmethod
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest value of each coordinate, two arrays (d,)."""

    @abc.abstractmethod
    def net(self, budget: int) -> tuple[np.ndarray, np.ndarray]:
        """At most about ``budget`` points on a regular net with the corners, and the spacing of
        each axis; a finite axis has spacing 0. Every point of the domain lies in a net cell."""

    @abc.abstractmethod
    def spread(self, count: int) -> np.ndarray:
        """About ``count`` deterministic low-discrepancy points (all of a smaller finite set)."""

    @abc.abstractmethod
    def distance_outside(self, points: np.ndarray) -> np.ndarray:
        """How far each coordinate lies outside, shape (n, d); 0 inside."""

    @abc.abstractmethod
    def project(self, positions: Sequence[int]) -> "Domain":
        """The domain that some coordinates range over."""

    @abc.abstractmethod
    def nearest(self, points: AnyArray) -> jax.Array:
        """Points (n, d) brought into the domain: Π_S of a raw outcome. Can be traced."""

    def difference(self, points: AnyArray, others: AnyArray) -> jax.Array:
        """Points less others, (n, d), the shorter way where there are two. Can be traced."""
        return jnp.asarray(points - others)

    @property
    def extent(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest value of each coordinate where points are spread: finite."""
        return self.bounds

    @property
    def dimension(self) -> int:
        """Number of coordinates d."""
        return len(self.bounds[0])

    @property
    def finite(self) -> bool:
        """Whether the domain has finitely many points."""
        return False

    @property
    def names(self) -> dict[str, tuple[int, ...]]:
        """Coordinates by name, such as state and action; empty when unnamed."""
        return {}

    def require_inside(self, argument: str, points: jax.Array | np.ndarray) -> None:
        """DomainError that names the worst point, its coordinate and the distance."""
        if is_traced(points):
            return
        host = np.asarray(points)
        outside = self.distance_outside(host)
        low, high = self.bounds
        # Written so that NaN, of which no comparison is true, counts as outside.
        if not (outside <= SLACK * np.maximum(high - low, 1.0)).all():
            row, axis = np.unravel_index(np.argmax(outside), outside.shape)
            raise DomainError(
                argument,
                f"points inside {self}",
                f"point {row} with coordinate {axis} = {host[row, axis]:g}, "
                f"outside by {outside[row, axis]:g}",
            )


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
        return _cartesian(axes), (high - low) / (per_axis - 1)

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
        return FiniteSet(_cartesian([np.arange(size, dtype=float) for size in sizes]))

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


@dataclasses.dataclass(frozen=True)
class Product(Domain):
    """Pairs (tuples) of points of the factors, with a name for each factor's coordinates.

    >>> join(state=Box([0, 0], [1, 1]), action=FiniteSet([[0.0], [1.0]])).names["action"]
    (2,)
    """

    factors: tuple[tuple[str, Domain], ...]

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        parts = [domain.bounds for _, domain in self.factors]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    @property
    def extent(self) -> tuple[np.ndarray, np.ndarray]:
        parts = [domain.extent for _, domain in self.factors]
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    @property
    def finite(self) -> bool:
        return all(domain.finite for _, domain in self.factors)

    @property
    def names(self) -> dict[str, tuple[int, ...]]:
        found, start = {}, 0
        for name, domain in self.factors:
            found[name] = tuple(range(start, start + domain.dimension))
            start += domain.dimension
        return found

    def net(self, budget: int) -> tuple[np.ndarray, np.ndarray]:
        # Finite factors take what they need; the rest is shared in proportion to dimension.
        fixed = {name: d.net(budget) for name, d in self.factors if d.finite}
        left = budget / np.prod([len(points) for points, _ in fixed.values()] or [1])
        open_dimension = sum(d.dimension for _, d in self.factors if not d.finite)
        nets = [
            fixed[name]
            if name in fixed
            else d.net(max(2, int(left ** (d.dimension / open_dimension) + 1e-9)))
            for name, d in self.factors
        ]
        return _rows([points for points, _ in nets]), np.concatenate([gap for _, gap in nets])

    def spread(self, count: int) -> np.ndarray:
        boxes = [d for _, d in self.factors if not d.finite]
        if not boxes:
            return self.net(count)[0]
        low = np.concatenate([d.extent[0] for d in boxes])
        high = np.concatenate([d.extent[1] for d in boxes])
        cells = [d.net(count)[0] for _, d in self.factors if d.finite]
        table = _rows(cells) if cells else np.zeros((1, 0))
        open_points = Box(low, high).spread(max(2, count // len(table)))
        rows = _rows([open_points, table])
        columns: list[np.ndarray] = []
        next_open, next_finite = 0, len(low)
        for _, d in self.factors:
            start = next_finite if d.finite else next_open
            columns.append(rows[:, start : start + d.dimension])
            if d.finite:
                next_finite += d.dimension
            else:
                next_open += d.dimension
        return np.concatenate(columns, axis=1)

    def project(self, positions: Sequence[int]) -> Domain:
        places: dict[int, tuple[int, int]] = {}  # coordinate -> (factor, place in it)
        for number, (_, domain) in enumerate(self.factors):
            for place in range(domain.dimension):
                places[len(places)] = (number, place)
        runs: list[tuple[int, list[int]]] = []
        for position in positions:
            number, place = places[position]
            if not runs or runs[-1][0] != number:
                runs.append((number, []))
            runs[-1][1].append(place)
        if len({number for number, _ in runs}) < len(runs):
            raise ArgumentError("positions", "coordinates grouped by factor", list(positions))
        parts = [(self.factors[i][0], self.factors[i][1].project(own)) for i, own in runs]
        return parts[0][1] if len(parts) == 1 else Product(tuple(parts))

    def nearest(self, points: AnyArray) -> jax.Array:
        parts, start = [], 0
        for _, domain in self.factors:
            parts.append(domain.nearest(points[:, start : start + domain.dimension]))
            start += domain.dimension
        return jnp.concatenate(parts, axis=1)

    def distance_outside(self, points: np.ndarray) -> np.ndarray:
        parts, start = [], 0
        for _, domain in self.factors:
            parts.append(domain.distance_outside(points[:, start : start + domain.dimension]))
            start += domain.dimension
        return np.concatenate(parts, axis=1)

    def __repr__(self) -> str:
        return "join(" + ", ".join(f"{name}={domain}" for name, domain in self.factors) + ")"


def join(**factors: Domain) -> Product:
    """The product of named domains, such as ``join(state=Box(...), action=Box(...))``.

    >>> points = join(state=Box([-1, -1], [1, 1]), action=Box([0], [1]))
    >>> points.dimension, points.names
    (3, {'state': (0, 1), 'action': (2,)})
    """
    if not factors:
        raise ArgumentError("factors", "at least one named domain", "none")
    for name, domain in factors.items():
        if not isinstance(domain, Domain):
            raise ArgumentError(name, "a domain such as Box(low, high)", repr(domain))
    return Product(tuple(factors.items()))


def _cartesian(axes: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")], axis=1)


def _rows(tables: Sequence[np.ndarray]) -> np.ndarray:
    index = _cartesian([np.arange(len(table)) for table in tables])
    return np.concatenate([t[index[:, i]] for i, t in enumerate(tables)], axis=1)
