"""A Gymnasium environment as a task of H periods. Its states are vectors or numbers of a table."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from kernelmdp.domains import Box, Domain, FiniteSet
from kernelmdp.envs.action_spaces import action_rows
from kernelmdp.envs.angles import AnglePairs
from kernelmdp.envs.environment_calls import (
    checked_reward,
    environment_name,
    reset_environment,
    step_environment,
)
from kernelmdp.envs.flat_spaces import FlatSpace, flat_space
from kernelmdp.envs.gymnasium_env import GymnasiumEnvironment
from kernelmdp.envs.observed_cost import ObservedCost
from kernelmdp.envs.play_record import PlayRecord
from kernelmdp.envs.state_encoding import StateEncoding
from kernelmdp.envs.tabular import table_kernels
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import Categorical, Episode, Gaussian, Problem
from kernelmdp.mdp.measured_cost import OfInputs, with_cost_axis
from kernelmdp.mdp.observed_safety import LeadingCoordinates, ObservedCoordinates
from kernelmdp.numerics.tracing import as_array

#: Assumed standard deviation of rewards in a table, whose true one is unknown.
TABLE_NOISE = 0.1


@dataclasses.dataclass(frozen=True, eq=False)
class GymnasiumTask:
    """A Gymnasium environment with its spaces and horizon. Its true MDP is unknown.

    Attributes:
        env: The environment.
        states: A box, or the numbers 0, 1, … of a Discrete space.
        actions: A box, or the combinations of finite choices as rows. For environments of this
            library, their actions.
        horizon: The number of periods, H. Every period is one decision.
        known_reward: The mean reward as a function of points (n, d) -> (n,), or None.
        unbounded: Axes on which observations have no bounds. The bounds of ``states`` are
            provisional there, and are replaced from data (``dataclasses.replace(task,
            states=...)``). The state is the observation clipped to them, and the outcome is the
            observation itself.
        angle_pairs: Pairs of coordinates of an observation that are a cosine and a sine. Each is
            one angle of the state.
        action_repeat: The number of steps of the environment for which each action is held. The
            reward of a period is the sum over them.
        clock: Whether the last coordinate of the state is the number of steps since the start. A
            cost comes after it.
        cost: Whether the last coordinate of the state is the measured cost of the last step, on
            which nothing depends. Over the steps for which an action is held, it is the highest.
        given_bounds: Whether the bounds of ``states`` were given by the user. An observation beyond
            them is an error. Beyond the bounds that the environment declares, the state is clipped,
            the outcome is the observation itself, and a warning says so once.
        made_from: The name and options from which the task was made, or None.
        record: The steps of the environment that were played.

    >>> import kernelmdp as km
    >>> task = km.from_gymnasium("Pendulum-v1", horizon=5)
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
    action_repeat: int = 1
    clock: bool = False
    cost: bool = False
    given_bounds: bool = False
    made_from: dict[str, Any] | None = None
    record: PlayRecord = dataclasses.field(default_factory=PlayRecord, repr=False)

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
            # A grid over the visited states cannot plan beyond them, as a swing-up must.
            planner = "mpc" if self.unbounded else problem.planner
            return dataclasses.replace(
                problem,
                unbounded=self.unbounded,
                planner=planner,
                coordinates=self.coordinate_names,
                observation=self._observation if self.angle_pairs.pairs or self.cost else None,
                measured=(self.states.dimension - 1,) if self.cost else (),
            )
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
        """The environment's id or the name of its class, and options that are not the default."""
        options = ", ".join(f"{key}={value}" for key, value in self._options.items())
        return environment_name(self.env) + (f" ({options})" if options else "")

    @property
    def spec(self) -> dict[str, Any] | None:
        """A description from which the task can be made again, or None if there is none."""
        if self.made_from is not None:
            return self.made_from
        if self.env.spec is None:
            return None
        return {"id": self.env.spec.id} | self._options

    @property
    def _options(self) -> dict[str, Any]:
        """Options of ``from_gymnasium`` that change what a period or a state is."""
        repeat = {} if self.action_repeat == 1 else {"action_repeat": self.action_repeat}
        added = {"clock": self.clock, "cost": self.cost}
        return repeat | {name: True for name, observed in added.items() if observed}

    def with_cost(self) -> "GymnasiumTask":
        """Add the measured cost of the last step to the state.

        Returns:
            The task, whose environment observes the cost.

        Raises:
            ArgumentError: If states are a table, or the environment is one of this library, which
                reports no cost.
        """
        if self.states.finite or inner_environment(self.env) is not None:
            expected = "no measured cost of a table or of an environment of this library"
            raise ArgumentError("cost", expected, self.name)
        m, made_from, reward = self.states.dimension, self.made_from, self.known_reward
        inputs = tuple(j for j in range(m + 1 + self.actions.dimension) if j != m)
        return dataclasses.replace(
            self,
            env=ObservedCost(self.env),
            states=with_cost_axis(self.states),
            unbounded=(*self.unbounded, m),
            cost=True,
            known_reward=None if reward is None else OfInputs(reward, inputs),
            made_from=None if made_from is None else made_from | {"cost": True},
        )

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """The names of the state's coordinates, such as ``velocity[1]`` of a Dict observation."""
        return self._encoding.names

    @property
    def environment_steps(self) -> int:
        """How many steps of the environment were played, with every repetition of an action."""
        return self.record.environment_steps

    @functools.cached_property
    def _encoding(self) -> StateEncoding:
        space = flat_space(self.env.observation_space, "observation")
        return StateEncoding(
            space, self.states, self.unbounded, self.angle_pairs, self.given_bounds
        )

    @property
    def _observation(self) -> ObservedCoordinates:
        space, count = self._encoding.space, self.states.dimension
        observe, leading = self.angle_pairs.observations, 0
        if self.cost:
            leading = 0 if self.angle_pairs.pairs else count - 1
            observe = LeadingCoordinates(count - 1, None if leading else observe)
        shown = slice(len(space.names) - self.cost)
        low, high = np.asarray(space.low)[shown], np.asarray(space.high)[shown]
        return ObservedCoordinates(observe, space.names[shown], low, high, leading)

    @functools.cached_property
    def _actions(self) -> FlatSpace:
        return flat_space(self.env.action_space, "action")

    @functools.cached_property
    def _action_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Finite actions as agents know them, and as vectors of the environment."""
        return np.array(self.actions.points), action_rows(self._actions)

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
        observation = reset_environment(self.env, seed=seed, options=options)
        encoding = self._encoding
        observed = [encoding.observed(observation, "at the start")]
        states, actions, rewards, outcomes = [encoding.state(observed[0])], [], [], []
        steps, terminated, truncated = 0, False, False
        every_action = np.asarray(self.actions.spread_points(1)) if self.absorbing else ()
        for period in range(self.horizon):
            action = np.atleast_1d(np.asarray(policy(states[-1], period), dtype=float))
            if terminated:  # The last state of a table is absorbing under every action.
                action, reward, outcome = (
                    every_action[period % len(every_action)],
                    0.0,
                    observed[-1],
                )
                observed.append(outcome)
            else:
                passed, reward, outcome, terminated, truncated = self._hold(
                    action, observed[-1], steps
                )
                steps += len(passed)
                observed.append(passed[-1])
            states.append(encoding.state(observed[-1]))
            actions.append(action)
            rewards.append(reward)
            outcomes.append(outcome)
            if on_step is not None:
                on_step(states[-2], action, reward, outcome, terminated)
            if truncated or (terminated and not self.absorbing):
                break
        if isinstance(self.states, Box):
            self._note(self.states, np.stack(observed))
        columns = (np.stack(states), np.stack(actions), np.array(rewards), np.stack(outcomes))
        return Episode(*map(as_array, columns), terminated=terminated)

    def _hold(
        self, action: np.ndarray, observed: np.ndarray, steps: int
    ) -> tuple[list[np.ndarray], float, np.ndarray, bool, bool]:
        """Hold an action for ``action_repeat`` steps of the environment, or until it ends.

        Returns the coordinates after each step, the sum of rewards, the outcome, and whether the
        episode is terminated and truncated. ``steps`` were played before.
        """
        env_action, reward, passed = self.env_action(action), 0.0, [observed]
        turned = np.zeros_like(observed)
        terminated = truncated = False
        while len(passed) <= self.action_repeat and not (terminated or truncated):
            where = f"after step {steps + len(passed) - 1}"
            self.record.environment_steps += 1
            observation, earned, terminated, truncated, info = step_environment(
                self.env, where, env_action
            )
            passed.append(self._encoding.observed(observation, where))
            reward += checked_reward(earned, where)
            # An angle may go round while one action is held: the turns of all steps count.
            outcome = self._outcome(passed[-2], passed[-1], info) + turned
            periodic = list(self.states.periodic)
            turned[periodic] = (outcome - passed[-1])[periodic]
        if self.cost:
            outcome[-1] = passed[-1][-1] = max(row[-1] for row in passed[1:])
        return passed[1:], reward, outcome, bool(terminated), bool(truncated)

    def state_of(self, observation: Any) -> np.ndarray:
        """Convert an observation to a state.

        Args:
            observation: In the form of the environment's observations, with or without the cost.

        Returns:
            The state, (m,).
        """
        if self.cost:
            observation = self.env.get_wrapper_attr("completed")(observation)
        return self._encoding.state(self._encoding.observed(observation, ""))

    def rows_of(self, observation: Any) -> list[Any] | None:
        """Split a batch of observations.

        Args:
            observation: An observation of the environment, or a batch of them: an array with one
                more axis, or a list of observations with parts.

        Returns:
            The observations of a batch. None for a single observation.
        """
        # The cost may be left out, so an observation may be one of the environment inside.
        inside: list[Any] = [self.env.env] if self.cost else []  # type: ignore[attr-defined]
        for env in [self.env, *inside]:
            shape: tuple[int, ...] | None = env.observation_space.shape
            if shape is None:
                with_parts = isinstance(observation, list)
                if with_parts and all(isinstance(each, dict | tuple) for each in observation):
                    return observation
                continue
            try:
                is_batch = np.ndim(observation) == max(len(shape), 1) + 1
            except ValueError:  # lists of different lengths
                return None
            if is_batch:
                return list(np.asarray(observation))
        return None

    def _note(self, states: Box, rows: np.ndarray) -> None:
        """Look at the observations of an episode, but not at the cost, which may be constant."""
        names = self._encoding.names
        if self.cost:
            (low, high), names, rows = states.bounds, names[:-1], rows[:, :-1]
            states = Box(low[:-1], high[:-1], states.periodic)
        self.record.add_observations(names, list(rows), states)

    def _outcome(self, before: np.ndarray, after: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """Return the next state before its projection. Environments of this library report it."""
        if inner_environment(self.env) is not None:
            return np.asarray(info["outcome"], dtype=float)
        return self._encoding.unwrapped(before, after)

    def env_action(self, action: Any) -> Any:
        """Convert an action to the form that the environment's ``step`` takes.

        Args:
            action: An action as agents choose it, (q,).

        Returns:
            An element of the environment's action space.

        Raises:
            ArgumentError: If it is not in ``actions``.
        """
        row, q = np.atleast_1d(np.asarray(action, dtype=float)), self.actions.dimension
        if row.shape != (q,) or not np.isfinite(row).all():
            raise ArgumentError("policy", f"an action of {q} finite numbers", action)
        self.actions.require_inside("policy", row[None, :])
        if self.actions.points is not None:
            choices, rows = self._action_rows
            row = rows[np.abs(choices - row[None, :]).sum(axis=1).argmin()]
        return self._actions.to_element(row)


def inner_environment(env: gymnasium.Env[Any, Any]) -> GymnasiumEnvironment | None:
    """Return the environment of this library that is inside wrappers.

    Args:
        env: A Gymnasium environment.

    Returns:
        The environment, or None if it is not one of this library.
    """
    return env.unwrapped if isinstance(env.unwrapped, GymnasiumEnvironment) else None
