"""Kernels that fit themselves: lengthscales, signal and noise by penalised marginal likelihood.

For outputs measured in units of their own size, and inputs in units of the width of their axis, one
prior has served everywhere it was tried: lengthscales log-normal about 0.2 √d, noise about a
hundredth of the signal. Bounds keep a flat episode from making a function certain everywhere, or
short lengthscales from making it unknown for ever.
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
from kernelmdp.numerics.factorisation import cholesky, solve_lower
from kernelmdp.numerics.modules import jit
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
    "prior_median",
    "subsample_rows",
]


def prior_median(family: KernelFamily, hyper_prior: HyperPrior) -> Float[np.ndarray, "m k"]:
    """Logarithms of the medians: parameters before any data."""
    return np.log(family.parameter_priors(hyper_prior)[:, :, 0])


def fit(
    family: KernelFamily,
    hyper_prior: HyperPrior,
    points: Float[Array, "b n d"],
    targets: Float[Array, "b n m"],
    counted: Float[Array, "b n"],
    start: Float[np.ndarray, "m k"],
    *,
    config: SearchConfig = SEARCH,
) -> Float[np.ndarray, "m k"]:
    """Logarithms of the parameters that explain the rows where ``counted`` is 1.

    Rows come in blocks, each taken as if it were of a function of its own: four times the rows for
    four times the work, where one block of them all would take 64 times. The better of two
    searches: from ``start``, and from the medians. One output after another: so one program serves
    all, whatever their number.
    """
    rows = family.parameter_priors(hyper_prior)
    both = [np.asarray(start), prior_median(family, hyper_prior)]
    starts = np.stack(both if config.from_medians else both[:1], axis=1)
    found = []
    for output, begin in enumerate(starts):
        blocks = points, targets[:, :, output], counted
        own, about = family.output(output), jnp.asarray(rows[output])
        logs = _fit(own, *blocks, jnp.asarray(begin), about, config)
        found.append(np.asarray(logs))
    return np.stack(found)


@jit
def _fit(
    family: KernelFamily,
    points: Array,
    target: Array,
    counted: Array,
    starts: Array,
    rows: Array,
    config: SearchConfig,
) -> Array:
    low, high = jnp.log(rows[:, 2]), jnp.log(rows[:, 3])
    loss = objective(family, points, target, counted, rows, config)

    def search(logs: Array) -> tuple[Array, Array]:
        share = jnp.clip((logs - low) / (high - low), config.margin, 1 - config.margin)
        free, value = minimise(loss, jnp.log(share) - jnp.log1p(-share), config)
        return bounded(free, rows), value

    found, values = jax.lax.map(search, starts)
    values = jnp.where(jnp.isfinite(values), values, jnp.inf)
    if len(starts) == 1:
        return found[0]
    return jnp.where(values[0] <= values[1], found[0], found[1])


def bounded(free: Float[Array, " k"], rows: Float[Array, "k 4"]) -> Float[Array, " k"]:
    """Logarithms of parameters within the bounds of ``rows``, from any real numbers (log-odds)."""
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
    """What ``fit`` minimises for one output, as a function of log-odds within the bounds.

    −Σ_blocks ln p(y) + ½ Σ_j ((ln θ_j − ln median_j)/deviation_j)².
    """
    blocks = (points, target, counted)

    def loss(free: Array) -> Array:
        found = bounded(free, rows)
        penalty = 0.5 * jnp.sum(((found - jnp.log(rows[:, 0])) / rows[:, 1]) ** 2)
        shape = family.kernels_at(found[None, :])
        return penalty - jnp.sum(jax.lax.map(lambda block: worth(shape, *block), blocks))

    def worth(shape: BatchedKernels, x: Array, y: Array, count: Array) -> Array:
        # Of data that are few the later blocks are empty, and should cost nothing.
        return jax.lax.cond(
            jnp.any(count > 0),
            lambda: log_likelihood(shape, x, y, count, jitter=config.jitter),
            lambda: jnp.zeros(()),
        )

    return loss


def log_likelihood(
    shape: BatchedKernels,
    points: Float[Array, "n d"],
    targets: Float[Array, " n"],
    counted: Float[Array, " n"],
    *,
    jitter: float = SEARCH.jitter,
) -> Float[Array, ""]:
    """ln p(y) of one output, with its slope; rows that do not count change nothing.

    The slope is ½ tr((ααᵀ − K⁻¹) dK), α = K⁻¹y, written out: to go back through the factorisation
    would take several times as long.
    """
    x = shape.embed(points)
    pairs = counted[:, None] * counted[None, :]
    inside = shape.gram(x, x)[0] * pairs
    noise = shape.noise[0] ** 2 + jitter * shape.signal[0] ** 2
    matrix = inside + jnp.diag(jnp.where(counted > 0, noise, 1.0))
    fixed = jax.lax.stop_gradient(matrix)
    factor = cholesky(fixed)
    half = solve_lower(factor, jnp.eye(fixed.shape[0], dtype=fixed.dtype))
    inverse = half.T @ half
    y = counted * targets
    alpha = inverse @ y
    size = jnp.sum(jnp.log(jnp.diagonal(factor)))
    value = -0.5 * y @ alpha - size - 0.5 * jnp.sum(counted) * math.log(2 * math.pi)
    slope = jnp.sum(0.5 * (jnp.outer(alpha, alpha) - inverse) * (matrix - fixed))
    return value + slope


def linear_trend(
    points: Float[np.ndarray, "n d"],
    targets: Float[np.ndarray, "n m"],
    *,
    config: TrendConfig = TREND,
) -> Float[np.ndarray, "d1 m"]:
    """Levels and slopes of a Bayesian linear regression, for points in units of their axes.

    Slopes are normal with deviation ``config.steep``, in units of the target's size; the variance
    of what they do not explain is found with them.
    """
    rows = np.concatenate([np.ones((len(points), 1)), points], axis=1)
    found = np.zeros((rows.shape[1], targets.shape[1]))
    gram, identity = rows.T @ rows, np.eye(rows.shape[1])
    for output, target in enumerate(targets.T):
        size = max(float(np.sqrt(np.mean(target**2))), config.least_size)
        variance = 1.0
        for _ in range(config.rounds):
            ridge = variance / config.steep**2 * identity
            weights = np.linalg.solve(gram + ridge, rows.T @ target / size)
            left = float(np.mean((target / size - rows @ weights) ** 2))
            variance = max(left, config.least_variance)
        found[:, output] = size * weights
    return found


def fitting_blocks(
    points: Float[np.ndarray, "n d"],
    targets: Float[np.ndarray, "n m"],
    *,
    most: int,
    blocks: int,
    key: Key,
) -> tuple[Float[Array, "b r d"], Float[Array, "b r m"], Float[Array, "b r"]]:
    """Rows for ``fit``: blocks of ``most`` rows from all over the data, or all and padding."""
    full = min(max(-(-len(points) // most), 1), blocks)
    rows = subsample_rows(len(points), full * most, key=key)
    places = np.arange(len(rows)) % full, np.arange(len(rows)) // full
    found = []
    for each in (points, targets, np.ones(len(points))):
        room = np.zeros((blocks, most, *each.shape[1:]))
        room[places] = each[rows]
        found.append(jnp.asarray(room))
    return found[0], found[1], found[2]


def subsample_rows(count: int, most: int, *, key: Key) -> np.ndarray:
    """At most so many of ``count`` rows, the last one among them, in order."""
    if count <= most:
        return np.arange(count)
    # NumPy's: JAX would compile a program for every count.
    draws = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    return np.append(np.sort(draws.choice(count - 1, most - 1, replace=False)), count - 1)
