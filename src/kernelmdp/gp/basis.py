"""Basis functions of a kernel of finite rank: f(z) = g(z)ᵀw with w ~ N(0, root rootᵀ)."""

import abc
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.errors import UnknownPropertyError
from kernelmdp.kernels import Kernel, Product, Scaled, Sum
from kernelmdp.kernels.base import gram
from kernelmdp.numerics.modules import Module
from kernelmdp.numerics.tracing import is_traced
from kernelmdp.types import Key


class Basis(Module):
    """The basis functions g, from points (n, d) to values (n, r)."""

    @abc.abstractmethod
    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]: ...

    def reweighted(
        self, root: Float[Array, "r r"], change: Callable[[Kernel], Kernel]
    ) -> Float[Array, "r r"]:
        """Compute the covariance of root⁻¹w after a change of the kernel.

        Args:
            root: The root of the covariance of w before.
            change: Changes the kernel's parameters.

        Returns:
            The covariance. For features of a kernel it stays the identity.
        """
        return jnp.eye(root.shape[0], dtype=root.dtype)


class FeatureBasis(Basis):
    """The features of a kernel of finite rank; weights are N(0, I).

    Attributes:
        kernel: The kernel.
    """

    kernel: Kernel

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        return jax.vmap(self.kernel.astype(points.dtype).features)(points)


class NystromBasis(Basis):
    """g_i(z) = k(z, u_i) for chosen points u_i; weights are N(0, K_UU⁻¹).

    Attributes:
        kernel: k.
        centres: The points u_i.
    """

    kernel: Kernel
    centres: Float[Array, "r d"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        return gram(self.kernel, points, self.centres)

    def reweighted(
        self, root: Float[Array, "r r"], change: Callable[[Kernel], Kernel]
    ) -> Float[Array, "r r"]:
        product = gram(change(self.kernel), self.centres, self.centres) @ root
        covariance = root.T @ product  # rootᵀ K(U, U) root with the changed kernel
        return 0.5 * (covariance + covariance.T)


class FourierBasis(Basis):
    """Random features of a stationary kernel: √(v/M) (cos ωᵀz, sin ωᵀz) for M drawn frequencies.

    They are approximate: the error of the covariance is O(M^−½).

    Attributes:
        kernel: The kernel, with variance v.
        frequencies: The frequencies ω.
    """

    kernel: Kernel
    frequencies: Float[Array, "M d"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        angles = points @ self.frequencies.T
        origin = jnp.zeros(points.shape[1:], points.dtype)
        variance = self.kernel.astype(points.dtype).variance(origin)
        features = jnp.concatenate([jnp.cos(angles), jnp.sin(angles)], axis=1)
        return jnp.sqrt(variance / self.frequencies.shape[0]) * features


class SumBasis(Basis):
    """The basis of a sum of kernels: the functions of both bases.

    Attributes:
        left: The basis of the first kernel.
        right: The basis of the second kernel.
    """

    left: Basis
    right: Basis

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        return jnp.concatenate([self.left(points), self.right(points)], axis=1)


class ProductBasis(Basis):
    """The basis of a product of kernels: all products of two functions.

    Attributes:
        left: The basis of the first kernel.
        right: The basis of the second kernel.
    """

    left: Basis
    right: Basis

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        pairs = self.left(points)[:, :, None] * self.right(points)[:, None, :]
        return pairs.reshape(points.shape[0], -1)


class ScaledBasis(Basis):
    """The basis of c·k.

    Attributes:
        basis: The basis of k.
        factor: c.
    """

    basis: Basis
    factor: Float[Array, ""]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        return jnp.sqrt(self.factor.astype(points.dtype)) * self.basis(points)


def prior_basis(kernel: Kernel, dimension: int, count: int, *, key: Key) -> Basis:
    """Make a random finite basis g with E g(x)ᵀg(y) = k(x, y), for kernels that do not compile.

    Stationary parts get random frequencies, parts of finite rank their exact features. Sums,
    products and multiples combine them.

    Args:
        kernel: k.
        dimension: The number of coordinates of a point.
        count: The number of random frequencies of each stationary part.
        key: Decides the frequencies.

    Returns:
        The basis.
    """
    if kernel.feature_count(dimension) < math.inf:
        return FeatureBasis(kernel)
    if kernel.stationary:
        return FourierBasis(kernel, kernel.frequencies(count, dimension, key=key))
    return _combined(kernel, dimension, count, key)


@functools.singledispatch
def _combined(kernel: Kernel, dimension: int, count: int, key: Key) -> Basis:
    name = type(kernel).__name__ if is_traced(kernel) else kernel
    raise UnknownPropertyError(
        f"{name} has no spectral law and so no random features; use sample_at on a finite set, "
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
