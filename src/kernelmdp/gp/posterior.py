"""Posteriors: one contract, three engines (exact, finite rank, compiled)."""

import math
import warnings
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain, FiniteSet, join
from kernelmdp.errors import (
    ApproximationWarning,
    ArgumentError,
    CompilationError,
    PositiveDefiniteError,
    ShapeError,
    UnknownPropertyError,
)
from kernelmdp.gp.basis import FeatureBasis, NystromBasis
from kernelmdp.gp.compilation import compile_kernel
from kernelmdp.gp.engines import Engine
from kernelmdp.gp.exact import ExactEngine
from kernelmdp.gp.layouts import Dense, Layout, Rotated, Shared
from kernelmdp.gp.means import Mean, as_mean
from kernelmdp.gp.samples import FunctionSample, LazySample
from kernelmdp.gp.weights import WeightEngine
from kernelmdp.kernels import Coregionalised, Independent, Index, Kernel, OutputKernel
from kernelmdp.numerics.checks import (
    as_dtype,
    as_points,
    choice,
    float_array,
    integer,
    positive,
    positive_number,
    require_finite,
)
from kernelmdp.numerics.factor import is_traced, require_positive_definite
from kernelmdp.types import Key

ENGINES = ("auto", "exact", "finite rank", "compiled")
RANK_LIMIT = 1000
# Below LITTLE·κ the noise no longer keeps a 64-bit factor positive definite by itself.
LITTLE, JITTER = 1e-8, 1e-10


class Posterior(eqx.Module):
    """What is known of a function after noisy observations of it.

    Immutable: ``condition`` returns another posterior and leaves this one as it was. Made by
    ``posterior``; see there for an example.
    """

    kernel: Kernel | OutputKernel
    layout: Layout
    engines: tuple[Engine, ...]
    mean: Mean
    noise_variance: Float[Array, " m"]
    jitter: float = eqx.field(static=True)
    scalar: bool = eqx.field(static=True)
    domain: Domain | None = eqx.field(static=True)
    dimension: int = eqx.field(static=True)
    engine: str = eqx.field(static=True)
    rank: float = eqx.field(static=True)
    error: float = eqx.field(static=True)
    error_kind: str = eqx.field(static=True)

    @property
    def outputs(self) -> int:
        """Number of outputs m; 1 for a scalar function."""
        return self.layout.outputs

    @property
    def dtype(self) -> Any:
        """Precision of every number inside."""
        return self.noise_variance.dtype

    @property
    def count(self) -> int:
        """Number of points conditioned on."""
        rows = int(self.engines[0].count)
        return rows // self.outputs if isinstance(self.layout, Dense) else rows

    @property
    def information_gain(self) -> float:
        """½ ln|I + K/λ| of the data: how much was learned, in nats; all outputs together."""
        return float(self.layout.gain([engine.gain() for engine in self.engines]))

    @property
    def in_order_variances(self) -> Float[Array, "n m"]:
        """σ²_{t−1}(x_t) for every observation in time order, read off the exact engine's factor."""
        if not isinstance(self.engines[0], ExactEngine) or isinstance(self.layout, Rotated):
            raise UnknownPropertyError(
                "in-order variances are kept by the exact engine, one factor"
            )
        rows = int(self.engines[0].count)
        return self.layout.variances([self.engines[0].in_order_variances[:rows]])

    def condition(self, points: Any, targets: Any) -> "Posterior":
        """The posterior after observing ``targets`` (n,) or (n, m) at ``points`` (n, d)."""
        x = self._points("points", points)
        y = float_array(targets).astype(self.dtype)
        shape = (x.shape[0],) if self.scalar else (x.shape[0], self.outputs)
        if y.shape != shape:
            raise ShapeError("targets", f"shape {shape}", f"shape {tuple(y.shape)}")
        require_finite("targets", y)
        if x.shape[0] == 0:
            return self
        engines = self.engines
        if self.engine == "exact":
            if is_traced(self, x, y):
                raise ArgumentError("engine", "finite rank or compiled inside jit", "exact")
            rows = x.shape[0] * (self.outputs if isinstance(self.layout, Dense) else 1)
            engines = tuple(engine.reserve(rows) for engine in engines)
        noise = self.noise_variance + self.jitter
        after, health = _condition(
            self.layout, engines, self.mean, x, y.reshape(x.shape[0], self.outputs), noise
        )
        after = require_positive_definite(
            after,
            health,
            "the kernel matrix of the data plus noise",
            "points repeat, or nearly so, with too little noise: raise noise_variance, "
            "use dtype='float64', or a domain on which the kernel compiles",
        )
        return eqx.tree_at(lambda p: p.engines, self, after)

    def predict(self, points: Any) -> tuple[Array, Array]:
        """Mean and standard deviation of f (noise not included) at points (n, d).

        Shapes (n,), or (n, m) for m outputs.
        """
        mean, variance = _predict(self, self._points("points", points))
        std = self._deviation(variance)
        return (mean[:, 0], std[:, 0]) if self.scalar else (mean, std)

    def covariance(self, points: Any) -> Float[Array, "nm nm"]:
        """Joint posterior covariance of f at the points; rows (t, i) for m outputs."""
        return _covariance(self, self._points("points", points))

    def output_covariance(self, points: Any) -> Float[Array, "n m m"]:
        """Σ(z), the posterior covariance between outputs at each point."""
        return _output_covariance(self, self._points("points", points))

    def sample(
        self, *, key: Key, method: str = "auto", frequencies: int = 2048
    ) -> "FunctionSample | LazySample":
        """One function drawn from the posterior, to be called anywhere, any number of times.

        Finite-rank and compiled engines draw weights, exact in law. The exact engine draws by
        Matheron's rule with random Fourier features (approximate), or with method="lazy" decides
        values as they are asked for (exact, not jit-able).
        """
        method = choice("method", method, ("auto", "weights", "pathwise", "lazy"))
        exact = self.engine == "exact"
        if (method == "weights" and exact) or (method in ("pathwise", "lazy") and not exact):
            raise ArgumentError("method", f"one that the {self.engine} engine has", repr(method))
        if method == "lazy":
            engines = tuple(e for e in self.engines if isinstance(e, ExactEngine))
            return LazySample(self.layout, engines, self.mean, scalar=self.scalar, key=key)
        frequencies = integer("frequencies", frequencies, least=1)
        keys = jax.random.split(key, len(self.engines))
        return FunctionSample(
            layout=self.layout,
            paths=_draw(self.engines, frequencies, keys),
            mean=self.mean,
            scalar=self.scalar,
            dtype=self.dtype,
            exact=not exact,
        )

    def sample_at(self, points: Any, *, key: Key, draws: int = 1) -> Array:
        """Joint draws of the values at finitely many points: shape (draws, n), or (draws, n, m).

        Exact in law with every engine (for the compiled kernel, when one was compiled).
        """
        z = self._points("points", points)
        rows = self.layout.rows(z)
        keys = jax.random.split(key, len(self.engines))
        parts = [
            engine.draw_at(rows, draws, key=each)
            for engine, each in zip(self.engines, keys, strict=True)
        ]
        values = jax.vmap(lambda *columns: self.layout.values(list(columns)))(*parts)
        values = values + self.mean(z)[None]
        return values[:, :, 0] if self.scalar else values

    def _points(self, argument: str, points: Any) -> Array:
        x = as_points(argument, points, dtype=self.dtype, dimension=self.dimension)
        if not is_traced(x):
            if self.engine == "compiled" and self.domain is not None:
                self.domain.require_inside(argument, x)
            for part in (
                self.kernel.parts() if isinstance(self.kernel, OutputKernel) else (self.kernel,)
            ):
                part.require_points(np.asarray(x))
        return x

    def _deviation(self, variance: Array) -> Array:
        if self.engine == "exact" and not is_traced(variance) and variance.size:
            # Cancellation in k(z, z) − ‖L⁻¹k(z)‖² is a few hundred roundings of κ, never more.
            lowest, scale = float(jnp.min(variance)), float(jnp.finfo(self.dtype).eps)
            largest = max(1.0, float(jnp.max(variance)), self._largest_variance())
            if not lowest > -1e3 * scale * largest:
                raise PositiveDefiniteError(
                    f"a posterior variance came out as {lowest:g} in {self.dtype}; use "
                    "dtype='float64' or a domain on which the kernel compiles"
                )
        return jnp.sqrt(jnp.maximum(variance, 0))

    def _largest_variance(self) -> float:
        return 1.0 if self.domain is None else float(self.kernel.variance_bound(self.domain))

    def __repr__(self) -> str:
        fidelity = (
            f", error={self.error:.1e} {self.error_kind}" if self.engine == "compiled" else ""
        )
        return (
            f"Posterior({self.kernel}, engine={self.engine!r}, rank={self.rank:g}{fidelity}, "
            f"outputs={self.outputs}, count={self.count}, dtype={self.dtype})"
        )


@eqx.filter_jit
def _condition(
    layout: Layout, engines: Any, mean: Mean, x: Array, y: Array, noise: Array
) -> tuple[Any, Array]:
    rows = layout.rows(x)
    parts = layout.targets(y - mean(x), noise)
    after = tuple(e.condition(rows, t, s) for e, (t, s) in zip(engines, parts, strict=True))
    # One number that is NaN when any factor is: the host looks at it, not at whole matrices.
    return after, jnp.sum(jnp.stack([jnp.sum(e.factor_to_check) * 0 for e in after]))


@eqx.filter_jit
def _predict(posterior: Posterior, z: Array) -> tuple[Array, Array]:
    layout = posterior.layout
    moments = [engine.moments(layout.rows(z)) for engine in posterior.engines]
    mean = posterior.mean(z) + layout.values([m for m, _ in moments])
    return mean, layout.variances([v for _, v in moments])


@eqx.filter_jit
def _covariance(posterior: Posterior, z: Array) -> Array:
    layout = posterior.layout
    return layout.covariance([e.covariance(layout.rows(z)) for e in posterior.engines])


@eqx.filter_jit
def _output_covariance(posterior: Posterior, z: Array) -> Array:
    def one(point: Array) -> Array:
        layout = posterior.layout
        rows = layout.rows(point[None, :])
        return layout.covariance([engine.covariance(rows) for engine in posterior.engines])

    return jax.vmap(one)(z)


@eqx.filter_jit
def _draw(engines: tuple[Engine, ...], frequencies: int, keys: Key) -> tuple[Any, ...]:
    return tuple(e.draw(frequencies, key=keys[i]) for i, e in enumerate(engines))


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
    dtype: Any = "float64",
) -> Posterior:
    """The prior GP(mean, kernel), ready to be conditioned.

    A kernel of finite rank uses its features. Any other is compiled on ``domain`` to finite rank,
    to ``tolerance`` (a thousandth of the noise variance unless given), when that takes at most
    ``rank_limit`` centres; else the exact engine is used. ``posterior.engine`` says which one.
    Without a domain give ``dimension``, the number of coordinates.
    ``noise_variance`` is one number, or one for each output.

    >>> import kernelmdp as km
    >>> prior = km.gp.posterior(
    ...     km.kernel("se(0.5)"), noise_variance=0.01, domain=km.Box([0.0], [1.0]))
    >>> after = prior.condition([[0.2], [0.8]], [1.0, -1.0])
    >>> mean, std = after.predict([[0.2]])
    >>> print(f"{mean[0]:.2f} {std[0]:.2f} {after.engine} {after.count}")
    0.98 0.10 compiled 2
    """
    engine = choice("engine", engine, ENGINES)
    number = as_dtype(dtype)
    if not isinstance(kernel, Kernel | OutputKernel):
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
    parts = kernel.parts() if isinstance(kernel, OutputKernel) else (kernel,)
    for part in parts:
        part.require_dimension(dimension)
    outputs = kernel.outputs if isinstance(kernel, OutputKernel) else 1
    noise = positive("noise_variance", noise_variance).astype(number)
    if noise.shape not in ((), (1,), (outputs,)):
        raise ShapeError("noise_variance", f"one number or {outputs}", f"{noise.shape[0]} numbers")
    noise = jnp.broadcast_to(noise, (outputs,))
    layout, scalars = _arrange(kernel, noise, dimension)
    over = _rows_domain(layout, domain)
    if tolerance is None:
        largest = kernel.variance_bound(domain) if domain is not None else 1.0
        top = largest if math.isfinite(largest) else 1.0
        tolerance = min(max(1e-3 * float(jnp.min(noise)), 1e-10 * top), 1e-4 * top)
    tolerance = positive_number("tolerance", tolerance)
    made = [
        _make(
            k,
            columns,
            over,
            _row_dimension(layout, dimension),
            engine,
            tolerance,
            rank_limit,
            number,
        )
        for k, columns in scalars
    ]
    kinds = {kind for _, kind, _, _, _ in made}
    if len(kinds) > 1 and "exact" in kinds:  # one contract: all outputs with one engine
        made = [
            _make(
                k,
                c,
                over,
                _row_dimension(layout, dimension),
                "exact",
                tolerance,
                rank_limit,
                number,
            )
            for k, c in scalars
        ]
        kinds = {"exact"}
    kind = "compiled" if "compiled" in kinds else kinds.pop()
    engines = tuple(e for e, *_ in made)
    return Posterior(
        kernel=kernel,
        layout=_cast(layout, number),
        engines=engines,
        mean=as_mean(mean, outputs, dimension),
        noise_variance=noise,
        jitter=_jitter(kernel, domain, noise, kind),
        scalar=not isinstance(kernel, OutputKernel),
        domain=domain,
        dimension=dimension,
        engine=kind,
        rank=max(rank for *_, rank, _, _ in made),
        error=max(error for *_, error, _ in made),
        error_kind=max(
            (label for *_, label in made), key=["exact", "certified", "empirical"].index
        ),
    )


def _cast(tree: Any, dtype: Any) -> Any:
    return jax.tree.map(lambda x: x.astype(dtype) if eqx.is_inexact_array(x) else x, tree)


def _row_dimension(layout: Layout, dimension: int) -> int:
    return dimension + 1 if isinstance(layout, Dense) else dimension


def _rows_domain(layout: Layout, domain: Domain | None) -> Domain | None:
    if domain is None or not isinstance(layout, Dense):
        return domain
    return join(points=domain, output=FiniteSet.range(layout.outputs))


def _arrange(
    kernel: Kernel | OutputKernel, noise: Array, dimension: int
) -> tuple[Layout, list[tuple[Kernel, int]]]:
    """The cheapest layout that is exact, and for each of its engines a kernel and its columns."""
    if isinstance(kernel, Kernel):
        return Shared(1), [(kernel, 1)]
    m = kernel.outputs
    same_noise = bool(jnp.all(noise == noise[0]))
    if isinstance(kernel, Independent):
        return Rotated(m, jnp.eye(m)), [(k, 1) for k in kernel.kernels]
    if isinstance(kernel, Coregionalised):
        if isinstance(kernel.index, Index):
            if same_noise:
                return Shared(m), [(kernel.kernel, m)]
            return Rotated(m, jnp.eye(m)), [(kernel.kernel, 1)] * m
        if same_noise:
            lengths = jnp.linalg.norm(kernel.index.root, axis=0)
            scaled = [(kernel.kernel * float(b) ** 2, 1) for b in lengths]
            return Rotated(m, kernel.index.root / lengths[None, :]), scaled
    return Dense(m), [(kernel.as_scalar(dimension), 1)]


def _make(
    kernel: Kernel,
    columns: int,
    domain: Domain | None,
    dimension: int,
    engine: str,
    tolerance: float,
    rank_limit: int,
    dtype: Any,
) -> tuple[Engine, str, float, float, str]:
    """An engine, its name, rank, error and the kind of error."""
    rank = kernel.feature_count(dimension)
    if engine == "finite rank" and rank == math.inf:
        raise ArgumentError("engine", "'compiled' or 'exact' for a kernel of infinite rank", engine)
    if rank <= rank_limit and engine in ("auto", "finite rank"):
        root = jnp.eye(int(rank), dtype=dtype)
        weights = WeightEngine.prior(FeatureBasis(_cast(kernel, dtype)), root, columns)
        return weights, "finite rank", rank, 0.0, "exact"
    if engine == "compiled" and domain is None:
        raise ArgumentError("domain", "a domain to compile the kernel on", None)
    if engine in ("auto", "compiled") and domain is not None:
        try:
            made = compile_kernel(kernel, domain, tolerance=tolerance, rank_limit=rank_limit)
        except CompilationError:
            if engine == "compiled":
                raise
        else:
            basis = NystromBasis(_cast(kernel, dtype), jnp.asarray(made.centres, dtype))
            weights = WeightEngine.prior(basis, jnp.asarray(made.root, dtype), columns)
            return weights, "compiled", made.rank, made.error, made.kind
    exact = ExactEngine.prior(_cast(kernel, dtype), dimension, columns, dtype)
    return exact, "exact", rank, 0.0, "exact"


def _jitter(kernel: Any, domain: Domain | None, noise: Array, kind: str) -> float:
    if kind != "exact" or noise.dtype != jnp.float64:
        return 0.0
    largest = kernel.variance_bound(domain) if domain is not None else 1.0
    smallest = float(jnp.min(noise))
    if smallest >= LITTLE * largest or not math.isfinite(largest):
        return 0.0
    warnings.warn(
        f"noise_variance {smallest:g} is below {LITTLE:g} of the kernel's variance; a jitter of "
        f"{JITTER * largest:g} is added to it in the exact engine",
        ApproximationWarning,
        stacklevel=3,
    )
    return JITTER * largest
