"""Construction of posteriors: the choice of engines, their layout and compilation."""

import math
import warnings
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from kernelmdp.domains import Box, Domain
from kernelmdp.errors import ApproximationWarning, ArgumentError, CompilationError, ShapeError
from kernelmdp.gp.basis import FeatureBasis, NystromBasis
from kernelmdp.gp.compilation import compile_kernel
from kernelmdp.gp.engine import Engine
from kernelmdp.gp.exact_engine import ExactEngine
from kernelmdp.gp.few_data import FewData
from kernelmdp.gp.mean_functions import as_mean
from kernelmdp.gp.output_layouts import DenseLayout, Layout, RotatedLayout, SharedLayout
from kernelmdp.gp.posterior import Posterior
from kernelmdp.gp.table_engine import TableEngine
from kernelmdp.gp.weight_engine import WeightEngine
from kernelmdp.kernels import Kernel, KernelBase, OutputKernel
from kernelmdp.kernels.base import IndependentPart, gram
from kernelmdp.numerics.checks import as_dtype, choice, integer, positive_array, positive_number
from kernelmdp.numerics.keywords import suggests_keywords

#: The engines that a user can choose.
ENGINES = ("auto", "exact", "finite rank", "compiled")
#: Largest rank of a compiled kernel by default. Prediction costs its square for each point.
RANK_LIMIT = 1000
#: The kind of an error that was measured and not proved.
MEASURED = "empirical"
#: Number of points at which rounding errors in 32 bits are measured, in all pairs.
ROUNDING_POINTS = 256
#: Noise variance, as a share of κ, below which a 64-bit factor may lose positive definiteness.
LITTLE = 1e-8
#: Jitter added in that case, as a share of κ.
JITTER = 1e-10
#: Relative error of a standard deviation that an automatic choice may make to save time. The error
#: of a compiled kernel has the same size: its default tolerance is a thousandth of λ.
STD_TOLERANCE = 0.005


@suggests_keywords
def posterior(
    kernel: Kernel | OutputKernel,
    *,
    noise_variance: Any,
    domain: Domain | None = None,
    dimension: int | None = None,
    mean: Any = None,
    engine: str = "auto",
    tolerance: float | None = None,
    rank_limit: int = RANK_LIMIT,
    std_tolerance: float | None = None,
    dtype: Any = "float64",
) -> Posterior:
    """Make the prior GP(mean, kernel), which you can condition on data.

    A kernel of finite rank uses its features. Any other kernel is compiled on ``domain`` to finite
    rank, if that takes at most ``rank_limit`` centres. Otherwise the exact engine is used.
    ``posterior.engine`` says which one. While data are fewer than the rank of a kernel compiled
    automatically, ``predict`` at many points uses the data instead, which is faster.

    Args:
        kernel: The kernel, of one or several outputs.
        noise_variance: λ: one number, or one for each output.
        domain: Where points lie. A kernel is compiled on it.
        dimension: The number of coordinates, if there is no domain.
        mean: The prior mean: None or "zero", "identity", or a function of one point.
        engine: "auto", "exact", "finite rank" or "compiled".
        tolerance: The error allowed for a compiled kernel; by default a thousandth of λ.
        rank_limit: The largest rank of a compiled kernel.
        std_tolerance: The largest relative error of a standard deviation that ``predict`` may make
            to save time. The default is 0.005 if the engine is "auto", else 0.
        dtype: "float64" or "float32".

    Returns:
        The prior, a posterior without data.

    Raises:
        ArgumentError: If an argument is invalid, or the engine does not suit the kernel.
        ShapeError: If ``noise_variance`` does not fit the outputs.

    >>> import kernelmdp as km
    >>> prior = km.gp.posterior(
    ...     km.kernel("se(0.5)"), noise_variance=0.01, domain=km.Box([0.0], [1.0]))
    >>> after = prior.condition([[0.2], [0.8]], [1.0, -1.0])
    >>> mean, std = after.predict([[0.2]])
    >>> print(f"{mean[0]:.2f} {std[0]:.2f} {after.engine} {after.count}")
    0.98 0.10 compiled 2
    """
    engine = choice("engine", engine, ENGINES)
    if std_tolerance is None:
        std_tolerance = STD_TOLERANCE if engine == "auto" else 0.0
    if not 0 <= std_tolerance < 1:
        raise ArgumentError("std_tolerance", "at least 0 and below 1", std_tolerance)
    precision = as_dtype(dtype)
    if not isinstance(kernel, KernelBase):
        raise ArgumentError(
            "kernel", "a kernel (kernelmdp.kernel makes one from text)", repr(kernel)
        )
    if domain is not None:
        if dimension is not None and dimension != domain.dimension:
            raise ArgumentError("dimension", f"{domain.dimension}, as domain has", dimension)
        dimension = domain.dimension
        kernel = kernel.bind(domain.names)
    if dimension is None:
        raise ArgumentError("dimension", "the number of coordinates, or a domain", None)
    dimension = integer("dimension", dimension, least=1)
    for scalar_kernel in kernel.parts():
        scalar_kernel.require_dimension(dimension)
    outputs = kernel.outputs
    noise = positive_array("noise_variance", noise_variance).astype(precision)
    if noise.shape not in ((), (1,), (outputs,)):
        raise ShapeError("noise_variance", f"one number or {outputs}", f"{noise.shape[0]} numbers")
    noise = jnp.broadcast_to(noise, (outputs,))
    layout, parts = _arrange(kernel, noise, dimension)
    largest = kernel.variance_bound(domain or Box([-1.0] * dimension, [1.0] * dimension))
    if tolerance is None:
        scale = largest if math.isfinite(largest) else 1.0
        tolerance = min(max(1e-3 * float(jnp.min(noise)), 1e-10 * scale), 1e-4 * scale)
    if domain is not None and domain.finite and math.isfinite(largest):
        tolerance = min(tolerance, 1e-12 * largest)  # on finitely many points, as good as exact
    settings = _Settings(
        domain=None if domain is None else layout.row_domain(domain),
        dimension=layout.row_dimension(dimension),
        tolerance=positive_number("tolerance", tolerance),
        rank_limit=integer("rank_limit", rank_limit, least=1),
        dtype=precision,
    )
    built = [_build_engine(part, engine, settings) for part in parts]
    names = {result.name for result in built}
    if len(names) > 1 and "exact" in names:  # all outputs must use one kind of engine
        built = [_build_engine(part, "exact", settings) for part in parts]
        names = {"exact"}
    name = "compiled" if "compiled" in names else names.pop()
    kinds = ["exact", "certified", "empirical"]
    few_data = None
    automatic = engine == "auto" and names == {"compiled"} and precision == jnp.float64
    needs_jitter = float(jnp.min(noise)) < LITTLE * largest
    if automatic and std_tolerance and not needs_jitter:
        few_data = FewData.room(
            tuple(result.kernel for result in built),
            min(result.rank for result in built),
            layout.rows_per_point,
            dimension,
            outputs,
        )
    return Posterior(
        kernel=kernel,
        layout=_cast(layout, precision),
        engines=tuple(result.engine for result in built),
        mean=as_mean(mean, outputs, dimension),
        noise_variance=noise,
        jitter=_jitter(largest, noise, name),
        scalar=kernel.scalar,
        domain=domain,
        dimension=dimension,
        engine=name,
        rank=max(result.rank for result in built),
        error=max(result.error for result in built),
        error_kind=max((result.error_kind for result in built), key=kinds.index),
        std_tolerance=std_tolerance,
        few_data=few_data,
    )


class _Settings(NamedTuple):
    domain: Domain | None
    dimension: int
    tolerance: float
    rank_limit: int
    dtype: Any


class _BuiltEngine(NamedTuple):
    engine: Engine
    name: str
    rank: float
    error: float
    error_kind: str
    kernel: Kernel


def _cast(tree: Any, dtype: Any) -> Any:
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tree)


def _arrange(
    kernel: Kernel | OutputKernel, noise: Array, dimension: int
) -> tuple[Layout, tuple[IndependentPart, ...]]:
    """The cheapest exact layout, and the kernel of each of its engines."""
    decomposition = kernel.decompose(same_noise=bool(jnp.all(noise == noise[0])))
    if decomposition is None:
        return DenseLayout(kernel.outputs), (IndependentPart(kernel.as_scalar(dimension)),)
    if decomposition.axes is None:
        return SharedLayout(kernel.outputs), decomposition.parts
    return RotatedLayout(kernel.outputs, decomposition.axes), decomposition.parts


def _build_engine(part: IndependentPart, engine: str, settings: _Settings) -> _BuiltEngine:
    """The engine of ``part.copies`` functions with kernel scale·kernel."""
    domain, dimension, tolerance, rank_limit, dtype = settings
    scale = part.length**2
    kernel = _cast(part.kernel, dtype)
    rank = kernel.feature_count(dimension)
    deviation = math.sqrt(scale)
    scaled = kernel if scale == 1.0 else _cast(kernel * scale, dtype)
    if engine == "finite rank" and rank == math.inf:
        raise ArgumentError("engine", "'compiled' or 'exact' for a kernel of infinite rank", engine)
    if kernel.cell_count is not None and engine in ("auto", "finite rank"):
        variance = scale * kernel.variance(jnp.zeros(dimension, dtype))
        table = TableEngine.prior(kernel, jnp.asarray(variance, dtype), part.copies)
        return _BuiltEngine(table, "finite rank", rank, 0.0, "exact", scaled)
    if rank <= rank_limit and engine in ("auto", "finite rank"):
        root = deviation * jnp.eye(int(rank), dtype=dtype)
        weights = WeightEngine.prior(FeatureBasis(kernel), root, part.copies)
        return _BuiltEngine(weights, "finite rank", rank, 0.0, "exact", scaled)
    if engine == "compiled" and domain is None:
        raise ArgumentError("domain", "a domain to compile the kernel on", None)
    if engine in ("auto", "compiled") and domain is not None:
        try:
            compiled = compile_kernel(
                part.kernel, domain, tolerance=tolerance / scale, rank_limit=rank_limit
            )
        except CompilationError:
            if engine == "compiled":
                raise
        else:
            basis = NystromBasis(kernel, jnp.asarray(compiled.centres, dtype))
            root = deviation * jnp.asarray(compiled.root, dtype)
            weights = WeightEngine.prior(basis, root, part.copies)
            error, kind = compiled.error * scale, compiled.kind
            if dtype != jnp.float64:
                # Rounding is larger than the compilation error, and is measured, not proved.
                error, kind = error + _rounding_error(weights, part.kernel, domain, scale), MEASURED
            return _BuiltEngine(weights, "compiled", compiled.rank, error, kind, scaled)
    exact = ExactEngine.prior(scaled, dimension, part.copies, dtype)
    return _BuiltEngine(exact, "exact", rank, 0.0, "exact", scaled)


def _rounding_error(weights: WeightEngine, kernel: Kernel, domain: Domain, scale: float) -> float:
    """The largest error of prior covariances of an engine in 32 bits, at points of the domain.

    It is doubled, because points between those tried may be worse.
    """
    points = jnp.asarray(domain.spread_points(ROUNDING_POINTS)[:ROUNDING_POINTS], float)
    exact = scale * gram(kernel, points, points)
    rounded = weights.covariance(points.astype(weights.root.dtype)).astype(float)
    return 2 * float(jnp.max(jnp.abs(rounded - exact)))


def _jitter(largest: float, noise: Array, engine: str) -> float:
    """The jitter of the exact engine: positive if the noise is too small for a stable factor.

    In 32 bits no stabilising jitter is negligible, so none is added. The factor is checked instead.
    """
    smallest = float(jnp.min(noise))
    if engine != "exact" or noise.dtype != jnp.float64 or smallest >= LITTLE * largest:
        return 0.0
    if not math.isfinite(largest):
        return 0.0
    warnings.warn(
        f"noise_variance {smallest:g} is below {LITTLE:g} of the kernel's variance; a jitter of "
        f"{JITTER * largest:g} is added to it in the exact engine",
        ApproximationWarning,
        stacklevel=3,
    )
    return JITTER * largest
