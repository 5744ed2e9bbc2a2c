"""The largest total of episode costs that information gains allow (docs/theory.md, Lemma 14).

An episode costs what its confidence sets are wide, and never more than the span of its values. The
gains of all episodes have a known sum. So only few episodes can be costly. The worst split of the
gains among episodes has a Lagrangian dual, and every choice of its multipliers gives a bound.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy

#: Relative accuracy of the search for multipliers. Any multipliers give a bound, so this decides
#: how tight it is, and not whether it holds.
SEARCH_ACCURACY = 1e-4
#: Most evaluations of the dual in one search, which is enough for four numbers.
EVALUATIONS = 600
#: Logarithms of limits and prices beyond this are cut, so that nothing overflows.
LARGEST_LOG = 60.0
#: Gain at which a search first ends an episode: where √(eᵍ − 1) stops being concave.
FIRST_LIMIT = math.log(2)


@dataclasses.dataclass(frozen=True)
class GainCost:
    """What an episode costs in which a function gained g: s√(eᵍ − 1), or s(eᵍ − 1).

    Attributes:
        scale: The factor s, above 0.
        total_gain: The sum of the gains of all episodes, at most; above 0.
        linear: Whether there is no root.
        largest_growth: A bound of eᵍ − 1 as far as it costs anything. It is Hκ/λ, because
            variances are at most κ.

    >>> round(GainCost(2.0, 10.0).cost(math.log(2)), 12)
    2.0
    """

    scale: float
    total_gain: float
    linear: bool = False
    largest_growth: float = math.inf

    def cost(self, gain: float) -> float:
        """Compute the cost of an episode.

        Args:
            gain: Its gain g.

        Returns:
            The cost.
        """
        growth = min(math.expm1(min(gain, 700.0)), self.largest_growth)
        return self.scale * (growth if self.linear else math.sqrt(growth))

    def capped(self, cap: float) -> "GainCost":
        """Limit what an episode can cost.

        Args:
            cap: The most that an episode costs.

        Returns:
            The cost with the limit.

        >>> GainCost(2.0, 10.0).capped(3.0).cost(9.0)
        3.0
        """
        if self.scale == 0:
            return self
        ratio = cap / self.scale
        growth = ratio if self.linear else ratio**2
        return dataclasses.replace(self, largest_growth=min(self.largest_growth, growth))

    @property
    def most(self) -> float:
        """The gain beyond which an episode costs no more, or which none can have."""
        return min(self.total_gain, math.log1p(self.largest_growth))

    def largest_surplus(self, limit: float, price: float) -> float:
        """Compute the maximum of cost(g) − price · g over 0 ≤ g ≤ limit.

        The cost s(eᵍ − 1) is convex, so the maximum is at an end. With u² = eᵍ − 1, su − price ·
        ln(1 + u²) has one local maximum, at u = (price − √(price² − s²))/s.

        Args:
            limit: The largest gain.
            price: The price of a unit of gain.

        Returns:
            The maximum.
        """
        limit = min(limit, self.most)
        best = max(0.0, self.cost(limit) - price * limit)
        if self.linear or price <= self.scale:
            return best
        # The form without cancellation of (price − √(price² − s²))/s.
        u = self.scale / (price + math.sqrt(price**2 - self.scale**2))
        gain = math.log1p(u * u)
        return best if gain > limit else max(best, self.scale * u - price * gain)


def stopped_cost(unstopped: float, largest_reward: float, horizon: int) -> float:
    """Bound the cost of an episode that is given up: max(2BH, x̄ + 2B(H − 1)).

    Args:
        unstopped: The largest cost x̄ of the periods before.
        largest_reward: B, a bound of |R̄|.
        horizon: The number of periods H.

    Returns:
        The bound.
    """
    return max(2 * largest_reward * horizon, unstopped + 2 * largest_reward * (horizon - 1))


def total_at(
    costs: Sequence[GainCost],
    limits: Sequence[float],
    prices: Sequence[float],
    *,
    episodes: int,
    largest_reward: float,
    horizon: int,
) -> float:
    """Bound the total cost of all episodes by the dual, at given limits and prices.

    Args:
        costs: The cost of each learned function.
        limits: The gain of each function at which an episode is given up; ∞ for never.
        prices: The multiplier of each sum of gains.
        episodes: The number of episodes τ.
        largest_reward: B, a bound of |R̄|.
        horizon: The number of periods H.

    Returns:
        The bound.

    >>> cost = GainCost(0.1, 5.0)
    >>> root = 0.1 * math.sqrt(100 * math.expm1(5 / 100) * 100)  # all episodes alike
    >>> total_at([cost], [0.69], [0.23], episodes=100, largest_reward=1, horizon=2) >= root
    True
    """
    priced = list(zip(costs, limits, prices, strict=True))
    surplus = sum(cost.largest_surplus(limit, price) for cost, limit, price in priced)
    unstopped = sum(cost.cost(min(limit, cost.most)) for cost, limit, _ in priced)
    # An episode is given up only if one of the finite limits can be passed.
    passed = [price * limit for cost, limit, price in priced if limit < cost.most]
    if passed:
        stopped = stopped_cost(unstopped, largest_reward, horizon)
        surplus = max(surplus, stopped - min(passed))
    return episodes * surplus + sum(price * cost.total_gain for cost, _, price in priced)


def largest_total(
    costs: Sequence[GainCost],
    *,
    episodes: int,
    largest_reward: float,
    horizon: int,
    chance: Callable[[float, float], float] = lambda total, unstopped: 0.0,
) -> tuple[float, float]:
    """Bound the total cost of all episodes, with limits and prices from a search.

    Args:
        costs: The cost of each learned function.
        episodes: The number of episodes τ.
        largest_reward: B, a bound of |R̄|.
        horizon: The number of periods H.
        chance: What chance adds to a bound of the total, given x̄. The search minimises the sum.

    Returns:
        The bound, and x̄: the largest cost of an episode that was not given up.

    >>> total, unstopped = largest_total(
    ...     [GainCost(0.1, 5.0)], episodes=100, largest_reward=1, horizon=2
    ... )
    >>> 2.2 < total < 2.3  # what the search finds varies a little
    True
    """
    costs = [cost for cost in costs if cost.scale > 0 and cost.total_gain > 0]
    if not costs:
        return 0.0, 0.0
    problem = {
        "episodes": episodes,
        "largest_reward": largest_reward,
        "horizon": horizon,
    }
    searches = itertools.product((True, False), repeat=len(costs))
    return min(_search(costs, finite, problem, chance) for finite in searches)[1:]


def _search(
    costs: Sequence[GainCost],
    finite: Sequence[bool],
    problem: dict[str, Any],
    chance: Callable[[float, float], float],
) -> tuple[float, float, float]:
    """The least sum that a search finds, where some limits may be infinite; its total, and x̄."""
    size, horizon = 2 * problem["largest_reward"], problem["horizon"]
    limits = [min(FIRST_LIMIT, _gain_at(cost, size)) for cost in costs]
    # The derivative of the total in the sum of gains, if all episodes gain alike.
    prices = [
        cost.scale
        if cost.linear
        else max(cost.scale, 0.5 * cost.scale * math.sqrt(problem["episodes"] / cost.total_gain))
        for cost in costs
    ]
    prices = [
        max(price, size * horizon / limit) if ends else price
        for price, limit, ends in zip(prices, limits, finite, strict=True)
    ]
    first = [limit for limit, ends in zip(limits, finite, strict=True) if ends]

    def split(logs: np.ndarray) -> tuple[list[float], list[float]]:
        numbers = [math.exp(min(max(log, -LARGEST_LOG), LARGEST_LOG)) for log in logs]
        chosen = iter(numbers)
        return [next(chosen) if ends else math.inf for ends in finite], list(chosen)

    def evaluate(logs: np.ndarray) -> tuple[float, float, float]:
        limits, prices = split(logs)
        total = total_at(costs, limits, prices, **problem)
        unstopped = sum(
            cost.cost(min(limit, cost.most)) for cost, limit in zip(costs, limits, strict=True)
        )
        return total + chance(total, unstopped), total, unstopped

    def dual(logs: np.ndarray) -> float:
        return evaluate(logs)[0]

    start = np.log(np.array([*first, *prices]))
    result = scipy.optimize.minimize(
        dual,
        start,
        method="Nelder-Mead",
        options={
            "maxfev": EVALUATIONS,
            "fatol": SEARCH_ACCURACY * dual(start),
            "xatol": SEARCH_ACCURACY,
        },
    )
    return evaluate(result.x)


def _gain_at(cost: GainCost, size: float) -> float:
    """The gain at which an episode costs this much."""
    ratio = size / cost.scale
    return max(1e-12, math.log1p(ratio if cost.linear else ratio**2))
