"""What the sets of a run promise, where a theorem covers it: coverage, and bounds of its regret."""

import dataclasses
import math
from typing import Any

import numpy as np

from kernelmdp.experiments.replay import ReplayedRun, StoredRun, sampled
from kernelmdp.experiments.run_bounds import run_bound
from kernelmdp.experiments.theorem_inputs import reward_bound
from kernelmdp.theory.certificates import RegretCertificate, gap_certificate, sum_certificate
from kernelmdp.theory.check import Check, at_most, not_applicable
from kernelmdp.theory.value_lemmas import coverage


def coverage_checks(
    stored: StoredRun, found: ReplayedRun
) -> tuple[list[Check], tuple[RegretCertificate, ...]]:
    """Lemma (j), both certificates and the theorem, as checks; and the certificates themselves."""
    certificates, certified = _certificates(stored, found)
    return [*_coverage(stored, found), *certified, _theorem(stored, found)], certificates


def _theorem(stored: StoredRun, found: ReplayedRun) -> Check:
    """Cumulative regret against the theorem's curve, at the number of episodes closest to it."""
    name, bound = "the theorem's bound is above the regret", run_bound(found.agent)
    why = _not_covered(stored, found)
    regret = np.cumsum(stored.columns["regret"])
    if not bound.covered or why is not None:
        return not_applicable(name, why or bound.text)
    if not np.isfinite(regret).all():
        return not_applicable(name, "the regret is not known")
    curve = bound.curve(stored.episodes)
    numbers, values = (
        np.array([getattr(b, what) for b in curve]) for what in ("episodes", "value")
    )
    reached = regret[numbers - 1]
    error = np.cumsum(np.nan_to_num(stored.columns["optimal_value_error"]))[numbers - 1]
    closest = int(np.argmin(values - reached))
    note = f"{bound.text}; after {numbers[closest]} episodes, the closest"
    pair = float(reached[closest]), float(values[closest])
    return at_most(name, *pair, tolerance=float(error[closest]), note=note)


def _coverage(stored: StoredRun, found: ReplayedRun) -> list[Check]:
    """(j): one run is one trial, so a miss is as improbable as the sets promise."""
    checks = []
    for column, what in enumerate(("reward", "transition")):
        ratios = found.ratios[:, column]
        why = _not_covered(stored, found)
        if why is None and np.isnan(ratios).all():
            why = "the truth is not known"
        if why is None:
            miss = found.agent.confidence.delta / _share(found)
            checks.append(coverage(ratios[None, :], miss=miss, what=what, level=min(0.5, 2 * miss)))
        else:
            largest = "" if np.isnan(ratios).all() else f"; error/width up to {max(ratios):.3g}"
            checks.append(not_applicable(f"(j) coverage: {what}", why + largest))
    return checks


def _certificates(
    stored: StoredRun, found: ReplayedRun
) -> tuple[tuple[RegretCertificate, ...], list[Check]]:
    names = ("certificate (i) is above the regret", "certificate (ii) is above the regret")
    why = _not_covered(stored, found)
    if found.sets is None:
        return (), [not_applicable(name, why or "") for name in names]
    problem, delta, share = found.agent.problem, found.agent.confidence.delta, _share(found)
    assumes = (f"L = {problem.lipschitz:.4g}, {problem.lipschitz_rule}",)
    size = reward_bound(found.agent)
    made: list[RegretCertificate] = []
    checks: list[Check] = []
    regret = stored.columns["regret"]
    error = np.nan_to_num(stored.columns["optimal_value_error"])
    if problem.horizon > 1 and not (math.isfinite(problem.lipschitz) and math.isfinite(size)):
        unknown = "L" if math.isfinite(size) else "a bound of the reward"
        checks.append(not_applicable(names[0], f"{unknown} is not known"))
    else:
        sums = [_first(stored, found, f"width_{what}") for what in ("reward", "transition")]
        first = sum_certificate(
            *sums,
            lipschitz=problem.lipschitz,
            reward_bound=size,
            horizon=problem.horizon,
            delta=delta,
            share=share,
            assumes=(*assumes, "the planner's values are at most L-Lipschitz"),
        )
        made.append(first)
        checks.append(_above(names[0], regret.sum(), first.total, first, why, float(error.sum())))
    planned = np.isfinite(found.gaps)
    if not planned.any():
        checks.append(not_applicable(names[1], "no optimistic plan on a grid"))
    else:
        on_grid = ("values are those of the planner's grid",)
        second = gap_certificate(found.gaps[planned], delta=delta, share=share, assumes=on_grid)
        made.append(second)
        worst = int(np.argmax((regret - found.gaps - error)[planned]))
        pair = regret[planned][worst], found.gaps[planned][worst]
        check = _above(names[1], *pair, second, why, float(error[planned][worst]))
        note = f"episode {int(np.flatnonzero(planned)[worst]) + 1}, the closest{sampled(found)}; "
        checks.append(dataclasses.replace(check, note=note + check.note))
    return tuple(made), checks


def _above(
    name: str, regret: Any, bound: Any, made: RegretCertificate, why: str | None, error: float
) -> Check:
    if not math.isfinite(regret):
        return Check(name, math.nan, float(bound), None, "the regret is not known")
    if math.isnan(bound):
        return Check(name, float(regret), math.nan, None, "an episode had no confidence sets")
    if why is not None:
        return Check(name, float(regret), float(bound), None, why)
    note = f"with probability {made.probability:.3g}"
    return at_most(name, regret, bound, tolerance=error, note=note)


def _not_covered(stored: StoredRun, found: ReplayedRun) -> str | None:
    """Why no theorem promises anything of the sets, or None: the run's own label decides."""
    if found.sets is None:
        return "the agent has no confidence sets"
    return None if stored.coverage.covered else str(stored.coverage)


def _share(found: ReplayedRun) -> float:
    """In how many parts δ was split: reward and transition where they are learned, martingale."""
    agent = found.agent
    if not agent.confidence.split:
        return 1.0
    return 2.0 if agent.problem.reward is not None else 3.0


def _first(stored: StoredRun, found: ReplayedRun, column: str) -> np.ndarray:
    """A column as stored, as recomputed where an older run did not store it."""
    return np.where(
        np.isfinite(stored.columns[column]), stored.columns[column], found.columns[column]
    )
