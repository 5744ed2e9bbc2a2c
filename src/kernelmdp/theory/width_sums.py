"""Sums of the widths of confidence sets along a run, and what Theorems 1 to 4 share."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import choice, positive_number
from kernelmdp.theory import deviation_sums
from kernelmdp.theory.bound import Bound, log
from kernelmdp.theory.gain_growth import regret_exponent
from kernelmdp.theory.gains import GainArguments, LearnedFunction, learned_functions

#: Versions of each theorem: as in the paper, the nearest statement with a proof, and the best one.
VERSIONS = ("paper", "repaired", "improved")
#: Planners of each theorem: exact plans, or plans up to the paper's tolerance √(H/l).
PLANNERS = ("exact", "approximate")
#: Multiples of the default λ that ``optimise`` tries, 6 a decade. More are tighter and take longer.
REGULARISER_MULTIPLES = np.logspace(-4, 2, 37)
#: Warning of bounds that never become useful.
LINEAR_GROWTH = "the bound grows at least linearly in T: this kernel is too rough for it (note B16)"


@dataclasses.dataclass(frozen=True)
class BoundedFunction:
    """One learned function with its constants.

    Attributes:
        learned: The function.
        norm: The bound B of its RKHS norm.
        noise: The sub-Gaussian proxy σ of its noise.
        regulariser: The regulariser λ. None means the paper's, H or mH.
        squares: Whether norm and noise add as squares in β, as in ``mixture_beta``.
        mixtures: The number of mixtures among which β takes the best one.
        drift: What a compiled kernel adds to β.
    """

    learned: LearnedFunction
    norm: float
    noise: float
    regulariser: float | None
    squares: bool = False
    mixtures: int = 1
    drift: float = 0.0

    def beta(self, episodes: int, horizon: int, regulariser: float, log_odds: float) -> float:
        """Compute the β of the last episode, with the gain γ_{(τ−1)H}.

        It is B + (σ/√λ)√(2(ln odds + γ)), or √(B² + (σ²/λ) 2(ln odds + γ)).

        Args:
            episodes: The number of episodes τ.
            horizon: The number of periods H.
            regulariser: The regulariser λ.
            log_odds: ln(3/δ) for Theorem 1, ln(3T) for Theorem 2.

        Returns:
            β.
        """
        gain = self.learned.gain((episodes - 1) * horizon, regulariser)
        odds = log_odds + math.log(self.mixtures)
        noise = self.noise / math.sqrt(regulariser) * math.sqrt(2 * (odds + gain))
        return self.drift + (math.hypot(self.norm, noise) if self.squares else self.norm + noise)


def log_width_sum(
    function: BoundedFunction,
    version: str,
    horizon: int,
    episodes: int,
    log_odds: float,
    optimise: bool,
    squares: bool = False,
) -> float:
    """Bound ln of β_τ·S, the sum of the half-widths of the sets at the visited points.

    Args:
        function: The reward or the transition.
        version: One of ``VERSIONS``.
        horizon: The number of periods H.
        episodes: The number of episodes τ.
        log_odds: ln(3/δ) for Theorem 1, ln(3T) for Theorem 2.
        optimise: Whether to search for the best λ.
        squares: Whether to bound √(T·ΣΣσ²) instead of S, as PSRL's proof needs.

    Returns:
        The bound.

    Raises:
        ArgumentError: If λ is to be optimised, but the gain is for one λ only.
    """
    learned, steps = function.learned, episodes * horizon
    block = learned.outputs * horizon
    if version != "improved":
        gain, kappa = (
            learned.gain(steps, block),
            1.0 if version == "paper" else learned.variance_bound,
        )
        total = deviation_sums.paper_rkhs_lemma(
            steps=steps, block=block, gain=gain, variance_bound=kappa
        )
        return log(function.beta(episodes, horizon, block, log_odds)) + total
    if optimise and not learned.any_regulariser:
        raise ArgumentError(
            "optimise", "gains that depend on λ: kernels, or functions of n and λ", "one λ's gain"
        )
    default = float(block) if function.regulariser is None else function.regulariser
    return min(
        _improved_width_sum(function, horizon, episodes, log_odds, squares, float(c) * default)
        for c in (REGULARISER_MULTIPLES if optimise else (1.0,))
    )


def _improved_width_sum(
    function: BoundedFunction,
    horizon: int,
    episodes: int,
    log_odds: float,
    squares: bool,
    regulariser: float,
) -> float:
    learned, steps = function.learned, episodes * horizon
    gain, outputs = learned.gain(steps, regulariser), learned.outputs
    if learned.shared:  # the set "lmax" has one deviation for all outputs
        gain, outputs = gain / outputs, 1
    total = deviation_sums.improved_lemma(
        horizon=horizon,
        steps=steps,
        gain=gain,
        variance_bound=learned.variance_bound,
        regulariser=regulariser,
        outputs=outputs,
        squares=squares,
    )
    return log(function.beta(episodes, horizon, regulariser, log_odds)) + total


def bounded_functions(
    arguments: GainArguments,
    version: str,
    norm_reward: float,
    norm_transition: float,
    reward_noise: float,
    transition_noise: float,
    regulariser_reward: float | None,
    regulariser_transition: float | None,
) -> tuple[BoundedFunction, BoundedFunction]:
    """Make reward and transition with their constants, and check them for the version.

    Args:
        arguments: The arguments that all theorems share.
        version: One of ``VERSIONS``.
        norm_reward: The bound B_R of the reward's norm.
        norm_transition: The bound B_P of the transition's norm.
        reward_noise: The sub-Gaussian proxy of the reward's noise.
        transition_noise: The sub-Gaussian proxy of the transition's noise.
        regulariser_reward: The reward's λ. None means H.
        regulariser_transition: The transition's λ. None means mH.

    Returns:
        The reward and the transition.

    Raises:
        ArgumentError: If an argument is invalid.
    """
    choice("version", version, VERSIONS)
    reward, transition = learned_functions(arguments)
    functions = []
    for role, learned, norm, noise, regulariser in (
        ("reward", reward, norm_reward, reward_noise, regulariser_reward),
        ("transition", transition, norm_transition, transition_noise, regulariser_transition),
    ):
        require_normalised(role, learned, version)
        if regulariser is not None and version != "improved":
            raise ArgumentError(
                f"regulariser_{role}", "None but for version='improved': λ is H and mH", regulariser
            )
        checked = None if regulariser is None else positive_number("regulariser", regulariser)
        functions.append(
            BoundedFunction(
                learned,
                at_least_zero(f"norm_{role}", norm),
                at_least_zero(f"{role}_noise", noise),
                checked,
            )
        )
    return functions[0], functions[1]


def require_normalised(role: str, learned: LearnedFunction, version: str) -> None:
    """Check that κ ≤ 1, which the paper's versions need.

    Args:
        role: "reward" or "transition", for the error message.
        learned: The function.
        version: One of ``VERSIONS``.

    Raises:
        ArgumentError: If κ > 1 for version "paper".
    """
    if version == "paper" and learned.variance_bound > 1 + 1e-12:
        raise ArgumentError(
            f"variance_bound_{role}",
            "at most 1 for version='paper' (kernels.normalise the kernel, or version='improved')",
            f"{learned.variance_bound:g}",
        )


def reward_bound_of(reward: BoundedFunction, reward_bound: float | None) -> float:
    """Bound sup|R̄| by B_R√κ. The paper's B_R·κ is an error (note B2).

    Args:
        reward: The reward.
        reward_bound: A known bound that replaces B_R√κ, or None.

    Returns:
        The bound.
    """
    if reward_bound is not None:
        return at_least_zero("reward_bound", reward_bound)
    return reward.norm * math.sqrt(reward.learned.variance_bound)


def probability(argument: str, value: float) -> float:
    """Check that a number is strictly between 0 and 1.

    The paper also allows 0 and 1, for which its statements are empty.

    Args:
        argument: The name of the argument.
        value: The number.

    Returns:
        The number.

    Raises:
        ArgumentError: If it is not between 0 and 1.
    """
    number = float(value)
    if not 0 < number < 1:
        raise ArgumentError(argument, "a probability between 0 and 1, both excluded", value)
    return number


def at_least_zero(argument: str, value: Any) -> float:
    """Check that a number is finite and at least 0.

    Args:
        argument: The name of the argument.
        value: The number.

    Returns:
        The number.

    Raises:
        ArgumentError: If it is not.
    """
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ArgumentError(argument, "a finite number of at least 0", value)
    return number


def assemble_bound(
    theorem: str,
    version: str,
    horizon: int,
    episodes: int,
    log_parts: dict[str, float],
    reward_bound: float,
    probability: float | str,
    learned: tuple[LearnedFunction, LearnedFunction],
    at: Callable[[int], Bound],
) -> Bound:
    """Make a bound from its parts, with its growth rate and a warning if that is linear.

    Args:
        theorem: The name of the theorem.
        version: One of ``VERSIONS``.
        horizon: The number of periods H.
        episodes: The number of episodes.
        log_parts: The logarithm of each part, by name.
        reward_bound: A bound of sup|R̄|.
        probability: The probability with which the bound holds, or "expectation".
        learned: The reward and the transition.
        at: The same bound as a function of the number of episodes.

    Returns:
        The bound.
    """
    rate = "improved" if version == "improved" else "paper"
    exponent = regret_exponent([function.exponents[rate] for function in learned])
    return Bound(
        theorem=theorem,
        version=version,
        horizon=horizon,
        episodes=episodes,
        log_parts=log_parts,
        trivial=2 * reward_bound * episodes * horizon,
        probability=probability,
        exponent=exponent,
        warnings=(LINEAR_GROWTH,) if exponent is not None and exponent >= 1 else (),
        _at=at,
    )
