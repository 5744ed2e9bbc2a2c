"""What a learner is: data in, an MDP that a planner can read out.

A learner holds settings and never changes. What was learned is its state, a pytree that ``init``
makes and ``update`` returns anew; both are pure functions. A learner knows nothing of planning.
"""

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from kernelmdp.confidence import Beliefs, ConfidenceRule, ConfidenceSets
from kernelmdp.errors import UnknownPropertyError
from kernelmdp.mdp import MDP, Episode, Problem
from kernelmdp.types import Key

#: Information gained about reward and transition: columns of every learner that knows them.
GAINS = ("gain_reward", "gain_transition")


class LearnerRequirements(NamedTuple):
    """What an agent and its planner ask of a learner.

    Attributes:
        regularisers: λ_R and λ_P to regress with; the noise variances unless given.
        accuracy: How closely kernels are compiled, as a share of λ; the problem's unless given.
        query_points: From a problem to the points at which plans ask the model every time, (n, d).
        deviations: Whether plans ask for standard deviations there.
        tabulates: Whether plans are tables over the states.

    >>> LearnerRequirements(uses_grid=True).deviations
    False
    """

    regularisers: tuple[float, float | np.ndarray] | None = None
    accuracy: float | None = None
    query_points: Callable[[Problem], np.ndarray | None] = lambda problem: None
    deviations: bool = False
    uses_grid: bool = False


class Learner(abc.ABC):
    """Turns data into beliefs, and beliefs into MDPs. ``check_learner`` checks one of your own.

    >>> import kernelmdp as km
    >>> isinstance(km.PSRL("riverswim", seed=0).learner, Learner)
    True
    """

    #: By which settings, tables and files call it.
    name: ClassVar[str]
    #: Columns that ``info`` has.
    columns: ClassVar[tuple[str, ...]] = ()
    #: Why no theorem is about the way it learns; empty where theorems are.
    broken_assumptions: ClassVar[tuple[str, ...]] = ()
    #: Whether nothing can be planned before the first data.
    needs_data: ClassVar[bool] = False

    @classmethod
    def for_problem(cls, problem: Problem, requirements: LearnerRequirements) -> "Learner":
        """A learner for a problem, with what an agent and its planner ask of it."""
        return cls()

    def with_settings(self, changes: Mapping[str, object]) -> "Learner":
        """With some of its fields changed; for a learner that is a dataclass."""
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    @abc.abstractmethod
    def init(self, problem: Problem, *, key: Key) -> Any:
        """The state before any data.

        Args:
            problem: What is known of the system.
            key: Of all that is random in learning.
        """

    @abc.abstractmethod
    def update(self, state: Any, episode: Episode, *, key: Key) -> Any:
        """The state after an episode, or after some of its steps; the old state stays as it was.

        Args:
            state: The state before.
            episode: States, actions, rewards and raw outcomes.
            key: Of all that is random in this update.
        """

    @abc.abstractmethod
    def mean(self, state: Any) -> MDP:
        """The MDP of the expected reward and transition."""

    @abc.abstractmethod
    def sample(self, state: Any, *, key: Key) -> MDP:
        """One MDP drawn from the beliefs."""

    def plausible(
        self, state: Any, confidence: ConfidenceRule, *, episode: int
    ) -> tuple[ConfidenceSets, MDP]:
        """Confidence sets before an episode, counted from 1, and the family of MDPs inside them.

        Raises:
            UnknownPropertyError: If the learner has no confidence sets.
        """
        raise UnknownPropertyError(f"the learner {self.name!r} has no confidence sets")

    def info(self, state: Any) -> dict[str, float]:
        """Diagnostics of a state, one number for each of ``columns``."""
        return {}

    def beliefs(self, state: Any) -> Beliefs | None:
        """Gaussian process posteriors behind a state, where there are any."""
        return None
