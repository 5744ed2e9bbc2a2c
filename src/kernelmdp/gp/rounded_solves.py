"""Posterior variances from substitutions in 32 bits, with a bound of their error.

With K + Λ = LLᵀ and v = L⁻¹k(X, z), the variance is σ² = k(z, z) − ‖v‖². A substitution in 32 bits
takes half the time and gives v + δ. Its residual ρ = L(v + δ) − k(X, z) tells how wrong it is:

    ‖v + δ‖² − ‖v‖² = 2wᵀρ + ‖δ‖²,    w = (K + Λ)⁻¹k(X, z),    ‖δ‖ ≤ ‖ρ‖/√λ = q,    ‖w‖ ≤ σ/√λ,

with λ the smallest noise variance. The last bound holds because σ² is the sum of λ‖w‖² (or more)
and of the squared error of wᵀf(X) for f(z). So the std s that results has s − q ≤ σ ≤ s + 1.1q, if
q ≤ s/10. In 64 bits ρ would cost as much as a substitution. Products with a few random vectors
cost little, and bound ‖ρ‖ except with a small probability. The bound covers every error of v + δ:
those of L, k and the substitution. Where it is too large, the substitution is repeated in 64 bits.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from kernelmdp.numerics.factorisation import solve_lower, solve_lower_transposed
from kernelmdp.numerics.modules import split_into_chunks

#: Number of random vectors that measure a residual. Each costs 1/n of a substitution.
PROBES = 16
#: The squared length of the products is a χ² variable with ``PROBES`` degrees of freedom, times
#: ‖ρ‖². It is below this number with probability 1e-4.
QUANTILE = 2.77
#: The error of a std is at most this multiple of q/s: 1.1/(1 − 1/10), see above.
MARGIN = 1.25
#: Number of points solved at once: few enough for the processor's cache. If the bound fails, this
#: many were solved in vain.
CHUNK = 512
#: Smallest number of points for which 32 bits pay.
POINTS = 1000
#: Smallest number of rows for which 32 bits pay. With fewer rows the kernel takes most of the time.
ROWS = 512


def worthwhile(rows: int, points: int) -> bool:
    """Whether a substitution in 32 bits saves time.

    Args:
        rows: The number of rows of L.
        points: The number of points.

    Returns:
        True for many rows and many points.
    """
    return rows >= ROWS and points >= POINTS


def checked_moments(
    factor: Float[Array, "c c"],
    smallest_noise: Float[Array, ""],
    whitened: Float[Array, "c p"],
    kernel_rows: Callable[[Array], tuple[Array, Array]],
    points: Float[Array, "n d"],
    tolerance: float,
) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
    """Compute means in 64 bits, and variances in 32 bits where their error is small.

    After the first chunk of points whose bound is too large, all others are solved in 64 bits.

    Args:
        factor: L.
        smallest_noise: λ.
        whitened: L⁻¹y for each column y.
        kernel_rows: Computes k(z, X), a row for each point, and k(z, z).
        points: The points z.
        tolerance: The largest relative error of a standard deviation.

    Returns:
        Means (n, p) and variances (n,).
    """
    single = factor.astype(jnp.float32)
    probes = jax.random.normal(jax.random.key(0), (PROBES, factor.shape[0]), factor.dtype)
    measured_factor = (probes @ factor).T
    coefficients = solve_lower_transposed(factor, whitened)
    measure = jnp.concatenate([probes.T, coefficients], axis=1)
    scale = MARGIN * lax.rsqrt(QUANTILE * smallest_noise)

    def step(trusted: Array, z: Array) -> tuple[Array, tuple[Array, Array]]:
        cross, prior = kernel_rows(z)
        measured = cross @ measure

        def quick() -> tuple[Array, Array]:
            solved = solve_lower(single, cross.T.astype(jnp.float32)).T.astype(factor.dtype)
            variance = prior - jnp.sum(solved**2, axis=1)
            residual = solved @ measured_factor - measured[:, :PROBES]
            error = scale * jnp.sqrt(jnp.sum(residual**2, axis=1))
            # NaN, from numbers too large for 32 bits, is not below anything.
            return variance, jnp.all(error <= tolerance * jnp.sqrt(jnp.maximum(variance, 0)))

        def careful() -> tuple[Array, Array]:
            solved = solve_lower(factor, cross.T)
            return solved.T @ whitened, prior - jnp.sum(solved**2, axis=0)

        variance, small = lax.cond(trusted, quick, lambda: (prior, jnp.zeros((), bool)))
        return small, lax.cond(small, lambda: (measured[:, PROBES:], variance), careful)

    chunks = split_into_chunks(points, CHUNK)
    _, (means, variances) = lax.scan(step, jnp.ones((), bool), chunks)
    count = points.shape[0]
    return means.reshape(-1, means.shape[-1])[:count], variances.reshape(-1)[:count]
