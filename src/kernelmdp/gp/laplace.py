"""How uncertain fitted kernel parameters are: a normal law about the fit, within bounds.

The posterior of the logarithms θ of an output's parameters is approximated by N(θ̂, P⁻¹),

    P = diag(1/spread²) + F,   F_jk = ½ tr(K⁻¹ ∂_jK K⁻¹ ∂_kK),

with K the covariance of the observations at θ̂ and F the Fisher information. F replaces the Hessian
of the likelihood: its expectation is F, and F is positive semi-definite where a search has not
converged. F is computed from the first block of rows, times the number of rows over that of the
block. Parameters at a bound have no law of this kind. They stay there.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.gp.fit_config import SEARCH, SearchConfig
from kernelmdp.gp.fitting import fit, observation_covariance, prior_median
from kernelmdp.gp.hyperpriors import HyperPrior
from kernelmdp.gp.kernel_families import KernelFamily
from kernelmdp.numerics.factorisation import (
    cholesky,
    inverse_from_factor,
    solve_lower_transposed,
)
from kernelmdp.numerics.modules import Module, matrix_jit
from kernelmdp.numerics.random_keys import numpy_generator
from kernelmdp.numerics.tracing import as_array
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

    @property
    def precisions(self) -> Float[np.ndarray, "m k k"]:
        """P of each output; 0 for parameters at a bound."""
        return np.linalg.pinv(self.roots @ np.swapaxes(self.roots, 1, 2), hermitian=True)

    def with_outputs(self, chosen: Bool[np.ndarray, " m"], other: "ParameterLaw") -> "ParameterLaw":
        """Replace the laws of some outputs.

        Args:
            chosen: Which outputs are replaced.
            other: The law whose outputs replace them.

        Returns:
            The changed law.
        """

        def choose(before: np.ndarray, after: np.ndarray) -> np.ndarray:
            return np.where(chosen.reshape(-1, *[1] * (before.ndim - 1)), after, before)

        return jax.tree.map(choose, self, other)

    def distance(self, other: "ParameterLaw") -> float:
        """Compare the fitted parameters with others.

        Args:
            other: The other law.

        Returns:
            The largest difference of a parameter in units of its standard deviation. Parameters at
            a bound, which have none, count with the distance between the bounds as the unit.
        """
        deviations = np.sqrt(np.einsum("mjk,mjk->mj", self.roots, self.roots))
        unit = np.where(deviations > 0, deviations, self.high - self.low)
        return float(np.max(np.abs(self.logs - other.logs) / unit, initial=0.0))

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


def prior_law(family: KernelFamily, hyper_prior: HyperPrior) -> ParameterLaw:
    """Return the law of parameters before any data.

    Args:
        family: The kernels.
        hyper_prior: The priors of their parameters.

    Returns:
        The prior, log-normal about its medians.
    """
    priors = family.parameter_priors(hyper_prior)
    roots = np.stack([np.diag(spreads) for spreads in priors[:, :, 1]])
    return ParameterLaw(prior_median(family, hyper_prior), roots, *_bounds(priors))


def fitted_law(
    family: KernelFamily,
    hyper_prior: HyperPrior,
    points: Float[Array, "b n d"],
    targets: Float[Array, "b n m"],
    counted: Float[Array, "b n"],
    start: ParameterLaw,
    *,
    thorough: bool = True,
    config: SearchConfig = SEARCH,
) -> ParameterLaw:
    """Fit parameters, and approximate their posterior.

    Args:
        family: The kernels.
        hyper_prior: The priors of their parameters.
        points: (b, n, d) for b blocks, as for ``fit``.
        targets: (b, n, m).
        counted: 1 for rows that count, 0 for padding.
        start: The law of an earlier fit, or of the prior. A search starts there.
        thorough: Whether to search from the prior medians too.
        config: How to search.

    Returns:
        The law.
    """
    blocks = points, targets, counted
    logs = fit(
        family,
        hyper_prior,
        *blocks,
        start.logs,
        precisions=start.precisions,
        thorough=thorough,
        config=config,
    )
    return parameter_law(family, hyper_prior, points, counted, logs, config=config)


def parameter_law(
    family: KernelFamily,
    hyper_prior: HyperPrior,
    points: Float[Array, "b n d"],
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
        counted: 1 for rows that count, 0 for padding.
        logs: Logarithms of the fitted parameters of each output.
        config: Numerical settings.

    Returns:
        The law.
    """
    priors = family.parameter_priors(hyper_prior)
    roots = []
    for output, output_logs in enumerate(np.asarray(logs)):
        rows = as_array(priors[output])
        single = family.output(output)
        roots.append(_root(single, points, counted, as_array(output_logs), rows, config))
    arrays = np.stack([np.asarray(root) for root in roots])
    return ParameterLaw(np.asarray(logs), arrays, *_bounds(priors))


def _bounds(priors: Float[np.ndarray, "m k 4"]) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the lowest and the highest values."""
    return np.log(priors[:, :, 2]), np.log(priors[:, :, 3])


@matrix_jit
def _root(
    family: KernelFamily,
    points: Array,
    counted: Array,
    logs: Array,
    rows: Array,
    config: SearchConfig,
) -> Array:
    x, count = points[0], counted[0]

    def covariance(logs: Array) -> Array:
        kernels = family.kernels_at(logs[None, :])
        return observation_covariance(kernels, x, count, jitter=config.jitter)

    inverse = inverse_from_factor(cholesky(covariance(logs)))
    derivatives = jax.jacfwd(covariance)(logs)  # (n, n, k)
    whitened = jnp.einsum("ab,bcj->jac", inverse, derivatives)
    share = jnp.sum(counted) / jnp.maximum(jnp.sum(count), 1.0)
    fisher = share * 0.5 * jnp.einsum("jac,kca->jk", whitened, whitened)
    precision = fisher + jnp.diag(1 / rows[:, 1] ** 2)
    low, high = jnp.log(rows[:, 2]), jnp.log(rows[:, 3])
    width = config.margin * (high - low)
    is_free = ((logs > low + width) & (logs < high - width)).astype(logs.dtype)
    # A parameter at a bound is fixed: the law of the others is conditional on it.
    fixed = jnp.diag(1 - is_free)
    precision = is_free[:, None] * precision * is_free[None, :] + fixed
    root = solve_lower_transposed(cholesky(precision), jnp.eye(len(logs), dtype=logs.dtype))
    return is_free[:, None] * root
