"""What a rule for confidence sets does: from beliefs to sets, before every episode."""

import abc

import numpy as np

from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.confidence.coverage import NO_THEOREM, Coverage
from kernelmdp.confidence.sets import ConfidenceSets
from kernelmdp.domains import Domain
from kernelmdp.mdp import Noise, Problem


class ConfidenceRule(abc.ABC):
    """How confidence sets are built. ``Confidence`` is the library's; a user may write another.

    >>> import kernelmdp as km
    >>> isinstance(km.Confidence(), ConfidenceRule)
    True
    """

    #: The sets hold for all episodes at once with probability 1 − δ, or what is left of it.
    delta: float = 0.1
    #: By what the widths of a theorem are multiplied.
    scale: float = 1.0
    #: Whether δ is shared between the sets.
    split: bool = True

    @property
    def norms(self) -> tuple[float, float]:
        """B_R and B_P, known or assumed."""
        return 1.0, 1.0

    @property
    def coverage(self) -> Coverage:
        """What a theorem says of such sets, whatever the run; ``ConfidenceSets`` says more."""
        return NO_THEOREM

    def for_problem(self, problem: Problem) -> "ConfidenceRule":
        """The rule with what the problem knows, such as norms, in the place of unknowns."""
        return self

    def regularisers_for(self, problem: Problem) -> tuple[float, float | np.ndarray]:
        """λ_R and λ_P, with which rewards and scaled residuals are regressed."""
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
        """The confidence sets before an episode, from beliefs of those before it.

        Args:
            beliefs: Posteriors of reward and transition.
            episode: The number of the episode, counted from 1.
            horizon: H.
            domain: Where z = (s, a) lives.
            reward_noise: Noise of rewards.
            transition_noise: Noise of next states, in units of the state.
        """
