"""The base class of systems that must not break: a plant, its constraints and a fallback."""

import abc
from collections.abc import Callable
from types import ModuleType
from typing import ClassVar, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import plants_path  # noqa: F401
from plant import Plant


class Constraint(NamedTuple):
    """A function of state and action that must stay at or below zero.

    Attributes:
        name: The name in tables.
        unit: The unit of the function's values.
        function: Takes states (n, m) and actions (n, q) of NumPy or JAX. Returns n numbers. One
            state (m,) and one action (q,) give one number.
    """

    name: str
    unit: str
    function: Callable[[np.ndarray, np.ndarray], np.ndarray]


def upper(name: str, unit: str, coordinate: int, limit: float) -> Constraint:
    """Return the constraint that a coordinate of the state is at most a limit."""
    return Constraint(name, unit, lambda states, actions: states[..., coordinate] - limit)


def lower(name: str, unit: str, coordinate: int, limit: float) -> Constraint:
    """Return the constraint that a coordinate of the state is at least a limit."""
    return Constraint(name, unit, lambda states, actions: limit - states[..., coordinate])


class ConstrainedPlant(Plant):
    """A plant with constraints and a safe, mediocre controller.

    A step violates a constraint if its function is positive at the next state and the action. The
    episode goes on, and ``info["cost"]`` is 1.0 at this step, as in Safety-Gymnasium.

    Attributes:
        coordinates: The names of the state's coordinates.
        constraints: What must hold.
        allowed: The same as a box of states, if the constraints are bounds of the state, else None.
        trusted: A box of states from which the fallback keeps the constraints.
        scale: The widths of the constraints, in their units: how far a violation is a large one.
    """

    coordinates: ClassVar[tuple[str, ...]]
    constraints: ClassVar[tuple[Constraint, ...]]
    allowed: ClassVar[gymnasium.spaces.Box | None] = None
    trusted: ClassVar[gymnasium.spaces.Box]
    scale: ClassVar[tuple[float, ...]]

    @abc.abstractmethod
    def fallback_actions(self, states: np.ndarray, xp: ModuleType = np) -> np.ndarray:
        """Return the fallback's actions (n, q) in states (n, m), computed by NumPy or JAX."""

    def fallback(self, state: np.ndarray, period: int) -> np.ndarray:
        """Return the fallback's action (q,) in a state (m,). It does not depend on the period.

        It can be compiled: with an array of JAX it returns one.
        """
        low, high = self.action_bounds
        if isinstance(state, jax.Array):
            return jnp.clip(self.fallback_actions(state[None], jnp)[0], low, high)
        action = self.fallback_actions(np.asarray(state, dtype=float)[None])[0]
        return np.clip(action, low, high).astype(np.float32)

    def margins(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the constraints' functions at states (n, m) and actions (n, q), (n, c)."""
        return np.stack([each.function(states, actions) for each in self.constraints], axis=-1)

    def violates(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return whether steps with these actions to these next states violate, (n,)."""
        actions = np.clip(actions, *self.action_bounds)
        return (self.margins(states, actions) > 0.0).any(axis=-1)

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        actions = np.asarray(action, dtype=float).reshape(1, -1)
        cost = float(self.violates(self.state, actions)[0])
        return observation, reward, terminated, truncated, info | {"cost": cost}
