"""Bounds of S = Σ_l Σ_h σ_{l−1}(z_{lh}), the sum of posterior standard deviations.

The posterior is updated once an episode only. So within an episode it is stale, which costs a
factor. All results are bounds of ln S. T = τH is the number of steps, γ the information gain of all
data, and κ a bound of the prior variance.
"""

import math

import scipy

from kernelmdp.theory.bound import log


def paper_rkhs_lemma(
    *, steps: float, block: int, gain: float, variance_bound: float = 1.0
) -> float:
    """Compute ln √(2 e^κ·block·γ·T), the paper's lemma at λ = block and κ ≤ 1 (note B3).

    The paper has e, which is e^κ at κ = 1.

    Args:
        steps: The number of steps T.
        block: H for the reward, mH for the transition.
        gain: The information gain γ.
        variance_bound: The bound κ of the prior variance.

    Returns:
        The bound of ln S.
    """
    return 0.5 * (math.log(2 * block) + variance_bound + log(gain) + math.log(steps))


def paper_gp_lemma(
    *,
    steps: float,
    gain: float,
    episode_gain: float,
    noise_variance: float,
    variance_bound: float = 1.0,
) -> float:
    """Compute ln of e^{γ_{H−1}} √((2λ + κ)γT), the paper's lemma for any λ.

    Args:
        steps: The number of steps T.
        gain: The information gain γ of all data.
        episode_gain: The information gain γ_{H−1} within an episode.
        noise_variance: The noise variance λ.
        variance_bound: The bound κ of the prior variance.

    Returns:
        The bound of ln S.
    """
    log_square = math.log(2 * noise_variance + variance_bound) + log(gain) + math.log(steps)
    return episode_gain + 0.5 * log_square


def improved_lemma(
    *,
    horizon: int,
    steps: float,
    gain: float,
    variance_bound: float,
    regulariser: float,
    outputs: int = 1,
    squares: bool = False,
) -> float:
    """Compute ln of the least of three bounds: block lemma, rare jumps, and √(mκ)·T (note P1, P2).

    Block lemma: √(2mHκγT/ln(1 + mHκ/λ)).

    Rare jumps: for every c > 0 at most γ/c episodes gain more than c, so
    e^c √(2κTγ/ln(1 + κ/λ)) + H√(mκ)γ/c. The best c solves c²e^c = ratio of the two.

    PSRL's proof needs a bound of √(T·ΣΣσ²) instead (note P10). Rare jumps are then
    √(T(e^{2c}·2κγ/ln(1 + κ/λ) + mHκγ/c)).

    Args:
        horizon: The number of periods H.
        steps: The number of steps T.
        gain: The information gain γ of all outputs.
        variance_bound: The bound κ of the prior variance.
        regulariser: The regulariser λ.
        outputs: The number m of outputs. For m > 1 S sums ‖σ_P‖.
        squares: Whether to bound √(T·ΣΣσ²) instead of S.

    Returns:
        The bound of ln S.

    >>> log_sum = improved_lemma(horizon=5, steps=500, gain=9, variance_bound=1, regulariser=5)
    >>> print(f"{math.exp(log_sum):.1f}")
    254.8
    """
    if gain == 0:
        return -math.inf
    kappa, m = variance_bound, outputs
    block = 2 * m * horizon * kappa * gain / math.log1p(m * horizon * kappa / regulariser)
    in_order = 2 * kappa * gain / math.log1p(kappa / regulariser)
    if squares:
        jumps = m * horizon * kappa * gain
        c = float(scipy.special.lambertw(math.sqrt(jumps / (2 * in_order))).real)
        rare_jumps = 0.5 * math.log(steps * (math.exp(2 * c) * in_order + jumps / c))
    else:
        no_jumps, jumps = math.sqrt(steps * in_order), horizon * math.sqrt(m * kappa) * gain
        c = 2 * float(scipy.special.lambertw(0.5 * math.sqrt(jumps / no_jumps)).real)
        rare_jumps = math.log(math.exp(c) * no_jumps + jumps / c)
    trivial = 0.5 * math.log(m * kappa) + math.log(steps)
    return min(0.5 * math.log(block * steps), rare_jumps, trivial)
