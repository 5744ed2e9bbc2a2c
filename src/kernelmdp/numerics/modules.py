"""Immutable pytrees, programs compiled for them, and copies with some fields changed."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import equinox as eqx
import jax
import numpy as np

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
