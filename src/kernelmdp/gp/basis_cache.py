"""Values of basis functions at points that are evaluated often, such as those of a grid.

At n points the values are a matrix G of shape (n, r), and all that is asked of it are products with
narrow matrices. ``BasisCache`` stores G. ``GridCache`` is for the points of a grid, where a smooth
basis needs far fewer numbers:

    G[i_1, …, i_d, :] = Σ_{j_1, …, j_d} A_1[i_1, j_1] ⋯ A_d[i_d, j_d] core[j_1, …, j_d, :].

The columns of A_a span the values along axis a up to rounding. A product with G is then one with
the core, which has few rows, and is expanded axis by axis.
"""

import abc
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from kernelmdp.numerics.factorisation import orthonormal_span, product_squared_lengths
from kernelmdp.numerics.modules import Module, map_chunks
from kernelmdp.numerics.tracing import is_traced

#: Number of stored values treated at once, which bounds the memory of intermediate arrays.
ENTRIES = 2**23
#: Number of values of a basis from which on a grid is compressed. Products with fewer of them take
#: less than a millisecond.
MANY_VALUES = 2**20
#: A grid is compressed if the core has at most this share of its rows. Otherwise little is gained.
WORTHWHILE = 0.25
#: Directions along an axis are kept if their singular value is above this share of the largest one.
#: Smaller ones are rounding errors of the values.
SINGULAR_SHARE = 1e-15
#: Largest error of a compressed value, as a share of the largest value: a few hundred roundings.
COMPRESSION_ERROR = 1e-13
#: Number of random columns from which the span of an axis is found, or four for each of its nodes.
#: All columns would take seconds. The error of the result is checked.
SPANNING_COLUMNS = 8192


class PointCache(Module):
    """The contract of a cache of basis values G at some points.

    Attributes:
        points: The points.
    """

    points: Float[Array, "n d"]

    def matches(self, points: Float[Array, "k d"]) -> bool:
        """Whether points may be the cached ones. Tracing knows only the shape, which decides.

        Args:
            points: (k, d).

        Returns:
            True if the shapes agree.
        """
        return points.shape == self.points.shape

    @abc.abstractmethod
    def product(self, coefficients: Float[Array, "r p"]) -> Float[Array, "n p"]:
        """Compute G coefficients, for a few columns.

        Args:
            coefficients: (r, p).

        Returns:
            The product, (n, p).
        """

    @abc.abstractmethod
    def moments(
        self, weights: Float[Array, "r p"], root: Float[Array, "r r"], panels: int
    ) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        """Compute means and variances for weights with mean ``weights`` and covariance root rootᵀ.

        Args:
            weights: (r, p).
            root: (r, r).
            panels: Number of panels in which zeros of a lower triangular root are skipped.

        Returns:
            Means (n, p) and variances (n,).
        """

    @abc.abstractmethod
    def changes(
        self, gain: Float[Array, "r h"], residual: Float[Array, "h p"]
    ) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        """Compute G gain residual, and the squared lengths of the rows of G gain.

        Args:
            gain: (r, h).
            residual: (h, p).

        Returns:
            The change of the means (n, p), and the decrease of the variances (n,).
        """


class BasisCache(PointCache):
    """Values of a basis at any points.

    Attributes:
        points: The points.
        values: The values of the basis.
    """

    values: Float[Array, "n r"]

    def product(self, coefficients: Float[Array, "r p"]) -> Float[Array, "n p"]:
        return self.values @ coefficients

    def moments(
        self, weights: Float[Array, "r p"], root: Float[Array, "r r"], panels: int
    ) -> tuple[Array, Array]:
        def of_rows(rows: Array) -> tuple[Array, Array]:
            return rows @ weights, product_squared_lengths(rows, root, panels)

        return map_chunks(of_rows, self.values, ENTRIES // root.shape[0])

    def changes(
        self, gain: Float[Array, "r h"], residual: Float[Array, "h p"]
    ) -> tuple[Array, Array]:
        change = self.values @ gain
        return change @ residual, jnp.sum(change**2, axis=1)


class GridCache(PointCache):
    """Values of a smooth basis at the points of a grid, compressed along each axis.

    Attributes:
        points: The points. The last coordinate varies fastest.
        factors: A_a of each axis, (n_a, k_a).
        core: The core, (k_1, …, k_d, r).
    """

    factors: tuple[Float[Array, "_ _"], ...]
    core: Array

    def product(self, coefficients: Float[Array, "r p"]) -> Float[Array, "n p"]:
        rows = jnp.tensordot(self.core, coefficients, axes=1)
        for axis, factor in enumerate(self.factors):
            rows = _expanded(rows, factor, axis)
        return rows.reshape(-1, coefficients.shape[1])

    def moments(
        self, weights: Float[Array, "r p"], root: Float[Array, "r r"], panels: int
    ) -> tuple[Array, Array]:
        return self.product(weights), self.squared_lengths(root)

    def changes(
        self, gain: Float[Array, "r h"], residual: Float[Array, "h p"]
    ) -> tuple[Array, Array]:
        return self.product(gain @ residual), self.squared_lengths(gain)

    def squared_lengths(self, matrix: Float[Array, "r h"]) -> Float[Array, " n"]:
        """Compute the squared lengths of the rows of G matrix.

        The product has n × h entries. They are computed for one node of the first axis at a time,
        and so never leave the processor's cache.

        Args:
            matrix: (r, h).

        Returns:
            The squared lengths, (n,).
        """
        first, second, *others = self.factors
        # The second axis is expanded last, as a product of two matrices without a transposition.
        rows = jnp.moveaxis(jnp.tensordot(self.core, matrix, axes=1), 1, -1)

        def at_node(slab: Array) -> Array:
            for axis, factor in enumerate(others):
                slab = _expanded(slab, factor, axis)
            return jnp.sum((slab @ second.T) ** 2, axis=-2)

        lengths = lax.map(at_node, _expanded(rows, first, 0))
        return jnp.moveaxis(lengths, -1, 1).reshape(-1)


class MomentCache(Module):
    """Posterior means and variances at cached points, kept up to date as data arrive.

    Attributes:
        mean: The means.
        variance: The variances.
    """

    mean: Float[Array, "n p"]
    variance: Float[Array, " n"]


def from_cache(
    cache: PointCache | None,
    points: Float[Array, "n d"],
    from_values: Callable[[PointCache], Any],
    from_points: Callable[[Array], Any],
) -> Any:
    """Compute a result from cached values if the points are the cached ones, bit for bit.

    Args:
        cache: The cache, or None.
        points: (n, d).
        from_values: Computes the result from the cache.
        from_points: Computes the result from points.

    Returns:
        The result.
    """
    if cache is None or not cache.matches(points):
        return from_points(points)
    same = jnp.array_equal(points, cache.points)
    return lax.cond(same, lambda: from_values(cache), lambda: from_points(points))


def compressed(cache: BasisCache | None) -> PointCache | None:
    """Compress a cache at the points of a grid, where this makes products much faster.

    Args:
        cache: The cache, or None.

    Returns:
        The compressed cache. The cache itself, if it is small, has other points, is not in 64 bits
        or cannot be compressed without an error above rounding.
    """
    if cache is None or is_traced(cache.values) or cache.values.size < MANY_VALUES:
        return cache
    shape = grid_shape(np.asarray(cache.points))
    if shape is None or cache.values.dtype != jnp.float64:
        return cache
    values = np.asarray(cache.values).reshape(*shape, -1)
    factors, core = [], values
    for axis in range(len(shape)):
        factors.append(_span(core, axis))
        core = _contracted(core, factors[-1].T, axis)
    if math.prod(core.shape[:-1]) > WORTHWHILE * math.prod(shape):
        return cache
    first, *others = factors
    allowed = COMPRESSION_ERROR * np.abs(values).max()
    for row, slab in zip(first, values, strict=True):  # A slab fits into the processor's cache.
        restored = np.tensordot(row, core, axes=1)
        for axis, factor in enumerate(others):
            restored = _contracted(restored, factor, axis)
        if np.abs(restored - slab).max() > allowed:
            return cache
    return GridCache(cache.points, tuple(map(jnp.asarray, factors)), jnp.asarray(core))


def grid_shape(points: Float[np.ndarray, "n d"]) -> tuple[int, ...] | None:
    """Find the numbers of nodes along the axes of a grid.

    Args:
        points: (n, d).

    Returns:
        The numbers, if the points are a grid of two axes or more whose last coordinate varies
        fastest. None otherwise.

    >>> grid_shape(np.array([[0.0, 1.0], [0.0, 2.0], [5.0, 1.0], [5.0, 2.0]]))
    (2, 2)
    """
    axes = [
        points[np.sort(np.unique(column, return_index=True)[1]), a]
        for a, column in enumerate(points.T)
    ]
    shape = tuple(map(len, axes))
    if len(shape) < 2 or math.prod(shape) != len(points):
        return None
    grid = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    return shape if np.array_equal(grid, points) else None


def _span(values: np.ndarray, axis: int) -> np.ndarray:
    """Orthonormal columns that span the values along an axis, (n, k)."""
    rows = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
    count = max(SPANNING_COLUMNS, 4 * rows.shape[0])
    if rows.shape[1] > count:
        rows = rows[:, np.random.default_rng(0).permutation(rows.shape[1])[:count]]
    return orthonormal_span(rows, SINGULAR_SHARE)


def _contracted(values: np.ndarray, matrix: np.ndarray, axis: int) -> np.ndarray:
    return np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)


def _expanded(rows: Array, factor: Array, axis: int) -> Array:
    return jnp.moveaxis(jnp.tensordot(factor, rows, axes=(1, axis)), 0, axis)
