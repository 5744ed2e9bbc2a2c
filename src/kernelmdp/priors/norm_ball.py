"""A finite-rank prior truncated to a norm ball: the exact setting of Theorem 2 (math E, B22).

|ξ| is the norm of f, so the prior is N(0, I) on {|ξ| ≤ B}, all columns of a function together. The
posterior is the Gaussian one, truncated: draw from that one and reject what lies outside. In high
rank almost nothing lies inside: |ξ|² is a chi-square of r degrees before there are data. Then the
rejection is hopeless and says so; elliptical slices within the ball still work, in the limit.
"""

import dataclasses
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import choice, integer, positive_number
from kernelmdp.numerics.modules import Module, changed, jit
from kernelmdp.priors.chain_segments import Segment, run_segment
from kernelmdp.priors.diagnostics import EXACT, Diagnostics
from kernelmdp.priors.prior import Prior, PriorProblem, PriorState
from kernelmdp.priors.sampling import slice_steps
from kernelmdp.priors.sufficient_statistics import Statistics
from kernelmdp.priors.weight_space import WeightColumns, random_member
from kernelmdp.types import Key

#: Draws tried at once, and how many times at most.
BATCH, BATCHES = 2048, 512


class NormBallState(Module):
    """What was seen, the ball, and chains within it (none when draws are by rejection)."""

    columns: WeightColumns
    statistics: Statistics
    bound: Float[Array, ""]
    positions: Float[Array, "chains r p"]
    average: Float[Array, "r p"]


@dataclasses.dataclass(frozen=True)
class NormBall(Prior):
    """A Gaussian process prior of finite rank, given that norms are at most these bounds.

    Bounds that are not given are the problem's own. ``method`` is "rejection" (exact) or
    "elliptical" (chains of slices, exact in the limit), which works at any rank.

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

    def init(self, setting: PriorProblem, *, key: Key) -> tuple[PriorState, Diagnostics]:
        state, found = super().init(setting, key=key)
        if len(state.transition.groups) > 1:
            raise ArgumentError(
                "prior", "one kernel and one noise for all outputs (one ball)", self.name
            )
        return state, found

    def start(
        self, columns: WeightColumns, setting: PriorProblem, place: str, *, key: Key
    ) -> tuple[Any, Diagnostics]:
        name = f"norm_{place}"
        bound = getattr(self, name) or getattr(setting, name)
        if bound is None:
            raise ArgumentError(name, "a bound B of the norm; the problem knows none", None)
        r, p, dtype = columns.rank, columns.count, columns.root.dtype
        # Pulled inside the ball, where every place is a sound start.
        starts = jax.random.normal(key, (self.chains, r, p), dtype)
        lengths = jnp.linalg.norm(starts.reshape(self.chains, -1), axis=1)[:, None, None]
        own = NormBallState(
            columns=columns,
            statistics=Statistics.none(columns),
            bound=jnp.asarray(bound, dtype),
            positions=0.9 * bound * starts / jnp.maximum(lengths, 0.9 * bound),
            average=jnp.zeros((r, p), dtype),
        )
        if self.method == "rejection":
            rate = rejection(own, key)[1]  # hopeless cases are said before anything is played
            return own, EXACT._replace(acceptance=rate)
        return self._moved(own, key)

    def update(
        self,
        learned: Any,
        features: Float[Array, "h r"],
        targets: Float[Array, "h p"],
        *,
        key: Key,
    ) -> tuple[Any, Diagnostics]:
        own = changed(learned, statistics=learned.statistics.after(features, targets))
        if self.method == "elliptical":
            return self._moved(own, key)
        _, found, tried = _reject(own, key)
        rate = float(found) / float(tried)
        return own, EXACT._replace(acceptance=rate, mixed=bool(found))

    def _moved(self, own: NormBallState, key: Key) -> tuple[NormBallState, Diagnostics]:
        def run(own: NormBallState, key: Key) -> tuple[NormBallState, Segment]:
            positions, found = _slices(own, self.steps, key)
            return changed(own, positions=positions), found

        return run_segment(own, run, key=key)

    def weights(self, learned: Any, *, key: Key) -> Float[Array, "r p"]:
        if self.method == "elliptical":
            return random_member(learned.positions, key)
        return rejection(learned, key)[0]

    def expected(self, learned: Any) -> Float[Array, "r p"]:
        if self.method == "elliptical":
            return learned.average
        return _gaussian_mean(learned)


def rejection(own: NormBallState, key: Key) -> tuple[Float[Array, "r p"], float]:
    """Weights inside the ball and the share of draws that were; ArgumentError when none was."""
    drawn, found, tried = _reject(own, key)
    if not int(found):
        size, bound = own.average.size, float(own.bound)
        raise ArgumentError(
            "prior",
            f"a norm bound that draws meet: of {int(tried):,} draws of {size} weights none had a "
            f"norm of at most {bound:g} (acceptance below {1 / int(tried):.0e}; before any data a "
            f"norm is about {math.sqrt(size):.1f}). Use a kernel of smaller rank, scale the "
            "kernel, or NormBall(method='elliptical')",
            f"acceptance 0 of {int(tried):,}",
        )
    return drawn, int(found) / int(tried)


@jit
def _reject(own: NormBallState, key: Key) -> tuple[Array, Array, Array]:
    """The first draw inside, how many of the last batch were, and how many were tried in all."""
    spectrum = own.statistics.spectrum()
    mean, spread = spectrum.moments(own.columns.sizes**2)

    def batch(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        _, _, number = state
        shape = (BATCH, *mean.shape)
        noise = jax.random.normal(jax.random.fold_in(key, number), shape, mean.dtype)
        drawn = mean[None] + spread[None] * noise  # of Uᵀξ, which has the same length
        inside = jnp.sum(drawn**2, axis=(1, 2)) <= own.bound**2
        return drawn[jnp.argmax(inside)], jnp.sum(inside), number + 1

    def hoping(state: tuple[Array, Array, Array]) -> Array:
        _, found, number = state
        return (found == 0) & (number < BATCHES)

    init = (mean, jnp.zeros((), int), jnp.zeros((), int))
    drawn, found, number = jax.lax.while_loop(hoping, batch, init)
    return spectrum.vectors @ drawn, found, number * BATCH


@jit
def _slices(own: NormBallState, steps: int, key: Key) -> tuple[Float[Array, "chains r p"], Segment]:
    """Last positions, and what there is to say of the chains; sound when all starts were inside.

    The Gaussian posterior is the reference, the ball's indicator the ratio.
    """
    spectrum = own.statistics.spectrum()
    mean, spread = spectrum.moments(own.columns.sizes**2)

    def log_ratio(u: Array) -> Array:
        drawn = mean + spread * u.reshape(mean.shape)
        return jnp.where(jnp.sum(drawn**2) <= own.bound**2, 0.0, -jnp.inf)

    def chain(position: Array, key: Array) -> tuple[Array, Array, Array]:
        start = ((spectrum.vectors.T @ position - mean) / spread).ravel()
        path, tried, sound = slice_steps(log_ratio, start, steps, key=key)
        drawn = mean[None] + spread[None] * path.reshape(steps, *mean.shape)
        return drawn, jnp.sum(tried), sound

    drawn, tried, sound = jax.vmap(chain)(
        own.positions, jax.random.split(key, own.positions.shape[0])
    )
    drawn = jnp.einsum("rq,csqp->csrp", spectrum.vectors, drawn)
    # Rounding in the rotation must not carry a point over the border.
    lengths = jnp.sqrt(jnp.sum(drawn**2, axis=(2, 3), keepdims=True))
    drawn = drawn * jnp.minimum(1.0, own.bound * (1 - 1e-12) / lengths)
    watched = jnp.einsum("kr,csrp->cskp", own.columns.probes, drawn)
    chains = watched.shape[0]
    return drawn[:, -1], Segment(
        watched=watched.reshape(chains, steps, -1),
        average=jnp.mean(drawn, axis=(0, 1)),
        acceptance=chains * steps / jnp.sum(tried),
        divergences=jnp.zeros((), int),
        sound=jnp.all(sound),
    )


@jit
def _gaussian_mean(own: NormBallState) -> Array:
    """The mean of the Gaussian posterior, brought into the ball."""
    spectrum = own.statistics.spectrum()
    mean = spectrum.vectors @ spectrum.moments(own.columns.sizes**2)[0]
    length = jnp.sqrt(jnp.sum(mean**2))
    return mean * jnp.minimum(1.0, own.bound / jnp.maximum(length, own.bound))
