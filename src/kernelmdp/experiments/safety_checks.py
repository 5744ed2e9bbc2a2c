"""Checks of the guarantee that no constraint is broken (Theorem 5), on a stored run."""

import numpy as np
import scipy

from kernelmdp.experiments.replay import ReplayedRun, StoredRun, replanned_note
from kernelmdp.experiments.safety_columns import SIMULATED_EPISODES, constraints_of
from kernelmdp.planners.risk_budget import RiskBudget
from kernelmdp.theory.check import Check, at_most, not_applicable

#: Probability with which a check of simulated risks may fail although all bounds hold.
FALSE_ALARM = 1e-3


def safety_checks(stored: StoredRun, replayed: ReplayedRun) -> list[Check]:
    """Check violations, the planned risks and the true risks of the played policies.

    Args:
        stored: The run as its folder has it.
        replayed: The same run, replayed.

    Returns:
        The checks. Empty for a run without constraints.
    """
    agent = replayed.agent
    violation = constraints_of(agent)
    if violation is None:
        return []
    counts = [float(violation.count(e.states, e.actions)) for e in stored.history]
    recorded = stored.columns["violations"]
    differences = int(np.sum(recorded != np.array(counts)))
    checks = [at_most("violations, counted again", differences, 0, note="episodes that differ")]
    names = (
        "no constraint is broken in any episode",
        "the planned risks add up to at most the risk",
        "the true risk of each plan is below its planned risk",
    )
    safety = agent.safety
    if not safety.covered:
        return checks + [not_applicable(name, str(safety)) for name in names]
    risk, delta = agent.config.risk, agent.confidence.delta
    note = f"with probability {1 - delta - risk:.3g} ({safety.theorem})"
    checks.append(at_most(names[0], float(np.sum(counts)), 0, note=note))
    planned = stored.columns["planned_risk"]
    budget = RiskBudget(risk, agent.config.risk_for)
    checks.append(at_most(names[1], float(np.sum(planned)), budget.risk, tolerance=1e-9))
    return [*checks, _true_risks(names[2], planned, replayed)]


def _true_risks(name: str, planned: np.ndarray, replayed: ReplayedRun) -> Check:
    """Compare planned risks with simulated ones, at the episode where they are closest."""
    known = np.isfinite(replayed.true_risks)
    if not known.any():
        return not_applicable(name, "the truth is not known")
    total = SIMULATED_EPISODES
    counts = np.round(replayed.true_risks[known] * total)
    # The lower end of exact binomial intervals, which hold for all episodes at once.
    least = np.nan_to_num(
        scipy.stats.beta.ppf(FALSE_ALARM / len(counts), counts, total - counts + 1)
    )
    closest = int(np.argmax(least - planned[known]))
    number = int(np.flatnonzero(known)[closest]) + 1
    note = f"episode {number}, the closest, by {total} simulated episodes{replanned_note(replayed)}"
    sides = float(least[closest]), float(planned[known][closest])
    return at_most(name, *sides, note=note)
