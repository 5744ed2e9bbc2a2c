"""Work through many points in pieces, so that memory stays bounded and in cache."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def in_chunks(function: Callable[[jax.Array], Any], points: jax.Array, size: int) -> Any:
    """``function(points)``, evaluated ``size`` rows at a time; rows must be independent.

    Fresh large arrays cost more in page faults than the arithmetic that fills them; a loop whose
    buffers are reused avoids that and bounds memory. The result is that of one call.
    """
    count = points.shape[0]
    if count <= size:
        return function(points)
    out = lax.map(function, chunked(points, size))
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:count], out)


def chunked(points: jax.Array, size: int) -> jax.Array:
    """Rows as (pieces, size, ...); the last row is repeated to fill the last piece.

    Zeros would not do: they may lie outside a kernel's domain.
    """
    count = points.shape[0]
    pieces = -(-count // size)
    size = -(-count // pieces)  # pieces of equal size: almost nothing is repeated
    index = jnp.minimum(jnp.arange(pieces * size), count - 1)
    return points[index].reshape(pieces, size, *points.shape[1:])
