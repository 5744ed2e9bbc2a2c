"""Products of domains, such as pairs of a state and an action."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.domains.base import Domain
from kernelmdp.domains.sets import Box, cartesian
from kernelmdp.errors import ArgumentError
from kernelmdp.types import AnyArray


@dataclasses.dataclass(frozen=True)
class ProductDomain(Domain):
    """Pairs (tuples) of points of the factors, with a name for each factor's coordinates.

    >>> from kernelmdp.domains import FiniteSet
    >>> join(state=Box([0, 0], [1, 1]), action=FiniteSet([[0.0], [1.0]])).names["action"]
    (2,)
    """

    factors: tuple[tuple[str, Domain], ...]

    def __post_init__(self) -> None:
        starts = [own[0] for own in self.names.values()]
        pairs = zip(starts, self.factors, strict=True)
        around = tuple(start + axis for start, (_, part) in pairs for axis in part.periodic)
        object.__setattr__(self, "periodic", around)

    @property
    def parts(self) -> tuple[Domain, ...]:
        return tuple(part for _, domain in self.factors for part in domain.parts)

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
        return parts[0][1] if len(parts) == 1 else ProductDomain(tuple(parts))

    def nearest(self, points: AnyArray) -> jax.Array:
        parts, start = [], 0
        for _, domain in self.factors:
            parts.append(domain.nearest(points[:, start : start + domain.dimension]))
            start += domain.dimension
        return jnp.concatenate(parts, axis=1)

    def difference(self, points: AnyArray, others: AnyArray) -> jax.Array:
        parts, start = [], 0
        for _, domain in self.factors:
            own = slice(start, start + domain.dimension)
            parts.append(domain.difference(points[:, own], others[:, own]))
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


def join(**factors: Domain) -> ProductDomain:
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
    return ProductDomain(tuple(factors.items()))


def _rows(tables: Sequence[np.ndarray]) -> np.ndarray:
    index = cartesian([np.arange(len(table)) for table in tables])
    return np.concatenate([t[index[:, i]] for i, t in enumerate(tables)], axis=1)
