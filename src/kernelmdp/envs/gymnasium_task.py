"""Any Gymnasium environment with vectors or numbers for states as a task of H periods."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import jax.numpy as jnp
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

#: Standard deviation of rewards of a table when nothing is said.
TABLE_NOISE = 0.1
#: First observations that are looked at for angles.
RESETS = 8


@dataclasses.dataclass(frozen=True, eq=False)
class GymnasiumTask:
    """Spaces, horizon and a way to play; the truth is not known here.

    >>> task = from_gymnasium("Pendulum-v1", horizon=5)
    >>> task.states.dimension, task.horizon  # the cosine and sine are one angle
    (2, 5)
    >>> task.play(lambda state, period: [0.0], seed=0).rewards.shape
    (5,)
    """

    env: gymnasium.Env[Any, Any]
    #: A box, or the numbers 0, 1, … of a Discrete space.
    states: Box | FiniteSet
    #: A box, or the numbers of a Discrete space (our own environments: their actions) as rows.
    actions: Domain
    horizon: int
    known_reward: Callable[..., Any] | None = None
    #: Axes on which observations have no bounds: those of ``states`` are provisional, to be
    #: replaced from data (``dataclasses.replace(task, states=...)``). There a state is the
    #: observation brought between them, and the outcome what was observed.
    unbounded: tuple[int, ...] = ()
    #: Which pairs of an observation are a cosine and a sine: each is one angle of the state.
    circles: AnglePairs = dataclasses.field(default_factory=AnglePairs)
    #: Name and options that make this task again, where it was made from them.
    made_from: dict[str, Any] | None = None

    @functools.cached_property
    def problem(self) -> Problem:
        """What agents are told: spaces and a horizon; kernels are fitted, tables are counted."""
        if isinstance(self.states, Box):
            found = Problem.from_spaces(
                states=self.states, actions=self.actions, horizon=self.horizon, name=self.name
            )
            return dataclasses.replace(found, unbounded=self.unbounded)
        options = len(self.actions.spread(1)) if self.actions.finite else 0
        if not options:
            raise ArgumentError("env", "Discrete actions with Discrete observations", self.actions)
        reward_kernel, transition_kernel = table_kernels(self.states.count, options)
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
        """The environment's id, or its class where it has none."""
        return self.env.spec.id if self.env.spec is not None else type(self.env.unwrapped).__name__

    @property
    def spec(self) -> dict[str, Any] | None:
        """What makes this task again, or None when an object was given that cannot be made."""
        if self.made_from is not None:
            return self.made_from
        return {"id": self.env.spec.id} if self.env.spec is not None else None

    @property
    def absorbing(self) -> bool:
        """Whether an episode that ends early goes on in its last state without reward: in a table
        that state is one of its own."""
        return self.states.finite

    def require_bounds(self) -> None:
        """An error where an axis has only provisional bounds: for planners that need true ones."""
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
        """One episode of policy(state, period) -> action, the period counted from 0.

        ``seed`` and ``options`` go to the environment's ``reset``. The episode is shorter than H
        when the environment ends it: ``terminated`` by itself, or else cut off, which says nothing
        about its last state. In a table a terminated episode goes on in its last state instead.
        ``on_step`` is told of every step at once: state, action, reward, outcome and whether the
        environment ended the episode.
        """
        observation, _ = self._ask("at the start", self.env.reset, seed=seed, options=options)
        seen = [self._observed(observation, "at the start")]
        states, actions, rewards, outcomes = [self._state(seen[0])], [], [], []
        terminated = truncated = False
        info: dict[str, Any] = {}
        for period in range(self.horizon):
            where = f"after step {period}"
            action = np.atleast_1d(np.asarray(policy(states[-1], period), dtype=float))
            sent = self._send(action)
            if terminated:  # the last state of a table is left no more and pays nothing
                earned = 0.0
            else:
                observation, earned, terminated, truncated, info = self._ask(
                    where, self.env.step, sent
                )
            seen.append(self._observed(observation, where))
            states.append(self._state(seen[-1]))
            actions.append(action)
            rewards.append(_reward(earned, where))
            outcomes.append(self._outcome(states[-2], seen[-1], info))
            if on_step is not None:
                on_step(states[-2], action, rewards[-1], outcomes[-1], bool(terminated))
            if truncated or (terminated and not self.absorbing):
                break
        columns = (np.stack(states), np.stack(actions), np.array(rewards), np.stack(outcomes))
        return Episode(*(jnp.asarray(column) for column in columns), terminated=bool(terminated))

    def _ask(self, where: str, call: Callable[..., Any], *given: Any, **words: Any) -> Any:
        """What the environment answers; an exception of its own becomes ours, with the step."""
        try:
            return call(*given, **words)
        except KernelMDPError:
            raise
        except Exception as error:
            said = " ".join(str(error).split()) or "no message"
            raise KernelMDPError(
                f"env: {self.name} raised {type(error).__name__} {where}: {said}"
            ) from error

    def state_of(self, observation: Any) -> np.ndarray:
        """The state that an observation is of."""
        return self._state(self._observed(observation, "given"))

    def _observed(self, observation: Any, where: str) -> np.ndarray:
        """An observation as the numbers of a state, checked; angles are between their ends."""
        space = self.env.observation_space
        if isinstance(space, spaces.Discrete):
            return np.array([float(int(np.asarray(observation).item()) - int(space.start))])
        try:
            state = np.array(observation, dtype=float)
        except (TypeError, ValueError):
            raise DataError("observation", "numbers", f"{observation!r} {where}") from None
        expected = self.states.dimension + len(self.circles.pairs)
        if state.shape != (expected,):
            raise ShapeError("observation", f"{expected} numbers", f"shape {state.shape} {where}")
        if not np.isfinite(state).all():
            bad = int(np.argmin(np.isfinite(state)))
            raise DataError(
                "observation", "finite numbers", f"{state[bad]} in coordinate {bad} {where}"
            )
        state = self.circles(state)
        around = list(self.states.periodic)
        if around:
            state[around] = self._nearest(state)[around]
        inside = state.copy()
        inside[list(self.unbounded)] = self._nearest(state)[list(self.unbounded)]
        self.states.require_inside(f"observation {where}", inside[None, :])
        return state

    def _state(self, observed: np.ndarray) -> np.ndarray:
        return self._nearest(observed) if self.unbounded else observed

    def _nearest(self, state: np.ndarray) -> np.ndarray:
        return np.asarray(self.states.nearest(state[None, :]))[0]

    def _outcome(self, before: np.ndarray, after: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """The raw outcome. Elsewhere than in ours it is the next state, with angles unwrapped: a
        jump from one end of a periodic axis to the other is no motion."""
        if _ours(self.env) is not None:
            return np.asarray(info["outcome"], dtype=float)
        low, high = self.states.bounds
        outcome = after.copy()
        for axis in self.states.periodic:
            turn = high[axis] - low[axis]
            outcome[axis] -= turn * np.round((after[axis] - before[axis]) / turn)
        return outcome

    def _send(self, action: np.ndarray) -> Any:
        """An action in the form that the environment's ``step`` takes."""
        q = self.actions.dimension
        if action.shape != (q,) or not np.isfinite(action).all():
            raise ArgumentError("policy", f"an action of {q} finite numbers", action)
        self.actions.require_inside("policy", jnp.asarray(action)[None, :])
        space = self.env.action_space
        if isinstance(space, spaces.Discrete):
            gaps = np.abs(np.array(self.actions.points) - action[None, :]).sum(axis=1)
            return int(space.start) + int(gaps.argmin())
        return action.astype(space.dtype)


def _reward(earned: Any, where: str) -> float:
    try:
        reward = np.asarray(earned, dtype=float).item()
    except (TypeError, ValueError):
        raise DataError("reward", "a number", f"{earned!r} {where}") from None
    if not math.isfinite(reward):
        raise DataError("reward", "a finite number", f"{reward} {where}")
    return reward


def from_gymnasium(
    env_or_id: gymnasium.Env[Any, Any] | str,
    *,
    horizon: int | None = None,
    states: Box | None = None,
    angles: Sequence[int] = (),
    known_reward: Callable[..., Any] | None = None,
) -> GymnasiumTask:
    """A Gymnasium environment, or the id of one, as a task.

    ``horizon`` is that of its time limit unless given; ``states`` its observation space, where
    axes without bounds get provisional ones (``GymnasiumTask.unbounded``). Coordinates in
    ``angles`` are angles in radians: they come round from π to −π. ``known_reward`` is a function
    of points (n, d) -> (n,) of state and action; our own environments bring theirs.

    Two coordinates that are a cosine and a sine in the first observation of every one of a few
    resets become one angle, unless ``states`` is given.

    >>> from_gymnasium("CartPole-v1").unbounded
    (1, 3)
    """
    env = gymnasium.make(env_or_id) if isinstance(env_or_id, str) else env_or_id
    if not isinstance(env, gymnasium.Env):
        raise ArgumentError("env_or_id", "a gymnasium.Env or the id of one", repr(env_or_id))
    own = _ours(env)
    if own is not None:
        limit: int | None = own.environment.mdp.horizon
    else:
        limit = None if env.spec is None else env.spec.max_episode_steps
    if horizon is None and limit is None:
        raise ArgumentError("horizon", "a whole number, as the environment has no time limit", None)
    periods = integer("horizon", limit if horizon is None else horizon, least=1)
    if limit is not None and periods > limit:
        raise ArgumentError("horizon", f"at most the time limit of {limit} steps", periods)
    given: Domain | None = states
    if own is not None and states is None and own.states.bounded and not own.states.finite:
        given = own.states
    box, unbounded = state_domain(env.observation_space, given, angles)
    circles = AnglePairs()
    if given is None and not box.finite:
        circles = _circles(env, box)
        unbounded = tuple(
            n for n, place in enumerate(circles.places(box.dimension)) if place in unbounded
        )
        box = circles.box(box)
    return GymnasiumTask(
        env=env,
        states=box,
        circles=circles,
        actions=own.environment.mdp.actions if own else action_domain(env.action_space),
        horizon=periods,
        known_reward=own.known_reward if own is not None and known_reward is None else known_reward,
        unbounded=unbounded,
    )


def _ours(env: gymnasium.Env[Any, Any]) -> GymnasiumEnvironment | None:
    """The environment of this library that is inside, if there is one."""
    return env.unwrapped if isinstance(env.unwrapped, GymnasiumEnvironment) else None


def _circles(env: gymnasium.Env[Any, Any], box: Domain) -> AnglePairs:
    """Cosines and sines among first observations; no step is taken to find them."""
    low, high = box.bounds
    if np.count_nonzero((np.abs(low) <= 1.01) & (np.abs(high) <= 1.01)) < 2:
        return AnglePairs()
    seen = [np.asarray(env.reset(seed=seed)[0], dtype=float) for seed in range(RESETS)]
    return AnglePairs(tuple(cos_sin_pairs(np.stack(seen))))
