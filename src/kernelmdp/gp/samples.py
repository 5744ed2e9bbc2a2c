"""Functions drawn from a posterior. A sample is one function: the same value at the same point."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelmdp.gp.engine import Engine, PosteriorFunction
from kernelmdp.gp.exact_engine import JITTER, ExactEngine
from kernelmdp.gp.mean_functions import Mean
from kernelmdp.gp.output_layouts import Layout
from kernelmdp.numerics.checks import as_points
from kernelmdp.numerics.factorisation import checked_cholesky
from kernelmdp.numerics.modules import Module, changed, jit
from kernelmdp.types import Key


class FunctionSample(Module):
    """A drawn function of points (n, d), or of one point (d,); jit-able, and vmap-able over draws.

    Values have shape (n,), or (n, m) for m outputs. ``exact`` says whether its law is that of the
    posterior (of the compiled kernel, when one was compiled) or approximates it.

    >>> import kernelmdp as km
    >>> line = km.Box([0.0], [1.0])
    >>> posterior = km.gp.posterior(km.kernel("linear"), noise_variance=0.1, domain=line)
    >>> f = posterior.sample(key=jax.random.key(0))
    >>> bool(f(jnp.array([[0.5]]))[0] == f(jnp.array([[0.5]]))[0]), f.exact
    (True, True)
    """

    layout: Layout
    functions: tuple[PosteriorFunction, ...]
    mean: Mean
    scalar: bool = eqx.field(static=True)
    dtype: Any = eqx.field(static=True)
    exact: bool = eqx.field(static=True)

    def with_cache_of(self, engines: tuple[Engine, ...]) -> "FunctionSample":
        """The same function, faster at the points that these engines remember."""
        pairs = zip(self.functions, engines, strict=True)
        functions = tuple(path.with_memory(engine.cached) for path, engine in pairs)
        return changed(self, functions=functions)

    # A function is itself and no other: so ``jax.jit(sample)`` works as for any function.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __call__(self, points: Any) -> Array:
        z = jnp.asarray(points, self.dtype)
        if z.ndim == 1:
            return self(z[None, :])[0]
        values = _evaluate(self, z)
        return values[:, 0] if self.scalar else values


@jit
def _evaluate(sample: FunctionSample, z: Array) -> Array:
    rows = sample.layout.rows(z)
    return sample.mean(z) + sample.layout.values([path(rows) for path in sample.functions])


class LazySample:
    """A draw that decides its values when asked: exact in law for any sequence of queries.

    Every value handed out is remembered and conditioned on, so the function never contradicts
    itself; query j costs (N + j)². It changes as it is used, so it cannot be jitted.

    >>> import kernelmdp as km
    >>> posterior = km.gp.posterior(km.kernel("se(0.5)"), noise_variance=0.1, dimension=1)
    >>> f = posterior.sample(key=jax.random.key(0), method="lazy")
    >>> float(f([[0.5]])[0]) == float(f([[0.5]])[0])
    True
    """

    exact = True

    def __init__(
        self,
        layout: Layout,
        engines: tuple[ExactEngine, ...],
        mean: Mean,
        *,
        scalar: bool,
        key: Key,
    ) -> None:
        self._layout, self._engines, self._mean = layout, engines, mean
        self._scalar, self._key = scalar, key
        self._known: dict[bytes, np.ndarray] = {}

    def __call__(self, points: Any) -> Array:
        dtype = self._engines[0].factor.dtype
        z = as_points("points", points, dtype=dtype)
        host = np.asarray(z)
        names = [row.tobytes() for row in host]
        fresh = list(dict.fromkeys(name for name in names if name not in self._known))
        if fresh:
            where = [names.index(name) for name in fresh]
            for name, value in zip(fresh, self._extend(z[np.array(where)]), strict=True):
                self._known[name] = value
        values = jnp.asarray(np.stack([self._known[name] for name in names]))
        return values[:, 0] if self._scalar else values

    def _extend(self, z: Any) -> np.ndarray:
        z = jnp.asarray(z)
        rows = self._layout.rows(z)
        self._key, *keys = jax.random.split(self._key, len(self._engines) + 1)
        drawn, engines = [], []
        for engine, key in zip(self._engines, keys, strict=True):
            mean, _ = engine.moments(rows)
            covariance = engine.covariance(rows)
            jitter = JITTER * jnp.max(engine.kernel.diagonal(rows))
            root = checked_cholesky(
                covariance + jitter * jnp.eye(len(rows), dtype=z.dtype),
                "the covariance of new values given those drawn before",
                "the points are too close together for an exact draw in this precision",
            )
            value = mean + root @ jax.random.normal(key, mean.shape, z.dtype)
            drawn.append(value)
            noiseless = jnp.full(len(rows), jitter, z.dtype)
            engines.append(engine.reserve(len(rows)).condition(rows, value, noiseless))
        self._engines = tuple(engines)
        return np.asarray(self._mean(z) + self._layout.values(drawn))
