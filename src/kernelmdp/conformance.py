"""What a check of promises found: of a kernel, a planner, an environment or an agent."""

import dataclasses

from kernelmdp.errors import ConformanceError


@dataclasses.dataclass(frozen=True)
class Conformance:
    """Which promises were found kept, and which could not be checked and why.

    >>> print(Conformance("mine", ("it is symmetric",), ()))
    mine: 1 promises kept
      kept     it is symmetric
    """

    name: str
    checked: tuple[str, ...]
    skipped: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.name}: {len(self.checked)} promises kept"]
        lines += [f"  kept     {promise}" for promise in self.checked]
        lines += [f"  skipped  {promise}" for promise in self.skipped]
        return "\n".join(lines)


class Checklist:
    """Promises as they are checked, one after the other.

    >>> promises = Checklist()
    >>> promises.require("one is one", 1 == 1, "another number")
    >>> promises.skip("two is prime", "nobody asked")
    >>> promises.found("numbers").skipped
    ('two is prime: nobody asked',)
    """

    def __init__(self) -> None:
        self.checked: list[str] = []
        self.skipped: list[str] = []

    def require(self, promise: str, kept: bool, found: str) -> None:
        """Count a promise as kept, or raise ``ConformanceError`` with what was found instead."""
        if not kept:
            raise ConformanceError(promise, found)
        self.checked.append(promise)

    def skip(self, promise: str, reason: str) -> None:
        """Count a promise as one that could not be checked."""
        self.skipped.append(f"{promise}: {reason}")

    def found(self, name: str) -> Conformance:
        """The report."""
        return Conformance(name, tuple(self.checked), tuple(self.skipped))
