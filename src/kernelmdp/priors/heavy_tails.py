"""Student-t noise: y = φ(z)ᵀξ + s·t_ν, ξ ~ N(0, I) (note E, non-conjugate (ii), in weight space).

A move of a chain is one sweep over the scale mixture and then some elliptical slices.

- Sweep: t_ν is N(0, s²/λ) with λ ~ Gamma(ν/2, ν/2). Given ξ every λ is Gamma, and given all λ the
  weights are Gaussian. Both are drawn exactly. With ν = 3 a sweep removes a third of the
  autocorrelation.
- Slices: relative to a Gaussian near the posterior and not to the prior,
  p(ξ | y) = N(ξ; mode, P⁻¹) · exp(log_ratio). This leaves the law unchanged and makes the ratio
  nearly flat, so a slice accepts at once for any number of data. The mode is found by reweighted
  least squares, W = (ν + 1)/(νs² + residual²). P = I + (ν + 1)/(ν + 3) ΦᵀWΦ has the expected
  information of the t law.
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
from kernelmdp.numerics.modules import Module, jit, replace_fields
from kernelmdp.priors.blackjax_sampling import slice_steps
from kernelmdp.priors.chain_segments import Segment, run_segment
from kernelmdp.priors.diagnostics import EXACT, Diagnostics
from kernelmdp.priors.prior import Prior, PriorProblem
from kernelmdp.priors.weight_space import WeightColumns, random_member
from kernelmdp.types import Key

#: Initial capacity in rows. The capacity doubles when needed, and programs are compiled for each.
ROOM = 256
#: Number of reweightings to find the mode. They start from the last mode, so few suffice.
REWEIGHTINGS = 8
#: Number of factors that are multiplied before a logarithm is taken, which is faster. Four factors
#: of 1e77 do not overflow.
FACTORS = 4


class StudentTState(Module):
    """The state of a group: its rows, with padding, and the chains of each column.

    Attributes:
        columns: The unknown functions.
        features: Features of the rows.
        targets: Observations.
        count: The number of rows.
        mode: The posterior mode of the weights.
        average: The mean of the draws of the last segment.
        positions: The last position of each chain.
    """

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

    If the problem's noise is not Student-t, the scale is chosen such that the standard deviation is
    that of the problem.

    Attributes:
        name: "student-t".
        degrees: The degrees of freedom ν. None means those of the problem's noise if it is
            Student-t, else 3.
        chains: The number of chains.
        moves: The number of moves of each chain in an episode; four times as many if the chains
            did not mix.
        slices: The number of elliptical slices in a move.

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
        """Return the degrees of freedom for a noise law.

        Args:
            noise: The problem's noise.

        Returns:
            ν.
        """
        if self.degrees is not None:
            return float(self.degrees)
        return noise.degrees if math.isfinite(noise.degrees) else 3.0

    def sizes(self, noise: Noise, dimension: int) -> np.ndarray:
        if math.isfinite(noise.degrees):
            return noise.axis_sizes(dimension)
        nu = self.degrees_of(noise)
        return noise.standard_deviations(dimension) * np.sqrt((nu - 2) / nu)

    def start(
        self, columns: WeightColumns, problem: PriorProblem, role: str, *, key: Key
    ) -> tuple[Any, Diagnostics]:
        r, p, dtype = columns.rank, columns.count, columns.root.dtype
        noise = problem.reward_noise if role == "reward" else problem.transition_noise
        zeros = jnp.zeros((r, p), dtype)
        state = StudentTState(
            columns=columns,
            features=jnp.zeros((ROOM, r), dtype),
            targets=jnp.zeros((ROOM, p), dtype),
            count=jnp.zeros((), jnp.int32),
            mode=zeros,
            average=zeros,
            positions=jax.random.normal(key, (self.chains, r, p), dtype),
        )
        return (state, self.degrees_of(noise)), EXACT

    def update(
        self,
        learned: Any,
        features: Float[Array, "h r"],
        targets: Float[Array, "h p"],
        *,
        key: Key,
    ) -> tuple[Any, Diagnostics]:
        before, degrees = learned

        def run(state: StudentTState, key: Key) -> tuple[StudentTState, Segment]:
            mode, positions, segment = _segment(state, degrees, self.moves, self.slices, key)
            return replace_fields(state, mode=mode, positions=positions), segment

        state, diagnostics = run_segment(with_rows(before, features, targets), run, key=key)
        return (state, degrees), diagnostics

    def weights(self, learned: Any, *, key: Key) -> Float[Array, "r p"]:
        return random_member(learned[0].positions, key)

    def expected(self, learned: Any) -> Float[Array, "r p"]:
        return learned[0].average


def with_rows(
    state: StudentTState, features: Float[Array, "h r"], targets: Float[Array, "h p"]
) -> StudentTState:
    """Append rows. The capacity doubles if they do not fit.

    Args:
        state: The state of a group.
        features: (h, r).
        targets: (h, p).

    Returns:
        The state with these rows.
    """
    count, capacity = int(state.count), state.features.shape[0]
    while capacity < count + features.shape[0]:
        capacity *= 2
    if capacity > state.features.shape[0]:
        padding = ((0, capacity - state.features.shape[0]), (0, 0))
        state = replace_fields(
            state,
            features=jnp.pad(state.features, padding),
            targets=jnp.pad(state.targets, padding),
        )
    rows = _insert(state.features, state.targets, features, targets, state.count)
    return replace_fields(state, features=rows[0], targets=rows[1], count=rows[2])


@jit
def _insert(
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
    state: StudentTState, degrees: float, moves: int, slices: int, key: Key
) -> tuple[Array, Array, Segment]:
    """Mode, last positions, and a report of the chains."""
    rows = jnp.arange(state.features.shape[0], dtype=state.count.dtype)
    counted = (rows < state.count).astype(state.features.dtype)

    def one_column(
        targets: Array, size: Array, mode: Array, positions: Array, key: Array
    ) -> tuple[Array, Array, Array, Array, Array]:
        law = StudentPosterior(state.features, targets, counted, size, degrees)
        return law.chains(mode, positions, moves, slices, key=key)

    keys = jax.random.split(key, state.columns.count)
    mode, draws, last, tried, sound = jax.vmap(one_column, in_axes=(1, 0, 1, 2, 0))(
        state.targets, state.columns.sizes, state.mode, state.positions, keys
    )
    watched = jnp.einsum("kr,pcsr->cskp", state.columns.probes, draws)
    chains, steps = watched.shape[:2]
    segment = Segment(
        watched=watched.reshape(chains, steps, -1),
        average=jnp.mean(draws, axis=(1, 2)).T,
        acceptance=state.columns.count * chains * steps / jnp.sum(tried),
        divergences=jnp.zeros((), int),
        sound=jnp.all(sound),
    )
    return mode.T, jnp.transpose(last, (1, 2, 0)), segment


class StudentPosterior(Module):
    """The posterior of ξ ∈ R^r given n targets.

    Attributes:
        features: Features of the rows.
        targets: Observations.
        counted: 1 for rows that count, 0 for padding.
        size: s.
        degrees: ν.
    """

    features: Float[Array, "n r"]
    targets: Float[Array, " n"]
    counted: Float[Array, " n"]
    size: Float[Array, ""]
    degrees: float

    def log_likelihood(self, residuals: Float[Array, " n"]) -> Float[Array, ""]:
        """Compute −(ν + 1)/2 Σ ln(1 + (residual/s)²/ν), the likelihood up to a constant.

        Args:
            residuals: (n,).

        Returns:
            The log-likelihood.
        """
        factors = 1 + self.counted * (residuals / self.size) ** 2 / self.degrees
        groups = jnp.prod(factors.reshape(FACTORS, -1), axis=0)
        return -0.5 * (self.degrees + 1) * jnp.sum(jnp.log(groups))

    def reweighted(self, mode: Float[Array, " r"]) -> tuple[Float[Array, "r r"], Array]:
        """Compute ΦᵀWΦ and ΦᵀWy.

        Args:
            mode: The weights ξ at which W is computed.

        Returns:
            ΦᵀWΦ and ΦᵀWy.
        """
        residuals = self.targets - self.features @ mode
        denominator = self.degrees * self.size**2 + residuals**2
        return self._normal_equations(self.counted * (self.degrees + 1) / denominator)

    def _normal_equations(self, precision: Float[Array, " n"]) -> tuple[Array, Array]:
        weighted = precision[:, None] * self.features
        return weighted.T @ self.features, weighted.T @ self.targets

    def find_mode(self, start: Float[Array, " r"]) -> Float[Array, " r"]:
        """Find a mode by reweighted least squares.

        Args:
            start: Where to start.

        Returns:
            The mode.
        """

        def improve(mode: Array, _: None) -> tuple[Array, None]:
            return _solve(*self.reweighted(mode)), None

        return jax.lax.scan(improve, start, length=REWEIGHTINGS)[0]

    def sweep(self, weights: Float[Array, " r"], *, key: Key) -> Float[Array, " r"]:
        """Draw all λ given ξ, then ξ given all λ.

        Args:
            weights: ξ.
            key: Decides the draws.

        Returns:
            The new ξ.
        """
        scale_key, weight_key = jax.random.split(key)
        squares = ((self.targets - self.features @ weights) / self.size) ** 2
        unit = _gamma((self.degrees + 1) / 2, squares.shape[0], squares.dtype, key=scale_key)
        scales = 2 * unit / (self.degrees + squares)
        gram, right = self._normal_equations(self.counted * scales / self.size**2)
        factor = cholesky(gram + jnp.eye(gram.shape[0], dtype=gram.dtype))
        noise = jax.random.normal(weight_key, weights.shape, weights.dtype)
        whitened = solve_lower(factor, right[:, None])[:, 0] + noise
        return solve_lower_transposed(factor, whitened[:, None])[:, 0]

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
        """Run chains.

        Args:
            start: Where the search for the mode starts.
            positions: The position of each chain.
            moves: The number of moves of each chain.
            slices: The number of slices in a move.
            key: Decides everything random.

        Returns:
            The mode, all draws, last positions, the number of points tried, and whether all
            positions are valid.
        """
        mode = self.find_mode(start)
        gram, _ = self.reweighted(mode)
        share = (self.degrees + 1) / (self.degrees + 3)
        factor = cholesky(jnp.eye(gram.shape[0], dtype=gram.dtype) + share * gram)  # of P
        # The inverse C⁻ᵀ is formed because slices multiply by it thousands of times, and a product
        # is far faster than a substitution.
        inverse = solve_lower_transposed(factor, jnp.eye(gram.shape[0], dtype=gram.dtype))
        scaled_features = self.features @ inverse
        residuals = self.targets - self.features @ mode

        def to_weights(u: Array) -> Array:
            return mode + inverse @ u

        def log_ratio(u: Array) -> Array:
            difference = jnp.sum(u**2) - jnp.sum(to_weights(u) ** 2)
            return self.log_likelihood(residuals - scaled_features @ u) + 0.5 * difference

        def move(weights: Array, key: Array) -> tuple[Array, tuple[Array, Array, Array]]:
            sweep_key, slice_key = jax.random.split(key)
            swept = self.sweep(weights, key=sweep_key)
            u = factor.T @ (swept - mode)
            path, tried, sound = slice_steps(log_ratio, u, slices, key=slice_key)
            draws = jax.vmap(to_weights)(path)
            return draws[-1], (draws, jnp.sum(tried), sound)

        def chain(position: Array, key: Array) -> tuple[Array, Array, Array, Array]:
            last, (draws, tried, sound) = jax.lax.scan(move, position, jax.random.split(key, moves))
            return draws.reshape(-1, position.shape[0]), last, jnp.sum(tried), jnp.all(sound)

        keys = jax.random.split(key, positions.shape[0])
        draws, last, tried, sound = jax.vmap(chain)(positions, keys)
        return mode, draws, last, jnp.sum(tried), jnp.all(sound)


def _solve(gram: Float[Array, "r r"], right: Float[Array, " r"]) -> Float[Array, " r"]:
    """(I + gram)⁻¹ right."""
    factor = cholesky(gram + jnp.eye(gram.shape[0], dtype=gram.dtype))
    return solve_lower_transposed(factor, solve_lower(factor, right[:, None]))[:, 0]


def _gamma(shape: float, count: int, dtype: Any, *, key: Key) -> Float[Array, " n"]:
    """Draws of Gamma(shape, 1). For a small whole shape, sums of exponentials are far faster."""
    if shape <= 4 and shape == int(shape):
        return jnp.sum(jax.random.exponential(key, (int(shape), count), dtype), axis=0)
    return jax.random.gamma(key, shape, (count,), dtype)
