"""Posteriors of data on inducing points, for kernels that are fitted to the data."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelmdp.gp.fit_config import INDUCING, InducingConfig
from kernelmdp.gp.inducing_engine import InducingEngine
from kernelmdp.gp.kernel_families import BatchedKernels
from kernelmdp.gp.mean_functions import as_mean
from kernelmdp.gp.output_layouts import ColumnLayout, MixedLayout
from kernelmdp.gp.posterior import Posterior
from kernelmdp.gp.truncated_root import truncated_root
from kernelmdp.kernels import Independent
from kernelmdp.numerics.modules import matrix_jit, quick_jit, replace_fields
from kernelmdp.numerics.tracing import as_array


def inducing_posterior(
    kernels: BatchedKernels,
    inducing_points: Any,
    used: Any,
    points: Any,
    targets: Any,
    *,
    scalar: bool,
    block: int,
    config: InducingConfig = INDUCING,
    weights: Any = None,
    layout: MixedLayout | None = None,
) -> Posterior:
    """Make the posterior of data on inducing points.

    Rows are absorbed in blocks, so no shape depends on their number. The posterior's ``error`` is
    infinite and of the kind "inducing": no bound of the approximation error is known, so nothing
    that needs one may be claimed. ``error`` is the same for few data, because programs are compiled
    for it; ``InducingEngine.complete`` tells whether the posterior is exact. Draws are approximate.
    Joint draws at points (``sample_at``) have the law of this posterior.

    Args:
        kernels: Kernels and noise of the m outputs.
        inducing_points: Data points (R, d), and any numbers in rows that are not used.
        used: 1 for each inducing point in use, else 0; shape (R,).
        points: Observed points, (n, d).
        targets: Observed values, (n, m).
        scalar: Whether values have shape (n,) and not (n, 1).
        block: The number of rows absorbed at once.
        config: Numerical settings.
        weights: The weight w of each row, (n,): its noise variance is that of its output over w.
            None means 1.
        layout: How outputs follow from the m functions, if they are not these functions.

    Returns:
        A posterior whose ``engine`` is "inducing" and whose ``rank`` is R.

    >>> import jax
    >>> from kernelmdp.gp.ard import ARDKernels
    >>> one = jnp.ones(1)
    >>> kernels = ARDKernels(jnp.array([[0.5]]), one, jnp.full(1, 0.1), one, angles=())
    >>> line = np.linspace(0.0, 1.0, 20)[:, None]
    >>> posterior = inducing_posterior(
    ...     kernels, line[::5], np.ones(4), line, np.sin(line), scalar=True, block=16
    ... )
    >>> posterior.engine, posterior.error_kind, posterior.count
    ('inducing', 'inducing', 20)
    >>> posterior.sample(key=jax.random.key(0)).exact
    False
    """
    engine = _prior(kernels, as_array(inducing_points), as_array(used), config)
    x, y = np.asarray(points, float), np.asarray(targets, float)
    roots = None if weights is None else np.sqrt(np.asarray(weights, float))
    for start in range(0, len(x), block):
        block_x, block_y = x[start : start + block], y[start : start + block]
        padding = block - len(block_x)
        # Rows and targets are multiplied by it: √w for a row, 0 for padding.
        used_rows = np.ones(len(block_x)) if roots is None else roots[start : start + block]
        counted = np.concatenate([used_rows, np.zeros(padding)])
        padded_x, padded_y = (np.pad(rows, ((0, padding), (0, 0))) for rows in (block_x, block_y))
        engine = _absorb(engine, padded_x, padded_y, counted)
    engine = _finish(engine)
    m, d = kernels.signal.shape[0], kernels.dimension
    expressions, noise_variance = kernels.kernels(), kernels.noise**2
    if layout is not None:
        # An output that is known exactly learns nothing. Its λ only has to be a positive number.
        m, least = layout.outputs, jnp.min(noise_variance)
        noise_variance = jnp.maximum(noise_variance @ (layout.mixing**2).T, least)
    return Posterior(
        kernel=expressions[0] if scalar else Independent(expressions),
        layout=ColumnLayout(m) if layout is None else layout,
        engines=(engine,),
        mean=as_mean(None, m, d),
        noise_variance=noise_variance,
        jitter=0.0,
        scalar=scalar,
        domain=None,
        dimension=d,
        engine="inducing",
        rank=float(engine.inducing_points.shape[0]),
        error=math.inf,
        error_kind="inducing",
    )


def with_truncated_variances(posterior: Posterior, tolerance: float) -> Posterior:
    """Make predictions of standard deviations cheaper, and the deviations slightly larger.

    Directions of which the data know little are left out (``truncated_root``). Means, draws and
    the information gain stay the same.

    Args:
        posterior: A result of ``inducing_posterior``.
        tolerance: By how much the root mean square of the standard deviation at the data may grow,
            as a share of the signal's deviation.

    Returns:
        The posterior.
    """
    engines = tuple(_with_truncated_variances(each, tolerance) for each in posterior.engines)
    return replace_fields(posterior, engines=engines)


@quick_jit
def _prior(
    kernels: BatchedKernels, inducing_points: Array, used: Array, config: InducingConfig
) -> InducingEngine:
    return InducingEngine.prior(kernels, inducing_points, used, config)


@matrix_jit
def _absorb(engine: InducingEngine, points: Any, targets: Any, counted: Any) -> Any:
    return engine.absorbed(jnp.asarray(points), jnp.asarray(targets), jnp.asarray(counted))


@quick_jit
def _finish(engine: InducingEngine) -> InducingEngine:
    return engine.finished()


@matrix_jit
def _with_truncated_variances(engine: Any, tolerance: float) -> Any:
    count = jnp.maximum(engine.count, 1).astype(engine.root.dtype)
    variance_root, truncated = truncated_root(
        engine.root,
        engine.precision,
        engine.used,
        energy=engine.kernels.noise**2 / count,
        largest=tolerance**2 * engine.kernels.scale(engine.inducing_points, engine.used),
    )
    return replace_fields(engine, variance_root=variance_root, truncated=truncated)
