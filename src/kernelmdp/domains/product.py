"""Products of named domains, such as pairs of a state and an action."""

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
    """The Cartesian product of named domains. Use ``join`` to make one.

    A point is the concatenation of one point of each factor.

    Attributes:
        factors: Name and domain of each factor, in the order of the coordinates.

    >>> from kernelmdp.domains import FiniteSet
    >>> join(state=Box([0, 0], [1, 1]), action=FiniteSet([[0.0], [1.0]])).names["action"]
    (2,)
    """

    factors: tuple[tuple[str, Domain], ...]

    def __post_init__(self) -> None:
        starts = [coordinates[0] for coordinates in self.names.values()]
        pairs = zip(starts, self.factors, strict=True)
        periodic = tuple(start + axis for start, (_, factor) in pairs for axis in factor.periodic)
        object.__setattr__(self, "periodic", periodic)

    @property
    def parts(self) -> tuple[Domain, ...]:
        return tuple(part for _, domain in self.factors for part in domain.parts)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        bounds = [domain.bounds for _, domain in self.factors]
        return np.concatenate([b[0] for b in bounds]), np.concatenate([b[1] for b in bounds])

    @property
    def extent(self) -> tuple[np.ndarray, np.ndarray]:
        extents = [domain.extent for _, domain in self.factors]
        return np.concatenate([e[0] for e in extents]), np.concatenate([e[1] for e in extents])

    @property
    def finite(self) -> bool:
        return all(domain.finite for _, domain in self.factors)

    @property
    def names(self) -> dict[str, tuple[int, ...]]:
        coordinates, start = {}, 0
        for name, domain in self.factors:
            coordinates[name] = tuple(range(start, start + domain.dimension))
            start += domain.dimension
        return coordinates

    def net(self, budget: int) -> tuple[np.ndarray, np.ndarray]:
        # Finite factors use all of their points. The other factors share what is left of the
        # budget in proportion to their dimensions.
        finite_nets = {name: d.net(budget) for name, d in self.factors if d.finite}
        remaining = budget / np.prod([len(points) for points, _ in finite_nets.values()] or [1])
        continuous_dimension = sum(d.dimension for _, d in self.factors if not d.finite)
        nets = [
            finite_nets[name]
            if name in finite_nets
            else d.net(max(2, int(remaining ** (d.dimension / continuous_dimension) + 1e-9)))
            for name, d in self.factors
        ]
        return (
            _rows([points for points, _ in nets]),
            np.concatenate([spacing for _, spacing in nets]),
        )

    def spread_points(self, count: int) -> np.ndarray:
        continuous = [d for _, d in self.factors if not d.finite]
        if not continuous:
            return self.net(count)[0]
        low = np.concatenate([d.extent[0] for d in continuous])
        high = np.concatenate([d.extent[1] for d in continuous])
        finite_sets = [d.net(count)[0] for _, d in self.factors if d.finite]
        finite_points = _rows(finite_sets) if finite_sets else np.zeros((1, 0))
        continuous_points = Box(low, high).spread_points(max(2, count // len(finite_points)))
        # The rows have the continuous factors first. Put the columns into the factors' order.
        rows = _rows([continuous_points, finite_points])
        columns: list[np.ndarray] = []
        next_continuous, next_finite = 0, len(low)
        for _, d in self.factors:
            start = next_finite if d.finite else next_continuous
            columns.append(rows[:, start : start + d.dimension])
            if d.finite:
                next_finite += d.dimension
            else:
                next_continuous += d.dimension
        return np.concatenate(columns, axis=1)

    def project(self, positions: Sequence[int]) -> Domain:
        locations: dict[int, tuple[int, int]] = {}  # coordinate -> (factor, axis of the factor)
        for factor, (_, domain) in enumerate(self.factors):
            for axis in range(domain.dimension):
                locations[len(locations)] = (factor, axis)
        groups: list[tuple[int, list[int]]] = []
        for position in positions:
            factor, axis = locations[position]
            if not groups or groups[-1][0] != factor:
                groups.append((factor, []))
            groups[-1][1].append(axis)
        if len({factor for factor, _ in groups}) < len(groups):
            raise ArgumentError("positions", "coordinates grouped by factor", list(positions))
        projections = [(self.factors[i][0], self.factors[i][1].project(axes)) for i, axes in groups]
        return projections[0][1] if len(projections) == 1 else ProductDomain(tuple(projections))

    def nearest(self, points: AnyArray) -> jax.Array:
        parts, start = [], 0
        for _, domain in self.factors:
            parts.append(domain.nearest(points[:, start : start + domain.dimension]))
            start += domain.dimension
        return jnp.concatenate(parts, axis=1)

    def difference(self, points: AnyArray, origins: AnyArray) -> jax.Array:
        parts, start = [], 0
        for _, domain in self.factors:
            columns = slice(start, start + domain.dimension)
            parts.append(domain.difference(points[:, columns], origins[:, columns]))
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
    """Return the product of named domains, such as ``join(state=Box(...), action=Box(...))``.

    Args:
        **factors: The domains by name, at least one. Their order is that of the coordinates.

    Returns:
        The product, whose ``names`` maps each name to its coordinates.

    Raises:
        ArgumentError: If there is no factor, or one is not a ``Domain``.

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
    """All concatenations of one row of each table; the last table varies fastest."""
    index = cartesian([np.arange(len(table)) for table in tables])
    return np.concatenate([table[index[:, i]] for i, table in enumerate(tables)], axis=1)
