"""Results of checks: both sides of a statement, and whether it holds."""

import dataclasses
import math
from typing import Any

#: Differences below this, relative to the right side, count as round-off. It is far above the
#: round-off of one operation, because both sides are long sums.
ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class Check:
    """The result of checking left ≤ right, or left = right.

    Attributes:
        name: The statement.
        left: The left side.
        right: The right side.
        holds: Whether the statement holds. None if it does not apply.
        note: Remarks, for example that both sides should be equal.
    """

    name: str
    left: float
    right: float
    holds: bool | None
    note: str = ""

    @property
    def slack(self) -> float:
        """The difference right − left."""
        return self.right - self.left


def at_most(name: str, left: Any, right: Any, *, tolerance: float = 0.0, note: str = "") -> Check:
    """Check left ≤ right, up to round-off and a tolerance.

    Args:
        name: The statement.
        left: The left side.
        right: The right side.
        tolerance: An allowance for a known error of the sides.
        note: Remarks.

    Returns:
        The result.

    >>> at_most("one is at most two", 1, 2).slack
    1.0
    """
    a, b = float(left), float(right)
    allowance = tolerance + ROUNDING * (1 + abs(b) if math.isfinite(b) else 1)
    return Check(name, a, b, a <= b + allowance, note)


def equal(name: str, left: Any, right: Any, *, tolerance: float = 0.0, note: str = "") -> Check:
    """Check left = right, up to round-off and a tolerance.

    Args:
        name: The statement.
        left: The left side.
        right: The right side.
        tolerance: An allowance for a known error of the sides.
        note: Remarks.

    Returns:
        The result.
    """
    a, b = float(left), float(right)
    close = abs(a - b) <= tolerance + ROUNDING * (1 + abs(b))
    return Check(name, a, b, close, note)


def not_applicable(name: str, reason: str) -> Check:
    """Report that a statement does not apply.

    Args:
        name: The statement.
        reason: Why it does not apply.

    Returns:
        A result whose ``holds`` is None.
    """
    return Check(name, math.nan, math.nan, None, reason)
