"""Theorems 3 and 4: means are draws of Gaussian processes, noise is Gaussian of known variance.

λ is the noise variance here, no regulariser. Versions as in Theorems 1 and 2.
"""

import math
from typing import Unpack

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import integer
from kernelmdp.theory.bound import Bound, log, log_sum
from kernelmdp.theory.gains import GainArguments
from kernelmdp.theory.gp_setting import setting_of
from kernelmdp.theory.prior_suprema import PriorSuprema
from kernelmdp.theory.width_sums import at_least_zero, finished, probability


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
    sizes: PriorSuprema | None = None,
    anytime: bool = False,
    planner: str = "exact",
    **words: Unpack[GainArguments],
) -> Bound:
    """The regret of GP-UCRL under GP priors, with probability 1 − δ (paper, Theorem 3).

    Noises are standard deviations, λ their squares. ``sizes`` of draws are computed from the
    kernels unless given. No L holds almost surely under a GP prior: unless ``lipschitz`` is given,
    it is what Gaussian noise provides on the event sup|R̄| ≤ C (math B8).

    - "paper": 2β_R e^{γ_{H−1}}√((2λ_R+1)γT) + 2Lβ_P e^{γ_{mH−1}}√((2λ_P+1)γT) + (L√m+1)Hπ²/3
      + (LD + 2CH)√(2T ln(6/δ)). In logarithms, as e^γ soon exceeds every float (math B23).
    - "repaired": adds what the nets cost, 2βHπ²Λ/(6L̄), as the posterior is conditioned at z and
      not at [z]_l (math B5); whole cells; 2CH for LD; any κ.
    - "improved": block lemma or rare jumps for e^γ√(2λ+1), direct tail levels, smaller martingale.

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
    setting = setting_of(words, horizon, version, reward_noise, transition_noise, sizes, planner)
    probability("delta", delta)
    H, m = setting.horizon, setting.transition.outputs
    C = setting.prior_suprema.reward_level(delta, version)
    L = setting.free_lipschitz(C) if lipschitz is None else at_least_zero("lipschitz", lipschitz)
    if version == "paper" and diameter is None:
        raise ArgumentError("diameter", "that of the state space, for version='paper'", None)
    span = 4 * C * H
    if version == "paper":
        span = L * at_least_zero("diameter", diameter) + 2 * C * H

    def at(tau: int) -> Bound:
        late = math.log(6 / delta) + (math.log(tau * (tau + 1)) if anytime else 0.0)
        betas, totals, nets = (
            setting.betas(tau, delta),
            setting.sums(tau),
            setting.nets(tau, delta),
        )
        parts = {
            "reward": log(2 * betas[0]) + totals[0],
            "transition": log(2 * L * betas[1]) + totals[1],
        }
        if not setting.domain.finite:
            parts["slack"] = math.log((L * math.sqrt(m) + 1) * H * math.pi**2 / 3)
            if version != "paper":
                parts["net"] = log_sum([nets[0], log(L) + nets[1]])
        if version == "improved":
            squares = tau * H * (H - 1) * (2 * H - 1) / 6
            parts["martingale"] = log(C) + 0.5 * (math.log(2 * late) + log(squares))
        else:
            parts["martingale"] = log(span) + 0.5 * math.log(2 * tau * H * late)
        if planner == "approximate":
            parts["planning"] = math.log(2 * math.sqrt(tau * H))
        learned = (setting.reward, setting.transition)
        return finished("Theorem 3", version, H, tau, parts, C, 1 - delta, learned, at)

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
    sizes: PriorSuprema | None = None,
    planner: str = "exact",
    **words: Unpack[GainArguments],
) -> Bound:
    """The expected regret of PSRL under GP priors (paper, Theorem 4); words as in Theorem 3.

    ``lipschitz`` is √E[L*²], ``mean_lipschitz`` E[L*]; from Gaussian noise and E sup|R̄|² unless
    given (math B8).

    - "paper": Theorem 3's first two parts with δ = 1/T and 3E[L*] for 2L, + 3 E sup|R̄|
      + (1 + √m E[L*])π²H. T ≥ 4.
    - "repaired": 2√E[L*²] for 3E[L*] (math B6); nets (B5); (8/3)(x + b²/2x), x = b√ln(3aT/4), for
      3 E sup|R̄|, as E[X 1_A] is not E[X]P(A) (B7); a third of the slack.
    - "improved": with the sums of Theorem 3's improved version.

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
    setting = setting_of(words, horizon, version, reward_noise, transition_noise, sizes, planner)
    H, m = setting.horizon, setting.transition.outputs
    size = setting.prior_suprema.reward
    usual = setting.free_lipschitz(math.hypot(size.expected, size.deviation))
    L = usual if lipschitz is None else at_least_zero("lipschitz", lipschitz)
    mean = setting.free_lipschitz(size.expected) if lipschitz is None else L
    if mean_lipschitz is not None:
        mean = at_least_zero("mean_lipschitz", mean_lipschitz)
    tau = integer("episodes", episodes, least=1)
    if version == "paper" and tau * H < 4:
        raise ArgumentError("episodes", "T = episodes · horizon of at least 4, as printed", tau * H)

    def at(tau: int) -> Bound:
        delta, printed = 1 / (tau * H), version == "paper"
        betas, nets = setting.betas(tau, delta), setting.nets(tau, delta)
        ours = setting.sums(tau)[0]
        theirs = setting.sums(tau, squares=True)[1]
        parts = {
            "reward": log(2 * betas[0]) + ours,
            "transition": log((3 * mean if printed else 2 * L) * betas[1]) + theirs,
        }
        if not setting.domain.finite:
            parts["slack"] = math.log(
                (1 + math.sqrt(m) * mean) * math.pi**2 * H / (1 if printed else 3)
            )
            if not printed:
                parts["net"] = log_sum([nets[0], log(mean) + nets[1]])
        parts["failure"] = log(3 * size.expected if printed else 8 / 3 * setting.rare_mean(tau))
        if planner == "approximate":
            parts["planning"] = math.log(2 * math.sqrt(tau * H))
        learned = (setting.reward, setting.transition)
        return finished(
            "Theorem 4", version, H, tau, parts, size.expected, "expectation", learned, at
        )

    return at(tau)
