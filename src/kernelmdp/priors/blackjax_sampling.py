"""Sampling with BlackJAX: promotion rules for it, and elliptical slice sampling."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from kernelmdp.types import Key


@contextlib.contextmanager
def default_promotion() -> Iterator[None]:
    """Use JAX's default promotion rules, which BlackJAX needs, also where stricter ones are set.

    Yields:
        Nothing.
    """
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def slice_steps(
    log_ratio: Callable[[Array], Array], start: Float[Array, " k"], steps: int, *, key: Key
) -> tuple[Float[Array, "steps k"], Int[Array, " steps"], Bool[Array, ""]]:
    """Run elliptical slice sampling (Murray et al. 2010).

    The target has density ∝ exp(log_ratio(u)) relative to N(0, I). From a start where the ratio is
    not finite, slice sampling would never end. The chain then stays at its start.

    Args:
        log_ratio: The logarithm of the density relative to N(0, I).
        start: The start of the chain, (k,).
        steps: The number of steps.
        key: Decides everything random.

    Returns:
        Positions (steps, k), the number of points that each step tried, and whether the start was
        valid.
    """
    import blackjax

    sound = jnp.isfinite(log_ratio(start))

    def safe(u: Array) -> Array:
        value = log_ratio(u)
        return jnp.where(sound, jnp.where(jnp.isnan(value), -jnp.inf, value), 0.0)

    with default_promotion():
        zeros, ones = jnp.zeros_like(start), jnp.ones_like(start)
        sampler = blackjax.elliptical_slice(safe, mean=zeros, cov=ones)

        def step(state: Any, step_key: Array) -> tuple[Any, Any]:
            after, info = sampler.step(step_key, state)
            return after, (after.position, jnp.asarray(info.subiter, jnp.int32))

        state = sampler.init(start)
        _, (positions, tried) = jax.lax.scan(step, state, jax.random.split(key, steps))
    return jnp.where(sound, positions, start[None, :]), tried, sound
