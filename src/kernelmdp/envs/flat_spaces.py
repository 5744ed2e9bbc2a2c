"""Write the elements of Gymnasium spaces as vectors, and vectors as elements.

Box, Discrete, MultiDiscrete and MultiBinary hold arrays of numbers. Dict and Tuple have parts, each
of any of these kinds.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces

from kernelmdp.errors import ArgumentError, DataError, ShapeError

#: The spaces that can be written as vectors, as error messages list them.
KINDS = "Box, Discrete, MultiDiscrete, MultiBinary, Dict and Tuple"


@dataclasses.dataclass(frozen=True, eq=False)
class FlatSpace:
    """A space whose elements are written as vectors of n numbers.

    Attributes:
        names: The names of the n coordinates.
        low: The lowest value of each coordinate, (n,).
        high: The highest value of each coordinate, (n,).
        choices: The values that each coordinate may have; None for a continuous one.
        to_vector: A function from an element, and where it came from, to its vector (n,). The
            second argument is only for error messages.
        to_element: The function from a vector (n,) to its element.

    >>> arm = spaces.Dict({"angle": spaces.Box(-3, 3, ()), "joints": spaces.Box(0, 1, (2,))})
    >>> flat = flat_space(arm, "observation")
    >>> flat.names
    ('angle', 'joints[0]', 'joints[1]')
    >>> flat.to_vector({"angle": 2.0, "joints": [0.5, 1.0]}, "")
    array([2. , 0.5, 1. ])
    """

    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    choices: tuple[np.ndarray | None, ...]
    to_vector: Callable[[Any, str], np.ndarray]
    to_element: Callable[[np.ndarray], Any]

    @property
    def finite(self) -> bool:
        """Whether every coordinate has finitely many values."""
        return all(values is not None for values in self.choices)


def flat_space(space: spaces.Space[Any], kind: str) -> FlatSpace:
    """Write the elements of a space as vectors.

    A coordinate has the name of its part in a Dict, with its position in brackets. Where Dicts are
    nested, dots join the names. Without a Dict, the name is that of the kind.

    Args:
        space: The space.
        kind: "observation" or "action".

    Returns:
        The space with its vectors.

    Raises:
        ArgumentError: If the space, or a part of it, is of another kind, or holds images.

    >>> flat_space(spaces.Box(0, 1, (2,)), "action").names
    ('action[0]', 'action[1]')
    """
    return flat_part(space, kind, "")


@functools.singledispatch
def flat_part(space: spaces.Space[Any], kind: str, name: str) -> FlatSpace:
    """Write the elements of a part of a space as vectors. Kinds of spaces register here.

    Args:
        space: The part.
        kind: "observation" or "action".
        name: The name of the part. That of the whole is empty.

    Returns:
        The part with its vectors.

    Raises:
        ArgumentError: If it is of no kind that can be written as a vector.

    >>> flat_part(spaces.Box(0, 1, (1,)), "action", "valve").names
    ('valve[0]',)
    """
    return _refuse(space, kind, name)


def _refuse(space: spaces.Space[Any], kind: str, name: str) -> NoReturn:
    wrapper = f"gymnasium.wrappers.Transform{kind.title()}"
    expected = f"{kind}s made of {KINDS}; {wrapper} converts others"
    raise ArgumentError("env", expected, f"{name} {space}".strip())


@flat_part.register
def _box(space: spaces.Box, kind: str, name: str) -> FlatSpace:
    if space.dtype == np.uint8 and len(space.shape) == 3:
        wrapper = f"gymnasium.wrappers.Transform{kind.title()}"
        expected = f"{kind}s of a few numbers; for images, compute features with {wrapper}"
        raise ArgumentError("env", expected, f"{name} {space}".strip())
    low, high = (np.array(end, float).ravel() for end in (space.low, space.high))
    return _array(space, kind, name, low, high, (None,) * len(low))


@flat_part.register
def _discrete(space: spaces.Discrete, kind: str, name: str) -> FlatSpace:
    values = float(space.start) + np.arange(int(space.n))
    return _finite_array(space, kind, name, (values,), int)


@flat_part.register
def _multi_discrete(space: spaces.MultiDiscrete, kind: str, name: str) -> FlatSpace:
    pairs = zip(space.start.ravel(), space.nvec.ravel(), strict=True)
    return _finite_array(space, kind, name, tuple(float(a) + np.arange(n) for a, n in pairs))


@flat_part.register
def _multi_binary(space: spaces.MultiBinary, kind: str, name: str) -> FlatSpace:
    values = (np.array([0.0, 1.0]),) * int(np.prod(space.shape))
    return _finite_array(space, kind, name, values)


@flat_part.register(spaces.Dict)
def _dict(space: Any, kind: str, name: str) -> FlatSpace:
    names = {key: f"{name}.{key}" if name else str(key) for key in space}
    parts = [flat_part(space[key], kind, names[key]) for key in space]
    return _joined(kind, list(space), parts, dict)


@flat_part.register(spaces.Tuple)
def _tuple(space: Any, kind: str, name: str) -> FlatSpace:
    parts = [flat_part(part, kind, f"{name or kind}[{i}]") for i, part in enumerate(space.spaces)]
    return _joined(kind, range(len(parts)), parts, lambda pairs: tuple(part for _, part in pairs))


def _finite_array(
    space: spaces.Space[Any],
    kind: str,
    name: str,
    choices: tuple[np.ndarray, ...],
    finish: Callable[[np.ndarray], Any] = np.asarray,
) -> FlatSpace:
    low, high = (np.array([values[end] for values in choices]) for end in (0, -1))
    return _array(space, kind, name, low, high, choices, finish)


def _array(
    space: spaces.Space[Any],
    kind: str,
    name: str,
    low: np.ndarray,
    high: np.ndarray,
    choices: tuple[np.ndarray | None, ...],
    finish: Callable[[np.ndarray], Any] = np.asarray,
) -> FlatSpace:
    """A space of arrays of one shape. ``finish`` converts an array to what ``step`` takes."""
    shape, dtype = space.shape or (), np.dtype(space.dtype)
    positions = [",".join(map(str, index)) for index in np.ndindex(*shape)]
    names = tuple(f"{name or kind}[{each}]" if each else name or kind for each in positions)

    def to_vector(element: Any, where: str) -> np.ndarray:
        try:
            array = np.array(element, dtype=float)
        except (TypeError, ValueError):
            raise DataError(kind, "numbers", f"{element!r} {where}".strip()) from None
        if array.shape != shape and (shape or array.size != 1):
            expected = f"{shape[0]} numbers" if len(shape) == 1 else f"shape {shape}"
            got = f"shape {array.shape} {where}".strip()
            raise ShapeError(kind, f"{expected} for {name}" if name else expected, got)
        return array.ravel()

    def to_element(vector: np.ndarray) -> Any:
        whole = np.issubdtype(dtype, np.integer)
        return finish((np.round(vector) if whole else vector).reshape(shape).astype(dtype))

    return FlatSpace(names, low, high, choices, to_vector, to_element)


def _joined(
    kind: str,
    keys: Sequence[Any],
    parts: Sequence[FlatSpace],
    collect: Callable[[list[tuple[Any, Any]]], Any],
) -> FlatSpace:
    """The space of elements with several parts. ``collect`` makes one of keys and parts."""
    if not parts:
        raise ArgumentError("env", f"{kind}s of at least one number", "a space without parts")
    ends = np.cumsum([len(part.names) for part in parts])[:-1]

    def to_vector(element: Any, where: str) -> np.ndarray:
        try:
            values = [element[key] for key in keys]
        except (LookupError, TypeError):
            expected = "the parts " + ", ".join(map(str, keys))
            raise ShapeError(kind, expected, f"{element!r} {where}".strip()) from None
        pairs = zip(parts, values, strict=True)
        return np.concatenate([part.to_vector(value, where) for part, value in pairs])

    def to_element(vector: np.ndarray) -> Any:
        triples = zip(keys, parts, np.split(vector, ends), strict=True)
        return collect([(key, part.to_element(piece)) for key, part, piece in triples])

    return FlatSpace(
        tuple(name for part in parts for name in part.names),
        np.concatenate([part.low for part in parts]),
        np.concatenate([part.high for part in parts]),
        tuple(values for part in parts for values in part.choices),
        to_vector,
        to_element,
    )
