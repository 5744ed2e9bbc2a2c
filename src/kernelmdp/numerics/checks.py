"""Checks of what users pass in, before anything is changed."""

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.errors import ArgumentError, DataError, ShapeError
from kernelmdp.numerics.factorisation import is_traced

DTYPES = {"float64": jnp.float64, "float32": jnp.float32}


def as_dtype(value: Any) -> Any:
    """float64 or float32, from a name or a dtype."""
    name = jnp.dtype(value).name if value in (jnp.float32, jnp.float64) else str(value)
    if name not in DTYPES:
        raise ArgumentError("dtype", "float64 or float32", repr(value))
    return DTYPES[name]


def float_array(value: Any, argument: str = "array") -> Any:
    """An array of floats: float32 stays, everything else becomes float64.

    What was no JAX array comes back as a NumPy one: checks then cost no dispatch, and a compiled
    program takes it as it is.
    """
    if isinstance(value, jax.Array):
        return value if jnp.issubdtype(value.dtype, jnp.floating) else value.astype(jnp.float64)
    try:
        array = np.asarray(value)
        array = array if array.dtype == np.float32 else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(argument, "numbers", f"{value!r} ({error})") from None
    return array


def require_finite(argument: str, array: Any) -> None:
    """DataError with the first bad place, when an array holds NaN or infinity."""
    if is_traced(array):
        return
    host = np.asarray(array)
    if not np.isfinite(host).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(host))[0])
        raise DataError(argument, "finite numbers", f"{host[place]} at index {place}")


def as_points(argument: str, value: Any, *, dtype: Any = None, dimension: int | None = None) -> Any:
    """Points as an array (n, d) of finite floats."""
    array = float_array(value, argument)
    if array.ndim != 2:
        raise ShapeError(argument, "an array of shape (n, d)", f"shape {tuple(array.shape)}")
    if dimension is not None and array.shape[1] != dimension:
        raise ShapeError(argument, f"shape (n, {dimension})", f"shape {tuple(array.shape)}")
    require_finite(argument, array)
    return array if dtype is None or array.dtype == dtype else array.astype(dtype)


def positive(argument: str, value: Any) -> jax.Array:
    """A scalar or vector of finite numbers greater than zero."""
    array = float_array(value, argument)
    if array.ndim > 1:
        raise ShapeError(argument, "a number or a vector", f"shape {tuple(array.shape)}")
    if not is_traced(array):
        host = np.asarray(array)
        if host.size == 0 or not (np.isfinite(host) & (host > 0)).all():
            raise ArgumentError(argument, "finite and greater than 0", f"{host.tolist()}")
    return jnp.asarray(array)


def positive_number(argument: str, value: Any) -> float:
    """One finite number greater than zero, known at once."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(argument, "a number greater than 0", repr(value)) from None
    if not (math.isfinite(number) and number > 0):
        raise ArgumentError(argument, "finite and greater than 0", number)
    return number


def integer(argument: str, value: Any, *, least: int) -> int:
    """A whole number of at least ``least``."""
    try:
        whole = int(value)
        right = not isinstance(value, bool) and float(value) == whole and whole >= least
    except (TypeError, ValueError, OverflowError):
        right = False
    if not right:
        raise ArgumentError(argument, f"a whole number of at least {least}", repr(value))
    return whole


def choice(argument: str, value: Any, allowed: Sequence[str]) -> str:
    """One of a few words."""
    if value not in allowed:
        raise ArgumentError(argument, "one of " + ", ".join(map(repr, allowed)), repr(value))
    return str(value)


def suggested(value: Any, known: Iterable[str]) -> str:
    """A word nobody knows, with the nearest that is known.

    >>> suggested("psrll", ["gp-ucrl", "psrl"])
    "'psrll'; did you mean 'psrl'?"
    """
    near = difflib.get_close_matches(str(value), known, n=1, cutoff=0.3)
    return f"{value!r}; did you mean {near[0]!r}?" if near else repr(value)
