"""Immutable pytrees, programs compiled for them, changed copies, and work in pieces."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

M = TypeVar("M")
P = ParamSpec("P")
R = TypeVar("R")

ARRAYS = (jax.Array, np.ndarray, np.generic)
#: Kinds of arguments for which a function keeps its compiled programs.
KEPT = 16


class Module(eqx.Module):
    """A frozen dataclass that is a pytree.

    Its methods are plain. Equinox makes every bound method a pytree of its own, which takes longer
    each time one is called than the arithmetic of a small update.
    """

    if not TYPE_CHECKING:
        __getattribute__ = object.__getattribute__


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """``jax.jit`` for arguments with anything inside: whatever is not an array fixes the program.

    Results hold arrays only. Does what ``equinox.filter_jit`` does at a third of its cost, and does
    not wait for the result. The programs for the last ``KEPT`` kinds of arguments are kept, so that
    a process which makes agents one after another does not grow.
    """

    @functools.lru_cache(maxsize=KEPT)
    def program(structure: Any, others: tuple[tuple[bool, Any], ...]) -> Callable[..., Any]:
        def run(arrays: list[Any]) -> Any:
            remaining = iter(arrays)
            leaves = [next(remaining) if is_array else leaf for is_array, leaf in others]
            args, kwargs = jax.tree.unflatten(structure, leaves)
            return function(*args, **kwargs)

        run.__name__ = run.__qualname__ = function.__name__
        return jax.jit(run)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = jax.tree.flatten((args, kwargs))
        arrays = [leaf for leaf in leaves if isinstance(leaf, ARRAYS)]
        others = tuple((True, None) if isinstance(x, ARRAYS) else (False, x) for x in leaves)
        return program(structure, others)(arrays)

    return call


def changed(module: M, **fields: Any) -> M:
    """``dataclasses.replace`` without running the constructor again.

    For modules whose fields were checked when they were made, in steps taken every episode: a
    constructor costs more than the arithmetic of an update.
    """
    # Not ``copy.copy``: Equinox keeps what its ``__new__`` makes until a constructor has run.
    twin = object.__new__(type(module))
    twin.__dict__.update(module.__dict__)
    for name, value in fields.items():
        if name not in twin.__dict__:
            raise AttributeError(f"{type(module).__name__} has no field {name!r}")
        twin.__dict__[name] = value
    return twin


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
