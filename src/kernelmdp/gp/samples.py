"""Functions drawn from a posterior. A sample has the same value at the same point, always."""

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
from kernelmdp.numerics.modules import Module, jit, replace_fields
from kernelmdp.types import Key


class FunctionSample(Module):
    """A drawn function of points (n, d), or of one point (d,).

    Values have shape (n,), or (n, m) for m outputs. You can jit it, and vmap over draws.

    Attributes:
        layout: How outputs are laid over engines.
        functions: The functions drawn from each engine.
        mean: The prior mean.
        scalar: Whether values have shape (n,) and not (n, m).
        dtype: The precision.
        exact: Whether its law is exactly that of the posterior (of the compiled kernel, if one
            was compiled).

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
        """Return the same function, faster at the points that engines have cached.

        Args:
            engines: The posterior's engines.

        Returns:
            The function.
        """
        pairs = zip(self.functions, engines, strict=True)
        functions = tuple(function.with_cache(engine.cached) for function, engine in pairs)
        return replace_fields(self, functions=functions)

    # Equality is identity, as for Python functions, so that ``jax.jit(sample)`` works.
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
    return sample.mean(z) + sample.layout.values([function(rows) for function in sample.functions])


class LazySample:
    """A draw whose values are drawn when they are queried: exact in law for any queries.

    Every value is stored and conditioned on, so the function is consistent. Query j costs
    (N + j)². The object changes with use, so it cannot be jitted.

    Args:
        layout: How outputs are laid over engines.
        engines: Exact engines.
        mean: The prior mean.
        scalar: Whether values have shape (n,) and not (n, m).
        key: Decides the draw.

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
        self._values: dict[bytes, np.ndarray] = {}

    def __call__(self, points: Any) -> Array:
        dtype = self._engines[0].factor.dtype
        z = as_points("points", points, dtype=dtype)
        points_as_bytes = [row.tobytes() for row in np.asarray(z)]
        new = list(dict.fromkeys(name for name in points_as_bytes if name not in self._values))
        if new:
            indices = [points_as_bytes.index(name) for name in new]
            for name, value in zip(new, self._extend(z[np.array(indices)]), strict=True):
                self._values[name] = value
        values = jnp.asarray(np.stack([self._values[name] for name in points_as_bytes]))
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
