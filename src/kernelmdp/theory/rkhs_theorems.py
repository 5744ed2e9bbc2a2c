"""Theorems 1 and 2: means are fixed functions of bounded norm, noise is sub-Gaussian.

Versions: "paper" as printed; "repaired" the nearest statement with a proof; "improved" the best we
can prove for the same algorithm with our planner (math A7).
"""

import math
from typing import Unpack

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import choice, integer
from kernelmdp.theory.bound import Bound, log
from kernelmdp.theory.gains import GainArguments
from kernelmdp.theory.width_sums import (
    PLANNERS,
    at_least_zero,
    finished,
    functions,
    probability,
    reward_bound_of,
    widths,
)


def theorem1(
    *,
    horizon: int,
    episodes: int,
    norm_reward: float,
    norm_transition: float,
    reward_noise: float,
    transition_noise: float,
    lipschitz: float,
    diameter: float | None = None,
    delta: float = 0.1,
    version: str = "improved",
    reward_bound: float | None = None,
    regulariser_reward: float | None = None,
    regulariser_transition: float | None = None,
    optimise: bool = False,
    anytime: bool = False,
    planner: str = "exact",
    **words: Unpack[GainArguments],
) -> Bound:
    """The regret of GP-UCRL with probability 1 − δ (paper, Theorem 1).

    Norms B bound the means, noises are sub-Gaussian proxies σ, ``lipschitz`` is L. ``words`` say
    where gains come from, see ``gains.GainArguments``.

    - "paper": 2β_R√(2eHγT) + 2Lβ_P√(2emHγT) + (LD + 2B_RH)√(2T ln(3/δ)), with λ = H and mH; needs
      κ ≤ 1 and the ``diameter`` D of the state space.
    - "repaired": e^κ for e, |R̄| ≤ B_R√κ, and 2B_R√κH for LD, which planners that clip their values
      guarantee while L alone does not (math B2, B3, B11).
    - "improved": any κ and λ (``regulariser_reward``, ``regulariser_transition``; H and mH unless
      given; ``optimise`` takes the best), block lemma or rare jumps, one radius for outputs that
      share a kernel, martingale term B_R√κ√(2 ln(3/δ) τ H(H−1)(2H−1)/6).

    ``reward_bound`` replaces B_R√κ where sup|R̄| is known better. ``anytime`` holds for all T at
    once (math B19); planner="approximate" adds 2√T for plans √(H/l)-close to optimal (math B21).

    >>> bound = theorem1(
    ...     horizon=2, episodes=3, norm_reward=1, norm_transition=1, reward_noise=0.5,
    ...     transition_noise=0.5, lipschitz=1, diameter=1, delta=0.1, version="paper",
    ...     gain_reward=2, gain_transition=2,
    ... )
    >>> print(f"{bound.value:.4f}, vacuous: {bound.vacuous}")
    130.7275, vacuous: True
    """
    reward, transition = functions(
        words, version, norm_reward, norm_transition, reward_noise, transition_noise,
        regulariser_reward, regulariser_transition,
    )  # fmt: skip
    choice("planner", planner, PLANNERS)
    L, H = at_least_zero("lipschitz", lipschitz), integer("horizon", horizon, least=1)
    probability("delta", delta)
    if version == "paper" and diameter is None:
        raise ArgumentError("diameter", "that of the state space, for version='paper'", None)
    D = None if diameter is None else at_least_zero("diameter", diameter)
    top = reward_bound_of(reward, reward_bound)

    def at(tau: int) -> Bound:
        odds = math.log(3 / delta)
        late = odds + math.log(tau * (tau + 1)) if anytime else odds
        parts = {
            "reward": math.log(2) + widths(reward, version, H, tau, odds, optimise),
            "transition": log(2 * L) + widths(transition, version, H, tau, odds, optimise),
        }
        if version == "improved":
            squares = tau * H * (H - 1) * (2 * H - 1) / 6
            parts["martingale"] = log(top) + 0.5 * (math.log(2 * late) + log(squares))
        else:
            span = (
                L * D + 2 * norm_reward * H if version == "paper" and D is not None else 4 * top * H
            )
            parts["martingale"] = log(span) + 0.5 * math.log(2 * tau * H * late)
        if planner == "approximate":
            parts["planning"] = math.log(2 * math.sqrt(tau * H))
        learned = (reward.learned, transition.learned)
        return finished("Theorem 1", version, H, tau, parts, top, 1 - delta, learned, at)

    return at(integer("episodes", episodes, least=1))


def theorem2(
    *,
    horizon: int,
    episodes: int,
    norm_reward: float,
    norm_transition: float,
    reward_noise: float,
    transition_noise: float,
    lipschitz: float,
    mean_lipschitz: float | None = None,
    version: str = "improved",
    reward_bound: float | None = None,
    regulariser_reward: float | None = None,
    regulariser_transition: float | None = None,
    optimise: bool = False,
    planner: str = "exact",
    **words: Unpack[GainArguments],
) -> Bound:
    """The expected regret of PSRL, for priors on functions of bounded norm (paper, Theorem 2).

    ``lipschitz`` is √E[L*²], or any bound of L*; ``mean_lipschitz`` is E[L*], which is no larger.

    - "paper": 2α_R√(2eHγT) + 3E[L*]α_P√(2emHγT) + 3B_R, α as β with ln(3T) for ln(3/δ). T ≥ 4.
    - "repaired": its proof takes an event of all episodes for one of each, and an expectation of a
      product for a product (math B6). What holds: 2√E[L*²] for 3E[L*], and (8/3)B_R√κ for 3B_R.
    - "improved": the same with the sums of Theorem 1's improved version (math P10).

    >>> bound = theorem2(
    ...     horizon=5, episodes=100, norm_reward=1, norm_transition=1, reward_noise=0.1,
    ...     transition_noise=0.1, lipschitz=3, version="repaired",
    ...     gain_reward=8, gain_transition=8,
    ... )
    >>> print(f"{bound.value:.0f} in {bound.probability}")
    3293 in expectation
    """
    reward, transition = functions(
        words, version, norm_reward, norm_transition, reward_noise, transition_noise,
        regulariser_reward, regulariser_transition,
    )  # fmt: skip
    choice("planner", planner, PLANNERS)
    L, H = at_least_zero("lipschitz", lipschitz), integer("horizon", horizon, least=1)
    mean = L if mean_lipschitz is None else at_least_zero("mean_lipschitz", mean_lipschitz)
    top = reward_bound_of(reward, reward_bound)
    tau = integer("episodes", episodes, least=1)
    if version == "paper" and tau * H < 4:
        raise ArgumentError("episodes", "T = episodes · horizon of at least 4, as printed", tau * H)

    def at(tau: int) -> Bound:
        odds = math.log(3 * tau * H)
        steep = 3 * mean if version == "paper" else 2 * L
        squares = version == "improved"
        parts = {
            "reward": math.log(2) + widths(reward, version, H, tau, odds, optimise),
            "transition": log(steep)
            + widths(transition, version, H, tau, odds, optimise, squares=squares),
            "failure": log(3 * norm_reward if version == "paper" else 8 / 3 * top),
        }
        if planner == "approximate":
            parts["planning"] = math.log(2 * math.sqrt(tau * H))
        learned = (reward.learned, transition.learned)
        return finished("Theorem 2", version, H, tau, parts, top, "expectation", learned, at)

    return at(tau)
