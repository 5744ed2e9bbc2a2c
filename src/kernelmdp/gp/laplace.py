"""How uncertain fitted kernel parameters are: a normal law about the fit, within bounds.

The posterior of the logarithms θ of an output's parameters is approximated by N(θ̂, P⁻¹),

    P = diag(1/spread²) + F + diag(g²),   F_jk = ½ tr(K⁻¹ ∂_jK K⁻¹ ∂_kK),

with K the covariance of the observations at θ̂, summed over blocks, F the Fisher information and g
the gradient of the loss at θ̂. F replaces the Hessian of the likelihood: its expectation is F, and F
is positive semi-definite where a search has not converged. At a bound g does not vanish. The law
there is close to an exponential one of rate |g|, whose precision is g².
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.gp.fit_config import SEARCH, SearchConfig
from kernelmdp.gp.hyperpriors import HyperPrior
from kernelmdp.gp.kernel_families import KernelFamily
from kernelmdp.numerics.factorisation import cholesky, solve_lower, solve_lower_transposed
from kernelmdp.numerics.modules import Module, matrix_jit
from kernelmdp.numerics.random_keys import numpy_generator
from kernelmdp.types import Key


class ParameterLaw(Module):
    """Normal laws of the logarithms of kernel parameters, clipped to their bounds.

    Attributes:
        logs: The fitted parameters θ̂ of each output.
        roots: Roots R of the covariances P⁻¹ = R Rᵀ.
        low: Logarithms of the lowest values.
        high: Logarithms of the highest values.
    """

    logs: Float[np.ndarray, "m k"]
    roots: Float[np.ndarray, "m k k"]
    low: Float[np.ndarray, "m k"]
    high: Float[np.ndarray, "m k"]

    def sample(self, *, key: Key) -> Float[np.ndarray, "m k"]:
        """Draw parameters of all outputs: θ̂ + R z with standard normal z, then clipped.

        Args:
            key: Decides the draw.

        Returns:
            Logarithms of the parameters.
        """
        normal = numpy_generator(key).standard_normal(self.logs.shape)
        drawn = self.logs + np.einsum("mjk,mk->mj", self.roots, normal)
        return np.clip(drawn, self.low, self.high)


def parameter_law(
    family: KernelFamily,
    hyper_prior: HyperPrior,
    points: Float[Array, "b n d"],
    targets: Float[Array, "b n m"],
    counted: Float[Array, "b n"],
    logs: Float[np.ndarray, "m k"],
    *,
    config: SearchConfig = SEARCH,
) -> ParameterLaw:
    """Approximate the posterior of fitted parameters. No direction is wider than in the prior.

    Args:
        family: The kernels.
        hyper_prior: The priors of their parameters.
        points: (b, n, d) for b blocks, as for ``fit``.
        targets: (b, n, m).
        counted: 1 for rows that count, 0 for padding.
        logs: Logarithms of the fitted parameters of each output.
        config: Numerical settings.

    Returns:
        The law.
    """
    priors = family.parameter_priors(hyper_prior)
    roots = []
    for output, output_logs in enumerate(np.asarray(logs)):
        blocks = points, targets[:, :, output], counted
        rows = jnp.asarray(priors[output])
        roots.append(_root(family.output(output), *blocks, jnp.asarray(output_logs), rows, config))
    arrays = np.stack([np.asarray(root) for root in roots])
    low, high = np.log(priors[:, :, 2]), np.log(priors[:, :, 3])
    return ParameterLaw(np.asarray(logs), arrays, low, high)


@matrix_jit
def _root(
    family: KernelFamily,
    points: Array,
    target: Array,
    counted: Array,
    logs: Array,
    rows: Array,
    config: SearchConfig,
) -> Array:
    k, identity = logs.shape[0], jnp.eye(points.shape[1], dtype=points.dtype)

    def covariance(logs: Array, x: Array, count: Array) -> Array:
        kernels = family.kernels_at(logs[None, :])
        z = kernels.embed(x)
        noise = kernels.noise[0] ** 2 + config.jitter * kernels.signal[0] ** 2
        pairs = count[:, None] * count[None, :]
        return kernels.gram(z, z)[0] * pairs + jnp.diag(jnp.where(count > 0, noise, 1.0))

    def information(block: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        x, y, count = block
        lower = cholesky(covariance(logs, x, count))
        inverse = solve_lower(lower, identity)
        inverse = inverse.T @ inverse
        alpha = inverse @ (count * y)
        derivatives = jax.jacfwd(covariance)(logs, x, count)  # (n, n, k)
        whitened = jnp.einsum("ab,bcj->jac", inverse, derivatives)
        fisher = 0.5 * jnp.einsum("jac,kca->jk", whitened, whitened)
        explained = jnp.einsum("a,abj,b->j", alpha, derivatives, alpha)
        return fisher, 0.5 * (jnp.trace(whitened, axis1=1, axis2=2) - explained)

    def block_information(block: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        empty = jnp.zeros((k, k), logs.dtype), jnp.zeros(k, logs.dtype)
        return jax.lax.cond(jnp.any(block[2] > 0), information, lambda _: empty, block)

    fishers, gradients = jax.lax.map(block_information, (points, target, counted))
    spread = rows[:, 1]
    gradient = jnp.sum(gradients, axis=0) + (logs - jnp.log(rows[:, 0])) / spread**2
    precision = jnp.sum(fishers, axis=0) + jnp.diag(1 / spread**2 + gradient**2)
    return solve_lower_transposed(cholesky(precision), jnp.eye(k, dtype=logs.dtype))
