"""The Lipschitz constant L of U_h(p) = E V_{h+1}(Π_S(p + ε)) that Gaussian noise provides.

Distances are those of the MDP's metric. There are two rules for noise with standard deviations sd:

- noise (note B8): L ≤ span V_{h+1} / √(2π), in units of sd, with span V_{h+1} ≤ (H − h) · range of
  R.
- solved (note D7): the largest slope of U on a grid, plus the most by which it can change between
  two nodes, 0.484 · span V_{h+1} · spacing (‖∇²U‖ ≤ 4φ(1)/2 · span). If span V_{h+1} / √(2π) is
  smaller, that is used. V comes from the grid, and the error of this solution is not counted.
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

#: 2 φ(1) with the standard normal density φ. Times the span it bounds |∇²U|, in units of sd.
CURVATURE_BOUND = 2 * math.exp(-0.5) / math.sqrt(2 * math.pi)

#: The text of the rule "solved", for tables and files.
SOLVED_RULE = (
    "solved: slopes of U plus curvature, or span over noise, of the solved truth (note D7, B8)"
)
#: The text of the rule "noise".
NOISE_RULE = "noise: range of rewards over the noise (note B8)"


def with_lipschitz(
    mdp: MDP, *, state_points: tuple[int, ...], action_points: tuple[int, ...]
) -> tuple[MDP, str]:
    """Set the L of an MDP to the smaller one of the two rules.

    Further outside the state space than the noise reaches, U is constant up to rounding.

    Args:
        mdp: The MDP, with Gaussian noise along every axis.
        state_points: Nodes of the grid along each axis of states.
        action_points: Nodes along each axis of actions.

    Returns:
        The MDP with its L, and the text of the rule.

    Raises:
        ArgumentError: If the noise is not Gaussian along every axis.
    """
    m = mdp.states.dimension
    deviations = mdp.transition_noise.standard_deviations(m)
    if not mdp.transition_noise.gaussian or not (deviations > 0).all():
        raise ArgumentError("mdp", "Gaussian noise along every axis", mdp.transition_noise)
    grid = StateGrid(mdp.states, state_points, mdp.transition_noise)
    actions = jnp.asarray(action_grid(mdp.actions, action_points))
    values = optimal_values(mdp, grid, actions)[1:-1]
    # Converts slopes from units of the noise's standard deviation to the metric.
    unit = float(np.max(np.array(mdp.metric) / deviations))
    low, high = mdp.reward_range
    noise_slope = gaussian_slope((mdp.horizon - 1) * (high - low), 1.0)
    spans = np.asarray(jnp.max(values, axis=1) - jnp.min(values, axis=1))
    spacing = float(np.linalg.norm(grid.spacing / deviations))
    slopes = np.asarray(_slopes(values, grid, jnp.asarray(grid.spacing / deviations)))
    span_slopes = np.array([gaussian_slope(float(span), 1.0) for span in spans])
    steepest = np.minimum(slopes + CURVATURE_BOUND * spans * spacing, span_slopes)
    solved_slope = float(np.max(steepest, initial=0.0))
    slope, rule = (
        (solved_slope, SOLVED_RULE) if solved_slope <= noise_slope else (noise_slope, NOISE_RULE)
    )
    return eqx.tree_at(lambda tree: tree.lipschitz, mdp, jnp.asarray(slope * unit)), rule


@jit
def _slopes(
    values: Float[Array, "h N"], grid: StateGrid, spacing: Float[Array, " m"]
) -> Float[Array, " h"]:
    """Return the largest slope of U on the lattice at every period, in units of the noise.

    It is the root of the sum over axes of the largest squared difference quotients.
    """

    def slope_of(table: Array) -> Array:
        expected = grid.expectation(table).reshape(grid.lattice_shape)
        total = jnp.zeros(())
        for axis in range(len(grid.lattice_shape)):
            periodic = axis in grid.states.periodic
            last = jnp.take(expected, jnp.array([-1]), axis=axis) if periodic else None
            quotients = jnp.diff(expected, axis=axis, prepend=last) / spacing[axis]
            total = total + jnp.max(jnp.abs(quotients)) ** 2
        return jnp.sqrt(total)

    return jax.lax.map(slope_of, values)


def with_reward_range(mdp: MDP, *, budget: int = 20_000) -> MDP:
    """Set the ``reward_range`` of an MDP to the range of its mean reward, widened by 1 %.

    Args:
        mdp: The MDP.
        budget: The number of points of the net on which the mean reward is evaluated.

    Returns:
        The MDP with its range.
    """
    net = jnp.asarray(mdp.points.net(budget)[0])
    rewards = np.asarray(mdp.model(net).reward)
    margin = 0.01 * (rewards.max() - rewards.min())
    ends = (float(rewards.min() - margin), float(rewards.max() + margin))
    return dataclasses.replace(mdp, reward_range=ends)
