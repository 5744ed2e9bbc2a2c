"""Gaussian process posteriors, with one contract for all engines."""

from typing import Any, ClassVar, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.errors import (
    ArgumentError,
    PositiveDefiniteError,
    ShapeError,
    UnknownPropertyError,
)
from kernelmdp.gp.basis_cache import compressed
from kernelmdp.gp.engine import Engine
from kernelmdp.gp.exact_engine import ExactEngine
from kernelmdp.gp.few_data import POINTS, FewData
from kernelmdp.gp.large_batches import LARGE_BATCH
from kernelmdp.gp.mean_functions import Mean
from kernelmdp.gp.output_layouts import Layout
from kernelmdp.gp.samples import FunctionSample, LazySample
from kernelmdp.kernels import Kernel, OutputKernel
from kernelmdp.numerics.checks import (
    as_points,
    choice,
    float_array,
    integer,
    require_finite,
)
from kernelmdp.numerics.factorisation import require_positive_definite
from kernelmdp.numerics.modules import Module, jit, kept_jit, replace_fields
from kernelmdp.numerics.tracing import array_library, as_float, as_integer, is_traced
from kernelmdp.types import Key


class Posterior(Module):
    """The posterior of a function after noisy observations.

    It is immutable: ``condition`` returns a new posterior. ``kernelmdp.gp.posterior`` makes one.

    Attributes:
        learned: Whether data change it: True. A known function in its place has False.
        kernel: The kernel.
        layout: How outputs are laid over engines.
        engines: The engines, which hold the data.
        mean: The prior mean.
        noise_variance: λ of each output.
        jitter: Added to λ in the exact engine to keep a factor positive definite; usually 0.
        scalar: Whether values have shape (n,) and not (n, m).
        domain: The domain of points, or None.
        dimension: The number of coordinates of a point.
        engine: "exact", "finite rank", "compiled" or "inducing".
        rank: The number of features, or infinity.
        error: A bound of |k − k_r| for a compiled kernel k_r; 0 if exact.
        error_kind: "exact", "certified" (proved), "empirical" (measured) or "inducing" (unknown).
        std_tolerance: The largest relative error that ``predict`` may make in a standard deviation
            to save time; 0 unless the engine was chosen automatically.
        few_data: The data while they are fewer than the rank of a kernel compiled automatically,
            if they came by ``condition`` outside ``jit``; or None.

    >>> import kernelmdp as km
    >>> line = km.Box([0.0], [1.0])
    >>> prior = km.gp.posterior(km.kernel("linear"), noise_variance=0.1, domain=line)
    >>> after = prior.condition([[1.0]], [2.0])
    >>> mean, std = after.predict([[1.0]])
    >>> round(float(mean[0]), 4), prior.count, after.count  # 2 · 1/(1 + 0.1)
    (1.8182, 0, 1)
    """

    learned: ClassVar[bool] = True

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
    std_tolerance: float = eqx.field(static=True, default=0.0)
    few_data: FewData | None = None

    @property
    def outputs(self) -> int:
        """The number of outputs m; 1 for a scalar function."""
        return self.layout.outputs

    @property
    def dtype(self) -> Any:
        """The precision of every number inside."""
        return self.noise_variance.dtype

    @property
    def regularisers(self) -> np.ndarray:
        """λ of each output: the noise variance and the jitter, (m,)."""
        variance = self.noise_variance
        return array_library(variance).asarray(variance, dtype=float) + self.jitter

    @property
    def count(self) -> int:
        """The number of points conditioned on."""
        return as_integer(self.engines[0].count) // self.layout.rows_per_point

    @property
    def information_gain(self) -> float:
        """The information gain ½ ln|I + K/λ| of the data in nats, for all outputs together."""
        return as_float(_gain(self.layout, [engine.gain() for engine in self.engines]))

    @property
    def in_order_variances(self) -> Float[Array, "n m"]:
        """σ²_{t−1}(x_t) for every observation in time order, from the exact engine's factor.

        Raises:
            UnknownPropertyError: If another engine is used.
        """
        if not self.layout.one_factor:
            raise UnknownPropertyError(
                "in-order variances are kept by the exact engine, one factor"
            )
        rows = int(self.engines[0].count)
        return self.layout.variances([self.engines[0].in_order_variances[:rows]])

    def condition(self, points: Any, targets: Any) -> "Posterior":
        """Condition on observations.

        Args:
            points: (n, d).
            targets: Noisy values, (n,), or (n, m) for m outputs.

        Returns:
            The new posterior. On an error this one is unchanged.

        Raises:
            ShapeError: If the shapes do not fit.
            ArgumentError: If the engine is exact and the call is inside ``jit``.
        """
        x = self._points("points", points)
        y = float_array(targets, "targets")
        shape = (x.shape[0],) if self.scalar else (x.shape[0], self.outputs)
        if y.shape != shape:
            raise ShapeError("targets", f"shape {shape}", f"shape {tuple(y.shape)}")
        require_finite("targets", y)
        if x.shape[0] == 0:
            return self
        before = self
        if self.engine == "exact":
            if is_traced(self, x, y):
                raise ArgumentError("engine", "finite rank or compiled inside jit", "exact")
            rows = x.shape[0] * self.layout.rows_per_point
            if rows >= LARGE_BATCH and self.count == 0:
                return self.advanced(*_advance_in_place(self, x, y.astype(self.dtype)))
            with_room = tuple(engine.reserve(rows) for engine in self.engines)
            before = replace_fields(self, engines=with_room)
        after = before.advanced(*advance(before._without_data(), x, y.astype(self.dtype)))
        if self.few_data is None or is_traced(x, y, self.engines[0].count):
            return after
        return replace_fields(after, few_data=self.few_data.appended(x, y, self.count))

    def advanced(self, engines: tuple[Engine, ...], indicator: Array) -> "Posterior":
        """Take over the engines that ``advance`` returned, if they are positive definite.

        Args:
            engines: The engines.
            indicator: NaN if an engine lost positive definiteness.

        Returns:
            The new posterior.
        """
        after = require_positive_definite(
            engines,
            indicator,
            "the kernel matrix of the data plus noise",
            "points repeat, or nearly so, with too little noise: raise noise_variance, "
            "use dtype='float64', or a domain on which the kernel compiles",
        )
        return replace_fields(self, engines=_with_cache_of(after, self.engines))

    def predict(self, points: Any) -> tuple[Array, Array]:
        """Compute the mean and the standard deviation of f, without noise.

        At a thousand points or more, the exact engine may compute standard deviations in 32 bits,
        unless you asked for it by name or the call is inside ``jit``. It does so where a bound of
        the relative error is below ``std_tolerance``. The bound is random. It fails with
        probability 1e-4 at a point. Errors were measured to be a tenth of it or less.

        At so many points, a kernel that was compiled automatically is not used while the data are
        fewer than its rank. The exact posterior of the data is then faster, and within ``error``.
        This holds for data that came by ``condition`` outside ``jit``, and without caches.

        Args:
            points: (n, d).

        Returns:
            Mean and standard deviation, (n,) each, or (n, m) for m outputs.

        Raises:
            PositiveDefiniteError: If a variance of the exact engine is negative beyond rounding.
        """
        z = self._points("points", points)
        tolerance = 0.0 if is_traced(z, self.engines[0].count) else self.std_tolerance
        is_cached = any(engine.cached is not None for engine in self.engines)
        few = self.few_data if tolerance and z.shape[0] >= POINTS and not is_cached else None
        tier = None if few is None else few.tier(self.count, self.layout.rows_per_point)
        mean, std, lowest = _predict(self._without_data(), z, tolerance, few, tier)
        if self.engine == "exact" and not is_traced(lowest):
            # Cancellation in k(z, z) − ‖L⁻¹k(z)‖² causes at most a few hundred roundings of κ.
            if not float(lowest) > -1e3 * float(jnp.finfo(self.dtype).eps):
                raise PositiveDefiniteError(
                    f"a posterior variance came out as {float(lowest):g} times the prior's in "
                    f"{self.dtype}; use dtype='float64' or a domain on which the kernel compiles"
                )
        return mean, std

    def covariance(self, points: Any) -> Float[Array, "nm nm"]:
        """Compute the joint posterior covariance of f.

        Args:
            points: (n, d).

        Returns:
            The covariance; with m outputs, rows are pairs (point, output).
        """
        return _covariance(self, self._points("points", points))

    def output_covariance(self, points: Any) -> Float[Array, "n m m"]:
        """Compute Σ(z), the posterior covariance between outputs at each point.

        Args:
            points: (n, d).

        Returns:
            The covariances, (n, m, m).
        """
        return _output_covariance(self, self._points("points", points))

    def sample(
        self, *, key: Key, method: str = "auto", frequencies: int = 2048
    ) -> "FunctionSample | LazySample":
        """Draw one function from the posterior, which you can evaluate anywhere.

        Finite-rank and compiled engines draw weights, which is exact in law. The exact engine draws
        by Matheron's rule with random Fourier features, which is approximate. Its method "lazy"
        draws values when they are queried, which is exact but not jit-able. With inducing points
        draws are approximate, because random features represent the prior between the points.

        Args:
            key: Decides the draw.
            method: "auto", "weights", "pathwise" or "lazy".
            frequencies: The number of random frequencies, for approximate draws.

        Returns:
            The function.

        Raises:
            ArgumentError: If the engine does not have the method.
        """
        method = choice("method", method, ("auto", "weights", "pathwise", "lazy"))
        exact = all(engine.exact_draws for engine in self.engines)
        unavailable = ("pathwise", "lazy") if exact else ("weights",)
        if method in unavailable or (method == "lazy" and self.engine != "exact"):
            raise ArgumentError("method", f"one that the {self.engine} engine has", repr(method))
        if method == "lazy":
            engines = cast(tuple[ExactEngine, ...], self.engines)
            return LazySample(self.layout, engines, self.mean, scalar=self.scalar, key=key)
        frequencies = integer("frequencies", frequencies, least=1)
        keys = jax.random.split(key, len(self.engines))
        return FunctionSample(
            layout=self.layout,
            functions=_draw(self.engines, frequencies, keys),
            mean=self.mean,
            scalar=self.scalar,
            dtype=self.dtype,
            exact=exact,
        )

    def mean_function(self) -> FunctionSample:
        """Return the posterior mean as a function, which you call like a draw.

        Returns:
            The function.
        """
        return FunctionSample(
            layout=self.layout,
            functions=_mean_functions(self.engines),
            mean=self.mean,
            scalar=self.scalar,
            dtype=self.dtype,
            exact=True,
        )

    def cache_at(self, points: Any, *, moments: bool = False) -> "Posterior":
        """Cache values at points that a planner evaluates every time.

        The cache has n × rank numbers, and far fewer for a large grid. Predictions elsewhere are
        unchanged. With ``moments``, ``condition`` keeps means and standard deviations at the points
        up to date, at cost n × rank or less for each new row, and ``predict`` only reads them.

        Args:
            points: The points, (n, d).
            moments: Whether to cache means and standard deviations too.

        Returns:
            The same posterior, faster at exactly these points.
        """
        z = self._points("points", points)
        caches = [compressed(cache) for cache in _cache_at(self, z)]
        pairs = zip(self.engines, caches, strict=True)
        engines = tuple(
            engine if cache is None else engine.with_cache(cache) for engine, cache in pairs
        )
        if moments:
            engines = _with_cache_of(_with_cached_moments(engines), engines)
        return replace_fields(self, engines=engines)

    def without_cache(self) -> "Posterior":
        """Return the same posterior without its cache.

        A compiled program copies what it returns, so large unchanged arrays are best left out.

        Returns:
            The posterior.
        """
        return replace_fields(
            self, engines=tuple(engine.with_cache(None) for engine in self.engines)
        )

    def sample_at(self, points: Any, *, key: Key, draws: int = 1) -> Array:
        """Draw values at finitely many points jointly.

        Draws are exact in law with every engine: of the compiled kernel, if one was compiled, and
        of the projected process, with inducing points.

        Args:
            points: (n, d).
            key: Decides the draws.
            draws: The number of draws.

        Returns:
            The values, (draws, n), or (draws, n, m) for m outputs.
        """
        z = jnp.asarray(self._points("points", points))
        rows = self.layout.rows(z)
        keys = jax.random.split(key, len(self.engines))
        parts = [
            engine.draw_at(rows, draws, key=engine_key)
            for engine, engine_key in zip(self.engines, keys, strict=True)
        ]
        values = jax.vmap(lambda *columns: self.layout.values(list(columns)))(*parts)
        values = values + self.mean(z)[None]
        return values[:, :, 0] if self.scalar else values

    def _without_data(self) -> "Posterior":
        """The same posterior for programs that do not use ``few_data``."""
        return self if self.few_data is None else replace_fields(self, few_data=None)

    def _points(self, argument: str, points: Any) -> Any:
        x = as_points(argument, points, dtype=self.dtype, dimension=self.dimension)
        if not is_traced(x):
            if self.engine == "compiled" and self.domain is not None:
                self.domain.require_inside(argument, x)
            for part in self.kernel.parts():
                part.require_points(np.asarray(x))
        return x

    def __repr__(self) -> str:
        fidelity = (
            f", error={self.error:.1e} {self.error_kind}" if self.error_kind != "exact" else ""
        )
        return (
            f"Posterior({self.kernel}, engine={self.engine!r}, rank={self.rank:g}{fidelity}, "
            f"outputs={self.outputs}, count={self.count}, dtype={self.dtype})"
        )


@jit
def advance(posterior: Posterior, x: Array, y: Array) -> tuple[tuple[Engine, ...], Array]:
    """Condition the engines of a posterior, without checks of the data.

    It is for programs that condition several posteriors at once. ``condition`` checks its data.

    Args:
        posterior: The posterior.
        x: Points, (n, d).
        y: Noisy values, (n,) or (n, m).

    Returns:
        The engines after the data, and a number that is NaN if one lost positive definiteness.
    """
    rows, parts = _rows_and_parts(posterior, x, y)
    pairs = zip(posterior.engines, parts, strict=True)
    after = tuple(engine.condition(rows, *part) for engine, part in pairs)
    after = tuple(engine.with_cache(None) for engine in after)  # see ``without_cache``
    # One number is NaN if any factor is, so the host need not look at whole matrices.
    checks = [jnp.sum(engine.factor_to_check) * 0 for engine in after]
    return after, jnp.sum(jnp.stack(checks))


@jit
def _rows_and_parts(posterior: Posterior, x: Array, y: Array) -> tuple[Array, list[Any]]:
    """Rows of the engines, and targets and noise variances for each of them."""
    layout = posterior.layout
    residuals = y.reshape(x.shape[0], layout.outputs) - posterior.mean(x)
    noise = posterior.noise_variance + posterior.jitter
    return layout.rows(x), layout.targets(residuals, noise)


def _advance_in_place(posterior: Posterior, x: Any, y: Any) -> tuple[tuple[Engine, ...], Array]:
    """What ``advance`` does, for exact engines without data and a large batch."""
    rows, parts = _rows_and_parts(posterior, jnp.asarray(x), jnp.asarray(y))
    pairs = zip(cast(tuple[ExactEngine, ...], posterior.engines), parts, strict=True)
    after = tuple(engine.condition_in_place(rows, *part) for engine, part in pairs)
    return after, jnp.stack([jnp.sum(engine.whitened) * 0 for engine in after])


@kept_jit
def _predict(
    posterior: Posterior, z: Array, tolerance: float, few: FewData | None, tier: Any
) -> tuple[Array, Array, Array]:
    """Mean, std, and the lowest variance in units of the largest prior variance at the points."""
    layout = posterior.layout
    rows = layout.rows(z)
    if few is None:
        moments = [engine.prediction(rows, tolerance) for engine in posterior.engines]
    else:
        data = _rows_and_parts(posterior, jnp.asarray(few.points), jnp.asarray(few.targets))
        moments = few.moments(tier, *data, layout.rows_per_point, rows, posterior.engines)
    mean = posterior.mean(z) + layout.values([means for means, _ in moments])
    variance = layout.variances([variances for _, variances in moments])
    lowest = jnp.min(variance, initial=0.0)
    priors = [engine.prior_variance(rows) for engine in posterior.engines]
    if known := [prior for prior in priors if prior is not None]:
        largest = jnp.stack([jnp.max(prior, initial=0.0) for prior in known])
        lowest = lowest / jnp.maximum(jnp.max(largest), jnp.finfo(z.dtype).tiny)
    std = jnp.sqrt(jnp.maximum(variance, 0))
    return (mean[:, 0], std[:, 0], lowest) if posterior.scalar else (mean, std, lowest)


@jit
def _gain(layout: Layout, parts: list[Array]) -> Array:
    return layout.gain(parts)


@jit
def _covariance(posterior: Posterior, z: Array) -> Array:
    layout = posterior.layout
    return layout.covariance([engine.covariance(layout.rows(z)) for engine in posterior.engines])


@jit
def _output_covariance(posterior: Posterior, z: Array) -> Array:
    def at_point(point: Array) -> Array:
        layout = posterior.layout
        rows = layout.rows(point[None, :])
        return layout.covariance([engine.covariance(rows) for engine in posterior.engines])

    return jax.vmap(at_point)(z)


@jit
def _draw(engines: tuple[Engine, ...], frequencies: int, keys: Key) -> tuple[Any, ...]:
    return tuple(engine.draw(frequencies, key=keys[i]) for i, engine in enumerate(engines))


@jit
def _mean_functions(engines: tuple[Engine, ...]) -> tuple[Any, ...]:
    return tuple(engine.mean_function() for engine in engines)


@jit
def _cache_at(posterior: Posterior, z: Array) -> tuple[Any, ...]:
    rows = posterior.layout.rows(z)
    return tuple(engine.cache_for(rows) for engine in posterior.engines)


@jit
def _with_cached_moments(engines: tuple[Engine, ...]) -> tuple[Engine, ...]:
    return tuple(engine.with_cached_moments().with_cache(None) for engine in engines)


def _with_cache_of(after: tuple[Engine, ...], before: tuple[Engine, ...]) -> tuple[Engine, ...]:
    """Give engines the caches of earlier ones."""
    pairs = zip(after, before, strict=True)
    return tuple(engine.with_cache(earlier.cached) for engine, earlier in pairs)
