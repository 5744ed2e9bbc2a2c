"""Learners by name: those of the library, of other packages, and of a user."""

from collections.abc import Mapping

from kernelmdp.errors import ArgumentError
from kernelmdp.learners.counts import Counts
from kernelmdp.learners.fitted_kernels import FittedKernels
from kernelmdp.learners.fixed_kernels import FixedKernels
from kernelmdp.learners.learner import Learner, LearnerRequirements
from kernelmdp.learners.least_squares import LinearQuadratic
from kernelmdp.mdp import Problem
from kernelmdp.registry import Registry

#: What a user may give for a learner.
LearnerLike = str | Learner | Mapping[str, object]

#: Classes of learners by name.
LEARNERS = Registry[type[Learner]]("learner")
LEARNERS.register("fixed", FixedKernels)
LEARNERS.register("fitted", FittedKernels)
LEARNERS.register("counts", Counts)
LEARNERS.register("linear-quadratic", LinearQuadratic)


def as_learner(given: LearnerLike, problem: Problem, requirements: LearnerRequirements) -> Learner:
    """A learner as it is, by name, or by name with some settings changed.

    Args:
        given: A learner, the name of one ("auto" is the problem's own), or a mapping with ``name``
            and settings.
        problem: What it learns.
        demands: What an agent and its planner ask of it.

    Raises:
        ArgumentError: If there is no such learner or setting.

    >>> import kernelmdp as km
    >>> problem = km.make("rkhs").problem
    >>> as_learner({"name": "fitted", "centres": 64}, problem, LearnerRequirements()).settings.inducing_points
    64
    """
    if isinstance(given, Learner):
        return given
    changes = dict(given) if isinstance(given, Mapping) else {"name": given}
    name = changes.pop("name", "auto")
    learner = LEARNERS.find(problem.learner if name == "auto" else name).for_problem(
        problem, requirements
    )
    if not changes:
        return learner
    try:
        return learner.with_settings(changes)
    except TypeError as error:
        raise ArgumentError("learner", f"settings of {name!r}", error) from None
