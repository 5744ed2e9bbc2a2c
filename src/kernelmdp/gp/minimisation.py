"""Minimisation of a smooth function of few numbers, by BFGS or L-BFGS."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.gp.fit_config import SEARCH, SearchConfig


def minimise(
    loss: Callable[[Array], Array],
    start: Float[Array, " k"],
    config: SearchConfig = SEARCH,
    *,
    steps: Any = None,
    tolerance: Any = 0.0,
    inverse_hessian: Float[Array, "k k"] | None = None,
) -> tuple[Float[Array, " k"], Float[Array, ""]]:
    """Minimise a function by BFGS, or by optax's L-BFGS (``config.method = "lbfgs"``).

    BFGS takes one evaluation a step. A step that does not descend is shortened. L-BFGS has a zoom
    line search. Measured by
    ``taskset -c 1 python benchmarks/gp/fit.py --repeats 5 --seeds 3`` on a busy machine, with 25
    steps from the medians:

    - L-BFGS takes 0.35 to 1.2 times as long to run, 2.7 times in one case of nine. It takes 1.0 to
      1.75 times as long to compile. It ends within 0.3 nats of the best known loss (median).
    - BFGS ends within 1 nat for 3 coordinates. For 6 coordinates with 160 and 640 rows it ends 5
      and 20 nats above. For 10 coordinates with 50, 160 and 640 rows it ends 4, 79 and 883 above.

    BFGS is the default because all results so far were found with it, not because it is better.

    Args:
        loss: A function of k numbers. It may return NaN where it has no value.
        start: Where the search starts.
        config: Method, number and length of steps.
        steps: Another number of steps, which may be traced. With −1 nothing is evaluated, and the
            loss is infinite. L-BFGS takes all steps of the configuration or none.
        tolerance: BFGS ends when it expects less decrease of the loss than this from a step, by its
            estimate of the curvature.
        inverse_hessian: The first estimate of the inverse Hessian, for BFGS. None means the
            identity.

    Returns:
        The minimiser found, and the loss there.

    >>> minimiser, value = minimise(lambda x: jnp.sum((x - 3.0) ** 2), jnp.zeros(2))
    >>> minimiser.round(4)
    Array([3., 3.], dtype=float64)
    """
    steps = jnp.asarray(config.steps if steps is None else steps)
    nothing = (start, jnp.full((), jnp.inf, start.dtype))
    if config.method == "lbfgs":
        return jax.lax.cond(steps < 0, lambda: nothing, lambda: _lbfgs(loss, start, config))
    value_and_gradient = jax.value_and_grad(loss)
    identity = jnp.eye(start.shape[0], dtype=start.dtype)
    first_estimate = identity if inverse_hessian is None else inverse_hessian

    def continues(carry: tuple[Any, ...]) -> Array:
        number, _, value, gradient, inverse_hessian, _ = carry
        expected = 0.5 * gradient @ inverse_hessian @ gradient
        ends = (expected < tolerance) & jnp.isfinite(value)
        return (number <= steps) & ~ends

    def iterate(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        number, x, value, gradient, inverse_hessian, step_size = carry
        direction = -inverse_hessian @ gradient
        # If the model of the curvature points uphill, restart from steepest descent.
        restart = ~(gradient @ direction < 0)
        direction = jnp.where(restart, -gradient, direction)
        length = jnp.linalg.norm(direction)
        shortening = config.longest / jnp.maximum(length, config.least_length)
        direction = direction * jnp.minimum(1.0, shortening)
        step = step_size * direction
        trial = x + step
        trial_value, trial_gradient = value_and_gradient(trial)
        finite = jnp.isfinite(trial_value) & jnp.all(jnp.isfinite(trial_gradient))
        accepted = finite & (trial_value <= value + config.decrease * gradient @ step)
        change = jnp.where(accepted, trial_gradient - gradient, 0.0)
        curvature = step @ change
        is_curved = accepted & (curvature > config.curvature)
        rho = 1 / jnp.where(is_curved, curvature, 1.0)
        left = identity - rho * jnp.outer(step, change)
        updated = left @ inverse_hessian @ left.T + rho * jnp.outer(step, step)
        unchanged = jnp.where(restart, first_estimate, inverse_hessian)
        inverse_hessian = jnp.where(is_curved, updated, unchanged)
        return (
            number + 1,
            jnp.where(accepted, trial, x),
            jnp.where(accepted, trial_value, value),
            jnp.where(accepted, trial_gradient, gradient),
            inverse_hessian,
            jnp.where(accepted, 1.0, config.shrink * step_size),
        )

    # The first step has length 0 and evaluates the start, so that the loss is compiled once.
    first = jnp.zeros((), steps.dtype)
    initial = (first, *nothing, jnp.zeros_like(start), first_estimate, jnp.ones(()))
    _, best, value, *_ = jax.lax.while_loop(continues, iterate, initial)
    return best, value


def _lbfgs(
    loss: Callable[[Array], Array], start: Float[Array, " k"], config: SearchConfig
) -> tuple[Float[Array, " k"], Float[Array, ""]]:
    import optax  # here, because importing it takes half a second

    zoom = optax.scale_by_zoom_linesearch(max_linesearch_steps=20, initial_guess_strategy="one")
    solver = optax.lbfgs(linesearch=zoom)
    value_and_gradient = optax.value_and_grad_from_state(loss)

    def iterate(carry: tuple[Any, ...], _: None) -> tuple[Any, None]:
        x, state, best, least = carry
        value, gradient = value_and_gradient(x, state=state)
        better = value < least  # never where the loss is NaN
        best, least = jnp.where(better, x, best), jnp.where(better, value, least)
        update, state = solver.update(gradient, state, x, value=value, grad=gradient, value_fn=loss)
        return (optax.apply_updates(x, update), state, best, least), None

    # Optax mixes the precisions of its counters, which our strict promotion rules refuse.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        initial = (start, solver.init(start), start, jnp.full((), jnp.inf, start.dtype))
        (last, _, best, least), _ = jax.lax.scan(iterate, initial, None, length=config.steps)
    value = loss(last)
    better = value < least
    return jnp.where(better, last, best), jnp.where(better, value, least)
