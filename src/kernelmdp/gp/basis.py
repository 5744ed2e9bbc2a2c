"""Functions that span a kernel of finite rank: f(z) = g(z)ᵀw with w ~ N(0, root rootᵀ)."""

import abc
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelmdp.errors import UnknownPropertyError
from kernelmdp.kernels import Kernel, Product, Scaled, Sum
from kernelmdp.kernels.base import gram
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Key


class Basis(Module):
    """g: points (n, d) -> values (n, r)."""

    @abc.abstractmethod
    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]: ...

    def reweighted(
        self, root: Float[Array, "r r"], change: Callable[[Kernel], Kernel]
    ) -> Float[Array, "r r"]:
        """The covariance of root⁻¹w when the kernel is changed; that of features stays I."""
        return jnp.eye(root.shape[0], dtype=root.dtype)


class FeatureBasis(Basis):
    """The features of a kernel of finite rank; weights are N(0, I)."""

    kernel: Kernel

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        return jax.vmap(self.kernel.astype(points.dtype).features)(points)


class NystromBasis(Basis):
    """g_i(z) = k(z, u_i) for chosen points u_i; weights are N(0, K_UU⁻¹)."""

    kernel: Kernel
    centres: Float[Array, "r d"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        return gram(self.kernel, points, self.centres)

    def reweighted(
        self, root: Float[Array, "r r"], change: Callable[[Kernel], Kernel]
    ) -> Float[Array, "r r"]:
        """rootᵀ K(U, U) root, K the matrix of the changed kernel at the centres U."""
        half = gram(change(self.kernel), self.centres, self.centres) @ root
        found = root.T @ half
        return 0.5 * (found + found.T)


class FourierBasis(Basis):
    """Random features of a stationary kernel: √(v/M) (cos ωᵀz, sin ωᵀz) for M drawn frequencies.

    Approximate: the covariance errs by O(M^−½).
    """

    kernel: Kernel
    frequencies: Float[Array, "M d"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        angles = points @ self.frequencies.T
        origin = jnp.zeros(points.shape[1:], points.dtype)
        variance = self.kernel.astype(points.dtype).variance(origin)
        waves = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1)
        return jnp.sqrt(variance / self.frequencies.shape[0]) * waves


class SumBasis(Basis):
    """The basis of a sum of kernels."""

    left: Basis
    right: Basis

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        return jnp.concatenate([self.left(points), self.right(points)], axis=1)


class ProductBasis(Basis):
    """The basis of a product of kernels: all products of two members."""

    left: Basis
    right: Basis

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        pairs = self.left(points)[:, :, None] * self.right(points)[:, None, :]
        return pairs.reshape(points.shape[0], -1)


class ScaledBasis(Basis):
    """The basis of c·k."""

    basis: Basis
    factor: Float[Array, ""]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        return jnp.sqrt(self.factor.astype(points.dtype)) * self.basis(points)


def prior_basis(kernel: Kernel, dimension: int, count: int, *, key: Key) -> Basis:
    """A random finite basis g with E g(x)ᵀg(y) = k(x, y), for kernels that do not compile.

    Stationary parts get ``count`` random frequencies, parts of finite rank their exact features,
    and sums, products and multiples combine them.
    """
    if kernel.feature_count(dimension) < math.inf:
        return FeatureBasis(kernel)
    if kernel.stationary:
        return FourierBasis(kernel, kernel.frequencies(count, dimension, key=key))
    return _combined(kernel, dimension, count, key)


@functools.singledispatch
def _combined(kernel: Kernel, dimension: int, count: int, key: Key) -> Basis:
    raise UnknownPropertyError(
        f"{kernel} has no spectral law and so no random features; use sample_at on a finite set, "
        "sample(..., method='lazy'), or a domain on which the kernel compiles"
    )


@_combined.register
def _of_scaled(kernel: Scaled, dimension: int, count: int, key: Key) -> Basis:
    return ScaledBasis(prior_basis(kernel.kernel, dimension, count, key=key), kernel.factor)


@_combined.register
def _of_sum(kernel: Sum, dimension: int, count: int, key: Key) -> Basis:
    left, right = jax.random.split(key)
    return SumBasis(
        prior_basis(kernel.left, dimension, count, key=left),
        prior_basis(kernel.right, dimension, count, key=right),
    )


@_combined.register
def _of_product(kernel: Product, dimension: int, count: int, key: Key) -> Basis:
    left, right = jax.random.split(key)
    return ProductBasis(
        prior_basis(kernel.left, dimension, count, key=left),
        prior_basis(kernel.right, dimension, count, key=right),
    )


class BasisCache(Module):
    """Values of a basis at points that are asked for again and again, such as those of a grid."""

    points: Float[Array, "n d"]
    values: Float[Array, "n r"]

    def matches(self, points: Float[Array, "k d"]) -> bool:
        """Whether these may be the remembered points; decided by shape, while tracing."""
        return points.shape == self.points.shape


class MomentCache(Module):
    """Posterior means and variances at remembered points, kept up to date as data arrive."""

    mean: Float[Array, "n p"]
    variance: Float[Array, " n"]


def cached(
    memory: BasisCache | None,
    points: Float[Array, "n d"],
    from_values: Callable[[Array], Any],
    from_points: Callable[[Array], Any],
) -> Any:
    """A result from remembered values when the points are the remembered ones, bit for bit."""
    if memory is None or not memory.matches(points):
        return from_points(points)
    same = jnp.array_equal(points, memory.points)
    return lax.cond(same, lambda: from_values(memory.values), lambda: from_points(points))
