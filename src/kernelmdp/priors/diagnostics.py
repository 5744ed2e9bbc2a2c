"""Whether chains mixed: split R̂ and the effective sample size of what was drawn."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.priors.foreign import other_rules

#: A segment mixed when R̂ is below and the effective sample size above these, and few trajectories
#: diverged. (R̂ < 1.01 needs thousands of draws to be told from chance; a segment has hundreds.)
LARGEST_R_HAT, LEAST_EFFECTIVE, DIVERGENT_SHARE = 1.05, 50.0, 0.05


class Diagnostics(NamedTuple):
    """How the draws of an episode were made: the worst of all its chains.

    ``acceptance`` is the share of proposals that were kept (of a slice: points tried on it).
    """

    r_hat: float
    effective_sample_size: float
    acceptance: float
    divergences: int
    mixed: bool

    def columns(self) -> dict[str, float]:
        """As numbers for the table of a run."""
        return {name: float(value) for name, value in self._asdict().items()}


#: Draws that are independent and exact.
EXACT = Diagnostics(1.0, math.inf, 1.0, 0, True)


def worst(parts: Iterable[Diagnostics]) -> Diagnostics:
    """One line for several groups of chains."""
    found = list(parts)
    if not found:
        return EXACT
    return Diagnostics(
        r_hat=float(np.max([part.r_hat for part in found])),  # NaN stays
        effective_sample_size=float(np.min([part.effective_sample_size for part in found])),
        acceptance=min(part.acceptance for part in found),
        divergences=sum(part.divergences for part in found),
        mixed=all(part.mixed for part in found),
    )


def mixing(draws: Float[Array, "chains steps k"]) -> Float[Array, " 2"]:
    """The largest rank-normalised split R̂ and the least effective sample size of k quantities
    (Vehtari et al. 2021), as BlackJAX computes them. Can be traced."""
    from blackjax.diagnostics import ess_bulk, rhat

    with other_rules():
        each = jax.vmap(lambda one: jnp.stack([rhat(one), ess_bulk(one)]), in_axes=2)(draws)
    return jnp.stack([jnp.max(each[:, 0]), jnp.min(each[:, 1])])


def judged(
    found: Float[Array, " 2"] | np.ndarray, *, acceptance: float, divergences: int = 0, moves: int
) -> Diagnostics:
    """Diagnostics of a segment of ``moves`` moves, from what ``mixing`` found."""
    r_hat, effective = (float(x) for x in np.asarray(found))
    few = divergences <= DIVERGENT_SHARE * moves
    good = r_hat < LARGEST_R_HAT and effective > LEAST_EFFECTIVE and few
    return Diagnostics(r_hat, effective, float(acceptance), int(divergences), bool(good))
