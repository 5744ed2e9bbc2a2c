"""Whether a theorem covers a run, as a value. Sentences are made where it is printed."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Coverage:
    """A theorem, and which of its assumptions fail.

    Attributes:
        theorem: The theorem, or None if no theorem is about the agent.
        reasons: The assumptions that fail, one sentence each. Empty means covered.

    >>> print(Coverage("Theorem 1 (bounded norms)"))
    covered by the confidence sets of Theorem 1 (bounded norms)
    >>> print(Coverage("Theorem 1 (bounded norms)", ("beta is scaled by 0.1",)))
    not covered: beta is scaled by 0.1
    """

    theorem: str | None
    reasons: tuple[str, ...] = ()

    @property
    def covered(self) -> bool:
        """Whether every assumption of a theorem holds."""
        return self.theorem is not None and not self.reasons

    def __str__(self) -> str:
        if self.covered:
            return f"covered by the confidence sets of {self.theorem}"
        return "not covered: " + "; ".join(self.reasons or ("no theorem is about this agent",))


#: The coverage of an agent that no theorem is about.
NO_THEOREM = Coverage(None)
