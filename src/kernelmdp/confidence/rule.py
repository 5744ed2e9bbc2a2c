"""The contract of confidence rules: from beliefs to confidence sets, before every episode."""

import abc
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.confidence.coverage import NO_THEOREM, Coverage
from kernelmdp.confidence.sets import ConfidenceSets
from kernelmdp.confidence.theorem import Evidence, Theorem
from kernelmdp.domains import Domain
from kernelmdp.mdp import Noise, Problem


class ConfidenceRule(abc.ABC):
    """How confidence sets are built. ``Confidence`` is one rule; you can write others.

    Attributes:
        delta: δ: the sets hold for all episodes at once with probability at least 1 − δ.
        scale: The factor of the widths that a theorem gives.
        split: Whether δ is divided between the sets.
        setting: "rkhs" for means of bounded norm, "gp" for means drawn from Gaussian processes.
        plans_in_sets: Whether optimistic plans consider all that the sets allow.
        columns: Columns of runs that the sets fill, with ``PlausibleModel.numbers``.

    >>> import kernelmdp as km
    >>> isinstance(km.Confidence(), ConfidenceRule)
    True
    """

    plans_in_sets: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ()

    delta: float = 0.1
    scale: float = 1.0
    split: bool = True
    setting: str = "rkhs"

    @property
    def norms(self) -> tuple[float, float]:
        """Norm bounds B_R and B_P, known or assumed."""
        return 1.0, 1.0

    @property
    def theorem(self) -> Theorem | None:
        """The theorem that such sets are made for, or None. Its assumptions decide coverage."""
        return None

    @property
    def coverage(self) -> Coverage:
        """Whether the settings meet the theorem's assumptions, if the reward is learned.

        ``ConfidenceSets.coverage`` includes posteriors and noise, and ``Agent.coverage`` the run.
        """
        if self.theorem is None:
            return NO_THEOREM
        return self.theorem.coverage(Evidence(confidence=self), "settings")

    def bounded(self, problem: Problem) -> Problem:
        """Bound the rewards of a problem, where the theorem gives a bound.

        Args:
            problem: The problem.

        Returns:
            The problem, unchanged unless a rule says otherwise.
        """
        return problem

    def for_problem(self, problem: Problem) -> "ConfidenceRule":
        """Fill in what the problem knows, such as norm bounds.

        Args:
            problem: The problem.

        Returns:
            The rule for this problem.
        """
        return self

    def members(self, problem: Problem) -> Sequence[Any]:
        """List the kernels of a family, if the sets are those of a family.

        Args:
            problem: The problem.

        Returns:
            Kernels of reward and transition for each member; empty for one kernel, the problem's.
        """
        return ()

    def regularisers_for(self, problem: Problem) -> tuple[float, float | np.ndarray]:
        """Choose the regularisers of the regressions.

        Args:
            problem: The problem.

        Returns:
            λ_R for rewards, and λ_P for scaled residuals of the transition.
        """
        return problem.noise_variances

    @abc.abstractmethod
    def sets(
        self,
        beliefs: Beliefs,
        *,
        episode: int,
        horizon: int,
        domain: Domain,
        reward_noise: Noise,
        transition_noise: Noise,
    ) -> ConfidenceSets:
        """Build the confidence sets of an episode.

        Args:
            beliefs: Posteriors of reward and transition from the episodes before.
            episode: The number of the episode, counted from 1.
            horizon: H.
            domain: Where z = (s, a) lies.
            reward_noise: Noise of rewards.
            transition_noise: Noise of next states, in units of the state.

        Returns:
            The sets.
        """
