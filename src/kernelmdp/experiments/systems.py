"""Systems in which agents learn: environments with a known true MDP, and Gymnasium environments.

An agent sees a system through the interface of ``agents.system`` only. The learning loop sees more.
"""

import abc
import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, ClassVar

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelmdp.agents import Agent
from kernelmdp.agents.system import System, register_systems
from kernelmdp.envs import ENVIRONMENTS, Environment, GymnasiumTask, from_gymnasium, make
from kernelmdp.envs.registry import BORDER_OPTIONS, takes_option
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.learning_loop import learn
from kernelmdp.experiments.regret import Evaluator, NoEvaluator, RegretEvaluator
from kernelmdp.experiments.results import Result
from kernelmdp.experiments.step_updates import StepwisePlayer, play_by_step
from kernelmdp.mdp import Episode, Policy, Problem
from kernelmdp.mdp.measured_cost import OfInputs
from kernelmdp.mdp.memory import Memory
from kernelmdp.mdp.remembered_problem import with_memory
from kernelmdp.numerics.modules import quick_jit
from kernelmdp.types import ArrayLike, Key, Observation


class PlayableSystem(System, abc.ABC):
    """A system in which episodes can be played.

    Attributes:
        offline: False.
    """

    offline: ClassVar[bool] = False

    @abc.abstractmethod
    def start(self, *, key: Key) -> ArrayLike | None:
        """Draw where the next episode starts.

        Args:
            key: Decides the draw.

        Returns:
            The state, (m,), or None if it is unknown before the episode.
        """

    @abc.abstractmethod
    def play(self, policy: Policy, start: ArrayLike | None, *, key: Key) -> Episode:
        """Play one episode of a policy.

        Args:
            policy: The policy.
            start: The first state from ``start``, (m,), or None.
            key: Decides the noise.

        Returns:
            The episode.
        """

    @abc.abstractmethod
    def play_by_step(self, agent: Agent, start: ArrayLike | None, *, key: Key) -> Episode:
        """Play one episode of an agent that learns at every step.

        Args:
            agent: The agent, with ``update="step"``.
            start: The first state from ``start``, (m,), or None.
            key: Decides the noise.

        Returns:
            The episode.
        """

    @abc.abstractmethod
    def play_seeded(self, policy: Policy, *, seed: int) -> Episode:
        """Play one episode of a policy with a given seed.

        Args:
            policy: The policy.
            seed: Decides the start and the noise.

        Returns:
            The episode.
        """

    @abc.abstractmethod
    def evaluator(self) -> Evaluator:
        """Make the evaluator that computes regret by the true MDP.

        Returns:
            The evaluator. If the truth is unknown, it returns no numbers.
        """

    def with_memory(self, memory: Memory) -> "RememberingSystem":
        return RememberingSystem(self, memory)

    def evaluate(self, policy: Policy, *, seeds: Iterable[int]) -> np.ndarray:
        return np.array([self.play_seeded(policy, seed=seed).total for seed in seeds])

    def learn(
        self,
        agent: Agent,
        *,
        episodes: int,
        progress: bool,
        callback: Any = None,
        until: float | None = None,
    ) -> Result:
        return learn(agent, episodes=episodes, progress=progress, callback=callback, until=until)


@dataclasses.dataclass(frozen=True, eq=False)
class EnvironmentSystem(PlayableSystem):
    """An environment whose true MDP and optimal value are known.

    Attributes:
        environment: The environment.
    """

    environment: Environment

    @property
    def task(self) -> Environment:
        return self.environment

    @property
    def problem(self) -> Problem:
        return self.environment.problem

    @property
    def known_reward(self) -> Callable[..., Any]:
        return self.environment.known_reward

    @property
    def spec(self) -> dict[str, Any] | None:
        return self.environment.spec

    def state_of(self, observation: Observation) -> Observation:
        return observation

    def start(self, *, key: Key) -> ArrayLike:
        return self.environment.draw_start(key)

    def play(self, policy: Policy, start: ArrayLike | None, *, key: Key) -> Episode:
        return self.environment.play(policy, jnp.asarray(start), key=key).on_host()

    def play_by_step(self, agent: Agent, start: ArrayLike | None, *, key: Key) -> Episode:
        return play_by_step(self.environment.mdp, StepwisePlayer(agent), np.asarray(start), key=key)

    def play_seeded(self, policy: Policy, *, seed: int) -> Episode:
        start_key, play_key = jax.random.split(jax.random.key(seed))
        return self.environment.play(policy, self.environment.draw_start(start_key), key=play_key)

    def evaluator(self) -> Evaluator:
        return RegretEvaluator(self.environment)


@dataclasses.dataclass(frozen=True, eq=False)
class GymnasiumSystem(PlayableSystem):
    """A Gymnasium environment. It can be played, but its true MDP is unknown.

    Attributes:
        gymnasium_task: The environment as a task.
    """

    gymnasium_task: GymnasiumTask

    @property
    def task(self) -> GymnasiumTask:
        return self.gymnasium_task

    @property
    def problem(self) -> Problem:
        return self.gymnasium_task.problem

    @property
    def known_reward(self) -> Callable[..., Any] | None:
        return self.gymnasium_task.known_reward

    @property
    def spec(self) -> dict[str, Any] | None:
        return self.gymnasium_task.spec

    def state_of(self, observation: Observation) -> Observation:
        return self.gymnasium_task.state_of(observation)

    def rows_of(self, observation: Any) -> list[Any] | None:
        return self.gymnasium_task.rows_of(observation)

    def with_cost(self) -> "GymnasiumSystem":
        return GymnasiumSystem(self.gymnasium_task.with_cost())

    def require_bounds(self) -> None:
        self.gymnasium_task.require_bounds()

    def start(self, *, key: Key) -> None:
        return None

    def play(self, policy: Policy, start: ArrayLike | None, *, key: Key) -> Episode:
        return self.gymnasium_task.play(policy.player(), seed=_seed_from(key)).on_host()

    def play_by_step(self, agent: Agent, start: ArrayLike | None, *, key: Key) -> Episode:
        player = StepwisePlayer(agent)
        seed = _seed_from(key)
        return self.gymnasium_task.play(player, seed=seed, on_step=player.observe).on_host()

    def play_seeded(self, policy: Policy, *, seed: int) -> Episode:
        return self.gymnasium_task.play(policy.player(), seed=seed)

    def evaluator(self) -> Evaluator:
        return NoEvaluator()


@dataclasses.dataclass(frozen=True, eq=False)
class RememberingSystem(PlayableSystem):
    """A system whose states tell the past and the time. Its policies remember them by themselves.

    Attributes:
        system: The system whose states are observations.
        memory: What states tell.
    """

    system: PlayableSystem
    memory: Memory

    @property
    def task(self) -> object:
        return self.system.task

    @functools.cached_property
    def problem(self) -> Problem:
        return with_memory(self.system.problem, self.memory)

    @property
    def known_reward(self) -> Callable[..., Any] | None:
        reward = self.system.known_reward
        return None if reward is None else OfInputs(reward, self.memory.seen)

    @property
    def spec(self) -> dict[str, Any] | None:
        return self.system.spec

    def state_of(self, observation: Observation) -> Observation:
        seen: Any = observation  # may be a mapping
        complete = np.shape(seen) == (self.memory.dimension,)
        return observation if complete else self.system.state_of(observation)

    def rows_of(self, observation: Any) -> list[Any] | None:
        return self.system.rows_of(observation)

    def require_bounds(self) -> None:
        self.system.require_bounds()

    def start(self, *, key: Key) -> ArrayLike | None:
        start = self.system.start(key=key)
        return None if start is None else self.memory.first(np.asarray(start))

    def play(self, policy: Policy, start: ArrayLike | None, *, key: Key) -> Episode:
        seen = None if start is None else np.asarray(start)[: self.memory.observed]
        return self.memory.episode(self.system.play(policy, seen, key=key))

    def play_by_step(self, agent: Agent, start: ArrayLike | None, *, key: Key) -> Episode:
        raise ArgumentError("update", "'episode' where states tell the past", "'step'")

    def play_seeded(self, policy: Policy, *, seed: int) -> Episode:
        return self.memory.episode(self.system.play_seeded(policy, seed=seed))

    def evaluator(self) -> Evaluator:
        return NoEvaluator()


def as_playable(
    task: object,
    *,
    horizon: int | None = None,
    default_horizon: int | None = None,
    action_repeat: int | None = None,
    angles: Sequence[int | str] | None = None,
) -> PlayableSystem:
    """Make the system of a task in which episodes can be played.

    Args:
        task: An environment, a Gymnasium environment, a class or function that makes either, the
            name of one, ``module:Name``, or a mapping with its ``name`` or ``id`` and options.
        horizon: H. It is an error if the task has another horizon.
        default_horizon: H where the task does not define it.
        action_repeat: The number of steps of a Gymnasium environment for which each action is
            held. It is an error if the task has another one.
        angles: Coordinates of a Gymnasium environment that are angles in radians.

    Returns:
        The system.

    Raises:
        ArgumentError: If there is no such task, or its horizon or action repeat differs.
    """
    if isinstance(task, PlayableSystem):
        return task
    proposed_horizon = default_horizon if horizon is None else horizon
    given = {"action_repeat": action_repeat, "angles": None if angles is None else list(angles)}
    options = {name: value for name, value in given.items() if value is not None}
    if isinstance(task, str | Mapping):
        spec = {"name": task} if isinstance(task, str) else dict(task)
        task, angles = _make_task(spec | options, proposed_horizon), None
    elif isinstance(task, type | FunctionType):
        task = task()
    if isinstance(task, Environment):
        _require_same("horizon", horizon, task.mdp.horizon)
        _require_same("action_repeat", action_repeat, 1)
        _require_same("angles", angles, None)
        return EnvironmentSystem(task)
    if not isinstance(task, GymnasiumTask):
        task = gymnasium_task(task, horizon=proposed_horizon, **options)
    elif angles is not None:
        expected = "None: say it to from_gymnasium, which made the task"
        raise ArgumentError("angles", expected, angles)
    _require_same("horizon", horizon, task.horizon)
    _require_same("action_repeat", action_repeat, task.action_repeat)
    return GymnasiumSystem(task)


def _require_same(argument: str, given: object, actual: object) -> None:
    if given is not None and given != actual:
        raise ArgumentError(argument, f"{actual}, as the task has", given)


def _make_task(spec: dict[str, Any], horizon: int | None) -> Environment | GymnasiumTask:
    """Make a task from its name and options, which the task stores."""
    name = spec.get("name", spec.get("id"))
    options = {key: value for key, value in spec.items() if key not in ("name", "id")}
    if not isinstance(name, str):
        raise ArgumentError("task", "the name of an environment", repr(name))
    if name in ENVIRONMENTS or is_module_reference(name) or not looks_like_gymnasium_id(name):
        border = border_options(name)
        ours = {key: options[key] for key in options if key in border}
        task = make(name, **{key: options[key] for key in options if key not in ours})
        if isinstance(task, Environment):
            _require_same("action_repeat", options.get("action_repeat"), 1)
            _require_same("angles", options.get("angles"), None)
            _require_same("clock", options.get("clock"), False)
            _require_same("cost", options.get("cost"), False)
            return task
        task = gymnasium_task(task, **{"horizon": horizon} | ours)
    else:
        task = gymnasium_task(name, **{"horizon": horizon} | options)
    return dataclasses.replace(task, made_from={"name": name} | options)


def border_options(name: str) -> tuple[str, ...]:
    """List the options that belong to the border to Gymnasium, and not to a maker.

    Args:
        name: The name of an environment of ours, or ``module:Name``.

    Returns:
        The options. A maker without a horizon of its own leaves it to the border.
    """
    takes_horizon = name in ENVIRONMENTS or takes_option(name, "horizon")
    return BORDER_OPTIONS if takes_horizon else ("horizon", *BORDER_OPTIONS)


def looks_like_gymnasium_id(name: str) -> bool:
    """Return whether a name looks like a Gymnasium id: it has a version or a namespace.

    Args:
        name: The name.

    Returns:
        True if it does.
    """
    return "-v" in name or "/" in name


def is_module_reference(name: str) -> bool:
    """Return whether a name is ``module:Name`` of an object, and not ``module:Id`` of Gymnasium.

    Args:
        name: The name.

    Returns:
        True if it is.
    """
    return ":" in name and not looks_like_gymnasium_id(name.partition(":")[2])


def gymnasium_task(env: Any, **options: Any) -> GymnasiumTask:
    """Make a task from a Gymnasium environment.

    Args:
        env: The environment, or its id.
        **options: Options of ``from_gymnasium``.

    Returns:
        The task.
    """
    with gymnasium_errors():
        return from_gymnasium(env, **options)


@contextlib.contextmanager
def gymnasium_errors() -> Iterator[None]:
    """Turn errors of Gymnasium into an ``ArgumentError`` of one sentence.

    Yields:
        Nothing.

    Raises:
        ArgumentError: If Gymnasium cannot make the environment.
    """
    try:
        yield
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        reason = " ".join(str(error).split())
        raise ArgumentError("task", "an environment that Gymnasium can make", reason) from None


def _seed_from(key: Key) -> int:
    """Derive a seed for Gymnasium from a JAX key."""
    return int(_draw_seed(key))


@quick_jit
def _draw_seed(key: Key) -> Array:
    return jax.random.randint(key, (), 0, 2**31 - 1)


register_systems(as_playable)
