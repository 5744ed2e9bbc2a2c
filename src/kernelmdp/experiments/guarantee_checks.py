"""Checks of the guarantees that a theorem gives for a run: coverage and bounds of its regret."""

import dataclasses
import math
from typing import Any

import numpy as np

from kernelmdp.confidence.assumptions import THEOREM_1, THEOREM_3
from kernelmdp.confidence.plan_assumptions import NOISE_OF_PLANS, lipschitz_is_bound
from kernelmdp.experiments.replay import ReplayedRun, StoredRun, replanned_note
from kernelmdp.experiments.run_bounds import run_bound
from kernelmdp.experiments.theorem_inputs import lipschitz_of, reward_bound
from kernelmdp.theory.certificates import RegretCertificate, gap_certificate, sum_certificate
from kernelmdp.theory.check import Check, at_most, not_applicable
from kernelmdp.theory.value_lemmas import coverage


def guarantee_checks(
    stored: StoredRun, replayed: ReplayedRun
) -> tuple[list[Check], tuple[RegretCertificate, ...]]:
    """Check lemma (j), both certificates and the theorem's bound.

    Args:
        stored: The run as its folder has it.
        replayed: The same run, replayed.

    Returns:
        The checks, and the certificates themselves.
    """
    certificates, certificate_checks = _certificates(stored, replayed)
    checks = [
        *_coverage(stored, replayed),
        *certificate_checks,
        _theorem_bound(stored, replayed),
    ]
    return checks, certificates


def _theorem_bound(stored: StoredRun, replayed: ReplayedRun) -> Check:
    """Compare cumulative regret and bound at the number of episodes where they are closest."""
    name, bound = "the theorem's bound is above the regret", run_bound(replayed.agent)
    reason = _not_covered(stored, replayed)
    regret = np.cumsum(stored.columns["regret"])
    if not bound.covered or reason is not None:
        return not_applicable(name, reason or bound.text)
    if not np.isfinite(regret).all():
        return not_applicable(name, "the regret is not known")
    curve = bound.curve(stored.episodes)
    numbers, values = (
        np.array([getattr(point, field) for point in curve]) for field in ("episodes", "value")
    )
    regret_then = regret[numbers - 1]
    # The bound is for plans that are optimal. Those of a grid are so up to its error.
    errors = ("optimal_value_error", "planning_error")
    known = [np.nan_to_num(stored.columns[name]) for name in errors if name in stored.columns]
    error = np.cumsum(np.sum(known, axis=0))[numbers - 1]
    closest = int(np.argmin(values - regret_then))
    note = f"{bound.text}; after {numbers[closest]} episodes, the closest"
    sides = float(regret_then[closest]), float(values[closest])
    return at_most(name, *sides, tolerance=float(error[closest]), note=note)


def _coverage(stored: StoredRun, replayed: ReplayedRun) -> list[Check]:
    """Check (j) with the run as one trial. Sets may miss the truth with their share of δ."""
    checks = []
    for column, role in enumerate(("reward", "transition")):
        ratios = replayed.ratios[:, column]
        reason = _not_covered(stored, replayed)
        if reason is None and np.isnan(ratios).all():
            reason = "the truth is not known"
        if reason is None:
            miss = replayed.agent.confidence.delta / _delta_parts(replayed)
            checks.append(
                coverage(
                    ratios[None, :], miss_probability=miss, set_name=role, level=min(0.5, 2 * miss)
                )
            )
        else:
            largest = "" if np.isnan(ratios).all() else f"; error/width up to {max(ratios):.3g}"
            checks.append(not_applicable(f"(j) coverage: {role}", reason + largest))
    return checks


def _certificates(
    stored: StoredRun, replayed: ReplayedRun
) -> tuple[tuple[RegretCertificate, ...], list[Check]]:
    names = ("certificate (i) is above the regret", "certificate (ii) is above the regret")
    reason = _not_covered(stored, replayed)
    if replayed.sets is None:
        return (), [not_applicable(name, reason or "") for name in names]
    problem, delta = replayed.agent.problem, replayed.agent.confidence.delta
    share = _delta_parts(replayed)
    # The slope of the plans: plans in a table do not keep to the L of V*.
    lipschitz = lipschitz_of(replayed.agent)
    assumes = (f"L = {lipschitz:.4g}, {problem.lipschitz_rule}",)
    plan_reason = reason or _plans_keep_no_lipschitz(replayed.agent)
    gap_reason = reason or plans_not_optimistic(replayed.agent)
    max_reward = reward_bound(replayed.agent)
    certificates: list[RegretCertificate] = []
    checks: list[Check] = []
    regret = stored.columns["regret"]
    error = np.nan_to_num(stored.columns["optimal_value_error"])
    if problem.horizon > 1 and not (math.isfinite(lipschitz) and math.isfinite(max_reward)):
        unknown = "L" if math.isfinite(max_reward) else "a bound of the reward"
        checks.append(not_applicable(names[0], f"{unknown} is not known"))
    else:
        sums = [
            _stored_or_replayed(stored, replayed, f"width_{role}")
            for role in ("reward", "transition")
        ]
        by_sums = sum_certificate(
            *sums,
            lipschitz=lipschitz,
            reward_bound=max_reward,
            horizon=problem.horizon,
            delta=delta,
            share=share,
            assumes=(*assumes, "the planner's values are at most L-Lipschitz"),
        )
        certificates.append(by_sums)
        sides = regret.sum(), by_sums.total
        checks.append(_above(names[0], *sides, by_sums, plan_reason, float(error.sum())))
    planned = np.isfinite(replayed.gaps)
    if not planned.any():
        checks.append(not_applicable(names[1], "no optimistic plan on a grid"))
    else:
        on_grid = ("values are those of the planner's grid",)
        gaps = replayed.gaps[planned]
        by_gaps = gap_certificate(gaps, delta=delta, share=share, assumes=on_grid)
        certificates.append(by_gaps)
        worst = int(np.argmax((regret - replayed.gaps - error)[planned]))
        sides = regret[planned][worst], gaps[worst]
        check = _above(names[1], *sides, by_gaps, gap_reason, float(error[planned][worst]))
        number = int(np.flatnonzero(planned)[worst]) + 1
        note = f"episode {number}, the closest{replanned_note(replayed)}; "
        checks.append(dataclasses.replace(check, note=note + check.note))
    return tuple(certificates), checks


def _above(
    name: str,
    regret: Any,
    bound: Any,
    certificate: RegretCertificate,
    reason: str | None,
    error: float,
) -> Check:
    """Check regret ≤ bound. A reason says why the check does not apply."""
    if not math.isfinite(regret):
        return Check(name, math.nan, float(bound), None, "the regret is not known")
    if math.isnan(bound):
        return Check(name, float(regret), math.nan, None, "an episode had no confidence sets")
    if reason is not None:
        return Check(name, float(regret), float(bound), None, reason)
    note = f"with probability {certificate.probability:.3g}"
    return at_most(name, regret, bound, tolerance=error, note=note)


def _not_covered(stored: StoredRun, replayed: ReplayedRun) -> str | None:
    """Return why no theorem covers the sets, or None. The stored coverage decides."""
    if replayed.sets is None:
        return "the agent has no confidence sets"
    return None if stored.coverage.covered else str(stored.coverage)


def _delta_parts(replayed: ReplayedRun) -> float:
    """Return into how many parts δ is split: transition, martingale, and a learned reward."""
    agent = replayed.agent
    if not agent.confidence.split:
        return 1.0
    return 2.0 if agent.problem.reward is not None else 3.0


def _plans_keep_no_lipschitz(agent: Any) -> str | None:
    """Return why certificate (i) does not hold: it is Theorem 1 or 3 with other sums, so L counts.

    Gaussian noise can take the place of L in the theorem, and not in the certificate.
    """
    if agent.theorem not in (THEOREM_1, THEOREM_3):
        return "no bound by the widths of the sets is stated for these plans"
    coverage = agent.theorem.coverage(agent.evidence, "regret")
    return None if coverage.covered else str(coverage)


def plans_not_optimistic(agent: Any) -> str | None:
    """Find out why a planned value may be less than the optimum although the sets hold.

    Args:
        agent: The agent, which has confidence sets.

    Returns:
        The reason; None if planned values bound the optimum up to the error of the grid.
    """
    if not agent.confidence.plans_in_sets:
        return "plans are optimistic in one member of the family"
    if agent.config.at_least is not None:
        return "plans that may earn less than at_least asks for are not played"
    problem, planner = agent.problem, agent.planner
    noise = NOISE_OF_PLANS.check(agent.evidence)
    if not noise.holds:
        return noise.reasons[0]
    if not planner.rounds_up(problem):
        return "plans may be short of optimism"
    if problem.horizon == 1 or problem.transition_noise.categorical:
        return None
    bonus = getattr(planner, "optimism", None) == "bonus"
    uses = (planner.keeps_lipschitz or bonus) and math.isfinite(problem.lipschitz)
    if uses and not lipschitz_is_bound(problem):
        return f"plans use L = {problem.lipschitz:.3g}, an estimate ({problem.lipschitz_rule})"
    if bonus and problem.states.finite:
        return "L bounds the slopes of optimal values, and not those of worst values"
    return None


def _stored_or_replayed(stored: StoredRun, replayed: ReplayedRun, column: str) -> np.ndarray:
    """Return a stored column. Where an older run did not store it, the replay fills it."""
    return np.where(
        np.isfinite(stored.columns[column]), stored.columns[column], replayed.columns[column]
    )
