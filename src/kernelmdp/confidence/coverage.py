"""Whether a theorem covers a run, as a value. Sentences are made where it is printed."""

import dataclasses
from typing import NamedTuple

#: Number of failed assumptions that a sentence names. Longer lists are hard to read in a terminal.
NAMED_REASONS = 2


class CheckedAssumption(NamedTuple):
    """An assumption and whether it holds.

    Attributes:
        name: The assumption, as a statement.
        reasons: Why it fails, one sentence each. Empty means that it holds.

    >>> CheckedAssumption("beta is that of the theorem").holds
    True
    """

    name: str
    reasons: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the assumption holds."""
        return not self.reasons


@dataclasses.dataclass(frozen=True)
class Coverage:
    """What a theorem says of a run, and which of its assumptions fail.

    Attributes:
        theorem: The theorem or the part of it, or None if no theorem is about the agent.
        reasons: Why assumptions fail, one sentence each. Empty means covered.
        assumptions: All assumptions that were checked.

    >>> print(Coverage("Theorem 4 (Bayes regret)"))
    covered by Theorem 4 (Bayes regret)
    >>> print(Coverage("Theorem 4 (Bayes regret)", ("draws are inflated",)))
    not covered: draws are inflated
    """

    theorem: str | None
    reasons: tuple[str, ...] = ()
    assumptions: tuple[CheckedAssumption, ...] = dataclasses.field(default=(), compare=False)

    @property
    def covered(self) -> bool:
        """Whether every assumption of a theorem holds."""
        return self.theorem is not None and not self.reasons

    def __str__(self) -> str:
        if self.covered:
            return f"covered by {self.theorem}"
        reasons = self.reasons or ("no theorem is about this agent",)
        named, others = reasons[:NAMED_REASONS], len(reasons) - NAMED_REASONS
        return "not covered: " + "; ".join((*named, f"and {others} more") if others > 0 else named)


#: The coverage of an agent that no theorem is about.
NO_THEOREM = Coverage(None)
