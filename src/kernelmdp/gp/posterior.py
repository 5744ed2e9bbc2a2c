"""Posteriors: one contract, three engines (exact, finite rank, compiled)."""

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
from kernelmdp.gp.engine import Engine
from kernelmdp.gp.exact_engine import ExactEngine
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
from kernelmdp.numerics.factorisation import is_traced, require_positive_definite
from kernelmdp.numerics.modules import Module, changed, jit
from kernelmdp.types import Key


class Posterior(Module):
    """What is known of a function after noisy observations of it.

    Immutable: ``condition`` returns another posterior and leaves this one as it was. Made by
    ``posterior``; see there for an example.

    >>> import kernelmdp as km
    >>> line = km.Box([0.0], [1.0])
    >>> prior = km.gp.posterior(km.kernel("linear"), noise_variance=0.1, domain=line)
    >>> after = prior.condition([[1.0]], [2.0])
    >>> mean, std = after.predict([[1.0]])
    >>> round(float(mean[0]), 4), prior.count, after.count  # 2 · 1/(1 + 0.1)
    (1.8182, 0, 1)
    """

    #: Whether data change it; a known function in the place of a posterior says False.
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
        return int(self.engines[0].count) // self.layout.rows_per_point

    @property
    def information_gain(self) -> float:
        """½ ln|I + K/λ| of the data: how much was learned, in nats; all outputs together."""
        return float(_gain(self.layout, [engine.gain() for engine in self.engines]))

    @property
    def in_order_variances(self) -> Float[Array, "n m"]:
        """σ²_{t−1}(x_t) for every observation in time order, read off the exact engine's factor."""
        if not self.layout.one_factor:
            raise UnknownPropertyError(
                "in-order variances are kept by the exact engine, one factor"
            )
        rows = int(self.engines[0].count)
        return self.layout.variances([self.engines[0].in_order_variances[:rows]])

    def condition(self, points: Any, targets: Any) -> "Posterior":
        """The posterior after observing ``targets`` (n,) or (n, m) at ``points`` (n, d)."""
        x = self._points("points", points)
        y = float_array(targets, "targets")
        shape = (x.shape[0],) if self.scalar else (x.shape[0], self.outputs)
        if y.shape != shape:
            raise ShapeError("targets", f"shape {shape}", f"shape {tuple(y.shape)}")
        require_finite("targets", y)
        if x.shape[0] == 0:
            return self
        ready = self
        if self.engine == "exact":
            if is_traced(self, x, y):
                raise ArgumentError("engine", "finite rank or compiled inside jit", "exact")
            rows = x.shape[0] * self.layout.rows_per_point
            roomy = tuple(engine.reserve(rows) for engine in self.engines)
            ready = changed(self, engines=roomy)
        return self.advanced(*advance(ready, x, y.astype(self.dtype)))

    def advanced(self, engines: tuple[Engine, ...], health: Array) -> "Posterior":
        """The posterior with the engines that ``advance`` found, if they are sound."""
        after = require_positive_definite(
            engines,
            health,
            "the kernel matrix of the data plus noise",
            "points repeat, or nearly so, with too little noise: raise noise_variance, "
            "use dtype='float64', or a domain on which the kernel compiles",
        )
        return changed(self, engines=_with_cache_of(after, self.engines))

    def predict(self, points: Any) -> tuple[Array, Array]:
        """Mean and standard deviation of f (noise not included) at points (n, d).

        Shapes (n,), or (n, m) for m outputs.
        """
        mean, std, lowest = _predict(self, self._points("points", points))
        if self.engine == "exact" and not is_traced(lowest):
            # Cancellation in k(z, z) − ‖L⁻¹k(z)‖² is a few hundred roundings of κ, never more.
            if not float(lowest) > -1e3 * float(jnp.finfo(self.dtype).eps):
                raise PositiveDefiniteError(
                    f"a posterior variance came out as {float(lowest):g} times the prior's in "
                    f"{self.dtype}; use dtype='float64' or a domain on which the kernel compiles"
                )
        return mean, std

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
        values as they are asked for (exact, not jit-able). On inducing points draws are
        approximate: random features stand in for the prior between and beyond the points.
        """
        method = choice("method", method, ("auto", "weights", "pathwise", "lazy"))
        exact = all(engine.exact_draws for engine in self.engines)
        refused = ("pathwise", "lazy") if exact else ("weights",)
        if method in refused or (method == "lazy" and self.engine != "exact"):
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
        """The posterior mean as one function, to be called like a draw."""
        return FunctionSample(
            layout=self.layout,
            functions=_mean_functions(self.engines),
            mean=self.mean,
            scalar=self.scalar,
            dtype=self.dtype,
            exact=True,
        )

    def cache_at(self, points: Any, *, moments: bool = False) -> "Posterior":
        """The same posterior, faster at exactly these points, which a planner asks for each time.

        Keeps n × rank numbers; answers elsewhere are as before. With ``moments`` means and
        standard deviations there are kept up to date by ``condition``, at cost n × rank for each
        new point, and ``predict`` only reads them.
        """
        z = self._points("points", points)
        pairs = zip(self.engines, _cache_at(self, z), strict=True)
        ready = tuple(e if v is None else e.with_memory(v) for e, v in pairs)
        if moments:
            found = _known_moments(ready)
            ready = tuple(a.with_memory(b.cached) for a, b in zip(found, ready, strict=True))
        return changed(self, engines=ready)

    def without_cache(self) -> "Posterior":
        """The same posterior without remembered points.

        A compiled program copies what it returns: large arrays that it does not change stay out.
        """
        return changed(self, engines=tuple(e.with_memory(None) for e in self.engines))

    def sample_at(self, points: Any, *, key: Key, draws: int = 1) -> Array:
        """Joint draws of the values at finitely many points: shape (draws, n), or (draws, n, m).

        Exact in law with every engine (for the compiled kernel, when one was compiled; for the
        projected process, on inducing points).
        """
        z = jnp.asarray(self._points("points", points))
        rows = self.layout.rows(z)
        keys = jax.random.split(key, len(self.engines))
        parts = [
            engine.draw_at(rows, draws, key=each)
            for engine, each in zip(self.engines, keys, strict=True)
        ]
        values = jax.vmap(lambda *columns: self.layout.values(list(columns)))(*parts)
        values = values + self.mean(z)[None]
        return values[:, :, 0] if self.scalar else values

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
    """The engines after observing y at x, and a number that is NaN when one is not sound.

    For programs that condition several posteriors at once; ``condition`` checks what it is given.
    """
    layout = posterior.layout
    rows = layout.rows(x)
    residuals = y.reshape(x.shape[0], layout.outputs) - posterior.mean(x)
    parts = layout.targets(residuals, posterior.noise_variance + posterior.jitter)
    pairs = zip(posterior.engines, parts, strict=True)
    after = tuple(engine.condition(rows, *part) for engine, part in pairs)
    after = tuple(engine.with_memory(None) for engine in after)  # see ``without_cache``
    # One number that is NaN when any factor is: the host looks at it, not at whole matrices.
    return after, jnp.sum(jnp.stack([jnp.sum(e.factor_to_check) * 0 for e in after]))


@jit
def _predict(posterior: Posterior, z: Array) -> tuple[Array, Array, Array]:
    """Mean, std, and the lowest variance in units of the largest prior variance at the points."""
    layout = posterior.layout
    rows = layout.rows(z)
    moments = [engine.moments(rows) for engine in posterior.engines]
    mean = posterior.mean(z) + layout.values([m for m, _ in moments])
    variance = layout.variances([v for _, v in moments])
    lowest = jnp.min(variance, initial=0.0)
    priors = [engine.prior_variance(rows) for engine in posterior.engines]
    before = [prior for prior in priors if prior is not None]
    if before:
        largest = jnp.stack([jnp.max(prior, initial=0.0) for prior in before])
        lowest = lowest / jnp.maximum(jnp.max(largest), jnp.finfo(z.dtype).tiny)
    std = jnp.sqrt(jnp.maximum(variance, 0))
    return (mean[:, 0], std[:, 0], lowest) if posterior.scalar else (mean, std, lowest)


@jit
def _gain(layout: Layout, parts: list[Array]) -> Array:
    return layout.gain(parts)


@jit
def _covariance(posterior: Posterior, z: Array) -> Array:
    layout = posterior.layout
    return layout.covariance([e.covariance(layout.rows(z)) for e in posterior.engines])


@jit
def _output_covariance(posterior: Posterior, z: Array) -> Array:
    def one(point: Array) -> Array:
        layout = posterior.layout
        rows = layout.rows(point[None, :])
        return layout.covariance([engine.covariance(rows) for engine in posterior.engines])

    return jax.vmap(one)(z)


@jit
def _draw(engines: tuple[Engine, ...], frequencies: int, keys: Key) -> tuple[Any, ...]:
    return tuple(e.draw(frequencies, key=keys[i]) for i, e in enumerate(engines))


@jit
def _mean_functions(engines: tuple[Engine, ...]) -> tuple[Any, ...]:
    return tuple(engine.mean_function() for engine in engines)


@jit
def _cache_at(posterior: Posterior, z: Array) -> tuple[Any, ...]:
    rows = posterior.layout.rows(z)
    return tuple(engine.memory_of(rows) for engine in posterior.engines)


@jit
def _known_moments(engines: tuple[Engine, ...]) -> tuple[Engine, ...]:
    return tuple(engine.with_known_moments().with_memory(None) for engine in engines)


def _with_cache_of(after: tuple[Engine, ...], before: tuple[Engine, ...]) -> tuple[Engine, ...]:
    """Engines with what those before remembered."""
    return tuple(a.with_memory(b.cached) for a, b in zip(after, before, strict=True))
