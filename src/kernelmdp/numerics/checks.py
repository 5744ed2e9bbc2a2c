"""Checks of the arguments that users pass. They run before anything is changed."""

import difflib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.errors import ArgumentError, DataError, ShapeError
from kernelmdp.numerics.tracing import as_array, is_traced

#: Precisions of the library, by name. Results lose digits in 32 bits, so 64 bits are the default.
DTYPES = {"float64": jnp.float64, "float32": jnp.float32}


def as_dtype(value: Any) -> Any:
    """Return the JAX dtype float64 or float32.

    Args:
        value: The dtype, or its name.

    Returns:
        ``jnp.float64`` or ``jnp.float32``.

    Raises:
        ArgumentError: If it is another dtype or name.
    """
    name = jnp.dtype(value).name if value in (jnp.float32, jnp.float64) else str(value)
    if name not in DTYPES:
        raise ArgumentError("dtype", "float64 or float32", repr(value))
    return DTYPES[name]


def float_array(value: Any, argument: str = "array") -> Any:
    """Return an array of floats.

    A JAX array stays a JAX array; everything else becomes a NumPy array. Checks of a NumPy array
    cost no dispatch, and a compiled program accepts it unchanged.

    Args:
        value: Numbers in any form that NumPy reads.
        argument: Name of the argument, for the error message.

    Returns:
        The array. JAX arrays of floats and NumPy arrays of float32 keep their dtype; all others
        become float64.

    Raises:
        ArgumentError: If ``value`` does not consist of numbers.
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
    """Check that an array holds neither NaN nor infinity. Traced arrays are not checked.

    Args:
        argument: Name of the argument, for the error message.
        array: The array.

    Raises:
        DataError: If an entry is not finite. The message names the first one and its index.
    """
    if is_traced(array):
        return
    values = np.asarray(array)
    if not np.isfinite(values).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise DataError(argument, "finite numbers", f"{values[index]} at index {index}")


def as_points(argument: str, value: Any, *, dtype: Any = None, dimension: int | None = None) -> Any:
    """Return points as an array (n, d) of finite floats.

    Args:
        argument: Name of the argument, for the error message.
        value: The points, (n, d).
        dtype: Dtype of the result; by default that of ``float_array``.
        dimension: Required number of coordinates d; by default any.

    Returns:
        The points, (n, d).

    Raises:
        ShapeError: If the array has not two axes, or not ``dimension`` columns.
    """
    array = float_array(value, argument)
    if array.ndim != 2:
        raise ShapeError(argument, "an array of shape (n, d)", f"shape {tuple(array.shape)}")
    if dimension is not None and array.shape[1] != dimension:
        raise ShapeError(argument, f"shape (n, {dimension})", f"shape {tuple(array.shape)}")
    require_finite(argument, array)
    return array if dtype is None or array.dtype == dtype else array.astype(dtype)


def positive_array(argument: str, value: Any) -> jax.Array:
    """Return a scalar or vector of finite numbers greater than zero.

    The values of traced arrays are not checked.

    Args:
        argument: Name of the argument, for the error message.
        value: The number, or the vector (n,).

    Returns:
        A JAX array of the same shape.

    Raises:
        ShapeError: If ``value`` has more than one axis.
        ArgumentError: If it is empty, or an entry is not finite and greater than 0.
    """
    array = float_array(value, argument)
    if array.ndim > 1:
        raise ShapeError(argument, "a number or a vector", f"shape {tuple(array.shape)}")
    if not is_traced(array):
        values = np.asarray(array)
        if values.size == 0 or not (np.isfinite(values) & (values > 0)).all():
            raise ArgumentError(argument, "finite and greater than 0", f"{values.tolist()}")
    return as_array(array)


def positive_number(argument: str, value: Any) -> float:
    """Return a single finite number greater than zero as a Python float. It cannot be traced.

    Args:
        argument: Name of the argument, for the error message.
        value: The number.

    Returns:
        The number as a float.

    Raises:
        ArgumentError: If ``value`` is not a finite number greater than 0.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ArgumentError(argument, "a number greater than 0", repr(value)) from None
    if not (math.isfinite(number) and number > 0):
        raise ArgumentError(argument, "finite and greater than 0", number)
    return number


def integer(argument: str, value: Any, *, least: int) -> int:
    """Return a whole number as a Python int.

    Args:
        argument: Name of the argument, for the error message.
        value: The number. A float such as 3.0 counts as whole, a bool or a text does not.
        least: Smallest accepted value.

    Returns:
        The number as an int.

    Raises:
        ArgumentError: If ``value`` is no whole number, or is below ``least``.
    """
    try:
        whole = int(value)
        valid = not isinstance(value, bool | str) and float(value) == whole and whole >= least
    except (TypeError, ValueError, OverflowError):
        valid = False
    if not valid:
        raise ArgumentError(argument, f"a whole number of at least {least}", repr(value))
    return whole


def choice(argument: str, value: Any, allowed: Sequence[str]) -> str:
    """Return one of a few strings.

    Args:
        argument: Name of the argument, for the error message.
        value: The string.
        allowed: All accepted strings.

    Returns:
        The string.

    Raises:
        ArgumentError: If ``value`` is not among those allowed.
    """
    if value not in allowed:
        expected = "one of " + ", ".join(map(repr, allowed))
        raise ArgumentError(argument, expected, with_suggestion(value, allowed))
    return str(value)


def with_suggestion(value: Any, known: Iterable[str]) -> str:
    """Return an unknown name, quoted, together with the most similar known name.

    Args:
        value: The unknown name.
        known: The known names.

    Returns:
        Text for the ``got`` of an error. It has no suggestion if no known name is similar.

    >>> with_suggestion("psrll", ["gp-ucrl", "psrl"])
    "'psrll'; did you mean 'psrl'?"
    """
    similar = difflib.get_close_matches(str(value), known, n=1, cutoff=0.3)
    return f"{value!r}; did you mean {similar[0]!r}?" if similar else repr(value)
