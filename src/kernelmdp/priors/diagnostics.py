"""Whether chains mixed: split R̂ and the effective sample size of what was drawn."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

#: A segment mixed when R̂ is below and the effective sample size above these, and few trajectories
#: diverged. (R̂ < 1.01 needs thousands of draws to be told from chance; a segment has hundreds.)
LARGEST_R_HAT, LEAST_EFFECTIVE, DIVERGENT_SHARE = 1.05, 50.0, 0.05


class Diagnostics(NamedTuple):
    """How the draws of an episode were made: the worst of all its chains.

    ``acceptance`` is the share of proposals that were kept (of a slice: points tried on it).

    >>> Diagnostics(1.01, 80.0, 0.9, 0, mixed=True).columns()["r_hat"]
    1.01
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


def worst_diagnostics(parts: Iterable[Diagnostics]) -> Diagnostics:
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


def mixing(draws: Float[np.ndarray, "chains steps k"]) -> tuple[float, float]:
    """The largest rank-normalised split R̂ and the least effective sample size of k quantities
    (Vehtari et al. 2021).

    In NumPy: as BlackJAX computes them, whose programs take seconds to compile for every shape.
    """
    half = draws.shape[1] // 2
    parts = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    if not np.isfinite(parts).all():
        return math.nan, math.nan
    bulk = _rank_normalised(parts)
    tail = _rank_normalised(np.abs(parts - np.median(parts, axis=(0, 1))))
    r_hat = np.max([_scale_reduction(bulk), _scale_reduction(tail)])  # NaN stays
    return float(r_hat), min(_effective(bulk[:, :, i]) for i in range(bulk.shape[2]))


def _rank_normalised(x: np.ndarray) -> np.ndarray:
    from scipy import special, stats

    ranks = stats.rankdata(x.reshape(-1, x.shape[2]), axis=0)
    return special.ndtri((ranks - 0.375) / (len(ranks) + 0.25)).reshape(x.shape)


def _scale_reduction(x: np.ndarray) -> float:
    """R̂; NaN for what never moves."""
    n = x.shape[1]
    within = x.var(axis=1, ddof=1).mean(axis=0)
    between = x.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.max(np.sqrt(between / within + (n - 1) / n)))


def _effective(x: Float[np.ndarray, "chains n"]) -> float:
    """Effective sample size by Geyer's initial monotone sequence; 0 for what never moves."""
    chains, n = x.shape
    centred = x - x.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, n=2 * n, axis=1)) ** 2
    covariances = np.fft.irfft(power, n=2 * n, axis=1)[:, :n].mean(axis=0) / n
    if np.ptp(x, axis=1).max() == 0:
        return 0.0
    own = covariances[0] * n / (n - 1)
    total = covariances[0] + x.mean(axis=1).var(ddof=1)
    rho = 1 - (own - covariances[: n - n % 2]) / total
    rho[0] = 1.0
    even, pairs = rho[0::2], rho[0::2] + rho[1::2]
    count = len(pairs) if (pairs > 0).all() else int(np.argmin(pairs > 0))
    # The first pair that is left out gives its even half, when that is positive.
    last = max(float(even[count]), 0.0) if count < len(even) else 0.0
    time = -1 + 2 * float(np.sum(np.minimum.accumulate(pairs[:count]))) + last
    return chains * n / max(time, 1 / math.log10(chains * n))


def diagnose(
    found: tuple[float, float], *, acceptance: float, divergences: int = 0, moves: int
) -> Diagnostics:
    """Diagnostics of a segment of ``moves`` moves, from what ``mixing`` found."""
    r_hat, effective = found
    few = divergences <= DIVERGENT_SHARE * moves
    good = r_hat < LARGEST_R_HAT and effective > LEAST_EFFECTIVE and few
    return Diagnostics(r_hat, effective, float(acceptance), int(divergences), bool(good))
