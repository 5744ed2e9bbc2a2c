"""What a controller is worth at least."""

import dataclasses

from kernelmdp.confidence import Coverage

#: Drawn MDPs of which the lowest value is an estimate of what a controller is worth at least. One
#: more draw is lower than eight with probability one ninth.
DRAWS = 8


@dataclasses.dataclass(frozen=True)
class Promise:
    """A lower bound of the value of a controller, or an estimate of one.

    Attributes:
        value: The bound. On a grid it has the error of the grid.
        probability: The probability with which it holds; None for an estimate.
        coverage: The theorem behind it, or why there is none.

    >>> from kernelmdp.confidence import NO_THEOREM
    >>> print(Promise(-4.5, None, NO_THEOREM))
    worth about -4.5 or more, an estimate: no theorem is about this agent
    >>> print(Promise(5.43, 0.9, Coverage("Theorem 1")))
    worth at least 5.43 with probability 0.9 (Theorem 1), up to the error of the grid
    """

    value: float
    probability: float | None
    coverage: Coverage

    def __str__(self) -> str:
        if self.probability is None:
            reason = str(self.coverage).removeprefix("not covered: ")
            return f"worth about {self.value:.4g} or more, an estimate: {reason}"
        holds = f"with probability {self.probability:.4g} ({self.coverage.theorem})"
        return f"worth at least {self.value:.4g} {holds}, up to the error of the grid"
