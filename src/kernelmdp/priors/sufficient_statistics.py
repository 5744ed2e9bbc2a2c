"""All that Gaussian noise leaves to know of the data: ΦᵀΦ, Φᵀy, yᵀy and n. Nothing grows with n."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.numerics.modules import Module, jit
from kernelmdp.priors.weight_space import WeightColumns


class Statistics(Module):
    """Sufficient statistics of p columns that share features."""

    gram: Float[Array, "r r"]
    products: Float[Array, "r p"]
    squares: Float[Array, " p"]
    count: Float[Array, ""]

    @staticmethod
    def none(columns: WeightColumns) -> "Statistics":
        """No data yet."""
        r, p, dtype = columns.rank, columns.count, columns.root.dtype
        return Statistics(
            jnp.zeros((r, r), dtype), jnp.zeros((r, p), dtype), jnp.zeros(p, dtype), jnp.zeros(())
        )

    def after(self, features: Float[Array, "h r"], targets: Float[Array, "h p"]) -> "Statistics":
        """With more rows."""
        return _after(self, features, targets)

    def spectrum(self) -> "Spectrum":
        """ΦᵀΦ = U diag(values) Uᵀ, and UᵀΦᵀy."""
        values, vectors = jnp.linalg.eigh(self.gram)
        return Spectrum(jnp.maximum(values, 0.0), vectors, vectors.T @ self.products)


class Spectrum(NamedTuple):
    """The statistics where the weights' posterior is diagonal: ζ = Uᵀξ."""

    values: Float[Array, " r"]
    vectors: Float[Array, "r r"]
    products: Float[Array, "r p"]

    def moments(self, variances: Float[Array, " p"]) -> tuple[Array, Array]:
        """Mean and standard deviation (r, p) of ζ given the noise variance of each column."""
        total = self.values[:, None] + variances[None, :]
        return self.products / total, jnp.sqrt(variances[None, :] / total)


@jit
def _after(own: Statistics, features: Array, targets: Array) -> Statistics:
    return Statistics(
        own.gram + features.T @ features,
        own.products + features.T @ targets,
        own.squares + jnp.sum(targets**2, axis=0),
        own.count + features.shape[0],
    )
