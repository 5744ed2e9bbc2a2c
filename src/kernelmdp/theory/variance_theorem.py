"""Theorem 19: the law of total variance in place of the span of every period.

The variances of the next values along an episode add up to (BH)², while the squares of their spans
add up to 4B²H³/3. So the transition costs √H less than in Theorem 16, at the price of constants.
"""

import dataclasses
import math
from typing import Unpack

import numpy as np
import scipy

from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.theory.bound import Bound, log
from kernelmdp.theory.episode_costs import (
    EVALUATIONS,
    LARGEST_LOG,
    SEARCH_ACCURACY,
    GainCost,
    total_at,
)
from kernelmdp.theory.gains import GainArguments
from kernelmdp.theory.noise_theorems import episode_martingale, gain_cost, noise_slopes
from kernelmdp.theory.width_sums import (
    assemble_bound,
    bounded_functions,
    probability,
    reward_bound_of,
)

#: Gains at which the search first ends an episode. Small ones keep the chi-square form near linear.
FIRST_LIMITS = (0.02, 0.2)


def theorem19(
    *,
    horizon: int,
    episodes: int,
    norm_reward: float,
    norm_transition: float,
    reward_noise: float,
    transition_noise: float,
    least_noise: float | None = None,
    delta: float = 0.1,
    reward_bound: float | None = None,
    regulariser_reward: float | None = None,
    regulariser_transition: float | None = None,
    mixtures: int = 1,
    drift_reward: float = 0.0,
    drift_transition: float = 0.0,
    anytime: bool = False,
    **gain_arguments: Unpack[GainArguments],
) -> Bound:
    """Bound the regret of GP-UCRL under Gaussian noise by variances, with probability 1 − δ.

    Episodes are given up at the gains c_R and c_P. Let x̄ be the most that Theorem 16 lets an
    episode cost up to there, D = B(H − 1) + x̄/2, A = 4β_P²λ_P/σ² and q = A(e^{c_P} − 1). Then the
    transition costs at most ν/2 + D²A(e^q − 1)/(2νq)·(e^{g_P} − 1), for every ν > 0. The search is
    over c_R, c_P, ν and the prices of gains.

    Plans must keep to no L, so that they never lose by the true next state.

    Args:
        horizon: The number of periods H.
        episodes: The number of episodes τ.
        norm_reward: The bound B_R of the reward's norm.
        norm_transition: The bound B_P of the transition's norm.
        reward_noise: The sub-Gaussian proxy of the reward's noise.
        transition_noise: The largest standard deviation of the transition's Gaussian noise.
        least_noise: The smallest one of all axes, σ. None means that all are equal.
        delta: The probability δ with which the bound may fail.
        reward_bound: A bound B of sup|R̄| that replaces B_R√κ.
        regulariser_reward: The reward's λ. None means H.
        regulariser_transition: The transition's λ. None means mH.
        mixtures: The number of mixtures of Proposition 8; 1 for one.
        drift_reward: What a compiled kernel adds to the reward's β.
        drift_transition: The same for the transition.
        anytime: Whether the bound holds for all T at once (note B19).
        **gain_arguments: Where information gains come from, see ``GainArguments``.

    Returns:
        The bound.

    Raises:
        ArgumentError: If an argument is invalid or missing.

    >>> bound = theorem19(
    ...     horizon=5, episodes=10**6, norm_reward=1, norm_transition=1, reward_noise=0.2,
    ...     transition_noise=0.2, gain_reward=10, gain_transition=10,
    ... )
    >>> bound.vacuous
    False
    """
    reward, transition = bounded_functions(
        gain_arguments, "improved", norm_reward, norm_transition, reward_noise, transition_noise,
        regulariser_reward, regulariser_transition,
    )  # fmt: skip
    reward, transition = (
        dataclasses.replace(function, squares=True, mixtures=mixtures, drift=drift)
        for function, drift in ((reward, drift_reward), (transition, drift_transition))
    )
    probability("delta", delta)
    H, B = integer("horizon", horizon, least=1), reward_bound_of(reward, reward_bound)
    sigma = positive_number(
        "transition_noise", transition_noise if least_noise is None else least_noise
    )
    squares = float(H), float((noise_slopes(H, B, sigma) ** 2).sum())

    regularisers = [
        float(each.learned.outputs * H if each.regulariser is None else each.regulariser)
        for each in (reward, transition)
    ]

    def at(tau: int) -> Bound:
        odds = math.log(3 / delta)
        chance_odds = odds + math.log(tau * (tau + 1)) if anytime else odds
        by_span, by_length = (
            [
                gain_cost(each, square, regulariser, odds, H, tau)
                for each, square, regulariser in zip(
                    (reward, transition), both, regularisers, strict=True
                )
            ]
            for both in (squares, (float(H), 1.0))
        )
        # The cost with w = 1 is 2β√λ·√(eᵍ − 1), so its square over σ² is A(eᵍ − 1).
        growth = (by_length[1].scale / sigma) ** 2
        search = _Search(by_span[0], by_span[1], growth, B, H, tau)

        def chance(total: float, unstopped: float) -> float:
            if H == 1:
                return 0.0
            return episode_martingale(total, unstopped, chance_odds, B, H, tau)

        def objective(logs: np.ndarray) -> float:
            total, unstopped = search.total(logs)
            return total + chance(total, unstopped)

        start = search.start()
        result = scipy.optimize.minimize(
            objective,
            start,
            method="Nelder-Mead",
            options={
                "maxfev": 2 * EVALUATIONS,
                "fatol": SEARCH_ACCURACY * objective(start),
                "xatol": SEARCH_ACCURACY,
            },
        )
        total, unstopped = search.total(result.x)
        parts = {"learning": log(total), "martingale": log(chance(total, unstopped))}
        learned = reward.learned, transition.learned
        return assemble_bound("Theorem 19", "improved", H, tau, parts, B, 1 - delta, learned, at)

    return at(integer("episodes", episodes, least=1))


@dataclasses.dataclass(frozen=True)
class _Search:
    """The total as a function of the logarithms of c_R, c_P, ν and the two prices."""

    reward: GainCost
    transition: GainCost
    growth: float
    largest_reward: float
    horizon: int
    episodes: int

    def total(self, logs: np.ndarray) -> tuple[float, float]:
        """The bound of the total cost, and the largest cost of an episode not given up."""
        numbers = [math.exp(min(max(log, -LARGEST_LOG), LARGEST_LOG)) for log in logs]
        limits, constant, prices = numbers[:2], numbers[2], numbers[3:]
        if self.transition.scale == 0 or self.transition.total_gain == 0:
            costs, constant = [self.reward], 0.0
        else:
            costs = [self.reward, self._transition(limits, constant)]
        if self.reward.scale == 0 or self.reward.total_gain == 0:
            costs, limits, prices = costs[1:], limits[1:], prices[1:]
        if not costs:
            return 0.0, 0.0
        count = len(costs)
        total = total_at(
            costs,
            limits[:count],
            prices[:count],
            episodes=self.episodes,
            largest_reward=self.largest_reward,
            horizon=self.horizon,
        )
        unstopped = sum(
            cost.cost(min(limit, cost.most))
            for cost, limit in zip(costs, limits[:count], strict=True)
        )
        # ν/2 is paid in every episode, whether it is given up or not.
        return total + 0.5 * constant * self.episodes, unstopped

    def _transition(self, limits: list[float], constant: float) -> GainCost:
        limit = min(limits[1], self.transition.most)
        spent = self.reward.cost(min(limits[0], self.reward.most)) + self.transition.cost(limit)
        deviation = self.largest_reward * (self.horizon - 1) + spent / 2
        exponent = min(self.growth * math.expm1(limit), 600.0)
        excess = math.expm1(exponent) / exponent if exponent > 0 else 1.0
        return GainCost(
            deviation**2 * self.growth * excess / (2 * constant),
            self.transition.total_gain,
            linear=True,
        )

    def start(self) -> np.ndarray:
        """Where the search begins: all episodes alike, and few given up."""
        tau, size = self.episodes, 2 * self.largest_reward * self.horizon
        limits = [
            min(FIRST_LIMITS[1], math.log1p(part / max(self.growth, 1e-12)))
            for part in (1.0, FIRST_LIMITS[1])
        ]
        gain = max(self.transition.total_gain, 1e-12)
        deviation = self.largest_reward * max(self.horizon - 1, 1)
        constant = deviation * math.sqrt(self.growth * gain / tau) + 1e-12
        price = deviation**2 * self.growth / (2 * constant)
        rewards = 0.5 * self.reward.scale * math.sqrt(tau / max(self.reward.total_gain, 1e-12))
        prices = [max(rewards, size / limits[0]), max(price, size / limits[1])]
        return np.log(np.array([*limits, constant, *prices]))
