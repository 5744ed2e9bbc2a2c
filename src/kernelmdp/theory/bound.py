"""A regret bound as a number: what it is made of, and whether it says anything."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kernelmdp.numerics.checks import integer

#: Steps T beyond which nobody waits for a bound to become useful.
PATIENCE = 1e12


def log(value: float) -> float:
    """ln, with ln 0 = −∞: a part that is not there."""
    return math.log(value) if value > 0 else -math.inf


def log_sum(logs: Any) -> float:
    """ln Σ exp, without overflow."""
    return float(np.logaddexp.reduce(list(logs)))


def exp(value: float) -> float:
    """e^x, infinite where no float holds it."""
    return math.exp(value) if value < 709 else math.inf


@dataclasses.dataclass(frozen=True)
class Bound:
    """A bound of Regret(T), T = episodes · horizon, as a sum of named parts.

    Everything is kept as logarithms: ``value`` may be infinite, ``log_value`` never is.

    >>> import kernelmdp as km
    >>> bound = km.theory.tabular(states=6, actions=2, horizon=20, episodes=1000, reward_noise=0.1)
    >>> bound.value > 0, bound.theorem
    (True, 'Tabular')
    """

    theorem: str
    version: str
    horizon: int
    episodes: int
    #: ln of every part.
    log_parts: Mapping[str, float]
    #: What holds without learning anything: 2 sup|R̄| T.
    trivial: float
    #: With which probability it holds, or "expectation".
    probability: float | str
    #: Of T in the bound, logarithms aside; None when the kernels are not known.
    exponent: float | None = None
    #: What its reader should know.
    warnings: tuple[str, ...] = ()
    _at: Callable[[int], "Bound"] | None = dataclasses.field(
        default=None, repr=False, compare=False
    )

    @property
    def steps(self) -> int:
        """T, the number of steps in all episodes."""
        return self.episodes * self.horizon

    @property
    def log_value(self) -> float:
        """ln of the bound."""
        return log_sum(self.log_parts.values())

    @property
    def value(self) -> float:
        """The bound; infinite where no float holds it."""
        return exp(self.log_value)

    @property
    def parts(self) -> dict[str, float]:
        """Every part as a number."""
        return {name: exp(own) for name, own in self.log_parts.items()}

    @property
    def vacuous(self) -> bool:
        """Whether nothing is said beyond the trivial."""
        return self.log_value >= log(self.trivial)

    def at(self, episodes: int) -> "Bound":
        """The same bound after another number of episodes."""
        assert self._at is not None
        return self._at(integer("episodes", episodes, least=1))

    @functools.cached_property
    def first_useful(self) -> int | None:
        """The least number of episodes from which it is not vacuous; None if T > 10¹² by then.

        By doubling and bisection: the bound grows more slowly than the trivial one, or never helps.
        """
        last = int(PATIENCE // self.horizon)
        high = 4  # Theorems 2 and 4 as printed need T ≥ 4
        if not self.at(high).vacuous:
            while high > 1 and self.at(high).steps > 4 and not self.at(high - 1).vacuous:
                high -= 1
            return high
        while self.at(high).vacuous:
            if high >= last:
                return None
            high = min(2 * high, last)
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.at(middle).vacuous else (low, middle)
        return high

    def rows(self) -> list[tuple[str, str]]:
        """What there is to tell, line by line."""
        holds = self.probability
        lines = [(name, f"{own:.4g}") for name, own in self.parts.items()]
        lines += [
            ("bound", f"{self.value:.4g}"),
            ("ln(bound)", f"{self.log_value:.4f}"),
            ("trivial", f"{self.trivial:.4g}"),
            ("vacuous", "yes" if self.vacuous else "no"),
            (
                "holds",
                f"with probability {holds:g}" if holds != "expectation" else "in expectation",
            ),
        ]
        if self.exponent is not None:
            lines.append(("grows as", f"T^{self.exponent:.3g}, logarithms aside"))
        return lines

    def __str__(self) -> str:
        title = f"{self.theorem}, {self.version}: {self.episodes} episodes of {self.horizon}"
        width = max(len(name) for name, _ in self.rows())
        table = [f"  {name:<{width}}  {text}" for name, text in self.rows()]
        return "\n".join([title, *table, *(f"  note: {text}" for text in self.warnings)])

    __repr__ = __str__
