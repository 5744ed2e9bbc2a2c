"""The contract of learners: data in, MDPs for planners out.

A learner holds settings and never changes. What was learned is its state, a pytree. ``init`` makes
a state and ``update`` returns a new one; both are pure functions. A learner knows no planner.
"""

import abc
import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

from kernelmdp.confidence import Beliefs, ConfidenceRule, ConfidenceSets
from kernelmdp.errors import ArgumentError, UnknownPropertyError
from kernelmdp.kernels import Kernel
from kernelmdp.learners.model_wrappers import BonusReward, PessimisticReward
from kernelmdp.mdp import MDP, Episode, Problem
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.types import ArrayLike, Key

#: Columns for the information gained about reward and transition.
GAINS = ("gain_reward", "gain_transition")


class LearnerRequirements(NamedTuple):
    """What an agent and its planner need from a learner.

    Attributes:
        regularisers: λ_R and λ_P of the regressions. None means the noise variances.
        accuracy: Error of compiled kernels as a share of λ. None means the problem's value.
        query_points: A function from a problem to the points (n, d) at which every plan evaluates
            the model, or None.
        deviations: Whether plans need standard deviations at these points.
        uses_grid: Whether the planner tabulates values on a grid of states.
        visited_states: Number of visited states that MDPs carry for the planner; 0 for none.

    >>> LearnerRequirements(uses_grid=True).deviations
    False
    """

    regularisers: tuple[float, float | np.ndarray] | None = None
    accuracy: float | None = None
    query_points: Callable[[Problem], np.ndarray | None] = lambda problem: None
    deviations: bool = False
    uses_grid: bool = False
    visited_states: int = 0


class Learner(abc.ABC):
    """Turns data into beliefs, and beliefs into MDPs.

    ``check_learner`` checks a learner that you write.

    Attributes:
        name: The learner's name in settings, tables and files.
        columns: The columns that ``info`` fills.
        update_columns: Those of them that include the last episode. The others describe the
            beliefs before it.
        broken_assumptions: Assumptions of every theorem that this learner breaks; empty if none.
        needs_data: Whether no plan is possible before the first data.
        learns_costs: Whether it knows of coordinates on which nothing depends
            (``Problem.measured``).
        uses_motion: Whether it uses what is known of the motion (``Problem.motion``).
        forgets: Whether it can forget old episodes (``Problem.forgetting``).

    >>> import kernelmdp as km
    >>> isinstance(km.PSRL("riverswim", seed=0).learner, Learner)
    True
    """

    name: ClassVar[str]
    columns: ClassVar[tuple[str, ...]] = ()
    update_columns: ClassVar[tuple[str, ...]] = GAINS
    broken_assumptions: ClassVar[tuple[str, ...]] = ()
    needs_data: ClassVar[bool] = False
    learns_costs: ClassVar[bool] = False
    uses_motion: ClassVar[bool] = False
    forgets: ClassVar[bool] = False

    @classmethod
    def for_problem(cls, problem: Problem, requirements: LearnerRequirements) -> "Learner":
        """Make a learner for a problem.

        Args:
            problem: The problem to learn.
            requirements: What the agent and its planner need.

        Returns:
            The learner.
        """
        return cls()

    def with_settings(self, changes: Mapping[str, object]) -> "Learner":
        """Return a copy with some fields changed. The default works for dataclasses.

        Args:
            changes: New values by field.

        Returns:
            The changed learner.
        """
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    @abc.abstractmethod
    def init(self, problem: Problem, *, key: Key) -> Any:
        """Make the state before any data.

        Args:
            problem: What is known of the system.
            key: Decides everything random in learning.

        Returns:
            The state, a pytree.
        """

    @abc.abstractmethod
    def update(self, state: Any, episode: Episode, *, key: Key) -> Any:
        """Learn from an episode, or from some of its steps.

        Args:
            state: The state before. It stays unchanged.
            episode: States, actions, rewards and raw outcomes.
            key: Decides everything random in this update.

        Returns:
            The state after the episode.
        """

    @abc.abstractmethod
    def mean(self, state: Any) -> MDP:
        """Return the MDP of the expected reward and transition.

        Args:
            state: What was learned.

        Returns:
            The MDP.
        """

    def pessimistic(self, state: Any, *, deviations: float) -> MDP:
        """Return the mean MDP with rewards that are lower where they are uncertain.

        Plans in it are not attracted by places without data, however good their mean is.

        Args:
            state: What was learned.
            deviations: Standard deviations of the reward to subtract from its mean.

        Returns:
            The MDP. It is the mean one if the reward is known or the learner has no posteriors.
        """
        mdp, beliefs = self.mean(state), self.beliefs(state)
        if beliefs is None or beliefs.reward_known:
            return mdp
        model = PessimisticReward(mdp.model, beliefs, jnp.asarray(float(deviations)))
        return replace_fields(mdp, model=model)

    def with_bonus(self, state: Any, *, transition_weight: float, reward_weight: float) -> MDP:
        """Return the mean MDP with rewards R(z) + ‖(λ_P σ_P(z), λ_R σ_R(z))‖.

        Args:
            state: What was learned.
            transition_weight: λ_P. σ_P is in units of the beliefs' scale.
            reward_weight: λ_R. It has no effect on a known reward.

        Returns:
            The MDP. Its rewards have no range.

        Raises:
            ArgumentError: If the learner has no posteriors.
        """
        beliefs = self.deviation_beliefs(state)
        if beliefs is None:
            raise ArgumentError("learner", "one with posteriors, for a bonus", self.name)
        mdp = self.mean(state)
        weights = jnp.asarray(float(transition_weight)), jnp.asarray(float(reward_weight))
        model = BonusReward(mdp.model, beliefs, *weights)
        return replace_fields(mdp, model=model, reward_range=(-math.inf, math.inf))

    def deviation_beliefs(self, state: Any) -> Beliefs | None:
        """Return beliefs whose standard deviations planners evaluate many times.

        Args:
            state: What was learned.

        Returns:
            The beliefs, or None if the learner has no posteriors. They may be faster than those of
            ``beliefs``, with slightly larger deviations.
        """
        return self.beliefs(state)

    def noise_deviations(self, state: Any) -> np.ndarray | None:
        """Return estimated standard deviations of the transition's noise.

        Args:
            state: What was learned.

        Returns:
            One number for each coordinate, (m,). None if the learner does not estimate them.
        """
        return None

    def reward_limits(self, state: Any) -> tuple[float, float]:
        """Limit the rewards that are worth fearing or hoping for, where nothing was observed.

        Args:
            state: What was learned.

        Returns:
            The lowest and the highest mean reward; infinite if the learner has no limits.
        """
        return -math.inf, math.inf

    def undrawable(self, state: Any) -> Kernel | None:
        """Find a kernel of which ``sample`` can draw no functions.

        Args:
            state: What was learned.

        Returns:
            The kernel, or None if there is none.
        """
        return None

    @abc.abstractmethod
    def sample(self, state: Any, *, key: Key) -> MDP:
        """Draw one MDP from the beliefs.

        Args:
            state: What was learned.
            key: Decides the draw.

        Returns:
            The MDP.
        """

    def plausible(
        self, state: Any, confidence: ConfidenceRule, *, episode: int
    ) -> tuple[ConfidenceSets, MDP]:
        """Build the confidence sets of an episode.

        Args:
            state: What was learned.
            confidence: How confidence sets are built.
            episode: The number of the episode, counted from 1.

        Returns:
            The sets, and the family of MDPs inside them.

        Raises:
            UnknownPropertyError: If the learner has no confidence sets.
        """  # noqa: DOC202  (an override returns)
        raise UnknownPropertyError(f"the learner {self.name!r} has no confidence sets")

    def hopeful(self, state: Any, sets: ConfidenceSets, family: MDP) -> MDP:
        """Choose the family of MDPs in which optimistic plans are made.

        Args:
            state: What was learned.
            sets: The sets of the episode, from ``plausible``.
            family: The family of MDPs inside them.

        Returns:
            The family, or a smaller one.
        """
        return family

    def with_schedules(self, state: Any, schedules: Mapping[str, ArrayLike]) -> Any:
        """Replace the schedules of known coordinates, for the next episodes.

        Args:
            state: What was learned.
            schedules: Values at the times 0 to H, (H + 1,), by the name of the coordinate.

        Returns:
            The state.

        Raises:
            ArgumentError: If the learner has none.
        """  # noqa: DOC202  (an override returns)
        raise ArgumentError("known", "fitted kernels, for schedules", repr(self.name))

    def saved_arrays(self, state: Any) -> dict[str, np.ndarray]:
        """Return what a saved agent keeps of the state besides the episodes.

        Args:
            state: The state.

        Returns:
            Arrays by name. With the episodes, ``restored`` makes the state again from them. The
            default is empty: a loaded agent learns from all its episodes again.
        """
        return {}

    def restored(
        self, initial: Any, episodes: Sequence[Episode], arrays: Mapping[str, np.ndarray]
    ) -> Any:
        """Make a saved state again, without learning.

        Args:
            initial: The state before all episodes.
            episodes: The episodes.
            arrays: The result of ``saved_arrays``, which is not empty.

        Returns:
            The state.

        Raises:
            KeyError: If an array is missing.
            ValueError: If arrays and episodes do not fit together.
        """
        if arrays:
            raise ValueError(f"{type(self).__name__} keeps no arrays")
        return initial

    def info(self, state: Any) -> dict[str, float]:
        """Report diagnostics of a state.

        Args:
            state: What was learned.

        Returns:
            One number for each name in ``columns``.
        """
        return {}

    def beliefs(self, state: Any) -> Beliefs | None:
        """Return the Gaussian process posteriors of a state.

        Args:
            state: What was learned.

        Returns:
            The posteriors, or None for a learner without them.
        """
        return None
