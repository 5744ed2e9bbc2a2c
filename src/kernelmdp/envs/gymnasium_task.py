"""Any Gymnasium environment with vectors or numbers for states as a task of H periods."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces

from kernelmdp.domains import Box, Domain, FiniteSet
from kernelmdp.envs.gymnasium_env import GymnasiumEnvironment
from kernelmdp.errors import ArgumentError, DataError, ShapeError
from kernelmdp.mdp import Episode
from kernelmdp.numerics.checks import integer


@dataclasses.dataclass(frozen=True, eq=False)
class GymnasiumTask:
    """Spaces, horizon and a way to play; the truth is not known here."""

    env: gymnasium.Env[Any, Any]
    #: A box, or the numbers 0, 1, … of a Discrete space.
    states: Box | FiniteSet
    #: A box, or the numbers of a Discrete space (our own environments: their actions) as rows.
    actions: Domain
    horizon: int
    known_reward: Callable[..., Any] | None = None

    @property
    def name(self) -> str:
        """The environment's id, or its class where it has none."""
        return self.env.spec.id if self.env.spec is not None else type(self.env.unwrapped).__name__

    @property
    def spec(self) -> dict[str, Any] | None:
        """What makes this task again, or None when an object was given that cannot be made."""
        return {"id": self.env.spec.id} if self.env.spec is not None else None

    @property
    def absorbing(self) -> bool:
        """Whether an episode that ends early goes on in its last state without reward: in a table
        that state is one of its own."""
        return isinstance(self.states, FiniteSet)

    def play(
        self,
        policy: Callable[[np.ndarray, int], Any],
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> Episode:
        """One episode of policy(state, period) -> action, the period counted from 0.

        ``seed`` and ``options`` go to the environment's ``reset``.
        """
        observation, _ = self.env.reset(seed=seed, options=options)
        states, actions, rewards, outcomes = [self._state(observation, "at the start")], [], [], []
        over = terminated = truncated = False
        earned: Any
        info: dict[str, Any] = {}
        for period in range(self.horizon):
            where = f"after step {period}"
            action = np.atleast_1d(np.asarray(policy(states[-1], period), dtype=float))
            sent = self._send(action)
            if over:  # the last state is left no more and pays nothing
                earned = 0.0
            else:
                observation, earned, terminated, truncated, info = self.env.step(sent)
            reward = float(earned)
            states.append(self._state(observation, where))
            if not math.isfinite(reward):
                raise DataError("reward", "a finite number", f"{reward} {where}")
            actions.append(action)
            rewards.append(reward)
            outcomes.append(self._outcome(states[-2], states[-1], info))
            over = terminated and self.absorbing
            if (terminated or truncated) and not over and period + 1 < self.horizon:
                raise ArgumentError(
                    "env",
                    f"episodes of {self.horizon} steps (pass horizon=... for shorter ones)",
                    f"an episode {'terminated' if terminated else 'truncated'} {where}",
                )
        columns = (np.stack(states), np.stack(actions), np.array(rewards), np.stack(outcomes))
        return Episode(*(jnp.asarray(column) for column in columns))

    def _state(self, observation: Any, where: str) -> np.ndarray:
        space = self.env.observation_space
        if isinstance(space, spaces.Discrete):
            return np.array([float(int(observation) - int(space.start))])
        assert isinstance(self.states, Box)
        state = np.asarray(observation, dtype=float)
        if state.shape != (self.states.dimension,):
            raise ShapeError(
                "observation", f"{self.states.dimension} numbers", f"shape {state.shape} {where}"
            )
        if not np.isfinite(state).all():
            bad = int(np.argmin(np.isfinite(state)))
            raise DataError(
                "observation", "finite numbers", f"{state[bad]} in coordinate {bad} {where}"
            )
        around = list(self.states.periodic)
        if around:
            state[around] = np.asarray(self.states.nearest(jnp.asarray(state)[None, :]))[0, around]
        self.states.require_inside(f"observation {where}", jnp.asarray(state)[None, :])
        return state

    def _outcome(self, before: np.ndarray, after: np.ndarray, info: dict[str, Any]) -> np.ndarray:
        """The raw outcome. Elsewhere than in ours it is the next state, with angles unwrapped: a
        jump from one end of a periodic axis to the other is no motion."""
        if isinstance(self.env.unwrapped, GymnasiumEnvironment):
            return np.asarray(info["outcome"], dtype=float)
        if not isinstance(self.states, Box):
            return after
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
            assert isinstance(self.actions, FiniteSet)
            gaps = np.abs(np.array(self.actions.points) - action[None, :]).sum(axis=1)
            return int(space.start) + int(gaps.argmin())
        return action.astype(space.dtype)


def from_gymnasium(
    env_or_id: gymnasium.Env[Any, Any] | str,
    *,
    horizon: int | None = None,
    states: Box | None = None,
    known_reward: Callable[..., Any] | None = None,
) -> GymnasiumTask:
    """A Gymnasium environment, or the id of one, as a task.

    ``horizon`` is that of its time limit unless given; ``states`` its observation space, which has
    to be given where that has no bounds; ``known_reward`` a function of points (n, d) -> (n,).
    """
    env = gymnasium.make(env_or_id) if isinstance(env_or_id, str) else env_or_id
    if not isinstance(env, gymnasium.Env):
        raise ArgumentError("env_or_id", "a gymnasium.Env or the id of one", repr(env_or_id))
    own = env.unwrapped if isinstance(env.unwrapped, GymnasiumEnvironment) else None
    if own is not None:
        limit: int | None = own.environment.mdp.horizon
    else:
        limit = None if env.spec is None else env.spec.max_episode_steps
    if horizon is None and limit is None:
        raise ArgumentError("horizon", "a whole number, as the environment has no time limit", None)
    periods = integer("horizon", limit if horizon is None else horizon, least=1)
    if limit is not None and periods > limit:
        raise ArgumentError("horizon", f"at most the time limit of {limit} steps", periods)
    if own is not None and states is None and isinstance(own.environment.mdp.states, Box):
        states = own.environment.mdp.states
    return GymnasiumTask(
        env=env,
        states=_states(env.observation_space, states),
        actions=own.environment.mdp.actions if own else _actions(env.action_space),
        horizon=periods,
        known_reward=known_reward,
    )


def _states(space: spaces.Space[Any], given: Box | None) -> Box | FiniteSet:
    if isinstance(space, spaces.Discrete) and given is None:
        return FiniteSet.range(int(space.n))
    if not isinstance(space, spaces.Box) or len(space.shape) != 1:
        raise ArgumentError("env", "Discrete observations, or a Box of one axis", space)
    if given is not None:
        if given.dimension != space.shape[0]:
            raise ShapeError("states", f"a Box of {space.shape[0]} coordinates", given)
        return given
    # Some write "no bound" as the largest float.
    low, high = np.asarray(space.low, dtype=float), np.asarray(space.high, dtype=float)
    unbounded = np.flatnonzero(~((np.abs(low) < 1e30) & (np.abs(high) < 1e30)))
    if unbounded.size:
        raise ArgumentError(
            "states",
            f"states=Box(low, high) with {space.shape[0]} finite bounds each",
            f"an observation space without bounds in coordinates {unbounded.tolist()}",
        )
    return Box(low, high)


def _actions(space: spaces.Space[Any]) -> Domain:
    if isinstance(space, spaces.Discrete):
        numbers = int(space.start) + np.arange(int(space.n), dtype=float)
        return FiniteSet(numbers[:, None])
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        if not (np.isfinite(space.low) & np.isfinite(space.high)).all():
            raise ArgumentError("env", "actions with finite bounds", space)
        return Box(space.low, space.high)
    raise ArgumentError("env", "Discrete actions, or a Box of one axis", space)
