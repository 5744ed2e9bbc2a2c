"""The registry of learners by name."""

from collections.abc import Mapping

from kernelmdp.errors import ArgumentError
from kernelmdp.learners.counts import Counts
from kernelmdp.learners.fitted_kernels import FittedKernels
from kernelmdp.learners.fixed_kernels import FixedKernels
from kernelmdp.learners.learner import Learner, LearnerRequirements
from kernelmdp.learners.least_squares import LinearQuadratic
from kernelmdp.mdp import Problem
from kernelmdp.registry import Registry

#: A learner, its name, or a mapping with its name and settings.
LearnerLike = str | Learner | Mapping[str, object]

#: Classes of learners by name.
LEARNERS = Registry[type[Learner]]("learner")
LEARNERS.register("fixed", FixedKernels)
LEARNERS.register("fitted", FittedKernels)
LEARNERS.register("counts", Counts)
LEARNERS.register("linear-quadratic", LinearQuadratic)


def as_learner(
    learner: LearnerLike, problem: Problem, requirements: LearnerRequirements
) -> Learner:
    """Make a learner from its name, or from its name and settings.

    Args:
        learner: A learner, which is returned as it is; the name of one ("auto" is the one that
            the problem names); or a mapping with ``name`` and settings.
        problem: The problem to learn.
        requirements: What the agent and its planner need.

    Returns:
        The learner.

    Raises:
        ArgumentError: If there is no such learner or setting, or it cannot learn a measured cost,
            use what is known of the motion, or forget.

    >>> import kernelmdp as km
    >>> settings = {"name": "fitted", "inducing_points": 64}
    >>> learner = as_learner(settings, km.make("rkhs").problem, LearnerRequirements())
    >>> learner.settings.inducing_points
    64
    """
    made = _made(learner, problem, requirements)
    if problem.measured and not made.learns_costs:
        raise ArgumentError("learner", "'fitted', where a cost is measured", repr(made.name))
    if problem.motion is not None and not made.uses_motion:
        expected = (
            "'fitted', with history, delay, known or prior_model (kernel='auto' fits kernels that "
            "you pass)"
        )
        raise ArgumentError("learner", expected, repr(made.name))
    if problem.forgetting and not made.forgets:
        raise ArgumentError("learner", "'fitted' or 'fixed', to forget", repr(made.name))
    return made


def _made(learner: LearnerLike, problem: Problem, requirements: LearnerRequirements) -> Learner:
    if isinstance(learner, Learner):
        return learner
    changes = dict(learner) if isinstance(learner, Mapping) else {"name": learner}
    name = changes.pop("name", "auto")
    kind = LEARNERS.find(problem.learner if name == "auto" else name)
    default = kind.for_problem(problem, requirements)
    if not changes:
        return default
    try:
        return default.with_settings(changes)
    except TypeError as error:
        raise ArgumentError("learner", f"settings of {name!r}", error) from None
