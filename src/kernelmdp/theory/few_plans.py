"""Regret bounds of agents that keep a plan while little is learned (docs/theory.md, Theorem 10)."""

import dataclasses
import math
from collections.abc import Sequence

from kernelmdp.numerics.checks import positive_number
from kernelmdp.theory.bound import Bound

#: Parts that grow by e^c: sums of half-widths of confidence sets.
WIDTHS = ("reward", "transition")
#: Parts of Theorem 3 that sum 1/l² over episodes l. A plan is kept for less than twice as many
#: episodes as went before, so they grow by 4.
NETS = ("slack", "net")


def with_few_plans(bound: Bound, replan_gain: float | None) -> Bound:
    """Change a bound of Theorem 1 or 3 to one for plans that are kept.

    Args:
        bound: The bound for a plan in every episode.
        replan_gain: c, the largest growth of an information gain for which a plan is kept. None
            for a plan in every episode.

    Returns:
        The bound: sums of widths times e^c, sums over nets times 4, the rest as it is.

    >>> import kernelmdp as km
    >>> once = km.theory.theorem1(
    ...     horizon=2, episodes=100, norm_reward=1, norm_transition=1, reward_noise=0.5,
    ...     transition_noise=0.5, lipschitz=1, gain_reward=2, gain_transition=2,
    ... )
    >>> few = with_few_plans(once, 0.5)
    >>> round(few.parts["reward"] / once.parts["reward"], 4)  # √e
    1.6487
    """
    if replan_gain is None:
        return bound
    c = positive_number("replan_gain", replan_gain)
    factors = dict.fromkeys(WIDTHS, c) | dict.fromkeys(NETS, math.log(4))
    parts = {name: part + factors.get(name, 0.0) for name, part in bound.log_parts.items()}
    at = bound.at
    return dataclasses.replace(
        bound, log_parts=parts, _at=lambda episodes: with_few_plans(at(episodes), c)
    )


def most_plans(gains: Sequence[float], replan_gain: float) -> float:
    """Bound the number of plans: 1 + Σ γ/c, where γ are the gains at the end.

    Args:
        gains: The information gains of reward and transition; of one output where outputs share a
            kernel.
        replan_gain: c.

    Returns:
        The bound.

    >>> most_plans([3.0, 2.0], 0.5)
    11.0
    """
    return 1 + sum(gains) / positive_number("replan_gain", replan_gain)
