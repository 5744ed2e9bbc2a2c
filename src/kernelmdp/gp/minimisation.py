"""A minimum of a smooth function of few numbers, by BFGS or L-BFGS."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.gp.fit_config import SEARCH, SearchConfig


def minimise(
    loss: Callable[[Array], Array], start: Float[Array, " k"], config: SearchConfig = SEARCH
) -> tuple[Float[Array, " k"], Float[Array, ""]]:
    """A minimum by BFGS: one evaluation a step; a step that does not descend is tried shorter.

    With ``config.method = "lbfgs"`` it is optax's L-BFGS with its zoom line search. Measured by
    ``taskset -c 1 python benchmarks/gp/fit.py --repeats 5 --seeds 3`` on a busy machine, with 25
    steps from the medians: L-BFGS takes 0.35 to 1.2 times as long to run (2.7 times in one case of
    nine) and 1.0 to 1.75 times as long to compile. It ends within 0.3 nats of the best known
    (median). Ours ends within 1 nat for 3 coordinates, but 5 and 20 nats above for 6 coordinates
    with 160 and 640 rows, and 4, 79 and 883 above for 10 coordinates with 50, 160 and 640. Ours is
    the default because all results so far were found with it, not because it is better.

    Args:
        loss: A function of k numbers, which may be NaN where it has no value.
        start: Where the search begins.
        config: Method, number and length of steps.

    Returns:
        Where the search ended, and the loss there.

    >>> where, value = minimise(lambda x: jnp.sum((x - 3.0) ** 2), jnp.zeros(2))
    >>> where.round(4)
    Array([3., 3.], dtype=float64)
    """
    if config.method == "lbfgs":
        return _lbfgs(loss, start, config)
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


def _lbfgs(
    loss: Callable[[Array], Array], start: Float[Array, " k"], config: SearchConfig
) -> tuple[Float[Array, " k"], Float[Array, ""]]:
    import optax  # only for those who ask for it: half a second

    zoom = optax.scale_by_zoom_linesearch(max_linesearch_steps=20, initial_guess_strategy="one")
    solver = optax.lbfgs(linesearch=zoom)
    value_and_slope = optax.value_and_grad_from_state(loss)

    def one(carry: tuple[Any, ...], _: None) -> tuple[Any, None]:
        here, state, best, least = carry
        value, slope = value_and_slope(here, state=state)
        better = value < least  # never where the loss is NaN
        best, least = jnp.where(better, here, best), jnp.where(better, value, least)
        update, state = solver.update(slope, state, here, value=value, grad=slope, value_fn=loss)
        return (optax.apply_updates(here, update), state, best, least), None

    # Optax mixes precisions of its own counters.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        begin = (start, solver.init(start), start, jnp.full((), jnp.inf, start.dtype))
        (last, _, best, least), _ = jax.lax.scan(one, begin, None, length=config.steps)
    value = loss(last)
    better = value < least
    return jnp.where(better, last, best), jnp.where(better, value, least)
