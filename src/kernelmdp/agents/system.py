"""What an agent works on: a system behind an interface that hides the truth.

The loop, regret and records know the truth and live in ``experiments``. That package registers how
to make a system from a task, so an agent never imports an environment.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp import Problem
from kernelmdp.numerics.checks import float_array, require_finite
from kernelmdp.types import ArrayLike


class System(abc.ABC):
    """A task as an agent sees it."""

    #: Whether there is no system to play in, only a problem.
    offline: ClassVar[bool]

    @property
    @abc.abstractmethod
    def task(self) -> object:
        """What the agent was made for."""

    @property
    @abc.abstractmethod
    def problem(self) -> Problem:
        """What is known of it."""

    @property
    @abc.abstractmethod
    def known_reward(self) -> Callable[..., Any] | None:
        """The true mean reward, for agents that are to know it."""

    @property
    @abc.abstractmethod
    def spec(self) -> dict[str, Any] | None:
        """What makes the task again, or None when it cannot be made."""

    @abc.abstractmethod
    def state_of(self, observation: ArrayLike) -> ArrayLike:
        """The state that an observation is of."""

    def require_bounds(self) -> None:  # noqa: B027  (most systems have true bounds)
        """ArgumentError where an axis of the state has only provisional bounds."""

    @abc.abstractmethod
    def learn(self, agent: Any, *, episodes: int, progress: bool) -> Any:
        """Let an agent play and learn from that many more episodes."""


@dataclasses.dataclass(frozen=True)
class OfflineSystem(System):
    """A problem without a system: the loop is the user's, with ``ask`` and ``tell``."""

    offline: ClassVar[bool] = True

    told: Problem

    @property
    def task(self) -> Problem:
        return self.told

    @property
    def problem(self) -> Problem:
        return self.told

    @property
    def spec(self) -> None:
        return None

    @property
    def known_reward(self) -> Callable[..., Any] | None:
        return self.told.reward

    def state_of(self, observation: ArrayLike) -> ArrayLike:
        return observation

    def learn(self, agent: Any, *, episodes: int, progress: bool) -> Any:
        raise ArgumentError("task", "an environment to learn in; use ask and tell", "a Problem")


@runtime_checkable
class SystemMaker(Protocol):
    """Makes systems from names, environments and Gymnasium's objects."""

    def __call__(
        self, task: object, *, horizon: int | None, default_horizon: int | None
    ) -> System: ...


_makers: list[SystemMaker] = []


def register_systems(maker: SystemMaker) -> None:
    """Say how systems are made; ``experiments`` does."""
    _makers[:] = [maker]


def as_system(
    task: object, *, horizon: int | None = None, default_horizon: int | None = None
) -> System:
    """The system of a task.

    Args:
        task: A problem, an environment, a Gymnasium environment, the name of one, or a system.
        horizon: H; an error where the task has another.
        default_horizon: H where the task leaves it open.

    Raises:
        ArgumentError: If there is no such task, or its horizon is another.
    """
    if isinstance(task, OfflineSystem):
        return task
    if not isinstance(task, Problem):
        return _makers[0](task, horizon=horizon, default_horizon=default_horizon)
    if horizon is not None and horizon != task.horizon:
        raise ArgumentError("horizon", f"{task.horizon}, as the task has", horizon)
    return OfflineSystem(task)


def checked_state(problem: Problem, argument: str, state: ArrayLike) -> np.ndarray:
    """A state as an array (m,) of finite numbers."""
    array = np.atleast_1d(np.asarray(float_array(state, argument)))
    m = problem.states.dimension
    if array.shape != (m,):
        raise ShapeError(argument, f"a state of {m} numbers", f"shape {array.shape}")
    require_finite(argument, array)
    return array
