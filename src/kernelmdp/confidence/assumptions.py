"""Assumptions of the theorems about confidence sets that depend on the problem and its data.

Each assumption is a function of ``CoverageInputs``. It returns None if the assumption holds, or a
sentence that says why it fails. ``confidence_settings`` and ``construction`` check the settings and
the posteriors. This file checks the data, and the agent's problem against that of the system.
"""

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from kernelmdp.confidence.rule import ConfidenceRule
from kernelmdp.domains import Domain
from kernelmdp.mdp import Episode, Problem


@dataclasses.dataclass(frozen=True)
class CoverageInputs:
    """What assumptions are checked on.

    Attributes:
        problem: The problem as the agent learns it, with the user's settings.
        system: The problem as the system describes itself.
        confidence: The confidence rule.
        clipped: The episode and the step, both counted from 1, of the first outcome that may have
            been clipped to the state space; None if there is none.
    """

    problem: Problem
    system: Problem
    confidence: ConfidenceRule
    clipped: tuple[int, int] | None = None


def truth_is_drawn_from_the_prior(run: CoverageInputs) -> str | None:
    """Theorem 3 assumes that the means are draws of the priors (paper, Section 4).

    Args:
        run: The run.

    Returns:
        Why this fails, or None.
    """
    if run.confidence.setting != "gp" or run.problem.drawn_from_prior:
        return None
    return "the truth is not known to be drawn from the prior"


def norms_are_not_below_those_of_the_system(run: CoverageInputs) -> str | None:
    """Theorem 1 assumes bounds of the norms. The system may know its norms.

    Args:
        run: The run.

    Returns:
        Why this fails, or None.
    """
    if run.confidence.setting != "rkhs":
        return None
    kernels_changed = (
        run.problem.reward_kernel is not run.system.reward_kernel
        or run.problem.transition_kernel is not run.system.transition_kernel
    )
    if kernels_changed:
        return None  # norms of other kernels cannot be compared
    names = ("norm_reward", "norm_transition")
    for name, norm in zip(names, run.confidence.norms, strict=True):
        known = getattr(run.system, name)
        needed = name == "norm_transition" or run.problem.reward is None
        if needed and known is not None and norm < known * (1 - 1e-12):
            return f"{name} = {norm:g} is below that of the system, {known:g}"
    return None


def noise_is_not_below_that_of_the_system(run: CoverageInputs) -> str | None:
    """All theorems assume that the noise is not larger than the agent believes.

    Args:
        run: The run.

    Returns:
        Why this fails, or None.
    """
    m = run.problem.mean_dimension
    for role, size in (("reward", 1), ("transition", m)):
        if role == "reward" and run.problem.reward is not None:
            continue
        believed = getattr(run.problem, f"{role}_noise")
        actual = getattr(run.system, f"{role}_noise")
        if actual.estimated or believed is actual:
            continue
        if any(math.isfinite(noise.degrees) for noise in (believed, actual)):
            return f"the noise of the {role} has heavy tails"
        if (
            believed.sub_gaussian_proxies(size) < actual.sub_gaussian_proxies(size) * (1 - 1e-12)
        ).any():
            return f"the noise of the {role} is below that of the system"
    return None


def outcomes_are_not_clipped(run: CoverageInputs) -> str | None:
    """All theorems regress on outcomes with zero-mean noise. Clipped outcomes are biased (B13).

    Args:
        run: The run.

    Returns:
        Why this fails, or None.
    """
    if run.clipped is None:
        return None
    episode, step = run.clipped
    return f"the outcome of step {step} of episode {episode} may have been clipped"


#: The assumptions, in the order in which they are reported.
ASSUMPTIONS: tuple[Callable[[CoverageInputs], str | None], ...] = (
    truth_is_drawn_from_the_prior,
    norms_are_not_below_those_of_the_system,
    noise_is_not_below_that_of_the_system,
    outcomes_are_not_clipped,
)


def failed_assumptions(run: CoverageInputs) -> tuple[str, ...]:
    """List the assumptions that fail.

    Args:
        run: The run.

    Returns:
        One sentence for each.
    """
    reasons = (assumption(run) for assumption in ASSUMPTIONS)
    return tuple(reason for reason in reasons if reason is not None)


def first_clipped_step(episode: Episode, states: Domain) -> int | None:
    """Find the first outcome that may have been clipped: one that lies on the border of a box.

    Outcomes before projection lie on a border with probability 0 if there is noise.

    Args:
        episode: The episode.
        states: The state space.

    Returns:
        The step, counted from 1, or None.
    """
    if states.finite:
        return None
    low, high = (np.asarray(bound, float) for bound in states.bounds)
    bounded = np.isfinite(low) & np.isfinite(high)
    bounded[list(states.periodic)] = False
    outcomes = np.asarray(episode.outcomes, float)
    on_border = ((outcomes == low) | (outcomes == high)) & bounded
    rows = np.flatnonzero(on_border.any(axis=1))
    return int(rows[0]) + 1 if len(rows) else None
