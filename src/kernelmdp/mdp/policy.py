"""Policies: what to do in a state at a period. They are fixed for an episode."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain, FiniteSet
from kernelmdp.mdp.grid import StateGrid
from kernelmdp.numerics.modules import Module, jit
from kernelmdp.types import Key


class Policy(Module):
    """From states and the period (counted from 0) to actions."""

    @abc.abstractmethod
    def actions(self, states: Float[Array, "n m"], period: Any) -> Float[Array, "n q"]:
        """Actions in n states at one period; can be traced."""

    def at_nodes(self, grid: StateGrid, period: Any) -> Float[Array, "N q"]:
        """Actions at the nodes of a grid."""
        return self.actions(jnp.asarray(grid.nodes), period)

    def __call__(self, state: Any, period: int) -> np.ndarray:
        """The action in one state, for use outside compiled programs."""
        row = jnp.atleast_1d(jnp.asarray(state, float))[None, :]
        return np.asarray(_actions(self, row, jnp.asarray(period)))[0]


@jit
def _actions(policy: Policy, states: Array, period: Array) -> Array:
    return policy.actions(states, period)


class Sequence(Policy):
    """The same actions whatever the state: an open loop."""

    plan: Float[Array, "H q"]

    def actions(self, states: Float[Array, "n m"], period: Any) -> Float[Array, "n q"]:
        return jnp.broadcast_to(self.plan[period][None, :], (states.shape[0], self.plan.shape[1]))


class Uniform(Policy):
    """Actions drawn uniformly; a function of state and period all the same, given the key.

    The draw depends on the state's bits, so that one policy object answers the same question the
    same way twice, as the others do.
    """

    space: Domain = eqx.field(static=True)
    key: Key

    def actions(self, states: Float[Array, "n m"], period: Any) -> Float[Array, "n q"]:
        def one(state: Float[Array, " m"]) -> Float[Array, " q"]:
            key = jax.random.fold_in(self.key, period)
            bits = jax.lax.bitcast_convert_type(state.astype(jnp.float32), jnp.uint32)
            for i in range(bits.shape[0]):
                key = jax.random.fold_in(key, bits[i])
            if isinstance(self.space, FiniteSet):
                points = jnp.asarray(np.array(self.space.points))
                return points[jax.random.randint(key, (), 0, self.space.count)]
            low, high = (jnp.asarray(end) for end in self.space.bounds)
            return low + (high - low) * jax.random.uniform(key, low.shape)

        return jax.vmap(one)(states)
