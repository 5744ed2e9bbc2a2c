"""The base class of the plants: one vectorised transition serves environment and planner.

Starts are drawn from narrow distributions and noise is mild. The return of a good controller
therefore varies little from episode to episode, and a single episode can be judged.
"""

import abc
from collections.abc import Callable
from typing import ClassVar

import gymnasium
import numpy as np


def box(low: list[float], high: list[float]) -> gymnasium.spaces.Box:
    """Return a box with one lower and one upper bound a coordinate."""
    return gymnasium.spaces.Box(np.array(low, np.float32), np.array(high, np.float32))


def euler(
    derivative: Callable[[np.ndarray], np.ndarray], states: np.ndarray, duration: float, steps: int
) -> np.ndarray:
    """Integrate an equation by Euler's method, for slow or stiff but bounded motion."""
    for _ in range(steps):
        states = states + duration / steps * derivative(states)
    return states


def runge_kutta(
    derivative: Callable[[np.ndarray], np.ndarray], states: np.ndarray, duration: float, steps: int
) -> np.ndarray:
    """Integrate an equation by the classical method of order four."""
    h = duration / steps
    for _ in range(steps):
        k1 = derivative(states)
        k2 = derivative(states + h / 2 * k1)
        k3 = derivative(states + h / 2 * k2)
        k4 = derivative(states + h * k3)
        states = states + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return states


class Plant(gymnasium.Env):
    """A system of which the whole state is observed.

    A subclass defines the attributes, ``initial_states`` and ``transition``. States are kept
    within the bounds of ``observation_space``, and actions within those of ``action_space``.

    Attributes:
        name: The name in commands and files.
        domain: The field that the equations come from.
        reward_type: "cost", "bounded", "profit" or "sparse", and how episodes end early.
        observation_space: A box with finite bounds.
        action_space: A box, or a finite set whose numbers are the actions.
        horizon: Steps of an episode.
        noise_dimension: Standard normal numbers that a step takes.
    """

    name: ClassVar[str]
    domain: ClassVar[str]
    reward_type: ClassVar[str]
    observation_space: gymnasium.spaces.Box
    action_space: gymnasium.spaces.Box | gymnasium.spaces.Discrete
    horizon: ClassVar[int]
    noise_dimension: ClassVar[int] = 0

    @abc.abstractmethod
    def initial_states(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Draw n first states, (n, m)."""

    @abc.abstractmethod
    def transition(
        self, states: np.ndarray, actions: np.ndarray, noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take one step from n states.

        Args:
            states: (n, m).
            actions: (n, q). For a finite set, the number of the action, q = 1.
            noise: Standard normal numbers, (n, noise_dimension).

        Returns:
            Next states (n, m), rewards (n,) and whether the episodes end here (n,).
        """

    @property
    def action_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of actions, (q,) each."""
        if isinstance(self.action_space, gymnasium.spaces.Discrete):
            return np.zeros(1), np.array([float(self.action_space.n - 1)])
        return self.action_space.low.astype(float), self.action_space.high.astype(float)

    def advance(
        self, states: np.ndarray, actions: np.ndarray, noise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Take one step with states and actions kept within their bounds."""
        actions = np.clip(actions, *self.action_bounds)
        if isinstance(self.action_space, gymnasium.spaces.Discrete):
            actions = np.round(actions)
        states, rewards, terminated = self.transition(states, actions, noise)
        space = self.observation_space
        return np.clip(states, space.low, space.high), rewards, terminated

    def reset(self, *, seed: int | None = None, options: dict | None = None):
        super().reset(seed=seed)
        self.state = self.initial_states(self.np_random, 1)
        self.steps = 0
        return self.state[0].astype(np.float32), {}

    def step(self, action):
        actions = np.asarray(action, dtype=float).reshape(1, -1)
        noise = self.np_random.standard_normal((1, self.noise_dimension))
        self.state, rewards, terminated = self.advance(self.state, actions, noise)
        self.steps += 1
        truncated = self.steps >= self.horizon and not terminated[0]
        observation = self.state[0].astype(np.float32)
        return observation, float(rewards[0]), bool(terminated[0]), bool(truncated), {}
