"""Trusted sets: the states in which a fallback is known to be safe."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.domains import Box, Domain
from kernelmdp.errors import ArgumentError

#: Factors of the number of states that are tried to find some of a set. The next one is tried if
#: none was found.
PROBE_FACTORS = (1, 16, 256)


class TrustedSet(abc.ABC):
    """A set of states.

    Attributes:
        known_over_cells: Whether ``covers`` and ``touches`` are true of whole cells. If not, they
            are true of the given points alone.

    >>> from kernelmdp.domains import Box
    >>> as_trusted(Box([0.0], [1.0])).touches(np.array([[[-1.0]], [[0.5]]]))
    array([ True])
    """

    known_over_cells: ClassVar[bool]

    @abc.abstractmethod
    def contains(self, states: Float[Array, "n m"]) -> Bool[Array, " n"]:
        """Tell which states are in the set. This can be traced.

        Args:
            states: The states, (n, m).

        Returns:
            Whether they are in the set, (n,).
        """

    @abc.abstractmethod
    def covers(self, corners: Float[np.ndarray, "k N m"]) -> Bool[np.ndarray, " N"]:
        """Tell which cells are inside the set.

        Args:
            corners: k points of each of N cells, with all of its corners, (k, N, m).

        Returns:
            Whether all of the cell is in the set, (N,).
        """

    @abc.abstractmethod
    def touches(self, corners: Float[np.ndarray, "k N m"]) -> Bool[np.ndarray, " N"]:
        """Tell which cells have a state of the set.

        Args:
            corners: k points of each of N cells, with all of its corners, (k, N, m).

        Returns:
            Whether some of the cell is in the set, (N,).
        """

    @abc.abstractmethod
    def probes(self, states: Domain, count: int) -> Float[Array, "n m"]:
        """Return states of the set, at which a fallback is tried.

        Args:
            states: The state space.
            count: About how many states are tried.

        Returns:
            States of the set, (n, m).

        Raises:
            ArgumentError: If there are none, or they are no states.
        """


@dataclasses.dataclass(frozen=True)
class TrustedDomain(TrustedSet):
    """A box, a finite set, or a product of those.

    Attributes:
        domain: The domain.
    """

    known_over_cells: ClassVar[bool] = True

    domain: Domain

    def contains(self, states: Float[Array, "n m"]) -> Bool[Array, " n"]:
        inside, first = jnp.ones(states.shape[0], bool), 0
        for part in self.domain.parts:
            rows = states[:, first : first + part.dimension]
            first += part.dimension
            if part.points is None:
                low, high = (jnp.asarray(end)[None, :] for end in part.bounds)
                inside &= jnp.all((rows >= low) & (rows <= high), axis=1)
            else:
                points = jnp.asarray(np.array(part.points))
                inside &= jnp.any(jnp.all(rows[:, None, :] == points[None], axis=2), axis=1)
        return inside

    def covers(self, corners: Float[np.ndarray, "k N m"]) -> Bool[np.ndarray, " N"]:
        # A box with all corners contains the cell. A point contains no cell that has an extent.
        inside = np.asarray(self.contains(jnp.asarray(corners.reshape(-1, corners.shape[2]))))
        extents, first = corners.max(axis=0) - corners.min(axis=0), 0
        covered = inside.reshape(corners.shape[:2]).all(axis=0)
        for part in self.domain.parts:
            if part.points is not None:
                covered &= (extents[:, first : first + part.dimension] == 0).all(axis=1)
            first += part.dimension
        return np.asarray(covered)

    def touches(self, corners: Float[np.ndarray, "k N m"]) -> Bool[np.ndarray, " N"]:
        lowest, highest = corners.min(axis=0), corners.max(axis=0)
        touched, first = np.ones(corners.shape[1], bool), 0
        for part in self.domain.parts:
            axes = slice(first, first + part.dimension)
            first += part.dimension
            if part.points is None:
                low, high = (end[None, None, :] for end in part.bounds)
            else:
                low = high = np.array(part.points)[:, None, :]
            overlaps = (lowest[None, :, axes] <= high) & (highest[None, :, axes] >= low)
            touched &= overlaps.all(axis=2).any(axis=0)
        return touched

    def probes(self, states: Domain, count: int) -> Float[Array, "n m"]:
        rows = jnp.asarray(self.domain.spread_points(count), float)
        if rows.shape[1] != states.dimension:
            expected = f"a trusted set of {states.dimension} coordinates"
            raise ArgumentError("fallback", expected, f"{rows.shape[1]}")
        return rows[np.flatnonzero(np.asarray(self.contains(rows)))]


@dataclasses.dataclass(frozen=True)
class TrustedFunction(TrustedSet):
    """The states for which a function is true. Between the points of a cell it is not known.

    Attributes:
        function: From states (n, m) to truth values (n,).
    """

    known_over_cells: ClassVar[bool] = False

    function: Callable[..., Any]

    def contains(self, states: Float[Array, "n m"]) -> Bool[Array, " n"]:
        return jnp.asarray(self.function(states), bool)

    def _at(self, corners: Float[np.ndarray, "k N m"]) -> np.ndarray:
        rows = jnp.asarray(corners.reshape(-1, corners.shape[2]))
        return np.asarray(self.contains(rows)).reshape(corners.shape[:2])

    def covers(self, corners: Float[np.ndarray, "k N m"]) -> Bool[np.ndarray, " N"]:
        return np.asarray(self._at(corners).all(axis=0))

    def touches(self, corners: Float[np.ndarray, "k N m"]) -> Bool[np.ndarray, " N"]:
        return np.asarray(self._at(corners).any(axis=0))

    def probes(self, states: Domain, count: int) -> Float[Array, "n m"]:
        # A small set in many coordinates contains few of the points.
        for factor in PROBE_FACTORS:
            rows = jnp.asarray(states.spread_points(factor * count), float)
            inside = np.flatnonzero(np.asarray(self.contains(rows)))
            if len(inside):
                return rows[inside]
        raise ArgumentError("fallback", "a trusted set with some states", "none")


@dataclasses.dataclass(frozen=True)
class TrustedLeading(TrustedSet):
    """A set of the first coordinates of states. The others, such as a measured cost, are free.

    Attributes:
        inner: The set of the first coordinates.
        count: Their number.
    """

    inner: TrustedSet
    count: int

    @property
    def known_over_cells(self) -> bool:  # type: ignore[override]
        return self.inner.known_over_cells

    def contains(self, states: Float[Array, "n m"]) -> Bool[Array, " n"]:
        return self.inner.contains(states[:, : self.count])

    def covers(self, corners: Float[np.ndarray, "k N m"]) -> Bool[np.ndarray, " N"]:
        return self.inner.covers(corners[:, :, : self.count])

    def touches(self, corners: Float[np.ndarray, "k N m"]) -> Bool[np.ndarray, " N"]:
        return self.inner.touches(corners[:, :, : self.count])

    def probes(self, states: Domain, count: int) -> Float[Array, "n m"]:
        low, high = (end[: self.count] for end in states.bounds)
        periodic = [axis for axis in states.periodic if axis < self.count]
        rows = self.inner.probes(Box(low, high, periodic), count)
        return jnp.pad(rows, ((0, 0), (0, states.dimension - self.count)))


def as_trusted(trusted: Any) -> TrustedSet | None:
    """Make a trusted set from what a user may write.

    Args:
        trusted: A ``Domain``, a function from states (n, m) to truth values (n,), or a trusted set.
            None is none.

    Returns:
        The trusted set.

    Raises:
        ArgumentError: If it is none of these.
    """
    if trusted is None or isinstance(trusted, TrustedSet):
        return trusted
    if isinstance(trusted, Domain):
        return TrustedDomain(trusted)
    if callable(trusted):
        return TrustedFunction(trusted)
    raise ArgumentError("fallback", "a trusted set: a Domain or a function", repr(trusted))
