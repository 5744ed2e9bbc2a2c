"""A regret bound as a number: its parts, and whether it is better than the trivial bound."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kernelmdp.numerics.checks import integer

#: Largest number of steps T for which ``first_useful`` searches. No experiment is that long.
LARGEST_STEPS = 1e12


def log(value: float) -> float:
    """Compute ln, with ln 0 = −∞ for parts that are absent.

    Args:
        value: A number of at least 0.

    Returns:
        The logarithm.
    """
    return math.log(value) if value > 0 else -math.inf


def log_sum(logs: Any) -> float:
    """Compute ln Σ exp without overflow.

    Args:
        logs: Logarithms of the terms.

    Returns:
        The logarithm of the sum.
    """
    return float(np.logaddexp.reduce(list(logs)))


def exp(value: float) -> float:
    """Compute e^x, or infinity if it overflows.

    Args:
        value: The exponent x.

    Returns:
        The power.
    """
    return math.exp(value) if value < 709 else math.inf


@dataclasses.dataclass(frozen=True)
class Bound:
    """A bound of Regret(T), T = episodes · horizon, as a sum of named parts.

    The parts are stored as logarithms. So ``value`` may be infinite, but ``log_value`` is not.

    Attributes:
        theorem: The name of the theorem.
        version: "paper", "repaired" or "improved".
        horizon: The number of periods H.
        episodes: The number of episodes.
        log_parts: The logarithm of each part, by name.
        trivial: The bound that holds without learning, 2 sup|R̄| T.
        probability: The probability with which the bound holds, or "expectation".
        exponent: The exponent of T in the bound, logarithms aside. None if the kernels are unknown.
        warnings: What readers should know about the bound.

    >>> import kernelmdp as km
    >>> bound = km.theory.tabular(states=6, actions=2, horizon=20, episodes=1000, reward_noise=0.1)
    >>> bound.value > 0, bound.theorem
    (True, 'Tabular')
    """

    theorem: str
    version: str
    horizon: int
    episodes: int
    log_parts: Mapping[str, float]
    trivial: float
    probability: float | str
    exponent: float | None = None
    warnings: tuple[str, ...] = ()
    _at: Callable[[int], "Bound"] | None = dataclasses.field(
        default=None, repr=False, compare=False
    )

    @property
    def steps(self) -> int:
        """The number of steps T in all episodes."""
        return self.episodes * self.horizon

    @property
    def log_value(self) -> float:
        """The logarithm of the bound."""
        return log_sum(self.log_parts.values())

    @property
    def value(self) -> float:
        """The bound, or infinity if it overflows."""
        return exp(self.log_value)

    @property
    def parts(self) -> dict[str, float]:
        """The parts as numbers, by name."""
        return {name: exp(log_part) for name, log_part in self.log_parts.items()}

    @property
    def vacuous(self) -> bool:
        """Whether the bound is no better than the trivial one."""
        return self.log_value >= log(self.trivial)

    def at(self, episodes: int) -> "Bound":
        """Compute the same bound for another number of episodes.

        Args:
            episodes: The number of episodes.

        Returns:
            The bound.
        """
        assert self._at is not None
        return self._at(integer("episodes", episodes, least=1))

    @functools.cached_property
    def first_useful(self) -> int | None:
        """The least number of episodes from which the bound is not vacuous; None if T > 10¹².

        It is found by doubling and bisection. This is valid because a bound either grows more
        slowly than the trivial one or never becomes useful.
        """
        last = int(LARGEST_STEPS // self.horizon)
        high = 4  # the paper's Theorems 2 and 4 need T ≥ 4
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
        """List what a table about the bound shows.

        Returns:
            Pairs of a name and a formatted value.
        """
        holds = self.probability
        lines = [(name, f"{part:.4g}") for name, part in self.parts.items()]
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
