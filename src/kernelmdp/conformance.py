"""Reports of conformance checks of kernels, planners, environments and agents.

A promise is a property that every implementation of an interface must have. A check tests the
promises one by one.
"""

import dataclasses

from kernelmdp.errors import ConformanceError


@dataclasses.dataclass(frozen=True)
class ConformanceReport:
    """The report of a conformance check in which no promise was broken.

    Attributes:
        name: Name of the object that was checked.
        checked: Promises that it keeps.
        skipped: Promises that could not be checked, each with the reason.

    >>> print(ConformanceReport("mine", ("it is symmetric",), ()))
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
    """Records promises while a check tests them.

    >>> promises = Checklist()
    >>> promises.require("one is one", 1 == 1, "another number")
    >>> promises.skip("two is prime", "nobody asked")
    >>> promises.result("numbers").skipped
    ('two is prime: nobody asked',)
    """

    def __init__(self) -> None:
        self.checked: list[str] = []
        self.skipped: list[str] = []

    def require(self, promise: str, satisfied: bool, observed: str) -> None:
        """Record a promise as kept, or raise an error.

        Args:
            promise: The promise, in words.
            satisfied: Whether the object keeps it.
            observed: What was observed instead, for the error message.

        Raises:
            ConformanceError: If the promise is not kept.
        """
        if not satisfied:
            raise ConformanceError(promise, observed)
        self.checked.append(promise)

    def skip(self, promise: str, reason: str) -> None:
        """Record a promise that could not be checked.

        Args:
            promise: The promise, in words.
            reason: Why it could not be checked.
        """
        self.skipped.append(f"{promise}: {reason}")

    def result(self, name: str) -> ConformanceReport:
        """Return the report of the check.

        Args:
            name: Name of the object that was checked.

        Returns:
            All promises recorded so far.
        """
        return ConformanceReport(name, tuple(self.checked), tuple(self.skipped))
