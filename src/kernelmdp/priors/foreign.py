"""BlackJAX traced under JAX's usual rules, whatever ours are."""

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def other_rules() -> Iterator[None]:
    """Silent broadcasting and promotion allowed: code of others may rely on them."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield
