"""Evaluations of controllers: what ``predict`` earned in episodes that were not learned from."""

import dataclasses
import math
import warnings

import numpy as np
from jaxtyping import Float

from kernelmdp.errors import ApproximationWarning

#: A controller is much worse than another if it loses this share of the range of all returns seen.
MUCH_WORSE = 0.1
#: Standard errors by which a difference must exceed chance.
SIGNIFICANCE = 2.0
#: The probability with which an interval holds the mean, as in reports.
LEVEL = 0.95


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """What ``predict`` earned, without learning.

    Attributes:
        episode: The number of episodes that the agent had learned from.
        returns: The returns, (n,). Episodes have the same seeds in every evaluation.

    >>> Evaluation(3, np.array([1.0, 2.0, 3.0]))
    after 3 episodes: 2 ± 0.577 (mean of 3 returns, standard error)
    >>> low, high = Evaluation(3, np.array([1.0, 2.0, 3.0])).interval
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """

    episode: int
    returns: Float[np.ndarray, " n"]

    @property
    def mean(self) -> float:
        """The mean return."""
        return float(np.mean(self.returns))

    @property
    def error(self) -> float:
        """The standard error of the mean; 0 for a single return."""
        return _standard_error(self.returns)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean, by Student's t; NaN for a single return.

        It is about episodes of this controller. Another training would give another controller.
        """
        if len(self.returns) < 2:
            return (math.nan, math.nan)
        from scipy import stats

        half_width = float(stats.t.ppf(0.5 + LEVEL / 2, len(self.returns) - 1)) * self.error
        return (self.mean - half_width, self.mean + half_width)

    def __repr__(self) -> str:
        numbers = f"{self.mean:.4g} ± {self.error:.3g}"
        count = len(self.returns)
        return f"after {self.episode} episodes: {numbers} (mean of {count} returns, standard error)"


def warn_of_loss(
    newest: Evaluation, best: Evaluation, *, seen: Float[np.ndarray, " episodes"]
) -> bool:
    """Decide whether a controller is much worse than the best one, and warn if it is.

    Args:
        newest: The evaluation of the controller.
        best: The best evaluation. If it has as many returns, they are compared in pairs.
        seen: Returns of episodes that were learned from. Their range is the unit of a loss.

    Returns:
        Whether it loses more than ``MUCH_WORSE`` of the unit and ``SIGNIFICANCE`` errors.
    """
    if len(newest.returns) == len(best.returns):
        error = _standard_error(best.returns - newest.returns)
    else:
        error = float(np.hypot(newest.error, best.error))
    unit = float(np.ptp(np.concatenate([newest.returns, seen])))
    much_worse = best.mean - newest.mean > max(MUCH_WORSE * unit, SIGNIFICANCE * error)
    if much_worse:
        warnings.warn(
            f"the controller is much worse than before, so predict keeps the one from before: "
            f"{newest}; best {best}",
            ApproximationWarning,
            stacklevel=3,
        )
    return much_worse


def _standard_error(numbers: np.ndarray) -> float:
    return float(np.std(numbers, ddof=1) / len(numbers) ** 0.5) if len(numbers) > 1 else 0.0
