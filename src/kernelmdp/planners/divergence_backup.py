"""The best distribution in a Kullback-Leibler ball, for tables (docs/theory.md, Proposition 9)."""

import jax.numpy as jnp
from jax import lax
from jax.scipy.special import xlogy
from jaxtyping import Array, Float

from kernelmdp.mdp.model import Prediction
from kernelmdp.mdp.noise import onto_simplex
from kernelmdp.planners.optimistic_backup import OptimisticBackup

#: Range of the dual variable, for values scaled to [0, 1]. Radii from 1e-12 on have their best
#: value inside. Outside, the bound is valid and not quite the least.
LEAST, LARGEST = 1e-9, 1e6
#: Halvings of the range of its logarithm: the best value is then known to eight digits.
HALVINGS = 32


class DivergenceBackup(OptimisticBackup):
    """max ⟨p, V⟩ over all distributions p with KL(p̂‖p) ≤ ρ.

    By Jensen's inequality every x ≥ max V gives a bound, x − e^{−ρ} exp(Σ_i p̂_i ln(x − V_i)). The
    least of them is the maximum. So the result is never too small.
    """

    def locate(self, prediction: Prediction, sizes: Array, lipschitz: Array) -> tuple[Array, Array]:
        assert prediction.divergence is not None
        return onto_simplex(prediction.state), prediction.divergence

    def prepare(self, table: Float[Array, " M"], sizes: Array) -> Array:
        return table

    def read(self, prepared: Array, positions: tuple[Array, Array]) -> Float[Array, " n"]:
        means, divergence = positions
        top = jnp.max(prepared)
        span = jnp.maximum(top - jnp.min(prepared), jnp.finfo(prepared.dtype).tiny)
        losses = ((top - prepared) / span)[None, :]
        share = jnp.exp(-divergence)

        def bound(excess: Array) -> Array:
            shifted = excess[:, None] + losses
            return excess - share * jnp.exp(jnp.sum(xlogy(means, shifted), axis=1))

        def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            middle = (low + high) / 2
            shifted = jnp.exp(middle)[:, None] + losses
            mean = jnp.exp(jnp.sum(means * jnp.log(shifted), axis=1))
            falls = share * mean * jnp.sum(means / shifted, axis=1) > 1
            return jnp.where(falls, middle, low), jnp.where(falls, high, middle)

        ends = (jnp.full_like(share, jnp.log(LEAST)), jnp.full_like(share, jnp.log(LARGEST)))
        low, high = lax.fori_loop(0, HALVINGS, halve, ends)
        excess = jnp.exp((low + high) / 2)
        least = jnp.minimum(bound(excess), bound(jnp.zeros_like(excess)))
        return top + span * jnp.minimum(least, 0.0)
