"""Whether the observed state is enough: does the past explain what the model does not?

If the state is enough, no earlier observation or action tells more about the next state. If a
velocity is missing, the last change does. If actions take effect later, an earlier action does.
"""

import dataclasses
import itertools
import warnings
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from kernelmdp.errors import ApproximationWarning
from kernelmdp.learners.fitted_data import FittedData
from kernelmdp.learners.fitted_state import FittedState, PredictedEpisode
from kernelmdp.learners.left_out import left_out_errors
from kernelmdp.mdp import Episode

#: Least number of last episodes that are looked at. One may not have gone everywhere.
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
            f"the {what} of {before} explain {100 * self.share:.0f} % of the error of the model: "
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
    stored, rows = [*state.predicted, newest], state.data.settings.lags.rows
    # Short episodes are stored until there are enough rows.
    while len(stored) > EPISODES and sum(len(e.points) for e in stored[1:]) >= rows:
        stored.pop(0)
    return dataclasses.replace(state, predicted=tuple(stored))


def missing_past(state: FittedState) -> Explanation | None:
    """Look for an earlier change of the state, or action, that explains the errors of the model.

    The changes of the last episodes are regressed on the present, which is state, action and what
    was predicted. Then they are regressed on an earlier change or action too. Both regressions
    predict rows that were left out, so that a past that only adds coefficients explains nothing.

    Coordinates that were predicted well are left out. Where the regression on the present has small
    errors too, the past must explain nearly all of them: they may be errors of the regression.

    Args:
        state: The learner's state.

    Returns:
        The best explanation, or None.
    """
    config, memory = state.data.settings.lags, state.data.problem.memory
    if len(state.predicted) < EPISODES:
        return None
    rows = _Rows.of(state)
    if len(rows.moves) < config.least_rows or not rows.moves.shape[1]:
        return None
    without = left_out_errors(rows.moves, rows.present, rows.predicted)
    sizes = np.sqrt(without) / rows.usual
    required = np.where(sizes > config.error, config.share, config.sure_share)
    tested = sizes > config.least_error
    if not tested.any():
        return None
    best: Explanation | None = None
    for lag, setting in itertools.product(range(1, config.periods + 1), ("history", "delay")):
        with_past = rows.errors_with(rows.earlier(setting, lag))
        shares = np.where(tested, 1 - with_past / np.maximum(without, 1e-300), -np.inf)
        share, axis = float(np.max(shares)), int(np.argmax(shares))
        # A longer memory must explain clearly more.
        least = required[axis] if best is None else best.share + config.gain
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


class _Rows(NamedTuple):
    """Rows of the last episodes, with what was before them.

    Attributes:
        moves: Changes of the learned coordinates whose predictions were wrong, (n, p).
        usual: Root mean squares of these changes, (p,).
        present: What the motion depends on, (n, d). Angles are cosines and sines.
        predicted: The changes that were predicted, (n, p).
        changes: The changes of the state 1, 2, … periods before, (periods, n, m).
        actions: The actions 1, 2, … periods before, (periods, n, q).
    """

    moves: Float[np.ndarray, "n p"]
    usual: Float[np.ndarray, " p"]
    present: Float[np.ndarray, "n d"]
    predicted: Float[np.ndarray, "n p"]
    changes: Float[np.ndarray, "k n m"]
    actions: Float[np.ndarray, "k n q"]

    @classmethod
    def of(cls, state: FittedState) -> "_Rows":
        """Take rows from the last episodes, spread over each of them."""
        data, config = state.data, state.data.settings.lags
        problem, lags = data.problem, range(1, config.periods + 1)
        m, learned = problem.states.dimension, data.learned
        observed = m if problem.memory is None else problem.memory.observed
        parts = []
        for points, increments, errors in state.predicted:
            last = len(points) - 1
            # An episode may be too short to have a past.
            count = config.rows // len(state.predicted) if last >= config.periods else 0
            rows = np.unique(np.linspace(config.periods, last, count).astype(int))
            changes = [increments[rows - lag, :observed] for lag in lags]
            actions = [points[rows - lag, m:] for lag in lags]
            parts.append(
                (points[rows], increments[rows], errors[rows], np.array(changes), np.array(actions))
            )
        points, increments, errors = (np.concatenate([p[j] for p in parts]) for j in range(3))
        usual, sizes = (
            np.sqrt(np.mean(each**2, axis=0)) if len(each) else np.zeros(len(learned))
            for each in (increments[:, learned], errors)
        )
        wrong = sizes > config.error * usual
        moves = increments[:, learned][:, wrong]
        return cls(
            moves=moves,
            usual=usual[wrong],
            present=_present(data, points),
            predicted=moves - errors[:, wrong],
            changes=np.concatenate([p[3] for p in parts], axis=1),
            actions=np.concatenate([p[4] for p in parts], axis=1),
        )

    def errors_with(self, past: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " p"]:
        """Errors of the regression on present and past, which enters as a line or as all else."""
        line = np.concatenate([self.predicted, past], axis=1)
        both = np.concatenate([self.present, past], axis=1)
        return np.minimum(
            left_out_errors(self.moves, self.present, line),
            left_out_errors(self.moves, both, self.predicted),
        )

    def earlier(self, setting: str, lag: int) -> Float[np.ndarray, "n k"]:
        """Return the changes or actions of an earlier period."""
        return (self.changes if setting == "history" else self.actions)[lag - 1]


def _present(data: FittedData, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n k"]:
    """The coordinates on which the learned motion depends. Angles are cosines and sines."""
    low, high = data.bounds
    columns = []
    for axis in data.problem.motion_inputs:
        values = points[:, axis]
        if axis in data.box.periodic:
            angles = 2 * np.pi * values / (high[axis] - low[axis])
            columns += [np.cos(angles), np.sin(angles)]
        else:
            columns.append(values)
    return np.stack(columns, axis=1)
