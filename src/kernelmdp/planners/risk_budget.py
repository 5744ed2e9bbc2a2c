"""The risk budget: how much probability of a violation the next episode may take.

Before episode l a plan knows W_l, an upper bound of its probability of a violation. If the sum of
all W_l never exceeds the risk, then a violation in any episode has at most that probability. Each
episode gets a share of the risk. What an episode does not use is left to the next ones.
"""

import dataclasses
import math
from typing import Any

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import choice, integer

#: The sum of 1/l² over l = 1, 2, … is π²/6.
SQUARES = math.pi**2 / 6


@dataclasses.dataclass(frozen=True)
class RiskBudget:
    """A probability of a violation, and the episodes that it is for.

    Attributes:
        risk: The probability, between 0 and 1.
        episodes: "learning" for all episodes, of which episode l gets the share 6/(π² l²). Or a
            number of episodes, each with the same share, after which nothing is left. Or "episode"
            for a risk of every single episode.

    Raises:
        ArgumentError: If the risk is not between 0 and 1.

    >>> round(RiskBudget(0.1, 10).allowed(2, spent=0.005), 4)
    0.015
    """

    risk: Any
    episodes: str | int = "learning"

    def __post_init__(self) -> None:
        try:
            valid = 0 < float(self.risk) < 1
        except (TypeError, ValueError):
            valid = False
        if not valid:
            raise ArgumentError("risk", "a probability between 0 and 1", repr(self.risk))
        if isinstance(self.episodes, str):
            choice("risk_for", self.episodes, ("learning", "episode"))
        else:
            integer("risk_for", self.episodes, least=1)

    def allowed(self, episode: int, *, spent: float) -> float:
        """Return the risk that an episode may take.

        Args:
            episode: The number of the episode, counted from 1.
            spent: The sum of W of the episodes before.

        Returns:
            The risk, at least 0. For a risk of every episode it is the risk itself.
        """
        if self.episodes == "episode":
            return self.risk
        if self.episodes == "learning":
            share = sum(1 / number**2 for number in range(1, episode + 1)) / SQUARES
        else:
            share = min(episode / int(self.episodes), 1.0)
        return max(self.risk * share - spent, 0.0)
