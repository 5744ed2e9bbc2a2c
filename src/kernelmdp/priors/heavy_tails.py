"""Student-t noise: y = φ(z)ᵀξ + s·t_ν, ξ ~ N(0, I) (math E, non-conjugate (ii), in weight space).

A chain's move is one sweep over the scale mixture and then some elliptical slices.

- Sweep: t_ν is N(0, s²/λ) with λ ~ Gamma(ν/2, ν/2). Given ξ every λ is Gamma, given all λ the
  weights are Gaussian: both are drawn exactly. Forgets a third of the past when ν = 3.
- Slices: relative to a Gaussian near the posterior rather than to the prior,
  p(ξ | y) = N(ξ; mode, P⁻¹) · exp(log_ratio), which leaves the law unchanged and makes the ratio
  nearly flat, so that a slice accepts at once however many data there are. The mode is found by
  reweighted least squares, W = (ν + 1)/(νs² + residual²), and P = I + (ν + 1)/(ν + 3) ΦᵀWΦ has the
  expected information of the t law.
"""

import dataclasses
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import Noise
from kernelmdp.numerics.checks import integer
from kernelmdp.numerics.factorisation import cholesky, solve_lower, solve_lower_transposed
from kernelmdp.numerics.modules import Module, changed, jit
from kernelmdp.priors.chain_segments import Segment, run_segment
from kernelmdp.priors.diagnostics import EXACT, Diagnostics
from kernelmdp.priors.prior import Prior, PriorProblem
from kernelmdp.priors.sampling import slice_steps
from kernelmdp.priors.weight_space import WeightColumns, random_member
from kernelmdp.types import Key

#: Rows there is room for at first; the room doubles, and programs are compiled for each size.
ROOM = 256
#: Reweightings to find the mode, from the last one.
REWEIGHTINGS = 8
#: Residuals whose factors are multiplied before a logarithm is taken: four of 1e77 do not overflow.
FACTORS = 4


class StudentTState(Module):
    """Rows seen so far, with room for more, and the chains of each column."""

    columns: WeightColumns
    features: Float[Array, "N r"]
    targets: Float[Array, "N p"]
    count: Int[Array, ""]
    mode: Float[Array, "r p"]
    average: Float[Array, "r p"]
    positions: Float[Array, "chains r p"]


@dataclasses.dataclass(frozen=True)
class HeavyTails(Prior):
    """A Gaussian process prior and Student-t noise of known scale.

    ``degrees`` are those of the problem's noise when it is Student-t, else 3. When it is not, the
    scale is such that the standard deviation is the problem's. An episode makes ``moves`` moves of
    each of ``chains`` chains, ``slices`` slices each; four times as many when they did not mix.

    >>> HeavyTails(degrees=3.0).name
    'student-t'
    """

    name: ClassVar[str] = "student-t"

    degrees: float | None = None
    chains: int = 4
    moves: int = 8
    slices: int = 5

    def __post_init__(self) -> None:
        if self.degrees is not None and not (2 < self.degrees < float("inf")):
            raise ArgumentError("degrees", "a number above 2", self.degrees)
        for name, least in (("chains", 2), ("moves", 1), ("slices", 1)):
            integer(name, getattr(self, name), least=least)
        if self.moves * self.slices < 4:
            raise ArgumentError("moves", "4 steps or more with their slices", self.moves)

    def degrees_of(self, noise: Noise) -> float:
        """ν for this noise."""
        if self.degrees is not None:
            return float(self.degrees)
        return noise.degrees if math.isfinite(noise.degrees) else 3.0

    def sizes(self, noise: Noise, dimension: int) -> np.ndarray:
        if math.isfinite(noise.degrees):
            return noise.axis_sizes(dimension)
        nu = self.degrees_of(noise)
        return noise.standard_deviations(dimension) * np.sqrt((nu - 2) / nu)

    def start(
        self, columns: WeightColumns, setting: PriorProblem, place: str, *, key: Key
    ) -> tuple[Any, Diagnostics]:
        r, p, dtype = columns.rank, columns.count, columns.root.dtype
        noise = setting.reward_noise if place == "reward" else setting.transition_noise
        nothing = jnp.zeros((r, p), dtype)
        seen = StudentTState(
            columns=columns,
            features=jnp.zeros((ROOM, r), dtype),
            targets=jnp.zeros((ROOM, p), dtype),
            count=jnp.zeros((), jnp.int32),
            mode=nothing,
            average=nothing,
            positions=jax.random.normal(key, (self.chains, r, p), dtype),
        )
        return (seen, self.degrees_of(noise)), EXACT

    def update(
        self,
        learned: Any,
        features: Float[Array, "h r"],
        targets: Float[Array, "h p"],
        *,
        key: Key,
    ) -> tuple[Any, Diagnostics]:
        before, degrees = learned

        def run(seen: StudentTState, key: Key) -> tuple[StudentTState, Segment]:
            mode, positions, found = _segment(seen, degrees, self.moves, self.slices, key)
            return changed(seen, mode=mode, positions=positions), found

        seen, diagnostics = run_segment(with_rows(before, features, targets), run, key=key)
        return (seen, degrees), diagnostics

    def weights(self, learned: Any, *, key: Key) -> Float[Array, "r p"]:
        return random_member(learned[0].positions, key)

    def expected(self, learned: Any) -> Float[Array, "r p"]:
        return learned[0].average


def with_rows(
    seen: StudentTState, features: Float[Array, "h r"], targets: Float[Array, "h p"]
) -> StudentTState:
    """More rows; the room for them doubles when they do not fit."""
    count, room = int(seen.count), seen.features.shape[0]
    while room < count + features.shape[0]:
        room *= 2
    if room > seen.features.shape[0]:
        more = ((0, room - seen.features.shape[0]), (0, 0))
        seen = changed(
            seen, features=jnp.pad(seen.features, more), targets=jnp.pad(seen.targets, more)
        )
    rows = _put(seen.features, seen.targets, features, targets, seen.count)
    return changed(seen, features=rows[0], targets=rows[1], count=rows[2])


@jit
def _put(
    features: Array, targets: Array, new: Array, values: Array, count: Array
) -> tuple[Array, Array, Array]:
    start = (count, jnp.zeros_like(count))
    return (
        jax.lax.dynamic_update_slice(features, new, start),
        jax.lax.dynamic_update_slice(targets, values, start),
        count + jnp.asarray(new.shape[0], count.dtype),
    )


@jit
def _segment(
    seen: StudentTState, degrees: float, moves: int, slices: int, key: Key
) -> tuple[Array, Array, Segment]:
    """Mode, last positions, and what there is to say of the chains."""
    rows = jnp.arange(seen.features.shape[0], dtype=seen.count.dtype)
    counted = (rows < seen.count).astype(seen.features.dtype)

    def column(
        targets: Array, size: Array, mode: Array, positions: Array, key: Array
    ) -> tuple[Array, Array, Array, Array, Array]:
        law = StudentPosterior(seen.features, targets, counted, size, degrees)
        return law.chains(mode, positions, moves, slices, key=key)

    keys = jax.random.split(key, seen.columns.count)
    mode, draws, last, tried, sound = jax.vmap(column, in_axes=(1, 0, 1, 2, 0))(
        seen.targets, seen.columns.sizes, seen.mode, seen.positions, keys
    )
    watched = jnp.einsum("kr,pcsr->cskp", seen.columns.probes, draws)
    chains, steps = watched.shape[:2]
    found = Segment(
        watched=watched.reshape(chains, steps, -1),
        average=jnp.mean(draws, axis=(1, 2)).T,
        acceptance=seen.columns.count * chains * steps / jnp.sum(tried),
        divergences=jnp.zeros((), int),
        sound=jnp.all(sound),
    )
    return mode.T, jnp.transpose(last, (1, 2, 0)), found


class StudentPosterior(Module):
    """The law of ξ ∈ R^r given n targets; rows with ``counted`` 0 are padding."""

    features: Float[Array, "n r"]
    targets: Float[Array, " n"]
    counted: Float[Array, " n"]
    size: Float[Array, ""]
    degrees: float

    def log_likelihood(self, residuals: Float[Array, " n"]) -> Float[Array, ""]:
        """−(ν + 1)/2 Σ ln(1 + (residual/s)²/ν), up to a constant."""
        factors = 1 + self.counted * (residuals / self.size) ** 2 / self.degrees
        groups = jnp.prod(factors.reshape(FACTORS, -1), axis=0)
        return -0.5 * (self.degrees + 1) * jnp.sum(jnp.log(groups))

    def reweighted(self, mode: Float[Array, " r"]) -> tuple[Float[Array, "r r"], Array]:
        """ΦᵀWΦ and ΦᵀWy at these weights."""
        residuals = self.targets - self.features @ mode
        spread = self.degrees * self.size**2 + residuals**2
        return self._normal_equations(self.counted * (self.degrees + 1) / spread)

    def _normal_equations(self, precision: Float[Array, " n"]) -> tuple[Array, Array]:
        weighted = precision[:, None] * self.features
        return weighted.T @ self.features, weighted.T @ self.targets

    def find_mode(self, start: Float[Array, " r"]) -> Float[Array, " r"]:
        """A mode, by reweighted least squares."""

        def better(mode: Array, _: None) -> tuple[Array, None]:
            return _solve(*self.reweighted(mode)), None

        return jax.lax.scan(better, start, length=REWEIGHTINGS)[0]

    def sweep(self, weights: Float[Array, " r"], *, key: Key) -> Float[Array, " r"]:
        """All λ given ξ, then ξ given all λ."""
        scale_key, weight_key = jax.random.split(key)
        squares = ((self.targets - self.features @ weights) / self.size) ** 2
        unit = _gamma((self.degrees + 1) / 2, squares.shape[0], squares.dtype, key=scale_key)
        scales = 2 * unit / (self.degrees + squares)
        gram, right = self._normal_equations(self.counted * scales / self.size**2)
        factor = cholesky(gram + jnp.eye(gram.shape[0], dtype=gram.dtype))
        noise = jax.random.normal(weight_key, weights.shape, weights.dtype)
        centred = solve_lower(factor, right[:, None])[:, 0] + noise
        return solve_lower_transposed(factor, centred[:, None])[:, 0]

    def chains(
        self,
        start: Float[Array, " r"],
        positions: Float[Array, "chains r"],
        moves: int,
        slices: int,
        *,
        key: Key,
    ) -> tuple[
        Float[Array, " r"],
        Float[Array, "chains steps r"],
        Float[Array, "chains r"],
        Int[Array, ""],
        Bool[Array, ""],
    ]:
        """The mode, and all chains with their last positions."""
        mode = self.find_mode(start)
        gram, _ = self.reweighted(mode)
        share = (self.degrees + 1) / (self.degrees + 3)
        factor = cholesky(jnp.eye(gram.shape[0], dtype=gram.dtype) + share * gram)  # of P
        # C⁻ᵀ itself: the slices multiply by it thousands of times, and a product is far faster.
        spread = solve_lower_transposed(factor, jnp.eye(gram.shape[0], dtype=gram.dtype))
        across = self.features @ spread
        apart = self.targets - self.features @ mode

        def place(u: Array) -> Array:
            return mode + spread @ u

        def log_ratio(u: Array) -> Array:
            gap = jnp.sum(u**2) - jnp.sum(place(u) ** 2)
            return self.log_likelihood(apart - across @ u) + 0.5 * gap

        def move(weights: Array, key: Array) -> tuple[Array, tuple[Array, Array, Array]]:
            sweep_key, slice_key = jax.random.split(key)
            swept = self.sweep(weights, key=sweep_key)
            u = factor.T @ (swept - mode)
            path, tried, sound = slice_steps(log_ratio, u, slices, key=slice_key)
            drawn = jax.vmap(place)(path)
            return drawn[-1], (drawn, jnp.sum(tried), sound)

        def chain(position: Array, key: Array) -> tuple[Array, Array, Array, Array]:
            last, (drawn, tried, sound) = jax.lax.scan(move, position, jax.random.split(key, moves))
            return drawn.reshape(-1, position.shape[0]), last, jnp.sum(tried), jnp.all(sound)

        keys = jax.random.split(key, positions.shape[0])
        drawn, last, tried, sound = jax.vmap(chain)(positions, keys)
        return mode, drawn, last, jnp.sum(tried), jnp.all(sound)


def _solve(gram: Float[Array, "r r"], right: Float[Array, " r"]) -> Float[Array, " r"]:
    """(I + gram)⁻¹ right."""
    factor = cholesky(gram + jnp.eye(gram.shape[0], dtype=gram.dtype))
    return solve_lower_transposed(factor, solve_lower(factor, right[:, None]))[:, 0]


def _gamma(shape: float, count: int, dtype: Any, *, key: Key) -> Float[Array, " n"]:
    """Gamma(shape, 1) draws; for a small whole shape a sum of exponentials, which is far faster."""
    if shape <= 4 and shape == int(shape):
        return jnp.sum(jax.random.exponential(key, (int(shape), count), dtype), axis=0)
    return jax.random.gamma(key, shape, (count,), dtype)
