"""Theorems 1 and 2: means are fixed functions of bounded norm, noise is sub-Gaussian.

There are three versions of each. "paper" is the statement as printed, "repaired" the nearest
statement with a proof, and "improved" the best we can prove for the same algorithm with our planner
(note A7).
"""

import dataclasses
import math
from typing import Unpack

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import choice, integer
from kernelmdp.theory.bound import Bound, log
from kernelmdp.theory.gains import GainArguments
from kernelmdp.theory.width_sums import (
    PLANNERS,
    assemble_bound,
    at_least_zero,
    bounded_functions,
    log_width_sum,
    probability,
    reward_bound_of,
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
    beta: str = "paper",
    mixtures: int = 1,
    drift_reward: float = 0.0,
    drift_transition: float = 0.0,
    anytime: bool = False,
    planner: str = "exact",
    **gain_arguments: Unpack[GainArguments],
) -> Bound:
    """Bound the regret of GP-UCRL with probability 1 − δ (paper, Theorem 1).

    - "paper": 2β_R√(2eHγT) + 2Lβ_P√(2emHγT) + (LD + 2B_RH)√(2T ln(3/δ)), with λ = H and mH. It
      needs κ ≤ 1 and the diameter D.
    - "repaired": e^κ replaces e, and |R̄| ≤ B_R√κ. 2B_R√κH replaces LD, because planners that clip
      their values guarantee it, while L alone does not (note B2, B3, B11).
    - "improved": κ and λ are arbitrary, with the block lemma or rare jumps. Outputs that share a
      kernel have one radius. The martingale part is B_R√κ√(2 ln(3/δ) τ H(H−1)(2H−1)/6).

    Args:
        horizon: The number of periods H.
        episodes: The number of episodes τ.
        norm_reward: The bound B_R of the reward's norm.
        norm_transition: The bound B_P of the transition's norm.
        reward_noise: The sub-Gaussian proxy σ of the reward's noise.
        transition_noise: The sub-Gaussian proxy σ of the transition's noise.
        lipschitz: The Lipschitz constant L.
        diameter: The diameter D of the state space, for version "paper".
        delta: The probability δ with which the bound may fail.
        version: "paper", "repaired" or "improved".
        reward_bound: A bound of sup|R̄| that replaces B_R√κ.
        regulariser_reward: The reward's λ, for version "improved". None means H.
        regulariser_transition: The transition's λ, for version "improved". None means mH.
        optimise: Whether to search for the best λ.
        beta: "paper" for sets in which norm and noise add; "mixture" for the smaller ones in which
            their squares add (docs/theory.md, Lemma 7), for version "improved".
        mixtures: The number of mixtures of Proposition 8; 1 for one.
        drift_reward: What a compiled kernel adds to the reward's β.
        drift_transition: The same for the transition.
        anytime: Whether the bound holds for all T at once (note B19).
        planner: "exact", or "approximate" for plans √(H/l)-close to optimal, which adds 2√T
            (note B21).
        **gain_arguments: Where information gains come from, see ``GainArguments``.

    Returns:
        The bound.

    Raises:
        ArgumentError: If an argument is invalid or missing.

    >>> bound = theorem1(
    ...     horizon=2, episodes=3, norm_reward=1, norm_transition=1, reward_noise=0.5,
    ...     transition_noise=0.5, lipschitz=1, diameter=1, delta=0.1, version="paper",
    ...     gain_reward=2, gain_transition=2,
    ... )
    >>> print(f"{bound.value:.4f}, vacuous: {bound.vacuous}")
    130.7275, vacuous: True
    """
    reward, transition = bounded_functions(
        gain_arguments, version, norm_reward, norm_transition, reward_noise, transition_noise,
        regulariser_reward, regulariser_transition,
    )  # fmt: skip
    choice("planner", planner, PLANNERS)
    if choice("beta", beta, ("paper", "mixture")) == "mixture" and version != "improved":
        raise ArgumentError("beta", "'paper' but for version='improved'", beta)
    reward, transition = (
        dataclasses.replace(function, squares=beta == "mixture", mixtures=mixtures, drift=drift)
        for function, drift in ((reward, drift_reward), (transition, drift_transition))
    )
    L, H = at_least_zero("lipschitz", lipschitz), integer("horizon", horizon, least=1)
    probability("delta", delta)
    if version == "paper" and diameter is None:
        raise ArgumentError("diameter", "that of the state space, for version='paper'", None)
    D = None if diameter is None else at_least_zero("diameter", diameter)
    largest_reward = reward_bound_of(reward, reward_bound)

    def at(tau: int) -> Bound:
        log_odds = math.log(3 / delta)
        martingale_log_odds = log_odds + math.log(tau * (tau + 1)) if anytime else log_odds
        parts = {
            "reward": math.log(2) + log_width_sum(reward, version, H, tau, log_odds, optimise),
            "transition": log(2 * L)
            + log_width_sum(transition, version, H, tau, log_odds, optimise),
        }
        if version == "improved":
            squares = tau * H * (H - 1) * (2 * H - 1) / 6
            parts["martingale"] = log(largest_reward) + 0.5 * (
                math.log(2 * martingale_log_odds) + log(squares)
            )
        else:
            span = (
                L * D + 2 * norm_reward * H
                if version == "paper" and D is not None
                else 4 * largest_reward * H
            )
            parts["martingale"] = log(span) + 0.5 * math.log(2 * tau * H * martingale_log_odds)
        if planner == "approximate":
            parts["planning"] = math.log(2 * math.sqrt(tau * H))
        learned = (reward.learned, transition.learned)
        return assemble_bound(
            "Theorem 1", version, H, tau, parts, largest_reward, 1 - delta, learned, at
        )

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
    **gain_arguments: Unpack[GainArguments],
) -> Bound:
    """Bound the expected regret of PSRL for priors of bounded norm (paper, Theorem 2).

    - "paper": 2α_R√(2eHγT) + 3E[L*]α_P√(2emHγT) + 3B_R, where α is β with ln(3T) for ln(3/δ). It
      needs T ≥ 4.
    - "repaired": the paper's proof confuses an event of all episodes with one of each episode, and
      the expectation of a product with a product of expectations (note B6). What holds has 2√E[L*²]
      for 3E[L*], and (8/3)B_R√κ for 3B_R.
    - "improved": the same with the sums of Theorem 1's improved version (note P10).

    Args:
        horizon: The number of periods H.
        episodes: The number of episodes τ.
        norm_reward: The bound B_R of the reward's norm.
        norm_transition: The bound B_P of the transition's norm.
        reward_noise: The sub-Gaussian proxy σ of the reward's noise.
        transition_noise: The sub-Gaussian proxy σ of the transition's noise.
        lipschitz: √E[L*²], or any bound of L*.
        mean_lipschitz: E[L*], which is no larger. None takes ``lipschitz``.
        version: "paper", "repaired" or "improved".
        reward_bound: A bound of sup|R̄| that replaces B_R√κ.
        regulariser_reward: The reward's λ, for version "improved". None means H.
        regulariser_transition: The transition's λ, for version "improved". None means mH.
        optimise: Whether to search for the best λ.
        planner: "exact", or "approximate" for plans √(H/l)-close to optimal, which adds 2√T
            (note B21).
        **gain_arguments: Where information gains come from, see ``GainArguments``.

    Returns:
        The bound.

    Raises:
        ArgumentError: If an argument is invalid or missing.

    >>> bound = theorem2(
    ...     horizon=5, episodes=100, norm_reward=1, norm_transition=1, reward_noise=0.1,
    ...     transition_noise=0.1, lipschitz=3, version="repaired",
    ...     gain_reward=8, gain_transition=8,
    ... )
    >>> print(f"{bound.value:.0f} in {bound.probability}")
    3293 in expectation
    """
    reward, transition = bounded_functions(
        gain_arguments, version, norm_reward, norm_transition, reward_noise, transition_noise,
        regulariser_reward, regulariser_transition,
    )  # fmt: skip
    choice("planner", planner, PLANNERS)
    L, H = at_least_zero("lipschitz", lipschitz), integer("horizon", horizon, least=1)
    mean = L if mean_lipschitz is None else at_least_zero("mean_lipschitz", mean_lipschitz)
    largest_reward = reward_bound_of(reward, reward_bound)
    tau = integer("episodes", episodes, least=1)
    if version == "paper" and tau * H < 4:
        raise ArgumentError("episodes", "T = episodes · horizon of at least 4, as printed", tau * H)

    def at(tau: int) -> Bound:
        log_odds = math.log(3 * tau * H)
        slope = 3 * mean if version == "paper" else 2 * L
        squares = version == "improved"
        parts = {
            "reward": math.log(2) + log_width_sum(reward, version, H, tau, log_odds, optimise),
            "transition": log(slope)
            + log_width_sum(transition, version, H, tau, log_odds, optimise, squares=squares),
            "failure": log(3 * norm_reward if version == "paper" else 8 / 3 * largest_reward),
        }
        if planner == "approximate":
            parts["planning"] = math.log(2 * math.sqrt(tau * H))
        learned = (reward.learned, transition.learned)
        return assemble_bound(
            "Theorem 2", version, H, tau, parts, largest_reward, "expectation", learned, at
        )

    return at(tau)
