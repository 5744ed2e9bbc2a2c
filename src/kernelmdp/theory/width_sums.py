"""How wide confidence sets were along a run, added up; and what Theorems 1 to 4 share."""

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
from kernelmdp.theory.gains import GainArguments, LearnedFunction, both

VERSIONS = ("paper", "repaired", "improved")
PLANNERS = ("exact", "approximate")
#: Multiples of the usual λ among which ``optimise`` looks.
MULTIPLES = np.logspace(-4, 2, 37)
LINEAR = "the bound grows at least linearly in T: this kernel is too rough for it (math B16)"


@dataclasses.dataclass(frozen=True)
class BoundedFunction:
    """One learned function with its constants: B, σ, and λ (None: as the paper)."""

    learned: LearnedFunction
    norm: float
    noise: float
    regulariser: float | None

    def beta(self, episodes: int, horizon: int, regulariser: float, log_odds: float) -> float:
        """B + (σ/√λ)√(2(ln odds + γ_{(τ−1)H})), the β of the last episode (``rkhs_beta``)."""
        gain = self.learned.gain((episodes - 1) * horizon, regulariser)
        return self.norm + self.noise / math.sqrt(regulariser) * math.sqrt(2 * (log_odds + gain))


def widths(
    own: BoundedFunction,
    version: str,
    horizon: int,
    episodes: int,
    odds: float,
    optimise: bool,
    squares: bool = False,
) -> float:
    """ln of β_τ·S: how wide the sets were where the agent went, added up."""
    known, steps = own.learned, episodes * horizon
    block = known.outputs * horizon
    if version != "improved":
        gain, top = known.gain(steps, block), 1.0 if version == "paper" else known.variance_bound
        total = deviation_sums.printed(steps=steps, block=block, gain=gain, variance_bound=top)
        return log(own.beta(episodes, horizon, block, odds)) + total
    if optimise and not known.any_regulariser:
        raise ArgumentError(
            "optimise", "gains that depend on λ: kernels, or functions of n and λ", "one λ's gain"
        )
    usual = float(block) if own.regulariser is None else own.regulariser
    return min(
        _improved_widths(own, horizon, episodes, odds, squares, float(c) * usual)
        for c in (MULTIPLES if optimise else (1.0,))
    )


def _improved_widths(
    own: BoundedFunction,
    horizon: int,
    episodes: int,
    odds: float,
    squares: bool,
    regulariser: float,
) -> float:
    known, steps = own.learned, episodes * horizon
    gain, outputs = known.gain(steps, regulariser), known.outputs
    if known.shared:  # the set "lmax": one deviation for all outputs
        gain, outputs = gain / outputs, 1
    total = deviation_sums.improved(
        horizon=horizon,
        steps=steps,
        gain=gain,
        variance_bound=known.variance_bound,
        regulariser=regulariser,
        outputs=outputs,
        squares=squares,
    )
    return log(own.beta(episodes, horizon, regulariser, odds)) + total


def functions(
    words: GainArguments,
    version: str,
    norm_reward: float,
    norm_transition: float,
    reward_noise: float,
    transition_noise: float,
    regulariser_reward: float | None,
    regulariser_transition: float | None,
) -> tuple[BoundedFunction, BoundedFunction]:
    """Reward and transition with their constants, checked for the version."""
    choice("version", version, VERSIONS)
    reward, transition = both(words)
    found = []
    for role, own, norm, noise, regulariser in (
        ("reward", reward, norm_reward, reward_noise, regulariser_reward),
        ("transition", transition, norm_transition, transition_noise, regulariser_transition),
    ):
        require_normalised(role, own, version)
        if regulariser is not None and version != "improved":
            raise ArgumentError(
                f"regulariser_{role}", "None but for version='improved': λ is H and mH", regulariser
            )
        given = None if regulariser is None else positive_number("regulariser", regulariser)
        found.append(
            BoundedFunction(
                own,
                at_least_zero(f"norm_{role}", norm),
                at_least_zero(f"{role}_noise", noise),
                given,
            )
        )
    return found[0], found[1]


def require_normalised(role: str, own: LearnedFunction, version: str) -> None:
    """The paper's versions need κ ≤ 1."""
    if version == "paper" and own.variance_bound > 1 + 1e-12:
        raise ArgumentError(
            f"variance_bound_{role}",
            "at most 1 for version='paper' (kernels.normalise the kernel, or version='improved')",
            f"{own.variance_bound:g}",
        )


def reward_bound_of(reward: BoundedFunction, given: float | None) -> float:
    """sup|R̄| ≤ B_R√κ; the paper's B_R·κ is a slip (math B2)."""
    if given is not None:
        return at_least_zero("reward_bound", given)
    return reward.norm * math.sqrt(reward.learned.variance_bound)


def probability(argument: str, value: float) -> float:
    """A number strictly between 0 and 1; the paper allows the ends, where nothing holds."""
    number = float(value)
    if not 0 < number < 1:
        raise ArgumentError(argument, "a probability between 0 and 1, both excluded", value)
    return number


def at_least_zero(argument: str, value: Any) -> float:
    """A finite number of at least 0."""
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ArgumentError(argument, "a finite number of at least 0", value)
    return number


def finished(
    theorem: str,
    version: str,
    horizon: int,
    episodes: int,
    parts: dict[str, float],
    top: float,
    probability: float | str,
    learned: tuple[LearnedFunction, LearnedFunction],
    at: Callable[[int], Bound],
) -> Bound:
    """The bound with its growth and what follows from that."""
    rate = "improved" if version == "improved" else "paper"
    exponent = regret_exponent([own.powers[rate] for own in learned])
    return Bound(
        theorem=theorem,
        version=version,
        horizon=horizon,
        episodes=episodes,
        log_parts=parts,
        trivial=2 * top * episodes * horizon,
        probability=probability,
        exponent=exponent,
        warnings=(LINEAR,) if exponent is not None and exponent >= 1 else (),
        _at=at,
    )
