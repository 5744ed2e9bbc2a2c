"""Diagnostics of Markov chains: split R̂ and effective sample size."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

#: Largest R̂ of a segment that mixed. A limit of 1.01 would need thousands of draws to be told from
#: chance; a segment has hundreds.
LARGEST_R_HAT = 1.05
#: Least effective sample size of a segment that mixed.
LEAST_EFFECTIVE = 50.0
#: Largest share of divergent trajectories of a segment that mixed.
DIVERGENT_SHARE = 0.05


class Diagnostics(NamedTuple):
    """Diagnostics of the draws of an episode: the worst of all its chains.

    Attributes:
        r_hat: The largest split R̂.
        effective_sample_size: The least effective sample size.
        acceptance: The share of proposals that were accepted (for slices: of points tried).
        divergences: The number of divergent trajectories.
        mixed: Whether the chains mixed.

    >>> Diagnostics(1.01, 80.0, 0.9, 0, mixed=True).columns()["r_hat"]
    1.01
    """

    r_hat: float
    effective_sample_size: float
    acceptance: float
    divergences: int
    mixed: bool

    def columns(self) -> dict[str, float]:
        """Convert to numbers for the table of a run.

        Returns:
            A number for each attribute.
        """
        return {name: float(value) for name, value in self._asdict().items()}


#: The diagnostics of draws that are independent and exact.
EXACT = Diagnostics(1.0, math.inf, 1.0, 0, True)


def worst_diagnostics(parts: Iterable[Diagnostics]) -> Diagnostics:
    """Combine the diagnostics of several groups of chains.

    Args:
        parts: The diagnostics of each group.

    Returns:
        The worst of each number; ``EXACT`` if there is no group.
    """
    groups = list(parts)
    if not groups:
        return EXACT
    return Diagnostics(
        r_hat=float(np.max([group.r_hat for group in groups])),  # NaN if any is NaN
        effective_sample_size=float(np.min([group.effective_sample_size for group in groups])),
        acceptance=min(group.acceptance for group in groups),
        divergences=sum(group.divergences for group in groups),
        mixed=all(group.mixed for group in groups),
    )


def mixing(draws: Float[np.ndarray, "chains steps k"]) -> tuple[float, float]:
    """Compute rank-normalised split R̂ and effective sample size (Vehtari et al. 2021).

    The formulas are those of BlackJAX, in NumPy, because JAX would compile for seconds for every
    shape.

    Args:
        draws: Draws of k quantities.

    Returns:
        The largest R̂ and the least effective sample size of the quantities.
    """
    half = draws.shape[1] // 2
    parts = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    if not np.isfinite(parts).all():
        return math.nan, math.nan
    bulk = _rank_normalised(parts)
    tail = _rank_normalised(np.abs(parts - np.median(parts, axis=(0, 1))))
    r_hat = np.max([_scale_reduction(bulk), _scale_reduction(tail)])  # NaN if any is NaN
    return float(r_hat), min(_effective(bulk[:, :, i]) for i in range(bulk.shape[2]))


def _rank_normalised(x: np.ndarray) -> np.ndarray:
    from scipy import special, stats

    ranks = stats.rankdata(x.reshape(-1, x.shape[2]), axis=0)
    return special.ndtri((ranks - 0.375) / (len(ranks) + 0.25)).reshape(x.shape)


def _scale_reduction(x: np.ndarray) -> float:
    """R̂; NaN for a quantity that never changes."""
    n = x.shape[1]
    within = x.var(axis=1, ddof=1).mean(axis=0)
    between = x.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.max(np.sqrt(between / within + (n - 1) / n)))


def _effective(x: Float[np.ndarray, "chains n"]) -> float:
    """Effective sample size by Geyer's initial monotone sequence; 0 if nothing ever changes."""
    chains, n = x.shape
    centred = x - x.mean(axis=1, keepdims=True)
    power = np.abs(np.fft.rfft(centred, n=2 * n, axis=1)) ** 2
    covariances = np.fft.irfft(power, n=2 * n, axis=1)[:, :n].mean(axis=0) / n
    if np.ptp(x, axis=1).max() == 0:
        return 0.0
    within = covariances[0] * n / (n - 1)
    total = covariances[0] + x.mean(axis=1).var(ddof=1)
    rho = 1 - (within - covariances[: n - n % 2]) / total
    rho[0] = 1.0
    even, pairs = rho[0::2], rho[0::2] + rho[1::2]
    count = len(pairs) if (pairs > 0).all() else int(np.argmin(pairs > 0))
    # Of the first pair that is left out, the even term counts if it is positive.
    last = max(float(even[count]), 0.0) if count < len(even) else 0.0
    time = -1 + 2 * float(np.sum(np.minimum.accumulate(pairs[:count]))) + last
    return chains * n / max(time, 1 / math.log10(chains * n))


def diagnose(
    r_hat_and_size: tuple[float, float], *, acceptance: float, divergences: int = 0, moves: int
) -> Diagnostics:
    """Judge whether a segment of chains mixed.

    Args:
        r_hat_and_size: The result of ``mixing``.
        acceptance: The share of proposals that were accepted.
        divergences: The number of divergent trajectories.
        moves: The number of moves of the segment.

    Returns:
        The diagnostics.
    """
    r_hat, effective = r_hat_and_size
    few_divergences = divergences <= DIVERGENT_SHARE * moves
    mixed = r_hat < LARGEST_R_HAT and effective > LEAST_EFFECTIVE and few_divergences
    return Diagnostics(r_hat, effective, float(acceptance), int(divergences), bool(mixed))
