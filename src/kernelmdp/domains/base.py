"""What every domain answers: its bounds, its points, nets over it, and what lies outside."""

import abc
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.errors import DomainError
from kernelmdp.numerics.factorisation import is_traced
from kernelmdp.types import AnyArray

#: Points may leave the domain by this fraction of an axis: round-off of a clip is no error.
SLACK = 1e-9


class Domain(abc.ABC):
    """A set of points in d coordinates.

    >>> from kernelmdp.domains import Box, FiniteSet
    >>> [domain.finite for domain in (Box([0.0], [1.0]), FiniteSet([[0.0], [1.0]]))]
    [False, True]
    """

    #: Axes whose two ends are the same place, as for an angle.
    periodic: tuple[int, ...] = ()
    #: The points as rows where the domain is a list of them, else None.
    points: tuple[tuple[float, ...], ...] | None = None

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
    def bounded(self) -> bool:
        """Whether every coordinate has a lowest and a highest value."""
        return all(bool(np.isfinite(end).all()) for end in self.bounds)

    @property
    def parts(self) -> tuple["Domain", ...]:
        """The factors of a product; of any other domain itself."""
        return (self,)

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
