"""A note for tasks with many coordinates: what to expect, and what helps."""

import warnings

from kernelmdp.errors import ObservationWarning
from kernelmdp.mdp import Problem

#: Largest number of coordinates without a note. Up to six are learned reliably, up to nine on some
#: tasks and not on others (docs/limits.md).
EXPECTED_COORDINATES = 8


def note_size(problem: Problem) -> None:
    """Warn if kernels are to be fitted to states of many coordinates.

    Args:
        problem: The problem.

    Warns:
        ObservationWarning: If there are more coordinates than ``EXPECTED_COORDINATES``.
    """
    m = problem.states.dimension
    if problem.learner != "fitted" or m <= EXPECTED_COORDINATES:
        return
    known = "" if problem.reward is not None else "a known reward (reward=function) above all, "
    warnings.warn(
        f"the state has {m} coordinates: up to six are learned in a handful of episodes, more need "
        f"many episodes and may fail. What helps is {known}fewer coordinates "
        "(gymnasium.wrappers.FilterObservation, TransformObservation), and a rough model "
        "(prior_model)",
        ObservationWarning,
        stacklevel=5,
    )
