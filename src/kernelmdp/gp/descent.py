"""A minimum of a smooth function of few numbers, by BFGS."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.gp.fit_config import SEARCH, SearchConfig


def descend(
    loss: Callable[[Array], Array], start: Float[Array, " k"], config: SearchConfig = SEARCH
) -> tuple[Float[Array, " k"], Float[Array, ""]]:
    """A minimum by BFGS: one evaluation a step; a step that does not descend is tried shorter.

    Args:
        loss: A function of k numbers, which may be NaN where it has no value.
        start: Where the search begins.
        config: Number and length of steps.

    Returns:
        Where the search ended, and the loss there.

    >>> where, value = descend(lambda x: jnp.sum((x - 3.0) ** 2), jnp.zeros(2))
    >>> where.round(4)
    Array([3., 3.], dtype=float64)
    """
    value_and_slope = jax.value_and_grad(loss)
    identity = jnp.eye(start.shape[0], dtype=start.dtype)

    def one(carry: tuple[Any, ...], _: None) -> tuple[Any, None]:
        here, value, slope, inverse, size = carry
        direction = -inverse @ slope
        # A model of curvature that points uphill is forgotten.
        lost = ~(slope @ direction < 0)
        direction = jnp.where(lost, -slope, direction)
        length = jnp.linalg.norm(direction)
        shorter = config.longest / jnp.maximum(length, config.least_length)
        direction = direction * jnp.minimum(1.0, shorter)
        step = size * direction
        there = here + step
        found, tilt = value_and_slope(there)
        sound = jnp.isfinite(found) & jnp.all(jnp.isfinite(tilt))
        good = sound & (found <= value + config.decrease * slope @ step)
        change = jnp.where(good, tilt - slope, 0.0)
        along = step @ change
        curved = good & (along > config.curvature)
        rho = 1 / jnp.where(curved, along, 1.0)
        left = identity - rho * jnp.outer(step, change)
        updated = left @ inverse @ left.T + rho * jnp.outer(step, step)
        inverse = jnp.where(curved, updated, jnp.where(lost, identity, inverse))
        after = (
            jnp.where(good, there, here),
            jnp.where(good, found, value),
            jnp.where(good, tilt, slope),
            inverse,
            jnp.where(good, 1.0, config.shrink * size),
        )
        return after, None

    value, slope = value_and_slope(start)
    begin = (start, value, slope, identity, jnp.ones(()))
    (best, value, *_), _ = jax.lax.scan(one, begin, None, length=config.steps)
    return best, value
