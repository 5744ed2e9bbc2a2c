"""Policies: from a state and a period to an action. They are fixed for an episode."""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.numerics.modules import Module, jit, kept_jit, matrix_jit, quick_jit
from kernelmdp.types import Key, Period


class Policy(Module):
    """A function from states and the period (counted from 0) to actions.

    Some policies have a memory within an episode, so that they need not search from scratch at
    every period. ``decide`` passes it on. The policy is still fixed at the start of the episode.

    >>> class Brake(Policy):
    ...     def actions(self, states, period):
    ...         return -0.5 * states
    >>> Brake()([0.4], period=0)
    array([-0.2])
    """

    @abc.abstractmethod
    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        """Choose actions in n states at one period. This can be traced.

        Args:
            states: The states, (n, m).
            period: The period, counted from 0.

        Returns:
            The actions, (n, q).
        """

    def for_coordinates(self, names: Sequence[str]) -> "Policy":
        """Return the policy for states whose coordinates have names.

        Args:
            names: The names, in the order of the coordinates.

        Returns:
            The policy. One that is written for single coordinates finds and checks them here.
        """
        return self

    def reset(self, count: int) -> Any:
        """Return the memory with which parallel episodes begin.

        Args:
            count: The number of episodes.

        Returns:
            The memory, a pytree of arrays. The default is empty.
        """
        return ()

    def decide(
        self, memory: Any, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], Any]:
        """Choose actions in the states of n episodes at one period. This can be traced.

        Args:
            memory: The memory from ``reset``, or from ``decide`` at the period before.
            states: The states, (n, m).
            period: The period, counted from 0.

        Returns:
            The actions (n, q), and the memory for the next period.
        """
        return self.actions(states, period), memory

    def planned_actions(self, memory: Any) -> Float[Array, "T q"] | None:
        """Return the actions that are planned for the next periods. This can be traced.

        Args:
            memory: The memory of one episode, from ``decide`` at the last period.

        Returns:
            The actions of the next T periods, (T, q). None if no sequence is planned.
        """
        return None

    def later_period(self, horizon: int) -> int:
        """Return the period whose rule goes on after the end of an episode.

        Args:
            horizon: The number of periods H.

        Returns:
            The period. By default the last rule is held, as in exported controllers.
        """
        return horizon - 1

    def player(self) -> Callable[[Any, int], np.ndarray]:
        """Return a function that plays one episode outside compiled programs.

        Returns:
            A function ``player(state, period) -> action``. The default is the policy itself.
        """
        return self

    def at_nodes(self, grid: StateGrid, period: Period) -> Float[Array, "N q"]:
        """Choose actions at the nodes of a grid.

        Args:
            grid: The grid of N nodes.
            period: The period, counted from 0.

        Returns:
            The actions, (N, q).
        """
        return self.actions(jnp.asarray(grid.nodes), period)

    def __call__(self, state: Any, period: int) -> np.ndarray:
        """Choose the action in one state, outside compiled programs.

        Args:
            state: The state, (m,).
            period: The period, counted from 0.

        Returns:
            The action, (q,).
        """
        row = np.atleast_1d(np.asarray(state, float))[None, :]
        return np.asarray(_actions(self, row, np.asarray(period)))[0]


@kept_jit
def _actions(policy: Policy, states: Any, period: Any) -> Array:
    return policy.actions(jnp.asarray(states), jnp.asarray(period))


class PolicyPlayer:
    """Plays one episode of a policy with a memory, outside compiled programs.

    Args:
        policy: The policy.

    Attributes:
        policy: The policy. Between periods you may replace it by one of the same class and sizes,
            for example after an update of its model. The memory stays.
        memory: The memory of the policy after the last period.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.memory: Any = _reset(policy, 1)
        self._first_memory = self.memory

    def restart(self) -> None:
        """Begin another episode of the policy. Nothing is computed."""
        self.memory = self._first_memory

    def __call__(self, state: Any, period: int) -> np.ndarray:
        """Choose the action of one period. Call it for one period after another.

        Args:
            state: The state, (m,).
            period: The period, counted from 0.

        Returns:
            The action, (q,).
        """
        row = np.atleast_1d(np.asarray(state, float))[None, :]
        actions, self.memory = _decide(self.policy, self.memory, row, np.asarray(period))
        return np.asarray(actions)[0]

    def planned_actions(self) -> np.ndarray | None:
        """Return the actions that are planned for the periods after the last one.

        Returns:
            The actions, (T, q). None if the policy plans no sequence.
        """
        actions = _planned(self.policy, self.memory)
        return None if actions is None else np.asarray(actions)


class EpisodicPolicy(Policy):
    """Base class of policies with a memory within an episode.

    Outside compiled programs they run the program that plays episodes too, so there is one program
    less.
    """

    def player(self) -> PolicyPlayer:
        return PolicyPlayer(self)

    def __call__(self, state: Any, period: int) -> np.ndarray:
        return self.player()(state, period)


def player_of(policy: Policy) -> Callable[[Any, int], np.ndarray]:
    """Return a function that plays one episode of a policy, with its memory if it has one.

    Args:
        policy: The policy.

    Returns:
        A function ``player(state, period) -> action``.
    """
    return PolicyPlayer(policy) if jax.tree.leaves(policy.reset(1)) else policy


@jit
def _planned(policy: Policy, memory: Any) -> Array | None:
    return policy.planned_actions(memory)


@quick_jit
def _reset(policy: Policy, count: int) -> Any:
    return policy.reset(count)


@matrix_jit
def _decide(policy: Policy, memory: Any, states: Any, period: Period) -> tuple[Array, Any]:
    return policy.decide(memory, jnp.asarray(states), jnp.asarray(period))


class OpenLoopPolicy(Policy):
    """A fixed sequence of actions, which does not depend on the states.

    Attributes:
        sequence: The actions, (H, q).
    """

    sequence: Float[Array, "H q"]

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return jnp.broadcast_to(
            self.sequence[period][None, :], (states.shape[0], self.sequence.shape[1])
        )


class UniformPolicy(Policy):
    """Uniformly random actions. Given the key, they are a function of state and period.

    The draw depends on the bits of the state. So the policy returns the same action for the same
    state and period, as other policies do.

    Attributes:
        space: The action space.
        key: Decides the draws.
    """

    space: Domain = eqx.field(static=True)
    key: Key

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        def draw(state: Float[Array, " m"]) -> Float[Array, " q"]:
            key = jax.random.fold_in(self.key, period)
            bits = jax.lax.bitcast_convert_type(state.astype(jnp.float32), jnp.uint32)
            key, _ = jax.lax.scan(lambda key, bit: (jax.random.fold_in(key, bit), None), key, bits)
            if self.space.points is not None:
                points = jnp.asarray(np.array(self.space.points))
                return points[jax.random.randint(key, (), 0, len(self.space.points))]
            low, high = (jnp.asarray(end) for end in self.space.bounds)
            return low + (high - low) * jax.random.uniform(key, low.shape)

        return jax.vmap(draw)(states)
