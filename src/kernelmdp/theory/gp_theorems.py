"""Theorems 3 and 4: means are draws of Gaussian processes, noise is Gaussian of known variance.

Here λ is the noise variance, not a regulariser. The versions are those of Theorems 1 and 2.
"""

import math
from typing import Unpack

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import integer
from kernelmdp.theory.bound import Bound, log, log_sum
from kernelmdp.theory.gains import GainArguments
from kernelmdp.theory.gp_setting import make_gp_setting
from kernelmdp.theory.prior_suprema import PriorSuprema
from kernelmdp.theory.width_sums import assemble_bound, at_least_zero, probability


def theorem3(
    *,
    horizon: int,
    episodes: int,
    reward_noise: float,
    transition_noise: float,
    lipschitz: float | None = None,
    diameter: float | None = None,
    delta: float = 0.1,
    version: str = "improved",
    suprema: PriorSuprema | None = None,
    anytime: bool = False,
    planner: str = "exact",
    **gain_arguments: Unpack[GainArguments],
) -> Bound:
    """Bound the regret of GP-UCRL under GP priors, with probability 1 − δ (paper, Theorem 3).

    - "paper": 2β_R e^{γ_{H−1}}√((2λ_R+1)γT) + 2Lβ_P e^{γ_{mH−1}}√((2λ_P+1)γT) + (L√m+1)Hπ²/3
      + (LD + 2CH)√(2T ln(6/δ)). It is computed in logarithms, as e^γ soon overflows (note B23).
    - "repaired": adds the cost of the nets, 2βHπ²Λ/(6L̄), because the posterior is conditioned at z
      and not at [z]_l (note B5). Net sizes are integers, 2CH replaces LD, and κ is arbitrary.
    - "improved": the block lemma or rare jumps replace e^γ√(2λ+1), tail levels are direct, and the
      martingale part is smaller.

    Args:
        horizon: The number of periods H.
        episodes: The number of episodes τ.
        reward_noise: Standard deviation of the reward's noise, √λ_R.
        transition_noise: Standard deviation of the transition's noise, √λ_P.
        lipschitz: The Lipschitz constant L. No L holds almost surely under a GP prior. So None
            takes the bound by Gaussian noise on the event sup|R̄| ≤ C (note B8).
        diameter: The diameter D of the state space, for version "paper".
        delta: The probability δ with which the bound may fail.
        version: "paper", "repaired" or "improved".
        suprema: Suprema of draws. None computes them from the kernels.
        anytime: Whether the bound holds for all T at once (note B19).
        planner: "exact", or "approximate" for plans √(H/l)-close to optimal, which adds 2√T
            (note B21).
        **gain_arguments: Where information gains come from, see ``GainArguments``.

    Returns:
        The bound.

    Raises:
        ArgumentError: If an argument is invalid or missing.

    >>> from kernelmdp import Box, join
    >>> box = Box([0.0], [1.0])
    >>> bound = theorem3(
    ...     horizon=5, episodes=1000, reward_noise=0.1, transition_noise=0.1,
    ...     reward_kernel="se(0.5)", transition_kernel="se(0.5)",
    ...     domain=join(state=box, action=box),
    ... )
    >>> bound.vacuous
    True
    """
    setting = make_gp_setting(
        gain_arguments, horizon, version, reward_noise, transition_noise, suprema, planner
    )
    probability("delta", delta)
    H, m = setting.horizon, setting.transition.outputs
    C = setting.prior_suprema.reward_level(delta, version)
    L = setting.noise_lipschitz(C) if lipschitz is None else at_least_zero("lipschitz", lipschitz)
    if version == "paper" and diameter is None:
        raise ArgumentError("diameter", "that of the state space, for version='paper'", None)
    span = 4 * C * H
    if version == "paper":
        span = L * at_least_zero("diameter", diameter) + 2 * C * H

    def at(tau: int) -> Bound:
        log_odds = math.log(6 / delta) + (math.log(tau * (tau + 1)) if anytime else 0.0)
        betas, log_sums, log_nets = (
            setting.betas(tau, delta),
            setting.log_deviation_sums(tau),
            setting.log_net_terms(tau, delta),
        )
        parts = {
            "reward": log(2 * betas[0]) + log_sums[0],
            "transition": log(2 * L * betas[1]) + log_sums[1],
        }
        if not setting.domain.finite:
            parts["slack"] = math.log((L * math.sqrt(m) + 1) * H * math.pi**2 / 3)
            if version != "paper":
                parts["net"] = log_sum([log_nets[0], log(L) + log_nets[1]])
        if version == "improved":
            squares = tau * H * (H - 1) * (2 * H - 1) / 6
            parts["martingale"] = log(C) + 0.5 * (math.log(2 * log_odds) + log(squares))
        else:
            parts["martingale"] = log(span) + 0.5 * math.log(2 * tau * H * log_odds)
        if planner == "approximate":
            parts["planning"] = math.log(2 * math.sqrt(tau * H))
        learned = (setting.reward, setting.transition)
        return assemble_bound("Theorem 3", version, H, tau, parts, C, 1 - delta, learned, at)

    return at(integer("episodes", episodes, least=1))


def theorem4(
    *,
    horizon: int,
    episodes: int,
    reward_noise: float,
    transition_noise: float,
    lipschitz: float | None = None,
    mean_lipschitz: float | None = None,
    version: str = "improved",
    suprema: PriorSuprema | None = None,
    planner: str = "exact",
    **gain_arguments: Unpack[GainArguments],
) -> Bound:
    """Bound the expected regret of PSRL under GP priors (paper, Theorem 4).

    - "paper": Theorem 3's first two parts with δ = 1/T and 3E[L*] for 2L, + 3 E sup|R̄|
      + (1 + √m E[L*])π²H. It needs T ≥ 4.
    - "repaired": 2√E[L*²] replaces 3E[L*] (note B6), and nets are added (B5). (8/3)(x + b²/2x) with
      x = b√ln(3aT/4) replaces 3 E sup|R̄|, because E[X 1_A] is not E[X]P(A) (B7). The slack is a
      third.
    - "improved": the same with the sums of Theorem 3's improved version.

    Args:
        horizon: The number of periods H.
        episodes: The number of episodes τ.
        reward_noise: Standard deviation of the reward's noise, √λ_R.
        transition_noise: Standard deviation of the transition's noise, √λ_P.
        lipschitz: √E[L*²]. None takes the bound by Gaussian noise and E sup|R̄|² (note B8).
        mean_lipschitz: E[L*]. None takes ``lipschitz``, or the bound by Gaussian noise.
        version: "paper", "repaired" or "improved".
        suprema: Suprema of draws. None computes them from the kernels.
        planner: "exact", or "approximate" for plans √(H/l)-close to optimal, which adds 2√T
            (note B21).
        **gain_arguments: Where information gains come from, see ``GainArguments``.

    Returns:
        The bound.

    Raises:
        ArgumentError: If an argument is invalid or missing.

    >>> from kernelmdp import Box, join
    >>> box = Box([0.0], [1.0])
    >>> bound = theorem4(
    ...     horizon=5, episodes=1000, reward_noise=0.1, transition_noise=0.1,
    ...     reward_kernel="se(0.5)", transition_kernel="se(0.5)",
    ...     domain=join(state=box, action=box),
    ... )
    >>> bound.theorem
    'Theorem 4'
    """
    setting = make_gp_setting(
        gain_arguments, horizon, version, reward_noise, transition_noise, suprema, planner
    )
    H, m = setting.horizon, setting.transition.outputs
    supremum = setting.prior_suprema.reward
    default = setting.noise_lipschitz(math.hypot(supremum.expected, supremum.deviation))
    L = default if lipschitz is None else at_least_zero("lipschitz", lipschitz)
    mean = setting.noise_lipschitz(supremum.expected) if lipschitz is None else L
    if mean_lipschitz is not None:
        mean = at_least_zero("mean_lipschitz", mean_lipschitz)
    tau = integer("episodes", episodes, least=1)
    if version == "paper" and tau * H < 4:
        raise ArgumentError("episodes", "T = episodes · horizon of at least 4, as printed", tau * H)

    def at(tau: int) -> Bound:
        delta, as_printed = 1 / (tau * H), version == "paper"
        betas, log_nets = setting.betas(tau, delta), setting.log_net_terms(tau, delta)
        log_sum_reward = setting.log_deviation_sums(tau)[0]
        log_sum_transition = setting.log_deviation_sums(tau, squares=True)[1]
        parts = {
            "reward": log(2 * betas[0]) + log_sum_reward,
            "transition": log((3 * mean if as_printed else 2 * L) * betas[1]) + log_sum_transition,
        }
        if not setting.domain.finite:
            parts["slack"] = math.log(
                (1 + math.sqrt(m) * mean) * math.pi**2 * H / (1 if as_printed else 3)
            )
            if not as_printed:
                parts["net"] = log_sum([log_nets[0], log(mean) + log_nets[1]])
        parts["failure"] = log(
            3 * supremum.expected if as_printed else 8 / 3 * setting.tail_mean(tau)
        )
        if planner == "approximate":
            parts["planning"] = math.log(2 * math.sqrt(tau * H))
        learned = (setting.reward, setting.transition)
        return assemble_bound(
            "Theorem 4", version, H, tau, parts, supremum.expected, "expectation", learned, at
        )

    return at(tau)
