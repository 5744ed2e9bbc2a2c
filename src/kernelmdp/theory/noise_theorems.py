"""Theorems 16 and 17: bounded norms and Gaussian noise, and no Lipschitz constant is needed.

What is new beside Theorems 1 and 2 (docs/theory.md): the noise smooths every value, no episode
costs more than the span of its values, and sums over episodes are computed exactly.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import choice, integer, positive_number
from kernelmdp.theory.bound import Bound, log
from kernelmdp.theory.episode_costs import GainCost, largest_total, stopped_cost
from kernelmdp.theory.gains import GainArguments
from kernelmdp.theory.width_sums import (
    BoundedFunction,
    assemble_bound,
    at_least_zero,
    bounded_functions,
    probability,
    reward_bound_of,
)

#: Multiples of the default λ that ``optimise`` tries, 2 a decade. More are tighter and take longer.
COARSE_MULTIPLES = np.logspace(-4, 1, 11)
#: Rules of optimism: search the plausible next states, or pay a bonus for them.
OPTIMISM = ("search", "bonus")


def theorem16(
    *,
    horizon: int,
    episodes: int,
    norm_reward: float,
    norm_transition: float,
    reward_noise: float,
    transition_noise: float,
    least_noise: float | None = None,
    lipschitz: float | None = None,
    delta: float = 0.1,
    optimism: str = "search",
    reward_bound: float | None = None,
    regulariser_reward: float | None = None,
    regulariser_transition: float | None = None,
    optimise: bool = False,
    beta: str = "mixture",
    mixtures: int = 1,
    drift_reward: float = 0.0,
    drift_transition: float = 0.0,
    anytime: bool = False,
    **gain_arguments: Unpack[GainArguments],
) -> Bound:
    """Bound the regret of GP-UCRL or SOMBRL under Gaussian noise, with probability 1 − δ.

    Let w_h = 2B(H − h)/(σ√(2π)), or L if that is less. An episode that gained g_R and g_P costs at
    most 2β_R√(Hλ_R(e^{g_R} − 1)) + 2β_P√(λ_P Σ_h w_h²)·√(e^{g_P} − 1), or it is given up at 2BH or
    a little more. The largest total is that of Lemma 14, and the martingale part of Lemma 15.

    Args:
        horizon: The number of periods H.
        episodes: The number of episodes τ.
        norm_reward: The bound B_R of the reward's norm.
        norm_transition: The bound B_P of the transition's norm.
        reward_noise: The sub-Gaussian proxy of the reward's noise.
        transition_noise: The largest standard deviation of the transition's Gaussian noise.
        least_noise: The smallest one of all axes, σ. None means that all are equal.
        lipschitz: The Lipschitz constant L that plans keep to. None means none. Not for a bonus.
        delta: The probability δ with which the bound may fail.
        optimism: "search" for GP-UCRL; "bonus" for SOMBRL with the bonus of Lemma 12, whose w_h is
            the mean of those of periods 1 and h, with w_H = 0.
        reward_bound: A bound B of sup|R̄| that replaces B_R√κ.
        regulariser_reward: The reward's λ. None means H.
        regulariser_transition: The transition's λ. None means mH.
        optimise: Whether to search for the best λ.
        beta: "mixture" for sets in which squares of norm and noise add; "paper" for the paper's.
        mixtures: The number of mixtures of Proposition 8; 1 for one.
        drift_reward: What a compiled kernel adds to the reward's β.
        drift_transition: The same for the transition.
        anytime: Whether the bound holds for all T at once (note B19).
        **gain_arguments: Where information gains come from, see ``GainArguments``.

    Returns:
        The bound.

    Raises:
        ArgumentError: If an argument is invalid or missing.

    >>> bound = theorem16(
    ...     horizon=2, episodes=2000, norm_reward=1, norm_transition=1, reward_noise=0.2,
    ...     transition_noise=0.2, gain_reward=10, gain_transition=10,
    ... )
    >>> bound.vacuous, sorted(bound.parts)
    (False, ['learning', 'martingale'])
    """
    reward, transition = bounded_functions(
        gain_arguments, "improved", norm_reward, norm_transition, reward_noise, transition_noise,
        regulariser_reward, regulariser_transition,
    )  # fmt: skip
    squares = choice("beta", beta, ("mixture", "paper")) == "mixture"
    reward, transition = (
        dataclasses.replace(function, squares=squares, mixtures=mixtures, drift=drift)
        for function, drift in ((reward, drift_reward), (transition, drift_transition))
    )
    probability("delta", delta)
    if choice("optimism", optimism, OPTIMISM) == "bonus" and lipschitz is not None:
        raise ArgumentError("lipschitz", "None for a bonus, which keeps to no L", lipschitz)
    H, B = integer("horizon", horizon, least=1), reward_bound_of(reward, reward_bound)
    slopes = noise_slopes(H, B, _noise(least_noise, transition_noise), lipschitz)
    if optimism == "bonus":  # which is paid in the last period too, where w_H = 0
        slopes = (np.append(slopes, 0.0) + slopes[0]) / 2 if H > 1 else slopes

    def at(tau: int) -> Bound:
        odds = math.log(3 / delta)
        chance_odds = odds + math.log(tau * (tau + 1)) if anytime else odds

        def chance(total: float, unstopped: float) -> float:
            return martingale_part(total, unstopped, chance_odds, B, H, tau)

        total, unstopped = learning_part(
            reward, transition, slopes, odds, H, tau, B, optimise, chance, optimism == "search"
        )
        parts = {"learning": log(total), "martingale": log(chance(total, unstopped))}
        learned = reward.learned, transition.learned
        name = "Theorem 16" if optimism == "search" else "Theorem 16, bonus"
        return assemble_bound(name, "improved", H, tau, parts, B, 1 - delta, learned, at)

    return at(integer("episodes", episodes, least=1))


def theorem17(
    *,
    horizon: int,
    episodes: int,
    norm_reward: float,
    norm_transition: float,
    reward_noise: float,
    transition_noise: float,
    least_noise: float | None = None,
    lipschitz: float | None = None,
    reward_bound: float | None = None,
    regulariser_reward: float | None = None,
    regulariser_transition: float | None = None,
    optimise: bool = False,
    **gain_arguments: Unpack[GainArguments],
) -> Bound:
    """Bound the expected regret of PSRL for priors of bounded norm, under Gaussian noise.

    It is Theorem 16 with ln(3T) for ln(3/δ), (8/3)B for the episodes whose sets fail, and no
    martingale.

    Args:
        horizon: The number of periods H.
        episodes: The number of episodes τ.
        norm_reward: The bound B_R of the reward's norm.
        norm_transition: The bound B_P of the transition's norm.
        reward_noise: The sub-Gaussian proxy of the reward's noise.
        transition_noise: The largest standard deviation of the transition's Gaussian noise.
        least_noise: The smallest one of all axes, σ. None means that all are equal.
        lipschitz: A bound of L for every truth of the prior. None means none.
        reward_bound: A bound B of sup|R̄| that replaces B_R√κ.
        regulariser_reward: The λ of the reward's sets in the proof. None means H.
        regulariser_transition: The λ of the transition's. None means mH.
        optimise: Whether to search for the best λ. PSRL itself has none.
        **gain_arguments: Where information gains come from, see ``GainArguments``.

    Returns:
        The bound.

    Raises:
        ArgumentError: If an argument is invalid or missing.

    >>> bound = theorem17(
    ...     horizon=2, episodes=2000, norm_reward=1, norm_transition=1, reward_noise=0.2,
    ...     transition_noise=0.2, gain_reward=10, gain_transition=10,
    ... )
    >>> bound.vacuous, bound.probability
    (False, 'expectation')
    """
    reward, transition = (
        dataclasses.replace(function, squares=True)
        for function in bounded_functions(
            gain_arguments, "improved", norm_reward, norm_transition, reward_noise,
            transition_noise, regulariser_reward, regulariser_transition,
        )
    )  # fmt: skip
    H, B = integer("horizon", horizon, least=1), reward_bound_of(reward, reward_bound)
    slopes = noise_slopes(H, B, _noise(least_noise, transition_noise), lipschitz)

    def at(tau: int) -> Bound:
        odds = math.log(3 * tau * H)
        total, _ = learning_part(reward, transition, slopes, odds, H, tau, B, optimise)
        parts = {"learning": log(total), "failure": log(8 / 3 * B)}
        learned = reward.learned, transition.learned
        return assemble_bound(
            "Theorem 17", "improved", H, tau, parts, B, "expectation", learned, at
        )

    return at(integer("episodes", episodes, least=1))


def noise_slopes(
    horizon: int, reward_bound: float, noise: float, lipschitz: float | None = None
) -> np.ndarray:
    """Bound the slopes of E V_{h+1}(p + ε) in p, for h = 1..H − 1 (Lemma 12).

    They are 2B(H − h)/(σ√(2π)), or L if that is less.

    Args:
        horizon: The number of periods H.
        reward_bound: A bound B of |R̄|.
        noise: The standard deviation σ of the Gaussian noise.
        lipschitz: The Lipschitz constant L. None or ∞ means none.

    Returns:
        The slopes, (H − 1,).

    >>> noise_slopes(3, 1.0, 0.5).round(4).tolist()
    [3.1915, 1.5958]
    """
    left = np.arange(horizon - 1, 0, -1, dtype=float)
    slopes = 2 * reward_bound * left / (noise * math.sqrt(2 * math.pi))
    if lipschitz is None or math.isinf(lipschitz):
        return slopes
    return np.minimum(slopes, at_least_zero("lipschitz", lipschitz))


def learning_part(
    reward: BoundedFunction,
    transition: BoundedFunction,
    slopes: np.ndarray,
    log_odds: float,
    horizon: int,
    episodes: int,
    largest_reward: float,
    optimise: bool,
    chance: Callable[[float, float], float] = lambda total, unstopped: 0.0,
    capped: bool = True,
) -> tuple[float, float]:
    """Bound the total cost of all episodes on the event that the sets hold the truth.

    Args:
        reward: The reward.
        transition: The transition.
        slopes: The slopes w_h, of every period in which an uncertain transition costs.
        log_odds: ln(3/δ), or ln(3T).
        horizon: The number of periods H.
        episodes: The number of episodes τ.
        largest_reward: A bound B of |R̄|.
        optimise: Whether to search for the best λ.
        chance: What chance adds to a total, given x̄, see ``largest_total``.
        capped: Whether an episode's rewards cost at most 2BH, and its transitions BH(H − 1). A
            bonus may cost more.

    Returns:
        The bound, and x̄.

    Raises:
        ArgumentError: If λ is to be optimised, but the gain is for one λ only.
    """
    functions = reward, transition
    squares = float(horizon), float(np.sum(slopes**2))
    caps = 2 * largest_reward * horizon, largest_reward * horizon * (horizon - 1)
    defaults = [
        float(each.learned.outputs * horizon) if each.regulariser is None else each.regulariser
        for each in functions
    ]

    def total(regularisers: Sequence[float]) -> tuple[float, float]:
        costs = [
            gain_cost(each, square, float(regulariser), log_odds, horizon, episodes)
            for each, square, regulariser in zip(functions, squares, regularisers, strict=True)
        ]
        if capped:
            costs = [each.capped(cap) for each, cap in zip(costs, caps, strict=True)]
        return largest_total(
            costs,
            episodes=episodes,
            largest_reward=largest_reward,
            horizon=horizon,
            chance=chance,
        )

    def objective(regularisers: Sequence[float]) -> float:
        pair = total(regularisers)
        return pair[0] + chance(*pair)

    if not optimise:
        return total(defaults)
    if not all(each.learned.any_regulariser for each in functions):
        raise ArgumentError(
            "optimise", "gains that depend on λ: kernels, or functions of n and λ", "one λ's gain"
        )
    # One function after the other: the best λ of one hardly depends on the other's.
    best = list(defaults)
    for role in (1, 0):
        tried = [
            [c * default if each == role else best[each] for each, default in enumerate(defaults)]
            for c in COARSE_MULTIPLES
        ]
        best = min([best, *tried], key=objective)
    return total(best)


def martingale_part(
    total: float,
    unstopped: float,
    log_odds: float,
    largest_reward: float,
    horizon: int,
    episodes: int,
) -> float:
    """Bound by how much the expected costs exceed the costs that occurred (Lemma 15).

    The least of three bounds: Azuma's inequality by the step, Hoeffding's by the episode, and one
    that grows with the total.

    Args:
        total: The bound of the total cost.
        unstopped: x̄, the largest cost of an episode that was not given up.
        log_odds: The logarithm of the inverse probability of failure.
        largest_reward: A bound B of |R̄|.
        horizon: The number of periods H.
        episodes: The number of episodes τ.

    Returns:
        The bound.

    >>> martingale_part(10.0, 1.0, 3.0, 1.0, 1, 100)
    0.0
    """
    H, B = horizon, largest_reward
    if H == 1:  # the one point of an episode is known before it
        return 0.0
    steps = B * math.sqrt(2 * log_odds * episodes * H * (H - 1) * (2 * H - 1) / 6)
    return min(steps, episode_martingale(total, unstopped, log_odds, B, H, episodes))


def episode_martingale(
    total: float,
    unstopped: float,
    log_odds: float,
    largest_reward: float,
    horizon: int,
    episodes: int,
) -> float:
    """Bound the same by the episode alone: Hoeffding's bound, and the one that grows (Lemma 15).

    Args:
        total: The bound of the total cost.
        unstopped: x̄, the largest cost of an episode that was not given up.
        log_odds: The logarithm of the inverse probability of failure.
        largest_reward: A bound B of |R̄|.
        horizon: The number of periods H.
        episodes: The number of episodes τ.

    Returns:
        The lesser of the two.
    """
    most = stopped_cost(unstopped, largest_reward, horizon)
    hoeffding = most * math.sqrt(0.5 * log_odds * episodes)
    u = math.sqrt(2 * most * log_odds / max(total, most))
    growing = (u * total + most * log_odds) / -math.expm1(-u) - total
    return min(hoeffding, growing)


def gain_cost(
    function: BoundedFunction,
    squares: float,
    regulariser: float,
    log_odds: float,
    horizon: int,
    episodes: int,
) -> GainCost:
    """Compute the cost 2β√(λ Σ w²)·√(eᵍ − 1) of an episode, with the sum of all gains.

    Args:
        function: The reward or the transition.
        squares: Σ w² over the periods.
        regulariser: The regulariser λ.
        log_odds: ln(3/δ), or ln(3T).
        horizon: The number of periods H.
        episodes: The number of episodes τ.

    Returns:
        The cost.
    """
    learned = function.learned
    gain, outputs = learned.gain(episodes * horizon, regulariser), learned.outputs
    if learned.shared:  # one deviation for all outputs, and one gain
        gain, outputs = gain / outputs, 1
    beta = function.beta(episodes, horizon, regulariser, log_odds)
    return GainCost(
        2 * beta * math.sqrt(regulariser * squares),
        2 * gain,
        largest_growth=outputs * horizon * learned.variance_bound / regulariser,
    )


def _noise(least: float | None, largest: float) -> float:
    return positive_number("transition_noise", largest if least is None else least)
