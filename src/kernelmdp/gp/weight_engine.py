"""The engine for kernels of finite rank: a Gaussian over weights, updated in square-root form.

f(z) = g(z)ᵀw, w ~ N(weights, root rootᵀ). With whitened rows F = N^−½ G root (G the basis at the h
new points, N their noise variances) and I + FFᵀ = CCᵀ,

    root'    = root (I − (C⁻¹F)ᵀ ((C + I)⁻¹F)),    root' root'ᵀ = root (I + FᵀF)⁻¹ rootᵀ
    weights' = weights + root (C⁻¹F)ᵀ C⁻¹ N^−½ (y − G weights)
    gain'    = gain + Σ_t ln C_tt,                  C_tt² = 1 + σ²_{t−1}(x_t)/λ_t.

The variance ‖rootᵀg(z)‖² is a sum of squares: it cannot go negative in any precision. A rank-h
update costs 6 h r² flops, all in matrix products, whatever was seen before.
"""

import dataclasses
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from kernelmdp.gp.basis import Basis, BasisCache, MomentCache, cached
from kernelmdp.gp.engine import Engine, PosteriorFunction
from kernelmdp.numerics.factorisation import cholesky, lower_root, solve_lower, squared_lengths
from kernelmdp.numerics.modules import changed, in_chunks
from kernelmdp.types import Key

#: Rows conditioned on at once; more would cost h³ in the small factor.
BLOCK = 128
#: Points predicted at once: their basis values stay in cache.
CHUNK = 2048
#: Rows or points, as a multiple of the rank, that make a triangular root worth its cost; and the
#: panels in which a product skips its zeros.
MANY, PANELS = 2, 4
#: Below this rank panels cost more than they save.
LARGE = 400
#: Numbers treated at once where values are remembered.
ENTRIES = 2**23


class WeightFunction(PosteriorFunction):
    """g(z)ᵀ coefficients."""

    basis: Basis
    coefficients: Float[Array, "r p"]
    memory: BasisCache | None = None

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        def compute(x: Array) -> Array:
            return in_chunks(lambda z: self.basis(z) @ self.coefficients, x, 4 * CHUNK)

        return cached(self.memory, points, lambda values: values @ self.coefficients, compute)

    def with_memory(self, memory: BasisCache | None) -> "WeightFunction":
        return changed(self, memory=memory)


class WeightEngine(Engine):
    """Posterior over the weights of a basis; see the module's text."""

    basis: Basis
    root: Float[Array, "r r"]
    weights: Float[Array, "r p"]
    accumulated_gain: Float[Array, ""]
    count: Int[Array, ""]
    lower: bool = eqx.field(static=True)  # whether root is lower triangular
    memory: BasisCache | None = None
    known: MomentCache | None = None  # at the remembered points

    @staticmethod
    def prior(basis: Basis, root: Float[Array, "r r"], columns: int) -> "WeightEngine":
        """No data yet: w ~ N(0, root rootᵀ) for each column."""
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
        pieces = [a[index].reshape(blocks, BLOCK, *a.shape[1:]) for a in (points, targets, noise)]
        step = lambda engine, piece: (engine._condition(*piece), None)  # noqa: E731
        start = dataclasses.replace(self, lower=False, memory=None, known=None)
        after, _ = lax.scan(step, start, (*pieces, counted.reshape(blocks, BLOCK)))
        if rows >= MANY * self.root.shape[0]:
            # So many rows cost far more than this, which makes later predictions a third cheaper.
            after = dataclasses.replace(after, root=lower_root(after.root), lower=True)
        if self.memory is None or self.known is None:
            return after
        return dataclasses.replace(after, known=after._moments_of(self.memory.values))

    def _condition(
        self,
        points: Float[Array, "h d"],
        targets: Float[Array, "h p"],
        noise: Float[Array, " h"],
        counted: Float[Array, " h"],
    ) -> "WeightEngine":
        """Rows with ``counted`` 0 are padding: a row of zeros changes nothing."""
        whiten = (counted * lax.rsqrt(noise))[:, None]
        values = whiten * self.basis(points)
        rows = values @ self.root
        identity = jnp.eye(rows.shape[0], dtype=rows.dtype)
        factor = cholesky(identity + rows @ rows.T)
        solved = solve_lower(factor, rows)
        residual = solve_lower(factor, whiten * targets - values @ self.weights)
        shrunk = solve_lower(factor + identity, rows)
        across = self.root @ solved.T
        known = self.known
        if known is not None and self.memory is not None:
            # Σ' = Σ − across acrossᵀ: a rank-h update of every remembered point, whatever n is.
            reach = self.memory.values @ across
            variance = jnp.maximum(known.variance - jnp.sum(reach**2, axis=1), 0.0)
            known = MomentCache(known.mean + reach @ residual, variance)
        return WeightEngine(
            basis=self.basis,
            root=self.root - across @ shrunk,
            lower=False,
            weights=self.weights + across @ residual,
            accumulated_gain=self.accumulated_gain + jnp.sum(jnp.log(jnp.diagonal(factor))),
            count=self.count + jnp.sum(counted).astype(self.count.dtype),
            known=known,
        )

    def moments(
        self, points: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        return cached(
            self.memory,
            points,
            self._known_moments,
            lambda x: self._moments(x, self.basis, CHUNK),
        )

    def _known_moments(self, values: Float[Array, "n r"]) -> tuple[Array, Array]:
        if self.known is not None:
            return self.known.mean, self.known.variance
        found = self._moments_of(values)
        return found.mean, found.variance

    def _moments_of(self, values: Float[Array, "n r"]) -> MomentCache:
        return MomentCache(*self._moments(values, lambda v: v, ENTRIES // self.root.shape[0]))

    def _moments(
        self, rows: Float[Array, "n c"], basis: Callable[[Array], Array], size: int
    ) -> tuple[Array, Array]:
        """Means and variances, ``size`` rows at a time; ``basis`` gives their basis values."""
        # For many points a triangular root pays: it costs r³ once and saves 40 % of N r².
        rank = self.root.shape[0]
        many = rows.shape[0] >= 4 * MANY * rank and rank >= LARGE
        root = lower_root(self.root) if many and not self.lower else self.root
        panels = PANELS if rank >= LARGE and (many or self.lower) else 1

        def some(piece: Array) -> tuple[Array, Array]:
            values = basis(piece)
            return values @ self.weights, squared_lengths(values, root, panels)

        return in_chunks(some, rows, size)

    def covariance(self, points: Float[Array, "n d"]) -> Float[Array, "n n"]:
        spread = self.basis(points) @ self.root
        return spread @ spread.T

    def with_known_moments(self) -> "WeightEngine":
        if self.memory is None:
            return self
        return dataclasses.replace(self, known=self._moments_of(self.memory.values))

    def mean_function(self) -> PosteriorFunction:
        return WeightFunction(self.basis, self.weights)

    def draw(self, frequencies: int, *, key: Key) -> PosteriorFunction:
        """Exact in law: w = weights + root ε."""
        noise = jax.random.normal(key, self.weights.shape, self.weights.dtype)
        return WeightFunction(self.basis, self.weights + self.root @ noise)

    def draw_at(
        self, points: Float[Array, "n d"], draws: int, *, key: Key
    ) -> Float[Array, "draws n p"]:
        noise = jax.random.normal(key, (draws, *self.weights.shape), self.weights.dtype)
        values = self.basis(points)
        return jnp.einsum("nr,drp->dnp", values @ self.root, noise) + (values @ self.weights)[None]

    def gain(self) -> Float[Array, ""]:
        return self.accumulated_gain

    def reserve(self, rows: int) -> "WeightEngine":
        return self

    def weight_form(self, dimension: int) -> tuple[Basis, Float[Array, "r r"]]:
        return self.basis, self.root

    @property
    def cached(self) -> BasisCache | None:
        return self.memory

    def memory_of(self, points: Float[Array, "n d"]) -> BasisCache:
        return BasisCache(points, in_chunks(self.basis, points, CHUNK))

    def with_memory(self, memory: BasisCache | None) -> "WeightEngine":
        return changed(self, memory=memory)

    @property
    def factor_to_check(self) -> Array:
        return self.accumulated_gain
