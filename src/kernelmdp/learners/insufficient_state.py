"""Whether the observed state is enough: does the past explain what the model does not?

If the state is enough, no earlier observation or action tells more about the next state. If a
velocity is missing, the last change does. If actions take effect later, an earlier action does.
"""

import dataclasses
import warnings

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelmdp.errors import ApproximationWarning
from kernelmdp.learners.fitted_state import FittedState

#: Rows that the test looks at, the last ones. A correlation above the threshold needs no more.
ROWS = 1000


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


def missing_past(state: FittedState) -> Explanation | None:
    """Look for an earlier change of the state, or action, that explains the errors of the model.

    Errors are those of the mean at the data. They are regressed on the present state and action,
    and then on an earlier change or action too. Small errors are not tested: of a system without
    noise, they are what the kernel cannot represent.

    Args:
        state: The learner's state.

    Returns:
        The best explanation that passes the thresholds of the settings, or None.
    """
    data, config = state.data, state.data.settings.lags
    memory = data.problem.memory
    first, last = max(0, len(data) - ROWS), len(data)
    errors = _errors(state, first)
    changes = data.increments[first:last, data.learned]
    sizes, usual = (np.sqrt(np.mean(each**2, axis=0)) for each in (errors, changes))
    tested = sizes > config.error * usual
    if not tested.any():
        return None
    m = data.problem.states.dimension
    shown = m if memory is None else memory.observed
    moves = data.increments[first:last, [j for j in data.learned if j < shown]]
    actions = data.points[first:last, m:]
    present = data.points[first:last][:, list(data.problem.motion_inputs)]
    number = data.episodes[first:last]
    best: Explanation | None = None
    for lag in range(1, config.periods + 1):
        same = np.zeros(len(errors), bool)
        same[lag:] = number[lag:] == number[:-lag]
        if same.sum() < config.rows * (1 + present.shape[1] + moves.shape[1]):
            continue
        for setting, past in (("history", moves), ("delay", actions)):
            earlier = np.concatenate([np.zeros((lag, past.shape[1])), past[:-lag]])
            share = _explained(errors[same][:, tested], present[same], earlier[same])
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


def _errors(state: FittedState, first: int) -> Float[np.ndarray, "n p"]:
    """Next states less the predicted means, of the rows from the given one on."""
    data = state.data
    model = data.problem.mdp(state.beliefs.mean()).model
    points = data.points[first:]
    # A fixed number of rows, so that one compiled program serves all episodes.
    padded = np.pad(points, ((0, ROWS - len(points)), (0, 0)), mode="edge")
    predicted = np.asarray(model(jnp.asarray(padded)).state)[: len(points)]
    m = predicted.shape[1]
    return (points[:, :m] + data.increments[first:] - predicted)[:, data.learned]


def _explained(
    errors: Float[np.ndarray, "n p"],
    present: Float[np.ndarray, "n d"],
    past: Float[np.ndarray, "n k"],
) -> float:
    """The largest share of the mean square of an error that the past explains, beyond the present.

    Shares are corrected for the number of coefficients.
    """
    ones = np.ones((len(errors), 1))
    rest = [_residual(errors, ones, present), _residual(errors, ones, present, past)]
    squares = [np.sum(each**2, axis=0) for each in rest]
    n, d, k = len(errors), present.shape[1] + 1, past.shape[1]
    ratio = squares[1] / np.maximum(squares[0], 1e-300) * (n - d) / max(n - d - k, 1)
    return float(np.max(1 - ratio))


def _residual(errors: np.ndarray, *columns: np.ndarray) -> np.ndarray:
    """What is left of errors after a linear regression on columns of any units."""
    design = np.concatenate(columns, axis=1)
    design = design / np.maximum(np.abs(design).max(axis=0), 1e-300)
    return errors - design @ np.linalg.lstsq(design, errors, rcond=1e-10)[0]
