"""The worst value that a policy may have in a family of plausible MDPs (note A7, certificate ii).

By induction over periods: if U̲ ≤ U, the least of U̲ over the plausible next states is at most U at
the true one. So if the truth is plausible, the optimistic value minus this value bounds the regret
of the episode.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.model import Model, Prediction
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.numerics.modules import jit, replace_fields
from kernelmdp.planners.optimism import backup_for, with_radius


@jit
def pessimistic_values(
    family: MDP, policy: Policy, grid: StateGrid, optimism: str = "ball"
) -> Float[Array, "H1 N"]:
    """Compute V̲^π_h at the nodes, with the worst plausible rewards and next states.

    Args:
        family: The family of plausible MDPs.
        policy: The policy π.
        grid: The grid of N nodes.
        optimism: "ball" searches the set of plausible next states. "bonus" subtracts L times its
            radius. L must then bound the slope of U̲ itself, as the Gaussian-noise bound does.

    Returns:
        The values for h = 1..H + 1, (H + 1, N).
    """
    nodes = jnp.asarray(grid.nodes)
    low, high = family.reward_range

    def backup(after: Array, period: Array) -> tuple[Array, Array]:
        actions = policy.at_nodes(grid, period)
        points = jnp.concatenate([nodes, actions], axis=1)
        prediction = family.model(points)
        continues = family.continues(points, prediction.state)
        prediction = with_radius(prediction, family.metric)
        optimistic_backup = backup_for(optimism, grid, family.metric, prediction)
        sizes = optimistic_backup.dilation_sizes(prediction)
        positions = optimistic_backup.locate(prediction, sizes, family.lipschitz)
        # The least of U is minus the largest of −U.
        worst = -optimistic_backup.read(
            optimistic_backup.prepare(-grid.expectation(after), sizes), positions
        )
        worst = worst if continues is None else jnp.where(continues, worst, 0.0)
        reward = prediction.reward
        if prediction.reward_width is not None:
            reward = reward - prediction.reward_width
        periods_left: Any = (family.horizon - period).astype(worst.dtype)
        bounds = [periods_left * end if math.isfinite(end) else end for end in (low, high)]
        values = jnp.clip(jnp.clip(reward, low, high) + worst, *bounds)
        return values, values

    last = jnp.zeros(len(grid.nodes))
    _, tables = jax.lax.scan(backup, last, jnp.arange(family.horizon), reverse=True)
    return jnp.concatenate([tables, last[None]])


class NegatedReward(Model):
    """A model whose rewards have the other sign.

    Attributes:
        model: The model.
    """

    model: Model

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        prediction = self.model(points)
        return prediction._replace(reward=-prediction.reward)


def best_value(
    family: MDP, policy: Policy, grid: StateGrid, starts: Float[np.ndarray, "n m"]
) -> float:
    """Compute the mean over some starts of the best plausible value of a policy.

    It is minus the worst value for rewards of the other sign. If the truth is in the family, the
    mean value over these starts is no more, up to the error of the grid.

    Args:
        family: The family of plausible MDPs.
        policy: The policy, without memory.
        grid: The grid of N nodes.
        starts: The first states, (n, m).

    Returns:
        The value.
    """
    low, high = family.reward_range
    negated = replace_fields(family, model=NegatedReward(family.model), reward_range=(-high, -low))
    return -worst_value(negated, policy, grid, starts)


def worst_value(
    family: MDP,
    policy: Policy,
    grid: StateGrid,
    starts: Float[np.ndarray, "n m"],
    *,
    optimism: str = "upper",
) -> float:
    """Compute the mean over some starts of V̲^π_1, the worst plausible value of a policy.

    If the truth is in the family, the mean value over these starts is no less, up to the error of
    the grid.

    Args:
        family: The family of plausible MDPs.
        policy: The policy, without memory.
        grid: The grid of N nodes.
        starts: The first states, (n, m).
        optimism: As for ``pessimistic_values``; "upper" cannot miss the worst plausible state.

    Returns:
        The value.
    """
    worst = pessimistic_values(family, policy, grid, optimism)[0]
    rows, counts = np.unique(np.asarray(starts, float), axis=0, return_counts=True)
    # Rows are padded to a power of two: starts grow in number, and programs are not to be compiled
    # for each number.
    padding = (1 << (len(rows) - 1).bit_length()) - len(rows)
    padded = np.concatenate([rows, np.repeat(rows[:1], padding, axis=0)])
    values = np.asarray(grid.value_at(worst, jnp.asarray(padded)))[: len(rows)]
    return float(np.average(values, weights=counts))
