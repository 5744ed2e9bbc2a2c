"""What a check found: two sides of a statement, and whether it holds."""

import dataclasses
import math
from typing import Any

#: Differences below this, relative to the numbers compared, are rounding.
ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class Check:
    """``left`` ≤ ``right`` (or =, as ``note`` says); ``holds`` is None where it does not apply."""

    name: str
    left: float
    right: float
    holds: bool | None
    note: str = ""

    @property
    def slack(self) -> float:
        """right − left: how much room is left."""
        return self.right - self.left


def at_most(name: str, left: Any, right: Any, *, tolerance: float = 0.0, note: str = "") -> Check:
    """left ≤ right, up to rounding and a tolerance that the caller has a reason for.

    >>> at_most("one is at most two", 1, 2).slack
    1.0
    """
    a, b = float(left), float(right)
    room = tolerance + ROUNDING * (1 + abs(b) if math.isfinite(b) else 1)
    return Check(name, a, b, a <= b + room, note)


def equal(name: str, left: Any, right: Any, *, tolerance: float = 0.0, note: str = "") -> Check:
    """left = right, up to rounding and a tolerance."""
    a, b = float(left), float(right)
    close = abs(a - b) <= tolerance + ROUNDING * (1 + abs(b))
    return Check(name, a, b, close, note)


def not_applicable(name: str, why: str) -> Check:
    """A statement that says nothing here."""
    return Check(name, math.nan, math.nan, None, why)
