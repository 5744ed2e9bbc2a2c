"""Functions that span a kernel of finite rank: f(z) = g(z)ᵀw with w ~ N(0, root rootᵀ)."""

import abc
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelmdp.kernels import Kernel
from kernelmdp.kernels.base import gram
from kernelmdp.numerics.modules import Module


class Basis(Module):
    """g: points (n, d) -> values (n, r)."""

    @abc.abstractmethod
    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]: ...


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


class SideBySide(Basis):
    """The basis of a sum of kernels."""

    left: Basis
    right: Basis

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n r"]:
        return jnp.concatenate([self.left(points), self.right(points)], axis=1)


class Products(Basis):
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


class Memory(Module):
    """Values of a basis at points that are asked for again and again, such as those of a grid."""

    points: Float[Array, "n d"]
    values: Float[Array, "n r"]

    def matches(self, points: Float[Array, "k d"]) -> bool:
        """Whether these may be the remembered points; decided by shape, while tracing."""
        return points.shape == self.points.shape


class Moments(Module):
    """Posterior means and variances at remembered points, kept up to date as data arrive."""

    mean: Float[Array, "n p"]
    variance: Float[Array, " n"]


def remembered(
    memory: Memory | None,
    points: Float[Array, "n d"],
    from_values: Callable[[Array], Any],
    from_points: Callable[[Array], Any],
) -> Any:
    """A result from remembered values when the points are the remembered ones, bit for bit."""
    if memory is None or not memory.matches(points):
        return from_points(points)
    same = jnp.array_equal(points, memory.points)
    return lax.cond(same, lambda: from_values(memory.values), lambda: from_points(points))
