"""The best action of each state, from the values of all actions."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.mdp.model import Prediction

#: Values whose relative difference is below this are tied. Round-off, which is far smaller, must
#: not decide between them.
TIE = 1e-9


def optimistic_rewards(prediction: Prediction, reward_range: tuple[Any, Any]) -> Float[Array, " n"]:
    """Return the best plausible mean rewards, min(μ_R + β_R σ_R, B_R √κ).

    Args:
        prediction: Predictions at n points.
        reward_range: The lowest and the highest mean reward. Rewards are clipped to it.

    Returns:
        The rewards, (n,). They are the mean rewards if the prediction has no reward width.
    """
    reward = prediction.reward
    if prediction.reward_width is not None:
        reward = reward + prediction.reward_width
    return jnp.clip(reward, *reward_range)


def best_actions(
    values: Float[Array, "n A"],
    action_set: Float[Array, "A q"],
    priority: Float[Array, " A"],
    counts: tuple[int, ...] | None,
) -> Float[Array, "n q"]:
    """Choose the best action of each row of values.

    If the actions form a grid, the best action is then moved off the grid. Along each axis a
    parabola is put through the best value and its two neighbours, and its top is taken.

    Args:
        values: Values of all A actions in n states, (n, A).
        action_set: The actions, (A, q).
        priority: Among tied actions, the one with the highest priority is chosen, (A,).
        counts: Number of actions along each axis of their grid. None if they form no grid.

    Returns:
        The chosen actions, (n, q).
    """
    top = jnp.max(values, axis=1, keepdims=True)
    tied = values >= top - TIE * (1 + jnp.abs(top))
    # A minimum of integers takes a fraction of the time of ``argmax``. As there, the first one of
    # equal priorities counts.
    order = jnp.argsort(-priority)
    places = jnp.argsort(order).astype(jnp.int32)
    best = order[jnp.min(jnp.where(tied, places[None, :], values.shape[1] - 1), axis=1)]
    chosen = action_set[best]
    if counts is None:
        return chosen
    shifts, stride = [], 1
    for axis in range(len(counts) - 1, -1, -1):
        n = counts[axis]
        index = (best // stride) % n
        interior = (index > 0) & (index < n - 1)
        rows = jnp.arange(values.shape[0])
        below, above = (
            values[rows, jnp.clip(best + side * stride, 0, values.shape[1] - 1)] for side in (-1, 1)
        )
        curvature = below - 2 * top[:, 0] + above
        low, high = action_set[0, axis], action_set[-1, axis]
        spacing = (high - low) / max(n - 1, 1)
        concave = interior & (curvature < -TIE * (1 + jnp.abs(top[:, 0])))
        move = jnp.where(concave, (below - above) / (2 * jnp.where(concave, curvature, 1.0)), 0.0)
        shifts.append(spacing * jnp.clip(move, -0.5, 0.5))
        stride *= n
    return chosen + jnp.stack(shifts[::-1], axis=1)
