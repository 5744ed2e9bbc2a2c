"""Assumptions of the guarantee that no constraint is broken (docs/theory.md, Theorem 5)."""

from collections.abc import Iterator

import numpy as np

from kernelmdp.confidence.run_assumptions import OF_ALL_RUNS, OF_BETA, OF_NOISE, OF_NORMS
from kernelmdp.confidence.theorem import Assumption, Evidence, Theorem

#: The name of the number of plans that exceeded their risk, among the running sums of an agent.
EXCEEDED_RISK = "exceeded_risk"
#: The name of the number of steps in which the fallback left its trusted set.
FALLBACK_LEFT = "fallback_left"
#: Points at which the two ends of a periodic coordinate are compared.
SEAM_POINTS = 64
#: Squared distances of the ends below this share of the variance are round-off.
SEAM_ROUNDING = 1e-9


def _nothing_to_keep(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    if not e.problem.constraints:
        yield "there are no constraints"


def _plans_without_bound(e: Evidence) -> Iterator[str]:
    if not e.planner.bounds_risk:
        yield f"{type(e.planner).__name__} has no bound of the probability of a violation"
    elif not getattr(e.planner, "certified", False):
        yield "how fast the next state changes with the state is not known (norm and kernel)"


def _jump_at_a_seam(e: Evidence) -> Iterator[str]:
    """A cell across the seam is bounded from its node at one end, so both ends must agree."""
    assert e.problem is not None
    low, high = e.problem.points.bounds
    for axis in e.problem.states.periodic:
        first, last = (np.array(e.problem.points.spread_points(SEAM_POINTS)) for _ in range(2))
        first[:, axis], last[:, axis] = low[axis], high[axis]
        for kernel in e.problem.transition_kernel.parts():
            # |f(z) − f(z')|² ≤ B² (k(z, z) − 2 k(z, z') + k(z', z')).
            before, between, after = (
                np.diag(np.asarray(kernel(*pair)))
                for pair in ((first, first), (first, last), (last, last))
            )
            if (before - 2 * between + after > SEAM_ROUNDING * (before + after)).any():
                yield f"the mean next state may jump where the periodic coordinate {axis} ends"
                break


def _constraints_between_nodes(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    if e.problem.states.finite:
        return
    for constraint in e.problem.constraints:
        if constraint.slope is None and not constraint.is_limit:
            yield f"{constraint.name} has no slope, and is checked at corners of cells only"


def _trusted_between_nodes(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    fallback = e.problem.fallback
    if e.problem.states.finite or fallback is None or fallback.trusted is None:
        return
    if not fallback.trusted.known_over_cells:
        yield "the trusted set is a function, and is checked at corners of cells only"


def _risk_exceeded(e: Evidence) -> Iterator[str]:
    count = int(e.totals.get(EXCEEDED_RISK, 0))
    if count:
        yield f"{count} plans had no policy within the risk, or were not planned"


def _fallback_left(e: Evidence) -> Iterator[str]:
    count = int(e.totals.get(FALLBACK_LEFT, 0))
    if count:
        yield f"the fallback left its trusted set in {count} steps"


def _another_noise(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    assert e.system is not None
    ours, theirs = e.problem.transition_noise, e.system.transition_noise
    if ours is theirs or theirs.estimated:
        return
    size = e.problem.states.dimension
    same_sizes = np.array_equal(ours.axis_sizes(size), theirs.axis_sizes(size))
    if type(ours) is not type(theirs) or not same_sizes:
        yield "plans know another noise of the transition than the system has"


def _risk_of_each_episode(e: Evidence) -> Iterator[str]:
    if e.risk_for == "episode":
        yield "the risk is for each episode, and not for all of them"


#: Assumptions about constraints, plans and the fallback.
OF_SAFETY = (
    Assumption(
        "there are constraints",
        "run",
        _nothing_to_keep,
        ("agent.constraints", "problem.constraints"),
    ),
    Assumption(
        "plans bound the probability of a violation in every plausible MDP",
        "run",
        _plans_without_bound,
        ("agent.planner", "planner.certified"),
    ),
    Assumption(
        "plans know the law of the transition's noise",
        "run",
        _another_noise,
        ("agent.noise", "problem.transition_noise"),
    ),
    Assumption(
        "means do not jump where periodic coordinates end",
        "run",
        _jump_at_a_seam,
        ("agent.transition_kernel", "problem.transition_kernel"),
    ),
    Assumption(
        "constraints are bounded over whole cells",
        "run",
        _constraints_between_nodes,
        ("problem.constraints",),
    ),
    Assumption(
        "the trusted set is known over whole cells",
        "run",
        _trusted_between_nodes,
        ("agent.fallback", "problem.fallback"),
    ),
    Assumption("the risk is for all episodes", "run", _risk_of_each_episode, ("agent.risk_for",)),
    Assumption("all plans are within the risk", "run", _risk_exceeded, ("agent.risk",)),
    Assumption(
        "the fallback does not leave its trusted set",
        "run",
        _fallback_left,
        ("agent.fallback", "problem.fallback"),
    ),
)
#: With probability 1 − δ − risk, no constraint is broken in any episode.
THEOREM_5 = Theorem(
    "Theorem 5 (no violation)",
    (*OF_ALL_RUNS, *OF_BETA, *OF_NORMS, *OF_NOISE, *OF_SAFETY),
    has_sets=False,
)
