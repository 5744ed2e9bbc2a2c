"""A Gymnasium environment as a task of H periods. Its states are vectors or numbers of a table."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from kernelmdp.domains import Box, Domain, FiniteSet
from kernelmdp.envs.angles import AnglePairs, cos_sin_pairs
from kernelmdp.envs.gymnasium_env import GymnasiumEnvironment
from kernelmdp.envs.gymnasium_spaces import action_domain, state_domain
from kernelmdp.envs.tabular import table_kernels
from kernelmdp.errors import ArgumentError, DataError, KernelMDPError, ShapeError
from kernelmdp.mdp import Categorical, Episode, Gaussian, Problem
from kernelmdp.numerics.checks import integer
from kernelmdp.numerics.tracing import as_array

#: Assumed standard deviation of rewards in a table, whose true one is unknown.
TABLE_NOISE = 0.1
#: Resets whose first observations are searched for cosines and sines. Too few of them may show
#: pairs that are on the unit circle by chance.
RESETS = 8


@dataclasses.dataclass(frozen=True, eq=False)
class GymnasiumTask:
    """A Gymnasium environment with its spaces and horizon. Its true MDP is unknown.

    Attributes:
        env: The environment.
        states: A box, or the numbers 0, 1, … of a Discrete space.
        actions: A box, or the numbers of a Discrete space as rows. For environments of this
            library, their actions.
        horizon: The number of periods, H.
        known_reward: The mean reward as a function of points (n, d) -> (n,), or None.
        unbounded: Axes on which observations have no bounds. The bounds of ``states`` are
            provisional there, and are replaced from data (``dataclasses.replace(task,
            states=...)``). The state is the observation clipped to them, and the outcome is the
            observation itself.
        angle_pairs: Pairs of coordinates of an observation that are a cosine and a sine. Each is
            one angle of the state.
        made_from: The name and options from which the task was made, or None.

    >>> task = from_gymnasium("Pendulum-v1", horizon=5)
    >>> task.states.dimension, task.horizon  # the cosine and sine are one angle
    (2, 5)
    >>> task.play(lambda state, period: [0.0], seed=0).rewards.shape
    (5,)
    """

    env: gymnasium.Env[Any, Any]
    states: Box | FiniteSet
    actions: Domain
    horizon: int
    known_reward: Callable[..., Any] | None = None
    unbounded: tuple[int, ...] = ()
    angle_pairs: AnglePairs = dataclasses.field(default_factory=AnglePairs)
    made_from: dict[str, Any] | None = None

    @functools.cached_property
    def problem(self) -> Problem:
        """What agents know: spaces and horizon. Kernels are fitted, and tables are counted.

        Raises:
            ArgumentError: If observations are Discrete and actions are not.
        """
        if isinstance(self.states, Box):
            problem = Problem.from_spaces(
                states=self.states, actions=self.actions, horizon=self.horizon, name=self.name
            )
            return dataclasses.replace(problem, unbounded=self.unbounded)
        action_count = len(self.actions.spread_points(1)) if self.actions.finite else 0
        if not action_count:
            raise ArgumentError("env", "Discrete actions with Discrete observations", self.actions)
        reward_kernel, transition_kernel = table_kernels(self.states.count, action_count)
        return Problem(
            name=self.name,
            states=self.states,
            actions=self.actions,
            horizon=self.horizon,
            reward_kernel=reward_kernel,
            transition_kernel=transition_kernel,
            reward=None,
            reward_noise=Gaussian(TABLE_NOISE, estimated=True),
            transition_noise=Categorical(self.states),
            offset="uniform",
        )

    @property
    def name(self) -> str:
        """The environment's id, or the name of its class if it has none."""
        return self.env.spec.id if self.env.spec is not None else type(self.env.unwrapped).__name__

    @property
    def spec(self) -> dict[str, Any] | None:
        """A description from which the task can be made again, or None if there is none."""
        if self.made_from is not None:
            return self.made_from
        return {"id": self.env.spec.id} if self.env.spec is not None else None

    @property
    def absorbing(self) -> bool:
        """Whether an episode that ends early stays in its last state without reward, up to H.

        This is so in tables, where the last state has a row of its own.
        """
        return self.states.finite

    def require_bounds(self) -> None:
        """Check that all bounds of states are true ones, for planners that need them.

        Raises:
            ArgumentError: If an axis has only provisional bounds.
        """
        if self.unbounded:
            raise ArgumentError(
                "states",
                f"states=Box(low, high) with {self.states.dimension} finite bounds each",
                f"an observation space without bounds in coordinates {list(self.unbounded)}",
            )

    def play(
        self,
        policy: Callable[[np.ndarray, int], Any],
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
        on_step: Callable[[np.ndarray, np.ndarray, float, np.ndarray, bool], None] | None = None,
    ) -> Episode:
        """Play one episode of a policy.

        The episode is shorter than H if the environment ends it. A truncated episode says nothing
        about its last state. In a table, a terminated episode stays in its last state up to H.

        Args:
            policy: A function from state and period, counted from 0, to an action.
            seed: Passed to the environment's ``reset``.
            options: Passed to the environment's ``reset``.
            on_step: A function that is called after every step with state, action, reward, outcome
                and whether the environment terminated the episode; or None.

        Returns:
            The episode.
        """
        observation, _ = self._call("at the start", self.env.reset, seed=seed, options=options)
        observed = [self._observed(observation, "at the start")]
        states, actions, rewards, outcomes = [self._state(observed[0])], [], [], []
        terminated = truncated = False
        info: dict[str, Any] = {}
        every_action = np.asarray(self.actions.spread_points(1)) if self.absorbing else ()
        for period in range(self.horizon):
            where = f"after step {period}"
            action = np.atleast_1d(np.asarray(policy(states[-1], period), dtype=float))
            if terminated:  # The last state of a table is absorbing under every action.
                action, reward = every_action[period % len(every_action)], 0.0
            else:
                env_action = self._env_action(action)
                observation, reward, terminated, truncated, info = self._call(
                    where, self.env.step, env_action
                )
            observed.append(self._observed(observation, where))
            states.append(self._state(observed[-1]))
            actions.append(action)
            rewards.append(_checked_reward(reward, where))
            outcomes.append(self._outcome(states[-2], observed[-1], info))
            if on_step is not None:
                on_step(states[-2], action, rewards[-1], outcomes[-1], bool(terminated))
            if truncated or (terminated and not self.absorbing):
                break
        columns = (np.stack(states), np.stack(actions), np.array(rewards), np.stack(outcomes))
        return Episode(*map(as_array, columns), terminated=bool(terminated))

    def _call(self, where: str, method: Callable[..., Any], *values: Any, **options: Any) -> Any:
        """Call a method of the environment. Its exceptions become errors that name the step."""
        try:
            return method(*values, **options)
        except KernelMDPError:
            raise
        except Exception as error:
            message = " ".join(str(error).split()) or "no message"
            raise KernelMDPError(
                f"env: {self.name} raised {type(error).__name__} {where}: {message}"
            ) from error

    def state_of(self, observation: Any) -> np.ndarray:
        """Convert an observation to a state.

        Args:
            observation: In the shape of the environment's observations.

        Returns:
            The state, (m,).
        """
        return self._state(self._observed(observation, "given"))

    def _observed(self, observation: Any, where: str) -> np.ndarray:
        """Convert an observation to the coordinates of a state, and check them.

        Angles are wrapped. Coordinates without bounds are not clipped.
        """
        space = self.env.observation_space
        if isinstance(space, spaces.Discrete):
            return np.array([float(int(np.asarray(observation).item()) - int(space.start))])
        try:
            state = np.array(observation, dtype=float)
        except (TypeError, ValueError):
            raise DataError("observation", "numbers", f"{observation!r} {where}") from None
        expected = self.states.dimension + len(self.angle_pairs.pairs)
        if state.shape != (expected,):
            raise ShapeError("observation", f"{expected} numbers", f"shape {state.shape} {where}")
        if not np.isfinite(state).all():
            axis = int(np.argmin(np.isfinite(state)))
            raise DataError(
                "observation", "finite numbers", f"{state[axis]} in coordinate {axis} {where}"
            )
        state = self.angle_pairs(state)
        periodic = list(self.states.periodic)
        if periodic:
            state[periodic] = self._nearest(state)[periodic]
        inside = state.copy()
        inside[list(self.unbounded)] = self._nearest(state)[list(self.unbounded)]
        self.states.require_inside(f"observation {where}", inside[None, :])
        return state

    def _state(self, observed: np.ndarray) -> np.ndarray:
        return self._nearest(observed) if self.unbounded else observed

    def _nearest(self, state: np.ndarray) -> np.ndarray:
        # As ``Box.nearest``. For the few numbers of a step, NumPy is faster.
        low, high = self.states.bounds
        periodic = np.isin(np.arange(len(low)), self.states.periodic)
        return np.where(periodic, low + np.mod(state - low, high - low), np.clip(state, low, high))

    def _outcome(
        self, state: np.ndarray, next_state: np.ndarray, info: dict[str, Any]
    ) -> np.ndarray:
        """Return the next state before its projection.

        Environments of this library report it. For others it is the next state with angles
        unwrapped: a jump from one end of a periodic axis to the other is no motion.
        """
        if _inner_environment(self.env) is not None:
            return np.asarray(info["outcome"], dtype=float)
        low, high = self.states.bounds
        outcome = next_state.copy()
        for axis in self.states.periodic:
            turn = high[axis] - low[axis]
            outcome[axis] -= turn * np.round((next_state[axis] - state[axis]) / turn)
        return outcome

    def _env_action(self, action: np.ndarray) -> Any:
        """Convert an action to the form that the environment's ``step`` takes."""
        q = self.actions.dimension
        if action.shape != (q,) or not np.isfinite(action).all():
            raise ArgumentError("policy", f"an action of {q} finite numbers", action)
        self.actions.require_inside("policy", action[None, :])
        space = self.env.action_space
        if isinstance(space, spaces.Discrete):
            distances = np.abs(np.array(self.actions.points) - action[None, :]).sum(axis=1)
            return int(space.start) + int(distances.argmin())
        return action.astype(space.dtype)


def _checked_reward(reward: Any, where: str) -> float:
    try:
        number = np.asarray(reward, dtype=float).item()
    except (TypeError, ValueError):
        raise DataError("reward", "a number", f"{reward!r} {where}") from None
    if not math.isfinite(number):
        raise DataError("reward", "a finite number", f"{number} {where}")
    return number


def from_gymnasium(
    env_or_id: gymnasium.Env[Any, Any] | str,
    *,
    horizon: int | None = None,
    states: Box | None = None,
    angles: Sequence[int] = (),
    known_reward: Callable[..., Any] | None = None,
) -> GymnasiumTask:
    """Make a task from a Gymnasium environment.

    If ``states`` is None, the first observations of a few resets are searched for cosines and
    sines. Two coordinates that are a cosine and a sine in all of them become one angle.

    Args:
        env_or_id: The environment, or its id.
        horizon: The number of periods, H. None means the environment's time limit.
        states: The state space. None means the observation space. Axes without bounds then get
            provisional ones (``GymnasiumTask.unbounded``).
        angles: Coordinates that are angles in radians, which wrap from π to −π.
        known_reward: The mean reward as a function of points (n, d) -> (n,). Environments of this
            library bring theirs.

    Returns:
        The task.

    Raises:
        ArgumentError: If there is no such environment, or the horizon is unknown or too long.

    >>> from_gymnasium("CartPole-v1").unbounded
    (1, 3)
    """
    env = gymnasium.make(env_or_id) if isinstance(env_or_id, str) else env_or_id
    if not isinstance(env, gymnasium.Env):
        raise ArgumentError("env_or_id", "a gymnasium.Env or the id of one", repr(env_or_id))
    inner = _inner_environment(env)
    if inner is not None:
        limit: int | None = inner.environment.mdp.horizon
    else:
        limit = None if env.spec is None else env.spec.max_episode_steps
    if horizon is None and limit is None:
        raise ArgumentError("horizon", "a whole number, as the environment has no time limit", None)
    periods = integer("horizon", limit if horizon is None else horizon, least=1)
    if limit is not None and periods > limit:
        raise ArgumentError("horizon", f"at most the time limit of {limit} steps", periods)
    known_states: Domain | None = states
    if inner is not None and states is None and inner.states.bounded and not inner.states.finite:
        known_states = inner.states
    domain, unbounded = state_domain(env.observation_space, known_states, angles)
    angle_pairs = AnglePairs()
    if known_states is None and not domain.finite:
        angle_pairs = _find_angle_pairs(env, domain)
        axes = angle_pairs.observation_axes(domain.dimension)
        unbounded = tuple(n for n, axis in enumerate(axes) if axis in unbounded)
        domain = angle_pairs.box(domain)
    return GymnasiumTask(
        env=env,
        states=domain,
        angle_pairs=angle_pairs,
        actions=inner.environment.mdp.actions if inner else action_domain(env.action_space),
        horizon=periods,
        known_reward=(
            inner.known_reward if inner is not None and known_reward is None else known_reward
        ),
        unbounded=unbounded,
    )


def _inner_environment(env: gymnasium.Env[Any, Any]) -> GymnasiumEnvironment | None:
    """Return the environment of this library inside wrappers, or None if it is another one."""
    return env.unwrapped if isinstance(env.unwrapped, GymnasiumEnvironment) else None


def _find_angle_pairs(env: gymnasium.Env[Any, Any], box: Domain) -> AnglePairs:
    """Find cosines and sines in first observations. No step is taken."""
    low, high = box.bounds
    if np.count_nonzero((np.abs(low) <= 1.01) & (np.abs(high) <= 1.01)) < 2:
        return AnglePairs()
    observations = [np.asarray(env.reset(seed=seed)[0], dtype=float) for seed in range(RESETS)]
    return AnglePairs(tuple(cos_sin_pairs(np.stack(observations))))
