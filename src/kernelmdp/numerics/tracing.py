"""Numbers that may be traced: then a compiled program computes them, and they have no value yet."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def is_traced(*values: object) -> bool:
    """Return whether any array in some pytrees is being traced, so that its values are unknown.

    Args:
        *values: The pytrees.

    Returns:
        Whether one of their leaves is a tracer of JAX.
    """
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def array_library(*values: object) -> Any:
    """Choose NumPy, whose functions return at once, or JAX's version of it for traced arrays.

    Args:
        *values: The arrays to compute with.

    Returns:
        ``numpy`` or ``jax.numpy``.

    >>> array_library(1.0).__name__
    'numpy'
    """
    return jnp if is_traced(*values) else np


def as_float(value: Any) -> Any:
    """Convert a scalar to a Python float, unless it is traced.

    Args:
        value: A number, or a scalar array.

    Returns:
        The float, or the traced scalar itself.

    >>> as_float(jnp.ones(()))
    1.0
    """
    return value if is_traced(value) else float(value)


def as_integer(value: Any) -> Any:
    """Convert a scalar to a Python integer, unless it is traced.

    Args:
        value: A whole number, or a scalar array.

    Returns:
        The integer, or the traced scalar itself.

    >>> as_integer(jnp.ones((), int))
    1
    """
    return value if is_traced(value) else int(value)


def as_array(value: Any) -> Any:
    """Make an array of a number, an array or nested numbers, without a compiled program.

    ``jnp.asarray`` compiles a program for every new shape, which takes some milliseconds.

    Args:
        value: The numbers. An array of JAX, which may be traced, is returned unchanged.

    Returns:
        An array of JAX.

    >>> as_array([1.0, 2.0]).shape
    (2,)
    """
    return value if isinstance(value, jax.Array) else jax.device_put(np.asarray(value))
