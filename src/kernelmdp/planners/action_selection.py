"""The best action of each state, from values of all of them."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.mdp.model import Prediction

#: Values closer than this, relatively, are a tie, which round-off must not decide.
TIE = 1e-9


def optimistic_rewards(
    prediction: Prediction, reward_range: tuple[float, float]
) -> Float[Array, " n"]:
    """min(μ_R + β_R σ_R, B_R √κ): the best plausible mean reward."""
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
    """The best action in each row; ties by priority; then off the grid, along each axis."""
    top = jnp.max(values, axis=1, keepdims=True)
    tied = values >= top - TIE * (1 + jnp.abs(top))
    best = jnp.argmax(jnp.where(tied, priority[None, :], -jnp.inf), axis=1)
    chosen = action_set[best]
    if counts is None:
        return chosen
    shifts, stride = [], 1
    for axis in range(len(counts) - 1, -1, -1):
        n = counts[axis]
        place = (best // stride) % n
        inner = (place > 0) & (place < n - 1)
        rows = jnp.arange(values.shape[0])
        left, right = (
            values[rows, jnp.clip(best + side * stride, 0, values.shape[1] - 1)] for side in (-1, 1)
        )
        bend = left - 2 * top[:, 0] + right
        low, high = action_set[0, axis], action_set[-1, axis]
        width = (high - low) / max(n - 1, 1)
        safe = inner & (bend < -TIE * (1 + jnp.abs(top[:, 0])))
        move = jnp.where(safe, (left - right) / (2 * jnp.where(safe, bend, 1.0)), 0.0)
        shifts.append(width * jnp.clip(move, -0.5, 0.5))
        stride *= n
    return chosen + jnp.stack(shifts[::-1], axis=1)
