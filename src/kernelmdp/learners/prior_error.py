"""How much the data had to correct a rough model that was given beforehand."""

import math

import numpy as np

from kernelmdp.learners.fitted_state import FittedState
from kernelmdp.learners.known_increments import known_increments
from kernelmdp.mdp import Episode


def prior_model_error(state: FittedState, episode: Episode) -> float:
    """Measure the error of the rough model alone, without what was learned.

    Args:
        state: The learner's state.
        episode: The episode.

    Returns:
        The root mean square error of a step over learned coordinates, as a share of the change of
        the state; NaN without such a model. Beside ``one_step_error`` it tells what learning adds.
    """
    problem = state.data.problem
    if not problem.known_motion.is_prior:
        return math.nan
    points, learned = np.asarray(episode.points), state.data.learned
    m = problem.states.dimension
    increments = (np.asarray(episode.outcomes) - points[:, :m])[:, learned]
    errors = increments - known_increments(problem, points)[:, learned]
    usual = np.mean(increments**2, axis=0)
    shares = np.mean(errors**2, axis=0)[usual > 0] / usual[usual > 0]
    return float(np.sqrt(np.mean(shares))) if shares.size else math.nan
