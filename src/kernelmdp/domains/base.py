"""The interface of all domains: bounds, nets, low-discrepancy points and projection."""

import abc
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.errors import DomainError
from kernelmdp.numerics.tracing import is_traced
from kernelmdp.types import AnyArray

#: Points may lie outside by this fraction of the length of an axis, or of 1 if the axis is shorter,
#: and still count as inside. It allows for the round-off of a clip.
OUTSIDE_TOLERANCE = 1e-9


class Domain(abc.ABC):
    """A set of points with d coordinates.

    Attributes:
        periodic: Axes whose two ends are the same point, as for an angle. Empty by default.
        points: The points as rows if the domain is a list of points, else None.

    >>> from kernelmdp.domains import Box, FiniteSet
    >>> [domain.finite for domain in (Box([0.0], [1.0]), FiniteSet([[0.0], [1.0]]))]
    [False, True]
    """

    periodic: tuple[int, ...] = ()
    points: tuple[tuple[float, ...], ...] | None = None

    @property
    @abc.abstractmethod
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest value of each coordinate, two arrays (d,); infinite if unbounded."""

    @abc.abstractmethod
    def net(self, budget: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a regular net over the domain that includes its corners.

        Every point of the domain lies in a cell of the net.

        Args:
            budget: Approximate largest number of points. A finite set ignores it.

        Returns:
            The points (n, d), and the spacing along each axis (d,). A finite axis has spacing 0.
        """

    @abc.abstractmethod
    def spread_points(self, count: int) -> np.ndarray:
        """Return deterministic low-discrepancy points of the domain.

        Args:
            count: Approximate number of points. A finite set returns all of its points instead.

        Returns:
            The points (n, d), the same at every call.
        """

    @abc.abstractmethod
    def distance_outside(self, points: np.ndarray) -> np.ndarray:
        """Return how far each coordinate of each point lies outside the domain.

        Args:
            points: The points, (n, d).

        Returns:
            The distances (n, d); 0 for coordinates inside.
        """

    @abc.abstractmethod
    def project(self, positions: Sequence[int]) -> "Domain":
        """Return the domain of a subset of the coordinates.

        Args:
            positions: Indices of the coordinates, in the wanted order.

        Returns:
            The domain that these coordinates range over.
        """

    @abc.abstractmethod
    def nearest(self, points: AnyArray) -> jax.Array:
        """Return the point of the domain that is nearest to each given point.

        This is the projection Π_S of raw outcomes onto the state space. It can be traced.

        Args:
            points: The points, (n, d).

        Returns:
            The projected points, (n, d).
        """

    def difference(self, points: AnyArray, origins: AnyArray) -> jax.Array:
        """Return the displacement from origins to points, the shorter way along periodic axes.

        It can be traced.

        Args:
            points: The points, (n, d).
            origins: The points to subtract, (n, d).

        Returns:
            points − origins, (n, d).
        """
        return jnp.asarray(points - origins)

    @property
    def extent(self) -> tuple[np.ndarray, np.ndarray]:
        """Finite lowest and highest value of each coordinate of the points of ``spread``."""
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
        return all(bool(np.isfinite(bound).all()) for bound in self.bounds)

    @property
    def parts(self) -> tuple["Domain", ...]:
        """The factors of a product, those of nested products included; else the domain itself."""
        return (self,)

    @property
    def names(self) -> dict[str, tuple[int, ...]]:
        """Indices of the coordinates by name, such as state and action; empty if unnamed."""
        return {}

    def require_inside(self, argument: str, points: jax.Array | np.ndarray) -> None:
        """Check that points lie in the domain, up to ``OUTSIDE_TOLERANCE``.

        Traced points are not checked, because their values are unknown.

        Args:
            argument: Name of the argument, for the error message.
            points: The points, (n, d).

        Raises:
            DomainError: If a point lies outside or is not finite. The message names the point and
                coordinate that are farthest outside, and the distance.
        """
        if is_traced(points):
            return
        values = np.asarray(points)
        outside = self.distance_outside(values)
        low, high = self.bounds
        # No comparison with NaN is true, so this form counts NaN as outside.
        if not (outside <= OUTSIDE_TOLERANCE * np.maximum(high - low, 1.0)).all():
            row, axis = np.unravel_index(np.argmax(outside), outside.shape)
            raise DomainError(
                argument,
                f"points inside {self}",
                f"point {row} with coordinate {axis} = {values[row, axis]:g}, "
                f"outside by {outside[row, axis]:g}",
            )
