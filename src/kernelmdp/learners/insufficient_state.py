"""Whether the observed state is enough: does the past explain what the model does not?

If the state is enough, no earlier observation or action tells more about the next state. If a
velocity is missing, the last change does. If actions take effect later, an earlier action does.
"""

import dataclasses
import warnings

import numpy as np
from jaxtyping import Float

from kernelmdp.errors import ApproximationWarning
from kernelmdp.learners.fitted_state import FittedState, PredictedEpisode
from kernelmdp.mdp import Episode

#: Number of last episodes that must tell the same. One may have been led by chance.
EPISODES = 2


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What explains the errors of the model best.

    Attributes:
        setting: "history" or "delay".
        lag: How many periods ago it was.
        share: The share of the mean square error that it explains.

    >>> print(Explanation("delay", 2, 0.91))
    the actions of 2 periods before explain 91 % of the error of the model: try delay=2
    """

    setting: str
    lag: int
    share: float

    def __str__(self) -> str:
        before = "the period before" if self.lag == 1 else f"{self.lag} periods before"
        what, value = ("actions", self.lag)
        if self.setting == "history":
            what, value = "changes of the state", self.lag + 1
        return (
            f"the {what} of {before} explain {self.share:.0%} of the error of the model: "
            f"try {self.setting}={value}"
        )


def with_prediction(
    state: FittedState, episode: Episode, errors: Float[np.ndarray, "n p"]
) -> FittedState:
    """Keep how an episode was predicted, among the last ones.

    Args:
        state: The learner's state.
        episode: The episode.
        errors: Outcomes less their predictions, of the learned coordinates.

    Returns:
        The state.
    """
    points, first = np.asarray(episode.points), state.data.problem.warm_up
    increments = np.asarray(episode.outcomes) - points[:, : state.data.problem.states.dimension]
    newest = PredictedEpisode(points[first:], increments[first:], errors[first:])
    return dataclasses.replace(state, predicted=(*state.predicted, newest)[-EPISODES:])


def missing_past(state: FittedState) -> Explanation | None:
    """Look for an earlier change of the state, or action, that explains the errors of the model.

    The changes of the last episodes are regressed on the present state and action and on what was
    predicted before they were learned, and then on an earlier change or action too. Coordinates
    with small errors are not tested: they are those of a model that is still being learned.

    Args:
        state: The learner's state.

    Returns:
        The best explanation that holds in each of the last episodes, or None.
    """
    config, memory = state.data.settings.lags, state.data.problem.memory
    if len(state.predicted) < EPISODES:
        return None
    best: Explanation | None = None
    for lag in range(1, config.periods + 1):
        for setting in ("history", "delay"):
            share = min(_explained(state, each, setting, lag) for each in state.predicted)
            # A longer memory must explain clearly more.
            least = config.share if best is None else best.share + config.gain
            if share >= least:
                best = Explanation(setting, lag, share)
    if best is None or memory is None:
        return best
    # The state tells some of the past already.
    longest = memory.history - 1 if best.setting == "history" else memory.delay
    return best if best.lag > longest else None


def with_lag_warning(state: FittedState) -> FittedState:
    """Warn if the past explains errors of the model, once for each explanation.

    Args:
        state: The learner's state.

    Returns:
        The state, which remembers the explanation.
    """
    past = missing_past(state)
    named = state.lag_warning if past is None else f"{past.setting} {past.lag}"
    if past is None or named == state.lag_warning:
        return state
    text = f"the observed state is not all that the next state depends on: {past}"
    warnings.warn(text, ApproximationWarning, stacklevel=4)
    return dataclasses.replace(state, lag_warning=named)


def _explained(state: FittedState, episode: PredictedEpisode, setting: str, lag: int) -> float:
    """The largest share of what the present leaves unexplained that the past explains.

    It is 0 if errors are small, or rows are few. Shares are corrected for the number of
    coefficients.
    """
    problem, config = state.data.problem, state.data.settings.lags
    m = problem.states.dimension if problem.memory is None else problem.memory.observed
    sizes, usual = (
        np.sqrt(np.mean(each**2, axis=0))
        for each in (episode.errors, episode.increments[:, state.data.learned])
    )
    large = sizes > config.error * usual
    actions = episode.points[:, problem.states.dimension :]
    earlier = (episode.increments[:, :m] if setting == "history" else actions)[:-lag]
    # What was predicted is among the regressors: it may be wrong in shape, or in size.
    moves = episode.increments[:, state.data.learned]
    inputs = episode.points[:, list(problem.motion_inputs)]
    present = np.concatenate([inputs, moves - episode.errors], axis=1)[lag:]
    n, d, k = len(present), present.shape[1] + 1, earlier.shape[1]
    if n < config.rows * (d + k) or not large.any():
        return 0.0
    ones = np.ones((n, 1))
    without, with_past = (
        np.sum(_residual(moves[lag:, large], ones, *columns) ** 2, axis=0)
        for columns in ((present,), (present, earlier))
    )
    ratio = with_past / np.maximum(without, 1e-300) * (n - d) / (n - d - k)
    return float(np.max(1 - ratio))


def _residual(errors: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """What is left of errors after a linear regression on columns of any units."""
    design = np.concatenate(columns, axis=1)
    design = design / np.maximum(np.abs(design).max(axis=0), 1e-300)
    return errors - design @ np.linalg.lstsq(design, errors, rcond=1e-10)[0]
