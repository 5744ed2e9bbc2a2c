"""The system that an agent controls, behind an interface that hides the true dynamics.

The learning loop and regret need the true dynamics. They live in ``experiments``. That package
registers how to make a system from a task, so no agent imports an environment.
"""

import abc
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeAlias

import numpy as np

from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp import Policy, Problem
from kernelmdp.mdp.measured_cost import with_cost
from kernelmdp.mdp.memory import Memory
from kernelmdp.mdp.remembered_problem import with_memory
from kernelmdp.mdp.told_data import first_state
from kernelmdp.numerics.checks import float_array, require_finite
from kernelmdp.types import Observation


class System(abc.ABC):
    """A task as an agent sees it.

    Attributes:
        offline: Whether there is only a problem, and no system in which episodes can be played.
    """

    offline: ClassVar[bool]

    @property
    @abc.abstractmethod
    def task(self) -> object:
        """The task that the agent was made for."""

    @property
    @abc.abstractmethod
    def problem(self) -> Problem:
        """What is known of the task before learning."""

    @property
    @abc.abstractmethod
    def known_reward(self) -> Callable[..., Any] | None:
        """The true mean reward function, for agents with ``reward="known"``; None if unknown."""

    @property
    @abc.abstractmethod
    def spec(self) -> dict[str, Any] | None:
        """A description from which the task can be made again, or None if there is none."""

    @abc.abstractmethod
    def state_of(self, observation: Observation) -> Observation:
        """Convert an observation to a state.

        Args:
            observation: In the form of the system's observations.

        Returns:
            The state, (m,).
        """

    def rows_of(self, observation: Observation) -> list[Any] | None:
        """Split a batch of observations.

        Args:
            observation: An observation, or a batch of them.

        Returns:
            The observations of a batch. None for a single observation.
        """
        return list(np.asarray(observation)) if has_axes(observation, 2) else None

    def with_cost(self) -> "System":
        """Add the measured cost of the last step to the state.

        Returns:
            The system with the cost.

        Raises:
            ArgumentError: If no cost is measured.
        """  # noqa: DOC202  (an override returns)
        raise ArgumentError("constraints", "no limit of a cost, as the task reports none", "'cost'")

    @abc.abstractmethod
    def with_memory(self, memory: Memory) -> "System":
        """Let states tell the past and the time.

        Args:
            memory: What they tell.

        Returns:
            The system with these states.
        """

    def require_bounds(self) -> None:  # noqa: B027  (most systems have true bounds)
        """Raise ArgumentError if an axis of the state has only provisional bounds."""

    @abc.abstractmethod
    def evaluate(self, policy: Policy, *, seeds: Iterable[int]) -> np.ndarray:
        """Play a policy without learning.

        Args:
            policy: The policy.
            seeds: One for each episode. It decides the start and the noise.

        Returns:
            The returns, one for each seed.
        """

    @abc.abstractmethod
    def learn(
        self,
        agent: Any,
        *,
        episodes: int,
        progress: bool,
        callback: object = None,
        until: float | None = None,
    ) -> Any:
        """Let an agent play more episodes and learn from each.

        Args:
            agent: The agent.
            episodes: The number of episodes.
            progress: Whether to show a progress line in a terminal.
            callback: What is called after every episode, or None.
            until: A share of the span; see ``Agent.learn``. None plays all episodes.

        Returns:
            The ``Result`` of these episodes.
        """


@dataclasses.dataclass(frozen=True)
class OfflineSystem(System):
    """A problem without a system: you run the loop with ``ask`` and ``tell``.

    Attributes:
        offline: True.
        given_problem: The problem.
    """

    offline: ClassVar[bool] = True

    given_problem: Problem

    @property
    def task(self) -> Problem:
        return self.given_problem

    @property
    def problem(self) -> Problem:
        return self.given_problem

    @property
    def spec(self) -> None:
        return None

    @property
    def known_reward(self) -> Callable[..., Any] | None:
        return self.given_problem.reward

    def state_of(self, observation: Observation) -> Observation:
        return observation

    def with_cost(self) -> "OfflineSystem":
        return OfflineSystem(with_cost(self.given_problem))

    def with_memory(self, memory: Memory) -> "OfflineSystem":
        return OfflineSystem(with_memory(self.given_problem, memory))

    def evaluate(self, policy: Policy, *, seeds: Iterable[int]) -> np.ndarray:
        raise ArgumentError("task", "an environment to play in", "a Problem")

    def learn(
        self,
        agent: Any,
        *,
        episodes: int,
        progress: bool,
        callback: object = None,
        until: float | None = None,
    ) -> Any:
        raise ArgumentError("task", "an environment to learn in; use ask and tell", "a Problem")


#: A function that makes a system from a name, an environment or a Gymnasium object. It takes the
#: options of ``as_system``.
SystemMaker: TypeAlias = Callable[..., System]

_makers: list[SystemMaker] = []


def register_systems(maker: SystemMaker) -> None:
    """Register how systems are made. The package ``experiments`` calls this when imported.

    Args:
        maker: Replaces the maker registered before.
    """
    _makers[:] = [maker]


def as_system(task: object, *, horizon: int | None = None, **options: Any) -> System:
    """Make the system of a task.

    Args:
        task: A problem, an environment, a Gymnasium environment, the name of one, or a system.
        horizon: H. It is an error if the task has another horizon.
        **options: ``default_horizon``, which is H where the task does not define it;
            ``action_repeat``, the steps of a Gymnasium environment for which an action is held;
            and ``angles``, its coordinates that are angles.

    Returns:
        The system.

    Raises:
        ArgumentError: If there is no such task, or its horizon differs.
    """
    if isinstance(task, OfflineSystem):
        return task
    if not isinstance(task, Problem):
        return _makers[0](task, horizon=horizon, **options)
    if horizon is not None and horizon != task.horizon:
        raise ArgumentError("horizon", f"{task.horizon}, as the task has", horizon)
    if (repeat := options.get("action_repeat")) is not None:
        raise ArgumentError("action_repeat", "None: you play the episodes yourself", repeat)
    if (angles := options.get("angles")) is not None:
        expected = "None: give the Problem states=Box(low, high, periodic=[...])"
        raise ArgumentError("angles", expected, angles)
    return OfflineSystem(task)


def has_axes(observation: object, count: int) -> bool:
    """Return whether an observation is an array of numbers with so many axes.

    Args:
        observation: Anything.
        count: The number of axes.

    Returns:
        True if it is. Nested lists count as arrays.

    >>> has_axes([[1.0, 2.0]], 2), has_axes({"heat": 1.0}, 2)
    (True, False)
    """
    try:
        return np.ndim(np.asarray(observation)) == count
    except ValueError:  # lists of different lengths
        return False


def checked_state(
    problem: Problem, argument: str, state: Observation, *, complete: bool = False
) -> np.ndarray:
    """Convert a state to an array of finite numbers.

    Args:
        problem: Defines the number of coordinates m.
        argument: The argument's name, for error messages.
        state: The state. What users do not see may be left out (``mdp.told_data``).
        complete: Whether it may not be left out, as in what is learned from.

    Returns:
        The state as an array (m,).

    Raises:
        ShapeError: If it does not have m numbers.
    """
    array = np.atleast_1d(np.asarray(float_array(state, argument)))
    m = problem.states.dimension
    array = array if complete else first_state(problem, array)
    if array.shape != (m,):
        expected = f"a state of {m} numbers"
        if problem.memory is not None and not complete:
            k = problem.memory.observed
            seen = "one number" if k == 1 else f"{k} numbers"
            expected = f"an observation of {seen}, or {expected}"
        raise ShapeError(argument, expected, f"shape {array.shape}")
    require_finite(argument, array)
    return array
