"""Sampling by BlackJAX: what it needs of JAX, and elliptical slices."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from kernelmdp.types import Key


@contextlib.contextmanager
def default_promotion() -> Iterator[None]:
    """JAX's own rules for ranks and types, which BlackJAX is written for, whatever ours are."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def slice_steps(
    log_ratio: Callable[[Array], Array], start: Float[Array, " k"], steps: int, *, key: Key
) -> tuple[Float[Array, "steps k"], Int[Array, " steps"], Bool[Array, ""]]:
    """A chain for the law of density ∝ exp(log_ratio(u)) relative to N(0, I) (Murray et al. 2010).

    Gives its positions, how many points each step tried, and whether the start was sound. From a
    start where the ratio is not finite a slice would never end: the chain then stays where it is.
    """
    import blackjax

    sound = jnp.isfinite(log_ratio(start))

    def safe(u: Array) -> Array:
        value = log_ratio(u)
        return jnp.where(sound, jnp.where(jnp.isnan(value), -jnp.inf, value), 0.0)

    with default_promotion():
        zeros, ones = jnp.zeros_like(start), jnp.ones_like(start)
        sampler = blackjax.elliptical_slice(safe, mean=zeros, cov=ones)

        def step(state: Any, each: Array) -> tuple[Any, Any]:
            after, info = sampler.step(each, state)
            return after, (after.position, jnp.asarray(info.subiter, jnp.int32))

        state = sampler.init(start)
        _, (positions, tried) = jax.lax.scan(step, state, jax.random.split(key, steps))
    return jnp.where(sound, positions, start[None, :]), tried, sound
