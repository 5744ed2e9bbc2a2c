"""Fitting of kernel parameters (lengthscales, signal, noise) by penalised marginal likelihood.

Outputs are in units of their size and inputs in units of the width of their axis. In these units
one prior was good everywhere it was tried: lengthscales log-normal about 0.2 √d, noise about a
hundredth of the signal. Parameters are bounded. Otherwise an episode of constant data would make a
function certain everywhere, and short lengthscales would leave it unknown permanently.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.gp.ard import ARDFamily
from kernelmdp.gp.fit_config import SEARCH, TREND, SearchConfig, TrendConfig
from kernelmdp.gp.hyperpriors import DYNAMICS, ENDINGS, REWARD, SPARSE, HyperPrior, LogNormalPrior
from kernelmdp.gp.kernel_families import BatchedKernels, KernelFamily
from kernelmdp.gp.minimisation import minimise
from kernelmdp.gp.row_selection import spread_rows
from kernelmdp.numerics.factorisation import cholesky, inverse_from_factor
from kernelmdp.numerics.modules import matrix_jit
from kernelmdp.numerics.tracing import as_array
from kernelmdp.types import Key

__all__ = [
    "DYNAMICS",
    "ENDINGS",
    "REWARD",
    "SPARSE",
    "ARDFamily",
    "HyperPrior",
    "LogNormalPrior",
    "fit",
    "fitting_blocks",
    "linear_trend",
    "log_likelihood",
    "minimise",
    "objective",
    "observation_covariance",
    "prior_median",
]


def prior_median(family: KernelFamily, hyper_prior: HyperPrior) -> Float[np.ndarray, "m k"]:
    """Return the parameters before any data: logarithms of the prior medians.

    Args:
        family: The kernels.
        hyper_prior: The priors of their parameters.

    Returns:
        Logarithms of the parameters of each output.
    """
    return np.log(family.parameter_priors(hyper_prior)[:, :, 0])


def fit(
    family: KernelFamily,
    hyper_prior: HyperPrior,
    points: Float[Array, "b n d"],
    targets: Float[Array, "b n m"],
    counted: Float[Array, "b n"],
    start: Float[np.ndarray, "m k"],
    *,
    precisions: Float[np.ndarray, "m k k"] | None = None,
    thorough: bool = True,
    config: SearchConfig = SEARCH,
) -> Float[np.ndarray, "m k"]:
    """Fit kernel parameters by maximum a posteriori.

    Rows come in blocks, which are treated as independent: four blocks cost four times one block,
    while one block of all rows would cost 64 times as much. The result is the better of two
    searches, from ``start`` and from the prior medians. The second one begins with the first block
    only, and goes on with all of them from there. Outputs are fitted one after the other, so that
    one program serves any number of them.

    Args:
        family: The kernels.
        hyper_prior: The priors of their parameters.
        points: (b, n, d) for b blocks.
        targets: (b, n, m).
        counted: 1 for rows that count, 0 for padding.
        start: Logarithms of parameters at which a search starts.
        precisions: Estimates of the Hessian of the loss at ``start`` by the parameters, such as the
            inverse covariances of an earlier fit. With them BFGS takes about 0.6 of the steps.
        thorough: Whether to search from the prior medians too.
        config: How to search.

    Returns:
        Logarithms of the fitted parameters of each output.
    """
    priors = family.parameter_priors(hyper_prior)
    starts = np.stack([np.asarray(start), prior_median(family, hyper_prior)], axis=1)
    from_medians = thorough and config.from_medians
    later = config.steps if from_medians else -1
    # A single search must not end on a plateau. One from the last fit does not begin on one.
    tolerance = as_array(0.0 if thorough and not from_medians else config.tolerance)
    fitted = []
    columns = np.moveaxis(np.asarray(targets), 2, 0)
    for output, output_starts in enumerate(starts):
        blocks = points, as_array(columns[output]), counted
        output_family, rows = family.output(output), as_array(priors[output])
        # Before the first fit, both searches would be the same.
        repeats = from_medians and np.array_equal(*output_starts)
        steps = as_array([-1 if repeats else config.steps, later, later])
        begin = as_array(output_starts)
        inverse = np.eye(len(priors[output]))
        if precisions is not None and not np.array_equal(*output_starts):
            inverse = _inverse_hessian(output_starts[0], precisions[output], priors[output], config)
        searched = begin, as_array(inverse), rows, steps, tolerance
        logs = _fit(output_family, *blocks, *searched, config)
        fitted.append(np.asarray(logs))
    return np.stack(fitted)


@matrix_jit
def _fit(
    family: KernelFamily,
    points: Array,
    target: Array,
    counted: Array,
    starts: Array,
    inverse_hessian: Array,
    rows: Array,
    steps: Array,
    tolerance: Array,
    config: SearchConfig,
) -> Array:
    low, high = jnp.log(rows[:, 2]), jnp.log(rows[:, 3])
    identity = jnp.eye(starts.shape[1], dtype=starts.dtype)
    is_first = (jnp.arange(counted.shape[0]) == 0).astype(counted.dtype)
    first_block = counted * is_first[:, None]
    # From the last fit; from the medians with one block; from there with all blocks.
    searches = (
        jnp.concatenate([starts, starts[1:]]),
        jnp.stack([counted, first_block, counted]),
        steps,
        jnp.stack([tolerance, jnp.zeros_like(tolerance), tolerance]),
        jnp.array([False, False, True]),
        jnp.stack([inverse_hessian, identity, identity]),
    )

    def search(last: Array, each: tuple[Array, ...]) -> tuple[Array, tuple[Array, Array]]:
        logs, count, most, least, goes_on, estimate = each
        loss = objective(family, points, target, count, rows, config)
        logs = jnp.where(goes_on, last, logs)
        share = jnp.clip((logs - low) / (high - low), config.margin, 1 - config.margin)
        begin = jnp.log(share) - jnp.log1p(-share)
        free, value = minimise(
            loss, begin, config, steps=most, tolerance=least, inverse_hessian=estimate
        )
        result = bounded(free, rows)
        return result, (result, jnp.where(jnp.isfinite(value), value, jnp.inf))

    _, (minimisers, values) = jax.lax.scan(search, starts[1], searches)
    return jnp.where(values[0] <= values[2], minimisers[0], minimisers[2])


def _inverse_hessian(
    logs: Float[np.ndarray, " k"],
    precision: Float[np.ndarray, "k k"],
    rows: Float[np.ndarray, "k 4"],
    config: SearchConfig,
) -> Float[np.ndarray, "k k"]:
    """The inverse of I + J P J, the Hessian P by the logarithms in terms of log-odds.

    I is the estimate without knowledge. It decides for parameters at a bound, where J is almost 0.
    """
    low, high = np.log(rows[:, 2]), np.log(rows[:, 3])
    share = np.clip((logs - low) / (high - low), config.margin, 1 - config.margin)
    slopes = (high - low) * share * (1 - share)
    return np.linalg.inv(np.eye(len(logs)) + slopes[:, None] * precision * slopes[None, :])


def bounded(free: Float[Array, " k"], rows: Float[Array, "k 4"]) -> Float[Array, " k"]:
    """Convert unconstrained numbers (log-odds) to logarithms of parameters within bounds.

    Args:
        free: Any real numbers.
        rows: Median, spread, lowest and highest value of each parameter.

    Returns:
        Logarithms of the parameters.
    """
    low, high = jnp.log(rows[:, 2]), jnp.log(rows[:, 3])
    return low + (high - low) * jax.nn.sigmoid(free)


def objective(
    family: KernelFamily,
    points: Float[Array, "b n d"],
    target: Float[Array, "b n"],
    counted: Float[Array, "b n"],
    rows: Float[Array, "k 4"],
    config: SearchConfig = SEARCH,
) -> Callable[[Array], Array]:
    """Make the loss that ``fit`` minimises for one output.

    It is −Σ_blocks ln p(y) + ½ Σ_j ((ln θ_j − ln median_j)/spread_j)².

    Args:
        family: The kernel family of the output.
        points: (b, n, d) for b blocks.
        target: (b, n).
        counted: 1 for rows that count, 0 for padding.
        rows: Median, spread, lowest and highest value of each parameter.
        config: Numerical settings.

    Returns:
        The loss as a function of log-odds within the bounds (see ``bounded``).
    """
    blocks = (points, target, counted)

    def loss(free: Array) -> Array:
        logs = bounded(free, rows)
        penalty = 0.5 * jnp.sum(((logs - jnp.log(rows[:, 0])) / rows[:, 1]) ** 2)
        kernels = family.kernels_at(logs[None, :])
        return penalty - jnp.sum(
            jax.lax.map(lambda block: block_likelihood(kernels, *block), blocks)
        )

    def block_likelihood(kernels: BatchedKernels, x: Array, y: Array, count: Array) -> Array:
        # With few data the later blocks are empty, and should cost nothing.
        return jax.lax.cond(
            jnp.any(count > 0),
            lambda: log_likelihood(kernels, x, y, count, jitter=config.jitter),
            lambda: jnp.zeros(()),
        )

    return loss


def log_likelihood(
    kernels: BatchedKernels,
    points: Float[Array, "n d"],
    targets: Float[Array, " n"],
    counted: Float[Array, " n"],
    *,
    jitter: float = SEARCH.jitter,
) -> Float[Array, ""]:
    """Compute the log marginal likelihood ln p(y) of one output, with an explicit gradient.

    The gradient is ½ tr((ααᵀ − K⁻¹) dK), α = K⁻¹y. Differentiation through the factorisation would
    take several times as long.

    Args:
        kernels: The kernel and the noise of the output.
        points: (n, d).
        targets: (n,).
        counted: 1 for rows that count, 0 for padding.
        jitter: Added to the noise variance, as a share of the signal variance.

    Returns:
        ln p(y).
    """
    matrix = observation_covariance(kernels, points, counted, jitter=jitter)
    constant = jax.lax.stop_gradient(matrix)
    factor = cholesky(constant)
    inverse = inverse_from_factor(factor)
    y = counted * targets
    alpha = inverse @ y
    half_log_determinant = jnp.sum(jnp.log(jnp.diagonal(factor)))
    constants = 0.5 * jnp.sum(counted) * math.log(2 * math.pi)
    value = -0.5 * y @ alpha - half_log_determinant - constants
    # This term is 0. Its gradient is that of ln p(y).
    gradient = jnp.sum(0.5 * (jnp.outer(alpha, alpha) - inverse) * (matrix - constant))
    return value + gradient


def observation_covariance(
    kernels: BatchedKernels,
    points: Float[Array, "n d"],
    counted: Float[Array, " n"],
    *,
    jitter: float = SEARCH.jitter,
) -> Float[Array, "n n"]:
    """Compute the covariance K of noisy observations of one output.

    Args:
        kernels: The kernel and the noise of the output.
        points: (n, d).
        counted: 1 for rows that count, 0 for padding, which has variance 1 and no covariance.
        jitter: Added to the noise variance, as a share of the signal variance.

    Returns:
        K.
    """
    x = kernels.embed(points)
    pairs = counted[:, None] * counted[None, :]
    noise = kernels.noise[0] ** 2 + jitter * kernels.signal[0] ** 2
    return kernels.gram(x, x)[0] * pairs + jnp.diag(jnp.where(counted > 0, noise, 1.0))


def linear_trend(
    points: Float[np.ndarray, "n d"],
    targets: Float[np.ndarray, "n m"],
    *,
    config: TrendConfig = TREND,
) -> Float[np.ndarray, "d1 m"]:
    """Fit levels and slopes by Bayesian linear regression.

    Slopes have a normal prior with standard deviation ``config.steep``, in units of the target's
    size. The variance of the residuals is estimated with them.

    Args:
        points: Points in units of their axes, (n, d).
        targets: (n, m).
        config: Numerical settings.

    Returns:
        A row of levels, then d rows of slopes.
    """
    rows = np.concatenate([np.ones((len(points), 1)), points], axis=1)
    trend = np.zeros((rows.shape[1], targets.shape[1]))
    gram, identity = rows.T @ rows, np.eye(rows.shape[1])
    for output, target in enumerate(targets.T):
        size = max(float(np.sqrt(np.mean(target**2))), config.least_size)
        variance = 1.0
        for _ in range(config.rounds):
            ridge = variance / config.steep**2 * identity
            weights = np.linalg.solve(gram + ridge, rows.T @ target / size)
            residual = float(np.mean((target / size - rows @ weights) ** 2))
            variance = max(residual, config.least_variance)
        trend[:, output] = size * weights
    return trend


def fitting_blocks(
    points: Float[np.ndarray, "n d"],
    targets: Float[np.ndarray, "n m"],
    *,
    most: int,
    blocks: int,
    key: Key,
) -> tuple[Float[Array, "b r d"], Float[Array, "b r m"], Float[Array, "b r"]]:
    """Arrange data in blocks for ``fit``: a subset that is spread, or all rows and padding.

    Args:
        points: (n, d).
        targets: (n, m).
        most: The number of rows of a block.
        blocks: The number of blocks.
        key: Decides the subset.

    Returns:
        Points, targets, and 1 for rows that count, 0 for padding.
    """
    used_blocks = min(max(-(-len(points) // most), 1), blocks)
    rows = spread_rows(points, used_blocks * most, key=key)
    positions = np.arange(len(rows)) % used_blocks, np.arange(len(rows)) // used_blocks
    arrays = []
    for data in (points, targets, np.ones(len(points))):
        array = np.zeros((blocks, most, *data.shape[1:]))
        array[positions] = data[rows]
        arrays.append(as_array(array))
    return arrays[0], arrays[1], arrays[2]
