"""What explorations promised, and what they gained and cost."""

import dataclasses
import math

import numpy as np

from kernelmdp.mdp import Episode


@dataclasses.dataclass(frozen=True)
class ExplorationRecord:
    """The outcome of explorations so far. It is kept in the running sums of an agent.

    An exploration is credited with the share of its promised gain that it earned itself, or that
    the careful episode after it earned. The level is a running mean of careful episodes.

    Attributes:
        totals: The running sums, which are saved with the agent. Methods change them.

    >>> record = ExplorationRecord({})
    >>> record.see_careful(1.0)
    >>> record.see_exploration(1.5, promised=1.0)  # half of the promise came true
    >>> record.trust(0.2, 5.0)
    0.25
    """

    totals: dict[str, float]

    @property
    def improvement(self) -> float:
        """By how much the last careful episode exceeded all others; infinite before the second."""
        return self.totals.get("improvement", math.inf)

    @property
    def level(self) -> float:
        """What careful episodes have earned lately; minus infinity before the first."""
        return self.totals.get("level", -math.inf)

    @property
    def is_informed(self) -> bool:
        """Whether anything tells plans apart: rewards differed, or an episode was terminated."""
        return self._sum("informed") > 0

    def see_steps(self, episode: Episode) -> None:
        """Take note of the steps of an episode of any kind.

        Args:
            episode: The episode.
        """
        reward = self.totals.setdefault("reward", float(episode.rewards[0]))
        if episode.terminated or np.any(np.asarray(episode.rewards) != reward):
            self.totals["informed"] = 1.0

    def trust(self, initial: float, weight: float) -> float:
        """Estimate the probability that a promised gain comes true.

        Args:
            initial: The probability before any exploration.
            weight: The number of explorations that weigh as much.

        Returns:
            The probability.
        """
        return (weight * initial + self._sum("credit")) / (weight + self._sum("explorations"))

    def corrected_cost(self, expected: float) -> float:
        """Average an expected cost with the costs of earlier explorations.

        Args:
            expected: The expected cost of the next one.

        Returns:
            The mean.
        """
        return (expected + self._sum("exploration_cost")) / (1.0 + self._sum("explorations"))

    def see_other(self, earned: float) -> None:
        """Take note of an episode that was not planned.

        Args:
            earned: Its return.
        """
        self.totals["best"] = max(self._best, earned)

    def see_exploration(self, earned: float, *, promised: float) -> None:
        """Take note of an exploration.

        Args:
            earned: Its return.
            promised: The promised gain.
        """
        self._credit_last(earned)
        level = self.totals.get("level", earned)
        credit = min(max((earned - level) / promised, 0.0), 1.0)
        sums = {
            "explorations": 1.0,
            "exploration_cost": max(level - earned, 0.0),
            "credit": credit,
        }
        self.totals.update({name: self._sum(name) + amount for name, amount in sums.items()})
        self.totals.update(promised=promised, credited=credit)

    def see_careful(self, earned: float) -> None:
        """Take note of a careful episode.

        Args:
            earned: Its return.
        """
        self._credit_last(earned)
        level, best = self.totals.get("level", earned), self._best
        self.totals.update(level=(level + earned) / 2, best=max(best, earned))
        if math.isfinite(best):
            self.totals["improvement"] = earned - best

    @property
    def _best(self) -> float:
        return self.totals.get("best", -math.inf)

    def _sum(self, name: str) -> float:
        return self.totals.get(name, 0.0)

    def _credit_last(self, earned: float) -> None:
        """Credit the exploration before this episode, if the episode earned more than it did."""
        promised, credited = self.totals.pop("promised", 0.0), self.totals.pop("credited", 0.0)
        if promised > 0:
            share = (earned - self.totals.get("level", earned)) / promised
            gained = max(min(share, 1.0) - credited, 0.0)
            self.totals["credit"] = self._sum("credit") + gained
