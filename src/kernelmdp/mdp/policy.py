"""Policies: what to do in a state at a period. They are fixed for an episode."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.numerics.modules import Module, jit
from kernelmdp.types import Key, Period


class Policy(Module):
    """From states and the period (counted from 0) to actions.

    Some remember within an episode what they thought of before, to think less: ``decide`` hands
    that memory on. What they do is still fixed at the start of the episode.

    >>> class Brake(Policy):
    ...     def actions(self, states, period):
    ...         return -0.5 * states
    >>> Brake()([0.4], period=0)
    array([-0.2])
    """

    @abc.abstractmethod
    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        """Actions in n states at one period; can be traced."""

    def reset(self, count: int) -> Any:
        """The memory, a pytree of arrays, with which ``count`` episodes side by side begin."""
        return ()

    def decide(
        self, memory: Any, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], Any]:
        """Actions in the states of n episodes at one period, and the memory after; can be traced.

        A memory is what ``reset`` gave for n episodes, or ``decide`` at the period before.
        """
        return self.actions(states, period), memory

    def player(self) -> Callable[[Any, int], np.ndarray]:
        """What plays one episode outside compiled programs: (state, period) -> action."""
        return self

    def at_nodes(self, grid: StateGrid, period: Period) -> Float[Array, "N q"]:
        """Actions at the nodes of a grid."""
        return self.actions(jnp.asarray(grid.nodes), period)

    def __call__(self, state: Any, period: int) -> np.ndarray:
        """The action in one state, for use outside compiled programs."""
        row = jnp.atleast_1d(jnp.asarray(state, float))[None, :]
        return np.asarray(_actions(self, row, jnp.asarray(period)))[0]


@jit
def _actions(policy: Policy, states: Array, period: Array) -> Array:
    return policy.actions(states, period)


class PolicyPlayer:
    """One episode of a policy that remembers, outside compiled programs.

    ``policy`` may be replaced between periods by one of the same kind and sizes, as when its model
    learns within the episode: the memory stays.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.memory: Any = _reset(policy, 1)

    def __call__(self, state: Any, period: int) -> np.ndarray:
        """The action in the state of this period; periods come in their order."""
        row = np.atleast_1d(np.asarray(state, float))[None, :]
        actions, self.memory = _decide(self.policy, self.memory, row, np.asarray(period))
        return np.asarray(actions)[0]


@jit
def _reset(policy: Policy, count: int) -> Any:
    return policy.reset(count)


@jit
def _decide(policy: Policy, memory: Any, states: Any, period: Period) -> tuple[Array, Any]:
    return policy.decide(memory, jnp.asarray(states), jnp.asarray(period))


class OpenLoopPolicy(Policy):
    """The same actions whatever the state: an open loop."""

    plan: Float[Array, "H q"]

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return jnp.broadcast_to(self.plan[period][None, :], (states.shape[0], self.plan.shape[1]))


class UniformPolicy(Policy):
    """Actions drawn uniformly; a function of state and period all the same, given the key.

    The draw depends on the state's bits, so that one policy object answers the same question the
    same way twice, as the others do.
    """

    space: Domain = eqx.field(static=True)
    key: Key

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        def one(state: Float[Array, " m"]) -> Float[Array, " q"]:
            key = jax.random.fold_in(self.key, period)
            bits = jax.lax.bitcast_convert_type(state.astype(jnp.float32), jnp.uint32)
            for i in range(bits.shape[0]):
                key = jax.random.fold_in(key, bits[i])
            if self.space.points is not None:
                points = jnp.asarray(np.array(self.space.points))
                return points[jax.random.randint(key, (), 0, len(self.space.points))]
            low, high = (jnp.asarray(end) for end in self.space.bounds)
            return low + (high - low) * jax.random.uniform(key, low.shape)

        return jax.vmap(one)(states)
