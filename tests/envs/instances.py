"""Environments made once for all tests of this folder: making one solves its truth."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array

from kernelmdp.envs import make
from kernelmdp.mdp import MDP, Policy, StateGrid, optimal_values

NAMES = (
    "rkhs",
    "rkhs-2d",
    "gp-prior",
    "pendulum-swingup",
    "pendulum-coarse",
    "pendulum",
    "pendulum-noisy",
    "cartpole-swingup",
    "cartpole-balance",
)


@functools.cache
def instance(name, seed=0):
    return make(name, seed=seed)


class Lookahead(Policy):
    """Greedy for R + U_h at the actual state, with values of a grid."""

    mdp: MDP
    grid: StateGrid = eqx.field(static=True)
    values: Array
    choices: Array

    def actions(self, states, period):
        after = self.grid.expectation(self.values[period + 1])

        def worth(action):
            own = jnp.broadcast_to(action[None, :], (states.shape[0], action.shape[0]))
            prediction = self.mdp.model(jnp.concatenate([states, own], axis=1))
            return prediction.reward + self.grid.stencil(prediction.state).read(after)

        return self.choices[jnp.argmax(jax.lax.map(worth, self.choices), axis=0)]


def lookahead(environment):
    mdp, grid = environment.mdp, environment.grid
    choices = jnp.asarray(environment.actions)
    return Lookahead(mdp, grid, optimal_values(mdp, grid, choices), choices)
