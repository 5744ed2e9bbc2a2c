"""Evaluations of controllers: what ``predict`` earned in episodes that were not learned from."""

import dataclasses

import numpy as np
from jaxtyping import Float

#: A controller is much worse than another if it loses this share of the range of all returns seen.
MUCH_WORSE = 0.1
#: Standard errors by which a difference must exceed chance.
SIGNIFICANCE = 2.0


@dataclasses.dataclass(frozen=True, eq=False)
class Evaluation:
    """What ``predict`` earned, without learning.

    Attributes:
        episode: The number of episodes that the agent had learned from.
        returns: The returns, (n,). Episodes have the same seeds in every evaluation.

    >>> Evaluation(3, np.array([1.0, 2.0, 3.0]))
    after 3 episodes: 2 ± 0.577 (mean of 3 returns, standard error)
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

    def __repr__(self) -> str:
        numbers = f"{self.mean:.4g} ± {self.error:.3g}"
        count = len(self.returns)
        return f"after {self.episode} episodes: {numbers} (mean of {count} returns, standard error)"

    def much_worse_than(self, other: "Evaluation", *, unit: float) -> bool:
        """Decide whether this controller is much worse than another, and not by chance.

        Args:
            other: The other evaluation. If it has as many returns, they are compared in pairs.
            unit: The range of all returns seen.

        Returns:
            Whether it loses more than ``MUCH_WORSE`` of the unit and ``SIGNIFICANCE`` errors.
        """
        if len(self.returns) == len(other.returns):
            error = _standard_error(other.returns - self.returns)
        else:
            error = float(np.hypot(self.error, other.error))
        return other.mean - self.mean > max(MUCH_WORSE * unit, SIGNIFICANCE * error)


def _standard_error(numbers: np.ndarray) -> float:
    return float(np.std(numbers, ddof=1) / len(numbers) ** 0.5) if len(numbers) > 1 else 0.0
