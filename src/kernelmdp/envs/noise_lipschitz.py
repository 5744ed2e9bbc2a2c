"""L, the Lipschitz constant of U_h(p) = E V_{h+1}(Π_S(p + ε)), that Gaussian noise provides.

Distances are those of the MDP's metric. Two rules, for noise with deviations sd:
- noise (math B8): L ≤ span V_{h+1} / √(2π), in units of sd, span V_{h+1} ≤ (H − h) · range of R;
- solved (math D7): the largest slope of U on a grid, and what it can change by between two nodes,
  0.484 · span V_{h+1} · spacing (‖∇²U‖ ≤ 4φ(1)/2 · span); or span V_{h+1} / √(2π), if smaller. V is
  that of the grid: the error of the solution itself is not counted.
"""

import dataclasses
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import MDP, StateGrid, action_grid, optimal_values
from kernelmdp.mdp.noise import gaussian_slope
from kernelmdp.numerics.modules import jit

#: 2 φ(1), φ the standard normal density: the bound of |∇²U| by the span, in units of sd.
BEND = 2 * math.exp(-0.5) / math.sqrt(2 * math.pi)

SOLVED = "solved: slopes of U plus curvature, or span over noise, of the solved truth (math D7, B8)"
NOISE = "noise: range of rewards over the noise (math B8)"


def with_lipschitz(
    mdp: MDP, *, state_points: tuple[int, ...], action_points: tuple[int, ...]
) -> tuple[MDP, str]:
    """The MDP with the smaller L of the two rules, and the rule's text.

    Outside the state space by more than the noise reaches, U is constant to rounding.
    """
    m = mdp.states.dimension
    deviations = mdp.transition_noise.standard_deviations(m)
    if not mdp.transition_noise.gaussian or not (deviations > 0).all():
        raise ArgumentError("mdp", "Gaussian noise along every axis", mdp.transition_noise)
    grid = StateGrid(mdp.states, state_points, mdp.transition_noise)
    actions = jnp.asarray(action_grid(mdp.actions, action_points))
    values = optimal_values(mdp, grid, actions)[1:-1]
    # From one deviation of noise as the unit of length to the metric.
    unit = float(np.max(np.array(mdp.metric) / deviations))
    low, high = mdp.reward_range
    noise = gaussian_slope((mdp.horizon - 1) * (high - low), 1.0)
    spans = np.asarray(jnp.max(values, axis=1) - jnp.min(values, axis=1))
    spacing = float(np.linalg.norm(grid.spacing / deviations))
    slopes = np.asarray(_slopes(values, grid, jnp.asarray(grid.spacing / deviations)))
    free = np.array([gaussian_slope(float(span), 1.0) for span in spans])
    steepest = np.minimum(slopes + BEND * spans * spacing, free)
    solved = float(np.max(steepest, initial=0.0))
    found, rule = (solved, SOLVED) if solved <= noise else (noise, NOISE)
    return eqx.tree_at(lambda own: own.lipschitz, mdp, jnp.asarray(found * unit)), rule


@jit
def _slopes(
    values: Float[Array, "h N"], grid: StateGrid, spacing: Float[Array, " m"]
) -> Float[Array, " h"]:
    """The largest slope of U on the lattice at every period, in units of the noise: root of the
    sum over axes of the largest squared difference quotients."""

    def one(table: Array) -> Array:
        expected = grid.expectation(table).reshape(grid.lattice_shape)
        total = jnp.zeros(())
        for axis in range(len(grid.lattice_shape)):
            around = axis in grid.states.periodic
            ends = jnp.take(expected, jnp.array([-1]), axis=axis) if around else None
            steps = jnp.diff(expected, axis=axis, prepend=ends) / spacing[axis]
            total = total + jnp.max(jnp.abs(steps)) ** 2
        return jnp.sqrt(total)

    return jax.lax.map(one, values)


def with_reward_range(mdp: MDP, *, budget: int = 20_000) -> MDP:
    """The MDP whose ``reward_range`` is that of the mean reward on a net, widened by 1 %."""
    net = jnp.asarray(mdp.points.net(budget)[0])
    rewards = np.asarray(mdp.model(net).reward)
    margin = 0.01 * (rewards.max() - rewards.min())
    ends = (float(rewards.min() - margin), float(rewards.max() + margin))
    return dataclasses.replace(mdp, reward_range=ends)
