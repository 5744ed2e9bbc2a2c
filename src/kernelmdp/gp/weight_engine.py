"""The engine for kernels of finite rank: a Gaussian over weights, updated in square-root form.

f(z) = g(z)ᵀw, w ~ N(weights, root rootᵀ). With whitened rows F = N^−½ G root (G the basis at the h
new points, N their noise variances) and I + FFᵀ = CCᵀ,

    root'    = root (I − (C⁻¹F)ᵀ ((C + I)⁻¹F)),    root' root'ᵀ = root (I + FᵀF)⁻¹ rootᵀ
    weights' = weights + root (C⁻¹F)ᵀ C⁻¹ N^−½ (y − G weights)
    gain'    = gain + Σ_t ln C_tt,                  C_tt² = 1 + σ²_{t−1}(x_t)/λ_t.

The variance ‖rootᵀg(z)‖² is a sum of squares, so it cannot be negative in any precision. A rank-h
update costs 6 h r² flops, all in matrix products, independently of the number of earlier rows.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from kernelmdp.gp.basis import Basis
from kernelmdp.gp.basis_cache import BasisCache, MomentCache, PointCache, from_cache
from kernelmdp.gp.engine import Engine, PosteriorFunction
from kernelmdp.numerics.factorisation import (
    cholesky,
    product_squared_lengths,
    solve_lower,
    triangular_root,
)
from kernelmdp.numerics.modules import map_chunks, replace_fields
from kernelmdp.types import ArrayLike, Key

#: Number of rows conditioned on at once. The small factor costs the cube of it.
BLOCK = 128
#: Number of points predicted at once, so that their basis values stay in the processor's cache.
CHUNK = 2048
#: A triangular root is worth its cost from this multiple of the rank on, in rows or points.
MANY = 2
#: Number of panels in which a product with a triangular root skips zeros.
PANELS = 4
#: Smallest rank for panels. Below it they cost more than they save.
LARGE = 400


class WeightFunction(PosteriorFunction):
    """The function g(z)ᵀ coefficients.

    Attributes:
        basis: g.
        coefficients: The coefficients of each column.
        cache: Values of g at points that are evaluated often, or None.
    """

    basis: Basis
    coefficients: Float[Array, "r p"]
    cache: PointCache | None = None

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        def compute(x: Array) -> Array:
            return map_chunks(lambda z: self.basis(z) @ self.coefficients, x, 4 * CHUNK)

        return from_cache(
            self.cache, points, lambda cache: cache.product(self.coefficients), compute
        )

    def with_cache(self, cache: PointCache | None) -> "WeightFunction":
        return replace_fields(self, cache=cache)


class WeightEngine(Engine):
    """The posterior over the weights of a basis; see the module's text.

    Attributes:
        basis: g.
        root: A root of the covariance of the weights.
        weights: The mean of the weights of each column.
        accumulated_gain: The information gain of the rows so far, for one column.
        count: The number of rows.
        lower: Whether the root is lower triangular.
        cache: Values of g at points that are evaluated often, or None.
        moment_cache: Posterior moments at these points, or None.
    """

    basis: Basis
    root: Float[Array, "r r"]
    weights: Float[Array, "r p"]
    accumulated_gain: Float[Array, ""]
    count: Int[Array, ""]
    lower: bool = eqx.field(static=True)
    cache: PointCache | None = None
    moment_cache: MomentCache | None = None

    @staticmethod
    def prior(basis: Basis, root: Float[Array, "r r"], columns: int) -> "WeightEngine":
        """Make an engine without data: w ~ N(0, root rootᵀ) for each column.

        Args:
            basis: g.
            root: The root of the prior covariance.
            columns: p.

        Returns:
            The engine.
        """
        rank, dtype = root.shape[0], root.dtype
        return WeightEngine(
            basis=basis,
            root=root,
            lower=False,
            weights=jnp.zeros((rank, columns), dtype),
            accumulated_gain=jnp.zeros((), dtype),
            count=jnp.zeros((), jnp.int32),
        )

    def condition(
        self, points: Float[Array, "h d"], targets: Float[Array, "h p"], noise: Float[Array, " h"]
    ) -> "WeightEngine":
        rows = points.shape[0]
        if rows <= BLOCK:
            return self._condition(points, targets, noise, jnp.ones_like(noise))
        blocks = -(-rows // BLOCK)
        index = jnp.minimum(jnp.arange(blocks * BLOCK), rows - 1)
        counted = (jnp.arange(blocks * BLOCK) < rows).astype(noise.dtype)
        data = (points, targets, noise)
        pieces = [array[index].reshape(blocks, BLOCK, *array.shape[1:]) for array in data]
        step = lambda engine, piece: (engine._condition(*piece), None)  # noqa: E731
        start = dataclasses.replace(self, lower=False, cache=None, moment_cache=None)
        after, _ = lax.scan(step, start, (*pieces, counted.reshape(blocks, BLOCK)))
        if rows >= MANY * self.root.shape[0]:
            # Compared with so many rows this costs little, and later predictions cost a third less.
            after = dataclasses.replace(after, root=triangular_root(after.root), lower=True)
        if self.cache is None or self.moment_cache is None:
            return after
        return dataclasses.replace(after, moment_cache=after._moments_of(self.cache))

    def _condition(
        self,
        points: Float[Array, "h d"],
        targets: Float[Array, "h p"],
        noise: Float[Array, " h"],
        counted: Float[Array, " h"],
    ) -> "WeightEngine":
        """Condition on rows. Rows with ``counted`` 0 are padding and change nothing."""
        whitening = (counted * lax.rsqrt(noise))[:, None]
        values = whitening * self.basis(points)
        rows = values @ self.root
        identity = jnp.eye(rows.shape[0], dtype=rows.dtype)
        factor = cholesky(identity + rows @ rows.T)
        solved = solve_lower(factor, rows)
        residual = solve_lower(factor, whitening * targets - values @ self.weights)
        shrunk = solve_lower(factor + identity, rows)
        gain_matrix = self.root @ solved.T
        moments = self.moment_cache
        if moments is not None and self.cache is not None:
            # Σ' = Σ − gain gainᵀ: a rank-h update of every cached point, at a cost that does not
            # depend on the number of earlier rows.
            rise, decrease = self.cache.changes(gain_matrix, residual)
            variance = jnp.maximum(moments.variance - decrease, 0.0)
            moments = MomentCache(moments.mean + rise, variance)
        return WeightEngine(
            basis=self.basis,
            root=self.root - gain_matrix @ shrunk,
            lower=False,
            weights=self.weights + gain_matrix @ residual,
            accumulated_gain=self.accumulated_gain + jnp.sum(jnp.log(jnp.diagonal(factor))),
            count=self.count + jnp.sum(counted).astype(self.count.dtype),
            moment_cache=moments,
        )

    def moments(
        self, points: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        return from_cache(self.cache, points, self._cached_moments, self._moments_at)

    def _cached_moments(self, cache: PointCache) -> tuple[Array, Array]:
        moments = self.moment_cache or self._moments_of(cache)
        return moments.mean, moments.variance

    def _moments_of(self, cache: PointCache) -> MomentCache:
        return MomentCache(*cache.moments(self.weights, *self._root_for(cache.points.shape[0])))

    def _moments_at(self, points: Float[Array, "n d"]) -> tuple[Array, Array]:
        root, panels = self._root_for(points.shape[0])

        def moments(chunk: Array) -> tuple[Array, Array]:
            values = self.basis(chunk)
            return values @ self.weights, product_squared_lengths(values, root, panels)

        return map_chunks(moments, points, CHUNK)

    def _root_for(self, count: int) -> tuple[Array, int]:
        """The root with which variances at so many points take least time, and its panels."""
        # For many points a triangular root pays off: it costs r³ once and saves 40 % of N r².
        rank = self.root.shape[0]
        many = count >= 4 * MANY * rank and rank >= LARGE
        root = triangular_root(self.root) if many and not self.lower else self.root
        return root, PANELS if rank >= LARGE and (many or self.lower) else 1

    def covariance(self, points: Float[Array, "n d"]) -> Float[Array, "n n"]:
        rows = self.basis(points) @ self.root
        return rows @ rows.T

    def with_cached_moments(self) -> "WeightEngine":
        # Cached variances are differences. In 32 bits they would drift as rows accumulate, so
        # moments are then computed from the root each time.
        if self.cache is None or self.root.dtype != jnp.float64:
            return self
        return dataclasses.replace(self, moment_cache=self._moments_of(self.cache))

    def mean_function(self) -> PosteriorFunction:
        return WeightFunction(self.basis, self.weights)

    def draw(self, frequencies: int, *, key: Key) -> PosteriorFunction:
        # Exact in law: w = weights + root ε.
        noise = jax.random.normal(key, self.weights.shape, self.weights.dtype)
        return WeightFunction(self.basis, self.weights + self.root @ noise)

    def draw_at(
        self, points: Float[Array, "n d"], draws: int, *, key: Key
    ) -> Float[Array, "draws n p"]:
        noise = jax.random.normal(key, (draws, *self.weights.shape), self.weights.dtype)
        values = self.basis(points)
        return jnp.einsum("nr,drp->dnp", values @ self.root, noise) + (values @ self.weights)[None]

    def changing_arrays(self) -> dict[str, Array]:
        moments = self.moment_cache
        cached = {} if moments is None else {"mean": moments.mean, "variance": moments.variance}
        return {
            "root": self.root,
            "weights": self.weights,
            "accumulated_gain": self.accumulated_gain,
            "count": self.count,
            "lower": jnp.asarray(self.lower),
            **cached,
        }

    def with_arrays(self, arrays: Mapping[str, ArrayLike]) -> "WeightEngine":
        fields: dict[str, Any] = {name: jnp.asarray(array) for name, array in arrays.items()}
        for name, array in self.changing_arrays().items():
            if fields[name].shape != array.shape:
                raise ValueError(f"{name} of shape {fields[name].shape}")
        lower = bool(fields.pop("lower"))
        if self.moment_cache is not None:
            fields["moment_cache"] = MomentCache(fields.pop("mean"), fields.pop("variance"))
        return replace_fields(self, lower=lower, **fields)

    def gain(self) -> Float[Array, ""]:
        return self.accumulated_gain

    def reserve(self, rows: int) -> "WeightEngine":
        return self

    def weight_form(self, dimension: int) -> tuple[Basis, Float[Array, "r r"]]:
        return self.basis, self.root

    @property
    def weight_moments(self) -> tuple[Float[Array, "r p"], Float[Array, "r r"]]:
        return self.weights, self.root

    @property
    def cached(self) -> PointCache | None:
        return self.cache

    def cache_for(self, points: Float[Array, "n d"]) -> BasisCache:
        return BasisCache(points, map_chunks(self.basis, points, CHUNK))

    def with_cache(self, cache: PointCache | None) -> "WeightEngine":
        return replace_fields(self, cache=cache)

    @property
    def factor_to_check(self) -> Array:
        return self.accumulated_gain
