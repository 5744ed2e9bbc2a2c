"""The assumptions of Theorem 16, in which Gaussian noise takes the place of L."""

from collections.abc import Iterator

import numpy as np

from kernelmdp.confidence.plan_assumptions import (
    OF_ALL_PLANS,
    OF_OPTIMISTIC_PLANS,
    lipschitz_is_bound,
)
from kernelmdp.confidence.run_assumptions import (
    OF_ALL_RUNS,
    OF_BETA,
    OF_GAUSSIAN_NOISE,
    OF_NOISE,
    OF_NORMS,
)
from kernelmdp.confidence.theorem import Assumption, Evidence, Theorem

#: Shapes of sets that are balls, for which the bonus is proved.
BALLS = ("trace", "lmax")


def _noise_does_not_smooth(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    noise, m = e.problem.transition_noise, e.problem.mean_dimension
    # Other laws are named by the assumption that the noise is Gaussian.
    if noise.gaussian and e.problem.horizon > 1 and noise.standard_deviations(m).min() <= 0:
        yield "a coordinate of the state has no noise"


def _sets_of_another_theorem(e: Evidence) -> Iterator[str]:
    if getattr(e.confidence, "setting", None) != "rkhs":
        yield "the confidence sets are not those of bounded norms"


def _bonus_not_planned(e: Evidence) -> Iterator[str]:
    optimism, envelope = (getattr(e.planner, name, None) for name in ("optimism", "envelope"))
    if optimism != "bonus" or envelope is not False:
        yield "plans do not pay the theorem's bonus (leave the planner at 'auto')"


def _sets_not_balls(e: Evidence) -> Iterator[str]:
    shape = getattr(e.confidence, "shape", None)
    if shape not in BALLS:
        yield f"the bonus is not proved for sets of the shape {shape!r}"


def _bonus_planned(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    if e.problem.horizon > 1 and getattr(e.planner, "optimism", None) == "bonus":
        yield "plans pay a bonus of L times the radius, and no bound without L is stated for it"


def _kept_lipschitz_is_no_bound(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    constant = e.problem.lipschitz
    uses = e.planner.keeps_lipschitz and np.isfinite(constant) and e.problem.horizon > 1
    if uses and not lipschitz_is_bound(e.problem):
        yield (
            f"plans keep to L = {constant:.3g}, an estimate ({e.problem.lipschitz_rule}), and may "
            "be short of optimism (set the planner's envelope to False)"
        )


def _sets_are_boxes(e: Evidence) -> Iterator[str]:
    if getattr(e.confidence, "shape", None) == "box":
        yield "no bound without L is stated for boxes"


def _values_not_clipped(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    if e.problem.horizon > 1 and not np.isfinite(e.problem.reward_range).all():
        yield "values with a bonus are not clipped: rewards have no known range"


def _plans_kept(e: Evidence) -> Iterator[str]:
    if e.replan_gain is not None:
        yield "plans are kept for several episodes, which Theorem 10 bounds with an L only"


#: What both theorems assume.
_OF_BOTH = (
    *OF_ALL_RUNS,
    *OF_BETA,
    *OF_NORMS,
    *OF_NOISE,
    *OF_GAUSSIAN_NOISE,
    Assumption("sets are those of bounded norms", "settings", _sets_of_another_theorem),
    Assumption("the noise smooths values", "sets", _noise_does_not_smooth),
    *OF_ALL_PLANS,
    *OF_OPTIMISTIC_PLANS,
    Assumption(
        "every episode has a plan of its own", "regret", _plans_kept, ("agent.replan_gain",)
    ),
    Assumption("sets are no boxes", "regret", _sets_are_boxes, ("confidence.shape",)),
)
#: GP-UCRL for means of bounded norm and Gaussian noise, without L.
THEOREM_16 = Theorem(
    "Theorem 16 (bounded norms, Gaussian noise)",
    (
        *_OF_BOTH,
        Assumption(
            "plans search the plausible next states",
            "regret",
            _bonus_planned,
            ("planner.optimism", "planner.grid_planner"),
        ),
        Assumption(
            "if plans keep to an L, it is a bound",
            "regret",
            _kept_lipschitz_is_no_bound,
            ("problem.lipschitz", "problem.lipschitz_rule", "planner.envelope"),
        ),
    ),
    has_sets=True,
)
#: SOMBRL with the bonus that the noise asks for.
THEOREM_16_BONUS = Theorem(
    "Theorem 16 (bonus, Gaussian noise)",
    (
        *_OF_BOTH,
        Assumption(
            "plans pay the bonus of the theorem",
            "regret",
            _bonus_not_planned,
            ("planner.optimism", "planner.envelope", "agent.bonus"),
        ),
        Assumption("sets are balls", "regret", _sets_not_balls, ("confidence.shape",)),
        Assumption("planned values are clipped", "regret", _values_not_clipped),
    ),
    has_sets=True,
)
