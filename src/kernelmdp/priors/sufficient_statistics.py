"""Sufficient statistics of data with Gaussian noise: ΦᵀΦ, Φᵀy, yᵀy and n. No size grows with n."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.numerics.modules import Module, jit
from kernelmdp.priors.weight_space import WeightColumns


class Statistics(Module):
    """Sufficient statistics of p columns that share features.

    Attributes:
        gram: ΦᵀΦ.
        products: Φᵀy.
        squares: yᵀy of each column.
        count: n.
    """

    gram: Float[Array, "r r"]
    products: Float[Array, "r p"]
    squares: Float[Array, " p"]
    count: Float[Array, ""]

    @staticmethod
    def none(columns: WeightColumns) -> "Statistics":
        """Make the statistics of no data.

        Args:
            columns: Define r, p and the precision.

        Returns:
            The statistics.
        """
        r, p, dtype = columns.rank, columns.count, columns.root.dtype
        return Statistics(
            jnp.zeros((r, r), dtype), jnp.zeros((r, p), dtype), jnp.zeros(p, dtype), jnp.zeros(())
        )

    def after(self, features: Float[Array, "h r"], targets: Float[Array, "h p"]) -> "Statistics":
        """Add rows.

        Args:
            features: (h, r).
            targets: (h, p).

        Returns:
            The statistics with these rows.
        """
        return _after(self, features, targets)

    def spectrum(self) -> "Spectrum":
        """Compute the eigendecomposition ΦᵀΦ = U diag(values) Uᵀ, and UᵀΦᵀy.

        Returns:
            The spectrum.
        """
        values, vectors = jnp.linalg.eigh(self.gram)
        return Spectrum(jnp.maximum(values, 0.0), vectors, vectors.T @ self.products)


class Spectrum(NamedTuple):
    """The statistics in coordinates ζ = Uᵀξ, in which the posterior of the weights is diagonal.

    Attributes:
        values: The eigenvalues of ΦᵀΦ.
        vectors: U.
        products: UᵀΦᵀy.
    """

    values: Float[Array, " r"]
    vectors: Float[Array, "r r"]
    products: Float[Array, "r p"]

    def moments(self, variances: Float[Array, " p"]) -> tuple[Array, Array]:
        """Compute the posterior moments of ζ.

        Args:
            variances: The noise variance of each column.

        Returns:
            Means and standard deviations, (r, p) each.
        """
        total = self.values[:, None] + variances[None, :]
        return self.products / total, jnp.sqrt(variances[None, :] / total)


@jit
def _after(before: Statistics, features: Array, targets: Array) -> Statistics:
    return Statistics(
        before.gram + features.T @ features,
        before.products + features.T @ targets,
        before.squares + jnp.sum(targets**2, axis=0),
        before.count + features.shape[0],
    )
