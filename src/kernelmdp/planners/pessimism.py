"""The worst value a policy may have in a family of plausible MDPs (math A7, certificate ii).

By induction over periods: with U̲ ≤ U, the least of U̲ over the plausible next states is at most U
at the true one. So on the event that the truth is plausible, optimistic plan minus this value
bounds the regret of the episode.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.numerics.modules import jit
from kernelmdp.planners.optimism import backup_for, with_radius


@jit
def pessimistic_values(
    family: MDP, policy: Policy, grid: StateGrid, optimism: str = "ball"
) -> Float[Array, "H1 N"]:
    """V̲^π_h at the nodes, h = 1..H + 1: rewards and next states at their plausible worst.

    With "bonus" L times the radius is subtracted, for which L must bound the slope of U̲ itself,
    as the Gaussian-noise bound does.
    """
    nodes = jnp.asarray(grid.nodes)
    low, high = family.reward_range

    def backup(after: Array, period: Array) -> tuple[Array, Array]:
        actions = policy.at_nodes(grid, period)
        prediction = family.model(jnp.concatenate([nodes, actions], axis=1))
        prediction = with_radius(prediction, family.metric)
        chooser = backup_for(optimism, grid, family.metric, prediction)
        ladder = chooser.ladder_for(prediction)
        places = chooser.locate(prediction, ladder, family.lipschitz)
        # The least of U is minus the largest of −U.
        worst = -chooser.read(chooser.prepare(-grid.expectation(after), ladder), places)
        reward = prediction.reward
        if prediction.reward_width is not None:
            reward = reward - prediction.reward_width
        left: Any = (family.horizon - period).astype(worst.dtype)
        bounds = [left * end if math.isfinite(end) else end for end in (low, high)]
        values = jnp.clip(jnp.clip(reward, low, high) + worst, *bounds)
        return values, values

    last = jnp.zeros(len(grid.nodes))
    _, tables = jax.lax.scan(backup, last, jnp.arange(family.horizon), reverse=True)
    return jnp.concatenate([tables, last[None]])
