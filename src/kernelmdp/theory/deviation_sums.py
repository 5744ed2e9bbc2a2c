"""Bounds of S = Σ_l Σ_h σ_{l−1}(z_{lh}): deviations as they were before each episode, added up.

Within an episode the posterior is stale, which costs a factor. All results are ln S; T = τH, γ is
the gain of all data, κ bounds the variances.
"""

import math

from scipy.special import lambertw

from kernelmdp.theory.bound import log


def printed(*, steps: float, block: int, gain: float, variance_bound: float = 1.0) -> float:
    """ln √(2 e^κ·block·γ·T): the paper's lemma, at λ = block and κ ≤ 1, where e^κ = e (math B3).

    The block is H for the reward, mH for the transition.
    """
    return 0.5 * (math.log(2 * block) + variance_bound + log(gain) + math.log(steps))


def printed_gp(
    *, steps: float, gain: float, gain_of_episode: float, noise_variance: float, top: float = 1.0
) -> float:
    """ln of e^{γ_{H−1}} √((2λ + κ)γT): the paper's lemma for any λ."""
    inside = math.log(2 * noise_variance + top) + log(gain) + math.log(steps)
    return gain_of_episode + 0.5 * inside


def improved(
    *,
    horizon: int,
    steps: float,
    gain: float,
    variance_bound: float,
    regulariser: float,
    outputs: int = 1,
    squares: bool = False,
) -> float:
    """ln of the least of three: block lemma, rare jumps, and √(mκ)·T (math P1, P2).

    Block: √(2mHκγT/ln(1 + mHκ/λ)). Rare jumps, for every c > 0, as at most γ/c episodes gain more
    than c: e^c √(2κTγ/ln(1 + κ/λ)) + H√(mκ)γ/c; the best c solves c²e^c = ratio of the two.
    With ``squares`` a bound of √(T·ΣΣσ²), which is what PSRL's proof needs (math P10): then
    √(T(e^{2c}·2κγ/ln(1 + κ/λ) + mHκγ/c)). With m > 1 outputs S is of ‖σ_P‖, and γ that of all.

    >>> log_sum = improved(horizon=5, steps=500, gain=9, variance_bound=1, regulariser=5)
    >>> print(f"{math.exp(log_sum):.1f}")
    254.8
    """
    if gain == 0:
        return -math.inf
    top, m = variance_bound, outputs
    block = 2 * m * horizon * top * gain / math.log1p(m * horizon * top / regulariser)
    in_order = 2 * top * gain / math.log1p(top / regulariser)
    if squares:
        jumps = m * horizon * top * gain
        c = float(lambertw(math.sqrt(jumps / (2 * in_order))).real)
        rare = 0.5 * math.log(steps * (math.exp(2 * c) * in_order + jumps / c))
    else:
        calm, jumps = math.sqrt(steps * in_order), horizon * math.sqrt(m * top) * gain
        c = 2 * float(lambertw(0.5 * math.sqrt(jumps / calm)).real)
        rare = math.log(math.exp(c) * calm + jumps / c)
    trivial = 0.5 * math.log(m * top) + math.log(steps)
    return min(0.5 * math.log(block * steps), rare, trivial)
