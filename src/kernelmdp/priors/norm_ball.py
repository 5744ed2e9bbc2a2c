"""A finite-rank prior truncated to a norm ball: the exact setting of Theorem 2 (note E, B22).

|ξ| is the norm of f, so the prior is N(0, I) on {|ξ| ≤ B}, for all columns of a function together.
The posterior is the truncated Gaussian one: draws from the Gaussian are rejected if they lie
outside. In high rank almost all lie outside, because |ξ|² is chi-square with r degrees before any
data. Rejection then fails with an error. Elliptical slices within the ball still work, exactly in
the limit of long chains.
"""

import dataclasses
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import choice, integer, positive_number
from kernelmdp.numerics.modules import Module, jit, replace_fields
from kernelmdp.priors.blackjax_sampling import slice_steps
from kernelmdp.priors.chain_segments import Segment, run_segment
from kernelmdp.priors.diagnostics import EXACT, Diagnostics
from kernelmdp.priors.prior import Prior, PriorProblem, PriorState
from kernelmdp.priors.sufficient_statistics import Statistics
from kernelmdp.priors.weight_space import WeightColumns, random_member
from kernelmdp.types import Key

#: Number of draws tried at once.
BATCH = 2048
#: Largest number of batches before rejection gives up, after about a million draws.
BATCHES = 512


class NormBallState(Module):
    """The state of a group: statistics of its data, the ball, and chains within it.

    Attributes:
        columns: The unknown functions.
        statistics: Sufficient statistics of the data.
        bound: B.
        positions: The last position of each chain.
        average: The mean of the draws of the last segment.
    """

    columns: WeightColumns
    statistics: Statistics
    bound: Float[Array, ""]
    positions: Float[Array, "chains r p"]
    average: Float[Array, "r p"]


@dataclasses.dataclass(frozen=True)
class NormBall(Prior):
    """A Gaussian process prior of finite rank, conditioned on bounds of the norms.

    Attributes:
        name: "norm-ball".
        norm_reward: The bound for the reward; None means the problem's.
        norm_transition: The bound for the transition; None means the problem's.
        method: "rejection" (exact), or "elliptical" (chains of slices, exact in the limit), which
            works at any rank.
        chains: The number of chains.
        steps: The number of steps of each chain in an episode.

    >>> NormBall(norm_reward=1.0, norm_transition=1.0, method="elliptical").method
    'elliptical'
    """

    name: ClassVar[str] = "norm-ball"

    norm_reward: float | None = None
    norm_transition: float | None = None
    method: str = "rejection"
    chains: int = 4
    steps: int = 200

    def __post_init__(self) -> None:
        choice("method", self.method, ("rejection", "elliptical"))
        for name in ("norm_reward", "norm_transition"):
            if getattr(self, name) is not None:
                positive_number(name, getattr(self, name))
        integer("chains", self.chains, least=2)
        integer("steps", self.steps, least=10)

    def init(self, problem: PriorProblem, *, key: Key) -> tuple[PriorState, Diagnostics]:
        state, diagnostics = super().init(problem, key=key)
        if len(state.transition.groups) > 1:
            raise ArgumentError(
                "prior", "one kernel and one noise for all outputs (one ball)", self.name
            )
        return state, diagnostics

    def start(
        self, columns: WeightColumns, problem: PriorProblem, role: str, *, key: Key
    ) -> tuple[Any, Diagnostics]:
        name = f"norm_{role}"
        bound = getattr(self, name) or getattr(problem, name)
        if bound is None:
            raise ArgumentError(name, "a bound B of the norm; the problem knows none", None)
        r, p, dtype = columns.rank, columns.count, columns.root.dtype
        # Starts are moved into the ball, where every position is valid.
        starts = jax.random.normal(key, (self.chains, r, p), dtype)
        lengths = jnp.linalg.norm(starts.reshape(self.chains, -1), axis=1)[:, None, None]
        state = NormBallState(
            columns=columns,
            statistics=Statistics.none(columns),
            bound=jnp.asarray(bound, dtype),
            positions=0.9 * bound * starts / jnp.maximum(lengths, 0.9 * bound),
            average=jnp.zeros((r, p), dtype),
        )
        if self.method == "rejection":
            acceptance = rejection(state, key)[1]  # fails here, before any episode, if ever
            return state, EXACT._replace(acceptance=acceptance)
        return self._run_chains(state, key)

    def update(
        self,
        learned: Any,
        features: Float[Array, "h r"],
        targets: Float[Array, "h p"],
        *,
        key: Key,
    ) -> tuple[Any, Diagnostics]:
        state = replace_fields(learned, statistics=learned.statistics.after(features, targets))
        if self.method == "elliptical":
            return self._run_chains(state, key)
        _, accepted, tried = _reject(state, key)
        acceptance = float(accepted) / float(tried)
        return state, EXACT._replace(acceptance=acceptance, mixed=bool(accepted))

    def _run_chains(self, state: NormBallState, key: Key) -> tuple[NormBallState, Diagnostics]:
        def run(state: NormBallState, key: Key) -> tuple[NormBallState, Segment]:
            positions, segment = _slices(state, self.steps, key)
            return replace_fields(state, positions=positions), segment

        return run_segment(state, run, key=key)

    def weights(self, learned: Any, *, key: Key) -> Float[Array, "r p"]:
        if self.method == "elliptical":
            return random_member(learned.positions, key)
        return rejection(learned, key)[0]

    def expected(self, learned: Any) -> Float[Array, "r p"]:
        if self.method == "elliptical":
            return learned.average
        return _gaussian_mean(learned)


def rejection(state: NormBallState, key: Key) -> tuple[Float[Array, "r p"], float]:
    """Draw weights inside the ball by rejection.

    Args:
        state: The state of a group.
        key: Decides the draws.

    Returns:
        The weights, and the share of draws that were accepted.

    Raises:
        ArgumentError: If no draw was accepted.
    """
    weights, accepted, tried = _reject(state, key)
    if not int(accepted):
        size, bound = state.average.size, float(state.bound)
        raise ArgumentError(
            "prior",
            f"a norm bound that draws meet: of {int(tried):,} draws of {size} weights none had a "
            f"norm of at most {bound:g} (acceptance below {1 / int(tried):.0e}; before any data a "
            f"norm is about {math.sqrt(size):.1f}). Use a kernel of smaller rank, scale the "
            "kernel, or NormBall(method='elliptical')",
            f"acceptance 0 of {int(tried):,}",
        )
    return weights, int(accepted) / int(tried)


@jit
def _reject(state: NormBallState, key: Key) -> tuple[Array, Array, Array]:
    """The first draw inside, the number inside in the last batch, and the number tried in all."""
    spectrum = state.statistics.spectrum()
    mean, deviation = spectrum.moments(state.columns.sizes**2)

    def batch(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        _, _, number = carry
        shape = (BATCH, *mean.shape)
        noise = jax.random.normal(jax.random.fold_in(key, number), shape, mean.dtype)
        draws = mean[None] + deviation[None] * noise  # of Uᵀξ, which has the same length as ξ
        inside = jnp.sum(draws**2, axis=(1, 2)) <= state.bound**2
        return draws[jnp.argmax(inside)], jnp.sum(inside), number + 1

    def not_accepted(carry: tuple[Array, Array, Array]) -> Array:
        _, accepted, number = carry
        return (accepted == 0) & (number < BATCHES)

    initial = (mean, jnp.zeros((), int), jnp.zeros((), int))
    draw, accepted, number = jax.lax.while_loop(not_accepted, batch, initial)
    return spectrum.vectors @ draw, accepted, number * BATCH


@jit
def _slices(
    state: NormBallState, steps: int, key: Key
) -> tuple[Float[Array, "chains r p"], Segment]:
    """Last positions, and a report of the chains; sound if all starts were inside the ball.

    The Gaussian posterior is the reference law, and the ball's indicator is the ratio.
    """
    spectrum = state.statistics.spectrum()
    mean, deviation = spectrum.moments(state.columns.sizes**2)

    def log_ratio(u: Array) -> Array:
        rotated = mean + deviation * u.reshape(mean.shape)
        return jnp.where(jnp.sum(rotated**2) <= state.bound**2, 0.0, -jnp.inf)

    def chain(position: Array, key: Array) -> tuple[Array, Array, Array]:
        start = ((spectrum.vectors.T @ position - mean) / deviation).ravel()
        path, tried, sound = slice_steps(log_ratio, start, steps, key=key)
        rotated = mean[None] + deviation[None] * path.reshape(steps, *mean.shape)
        return rotated, jnp.sum(tried), sound

    rotated, tried, sound = jax.vmap(chain)(
        state.positions, jax.random.split(key, state.positions.shape[0])
    )
    draws = jnp.einsum("rq,csqp->csrp", spectrum.vectors, rotated)
    # Rounding in the rotation must not move a point out of the ball.
    lengths = jnp.sqrt(jnp.sum(draws**2, axis=(2, 3), keepdims=True))
    draws = draws * jnp.minimum(1.0, state.bound * (1 - 1e-12) / lengths)
    watched = jnp.einsum("kr,csrp->cskp", state.columns.probes, draws)
    chains = watched.shape[0]
    return draws[:, -1], Segment(
        watched=watched.reshape(chains, steps, -1),
        average=jnp.mean(draws, axis=(0, 1)),
        acceptance=chains * steps / jnp.sum(tried),
        divergences=jnp.zeros((), int),
        sound=jnp.all(sound),
    )


@jit
def _gaussian_mean(state: NormBallState) -> Array:
    """The mean of the Gaussian posterior, projected to the ball."""
    spectrum = state.statistics.spectrum()
    mean = spectrum.vectors @ spectrum.moments(state.columns.sizes**2)[0]
    length = jnp.sqrt(jnp.sum(mean**2))
    return mean * jnp.minimum(1.0, state.bound / jnp.maximum(length, state.bound))
