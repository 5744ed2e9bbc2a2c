"""Assumptions about plans, exploration and posterior draws, which bounds of the regret need."""

import math
from collections.abc import Iterator

import numpy as np

from kernelmdp.confidence.theorem import Assumption, Evidence
from kernelmdp.mdp import Problem

#: Beginnings of ``lipschitz_rule`` for which L is a bound, up to the grid on which the truth was
#: solved. For other rules, L is an estimate.
LIPSCHITZ_BOUND_RULES = ("exact", "solved", "noise")
#: Relative differences below this are rounding.
ROUNDING = 1e-9


def _first_episode_random(e: Evidence) -> Iterator[str]:
    if e.first_episode != "prior":
        yield "the first episode is random"


def _episodes_end_early(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    if e.problem.termination is not None:
        yield "episodes may end early"


def _plans_constrained(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    if e.problem.constraints:
        yield "plans keep constraints, and the optimal policy need not"
    if e.at_least is not None:
        yield "plans that may earn less than at_least asks for are not played"


def _plans_not_optimal(e: Evidence) -> Iterator[str]:
    if not e.planner.optimal:
        yield f"no theorem is about plans of {type(e.planner).__name__}"


def _noise_not_planned(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    finite = e.problem.states.finite and e.problem.horizon > 1
    if finite and not e.problem.transition_noise.categorical:
        yield "plans in a finite set do not know additive noise"


def _another_noise(e: Evidence) -> Iterator[str]:
    """Sets hold with too large a noise. Values do not: U_h is an expectation over the noise."""
    assert e.problem is not None
    assert e.system is not None
    ours, theirs = e.problem.transition_noise, e.system.transition_noise
    if ours is theirs or theirs.estimated or e.problem.horizon == 1:
        return
    size = e.problem.mean_dimension
    same_sizes = np.allclose(ours.axis_sizes(size), theirs.axis_sizes(size), rtol=ROUNDING, atol=0)
    if type(ours) is not type(theirs) or not same_sizes:
        yield "plans know another noise of the transition than the system has"


def _plans_short_of_optimism(e: Evidence) -> Iterator[str]:
    if not e.planner.rounds_up(e.problem):
        yield "plans may be short of optimism (planner 'grid' with optimism 'upper' is not)"


def _beta_not_the_theorem_s(e: Evidence) -> Iterator[str]:
    if e.confidence.scale > 1 or e.confidence.margin > 0 or not e.confidence.divide:
        yield "beta is not the theorem's"


def _shape_without_bound(e: Evidence) -> Iterator[str]:
    if getattr(e.confidence, "shape", None) == "likelihood":
        yield "no regret bound is stated for likelihood-ratio sets"


def _needs_lipschitz(problem: Problem) -> bool:
    """Tables have a bound of slopes without L, and with one period nothing follows."""
    return problem.horizon > 1 and not problem.transition_noise.categorical


def lipschitz_is_bound(problem: Problem) -> bool:
    """Tell whether the L of a problem is a bound, and not an estimate.

    Args:
        problem: The problem.

    Returns:
        Whether its rule is one of ``LIPSCHITZ_BOUND_RULES``.
    """
    return problem.lipschitz_rule.startswith(LIPSCHITZ_BOUND_RULES)


def _lipschitz_unknown(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    constant, rule = e.problem.lipschitz, e.problem.lipschitz_rule
    if not _needs_lipschitz(e.problem):
        return
    if not math.isfinite(constant):
        yield f"L is not known ({rule})"
    elif not lipschitz_is_bound(e.problem):
        yield f"L = {constant:.3g} is an estimate ({rule})"


def _lipschitz_not_kept(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    if _needs_lipschitz(e.problem) and not e.planner.keeps_lipschitz:
        yield "plans do not keep to L"


def _values_not_bounded(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    unbounded = not all(map(math.isfinite, e.problem.reward_range))
    if e.problem.horizon > 1 and not e.reward_known and unbounded:
        yield "planned values have no bound"


def _another_tolerance(e: Evidence) -> Iterator[str]:
    if e.planner.approximate and getattr(e.planner, "tolerance", None) is not None:
        yield "the planner's tolerance is not the paper's √(H/l)"


def _reward_not_learned(e: Evidence) -> Iterator[str]:
    if e.reward_known:
        yield "the theorem is about rewards that are learned"


def _noise_differs_between_axes(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    m, scale = e.problem.mean_dimension, np.asarray(e.problem.scale)
    deviations = e.problem.transition_noise.standard_deviations(m) / scale
    if not np.allclose(deviations, deviations[0], rtol=ROUNDING, atol=0.0):
        yield "the scaled noise of the transition differs between axes"


def _noise_raised(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    m, scale = e.problem.mean_dimension, np.asarray(e.problem.scale)
    reward = float(e.problem.reward_noise.standard_deviations(1)[0])
    transition = float((e.problem.transition_noise.standard_deviations(m) / scale).max())
    used = np.sqrt(e.problem.noise_variances)
    if not np.allclose(used, (reward, transition), rtol=ROUNDING, atol=0.0):
        yield "the noise is below its floor, and the posterior's is raised"


def _draws_inflated(e: Evidence) -> Iterator[str]:
    if e.inflate != 1.0:
        yield "draws are inflated"


def _plans_kept(e: Evidence) -> Iterator[str]:
    if e.replan_gain is not None:
        yield "plans are kept for several episodes, for which posterior sampling has no bound"


def _draws_clipped(e: Evidence) -> Iterator[str]:
    """A draw whose rewards are clipped does not have the law of the truth."""
    assert e.problem is not None
    needed = math.inf
    if e.prior is not None:
        norm = getattr(e.prior, "norm_reward", None)
        norm = e.problem.norm_reward if norm is None else norm
        if norm is not None:
            needed = norm * math.sqrt(e.problem.reward_kernel.variance_bound(e.problem.points))
    low, high = e.problem.reward_range
    if not e.reward_known and min(-low, high) < needed * (1 - ROUNDING):
        yield f"plans clip the rewards of draws to [{low:.3g}, {high:.3g}]"


def _clipped_by_a_norm(e: Evidence) -> Iterator[str]:
    assert e.problem is not None
    by_norm = e.problem.reward_bounds is None and math.isfinite(e.problem.reward_range[1])
    if e.problem.drawn_from_prior and by_norm and not e.reward_known:
        yield "rewards are clipped by a norm, which draws of the prior exceed"


def _draws_not_exact(e: Evidence) -> Iterator[str]:
    if e.prior.method != "rejection":
        yield "draws of elliptical slices are exact only in the limit"


def _another_prior(e: Evidence) -> Iterator[str]:
    if e.prior is not None:
        yield f"no theorem is about this prior ({e.prior.name}); Theorem 4 is its model"


#: What every claim about values needs, besides the sets.
NOISE_OF_PLANS = Assumption(
    "plans know the law of the transition's noise",
    "regret",
    _another_noise,
    ("agent.noise", "problem.transition_noise"),
)
#: Assumptions about the plans of every agent.
OF_ALL_PLANS = (
    Assumption(
        "all episodes are planned", "regret", _first_episode_random, ("agent.first_episode",)
    ),
    Assumption(
        "episodes have H periods",
        "regret",
        _episodes_end_early,
        ("problem.termination", "problem.horizon"),
    ),
    Assumption(
        "plans are optimal up to the planner's grid",
        "regret",
        _plans_not_optimal,
        ("agent.planner", "problem.planner"),
    ),
    Assumption(
        "plans have no constraints, on states or on returns",
        "regret",
        _plans_constrained,
        ("agent.constraints", "problem.constraints", "agent.at_least"),
    ),
    Assumption("plans know the noise", "regret", _noise_not_planned),
    NOISE_OF_PLANS,
    Assumption(
        "approximate plans have the paper's tolerance",
        "regret",
        _another_tolerance,
        ("planner.tolerance",),
    ),
)
#: The theorems in the setting "gp" are about rewards that are learned, and so are those of PSRL.
OF_LEARNED_REWARDS = (Assumption("the reward is learned", "regret", _reward_not_learned),)
#: Assumptions about optimistic plans, whatever bounds the slopes of values.
OF_OPTIMISTIC_PLANS = (
    Assumption(
        "plans are not short of optimism",
        "regret",
        _plans_short_of_optimism,
        ("planner.optimism", "planner.grid_planner"),
    ),
    Assumption(
        "beta is the theorem's",
        "regret",
        _beta_not_the_theorem_s,
        ("confidence.scale", "confidence.margin", "confidence.divide"),
    ),
    Assumption(
        "the theorem is about the shape of the sets",
        "regret",
        _shape_without_bound,
        ("confidence.shape",),
    ),
    Assumption("planned values are bounded", "regret", _values_not_bounded),
)
#: Assumptions about optimistic plans that keep to a Lipschitz constant.
OF_OPTIMISM = (
    *OF_OPTIMISTIC_PLANS,
    Assumption(
        "the Lipschitz constant L is known",
        "regret",
        _lipschitz_unknown,
        ("problem.lipschitz", "problem.lipschitz_rule"),
    ),
    Assumption("plans keep to L", "regret", _lipschitz_not_kept, ("planner.envelope",)),
)
#: Assumptions about posterior sampling.
OF_SAMPLING = (
    Assumption(
        "the scaled noise is equal along all axes",
        "regret",
        _noise_differs_between_axes,
        ("problem.scale",),
    ),
    Assumption(
        "posteriors have the variance of the noise",
        "regret",
        _noise_raised,
        ("problem.noise_floors",),
    ),
    Assumption("draws have the posterior's law", "regret", _draws_inflated, ("agent.inflate",)),
    Assumption(
        "plans are optimal for the draw itself",
        "regret",
        _draws_clipped,
        (
            *("agent.reward_bounds", "problem.reward_bounds"),
            *("problem.norm_reward", "prior.norm_reward"),
        ),
    ),
    Assumption(
        "every episode has a plan of its own", "regret", _plans_kept, ("agent.replan_gain",)
    ),
)
#: Assumptions about rewards that are drawn from a Gaussian process.
OF_DRAWN_REWARDS = (
    Assumption(
        "no norm clips the rewards of the truth",
        "run",
        _clipped_by_a_norm,
        ("problem.norm_reward",),
    ),
)
#: Assumptions about draws from a norm ball.
OF_BALL_SAMPLING = (Assumption("draws are exact", "regret", _draws_not_exact, ("prior.method",)),)
#: The prior of Theorem 4.
OF_GP_PRIOR = (
    Assumption("the prior is a Gaussian process", "run", _another_prior, ("agent.prior",)),
)
