"""Numbers in which objects of the same structure differ, so that one program can serve them all.

Agents of several seeds or settings are equal but for some numbers. ``VaryingNumbers`` finds these,
and ``filled`` makes a copy of the first object with other numbers in their place, such as traced
ones.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

import jax
import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import Noise
from kernelmdp.numerics.modules import ARRAYS

#: The way from an object to a part of it: names of fields, indices and keys.
Path = tuple[Any, ...]


class VaryingNumbers:
    """The numbers in which objects differ.

    Args:
        objects: Objects of the same structure: dataclasses, tuples, lists, dictionaries, arrays and
            plain values.

    Raises:
        ArgumentError: If they differ in more than numbers.

    Attributes:
        paths: Where the numbers are.
        values: For each of them the values of all objects, (n, ...).

    >>> numbers = VaryingNumbers([{"a": 1.0, "b": (0.5, 2)}, {"a": 1.0, "b": (0.7, 2)}])
    >>> numbers.paths, numbers.values[0].tolist(), numbers.filled([3.0])
    ([('b', 0)], [0.5, 0.7], {'a': 1.0, 'b': (3.0, 2)})
    """

    def __init__(self, objects: Sequence[Any]) -> None:
        self.first = objects[0]
        paths: dict[Path, None] = {}
        for other in objects[1:]:
            paths |= dict.fromkeys(_differences(self.first, other, ()))
        self.paths = list(paths)
        self.values = [
            np.stack([np.asarray(_part(each, path)) for each in objects]) for path in self.paths
        ]

    def filled(self, values: Sequence[Any]) -> Any:
        """Make a copy of the first object with other numbers.

        The variance of a table's noise is a constant of every program, so it cannot have another
        value. It gets NaN. Plans do not use it; a result that does is NaN.

        Args:
            values: A number or an array for each of ``paths``.

        Returns:
            The copy. Parts without such numbers are shared.
        """
        result = self.first
        for path, value in zip(self.paths, values, strict=True):
            result = _with_part(result, path, value)
        return result


def _differences(first: Any, second: Any, path: Path) -> list[Path]:
    """Paths of the numbers in which two objects differ."""
    if first is second:
        return []
    if isinstance(first, ARRAYS) or isinstance(first, float):
        same_kind = isinstance(second, ARRAYS) == isinstance(first, ARRAYS)
        if not same_kind or np.shape(first) != np.shape(second):
            raise _too_different(path)
        if isinstance(first, jax.Array) and jax.dtypes.issubdtype(first.dtype, jax.dtypes.prng_key):
            return []  # keys come from seeds
        return [] if np.array_equal(first, second, equal_nan=True) else [path]
    if type(first) is not type(second):
        raise _too_different(path)
    if isinstance(first, Noise) and not first.categorical and first != second:
        raise _too_different(path)
    parts = _parts(first)
    if parts is None:
        if not _same(first, second):
            raise _too_different(path)
        return []
    others = _parts(second)
    assert others is not None
    if parts.keys() != others.keys():
        raise _too_different(path)
    return [
        difference
        for step, part in parts.items()
        for difference in _differences(part, others[step], (*path, step))
    ]


def _parts(value: Any) -> dict[Any, Any] | None:
    """The parts of an object by the step that leads to them, or None for a plain value."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return dict(enumerate(value))
    if isinstance(value, dict):
        return dict(value)
    return None


def _same(first: Any, second: Any) -> bool:
    """Whether two plain values are equal; functions are if they have the same code and numbers."""
    if isinstance(first, FunctionType):
        numbers, others = (
            [
                [cell.cell_contents for cell in each.__closure__ or ()],
                each.__defaults__ or (),
                each.__kwdefaults__ or {},
            ]
            for each in (first, second)
        )
        return first.__code__ is second.__code__ and not _differences(numbers, others, ())
    return bool(first == second)


def _too_different(path: Path) -> ArgumentError:
    where = ".".join(map(str, path)) or "their kind"
    return ArgumentError("vectorise", "runs that differ in numbers only", f"another {where}")


def _part(value: Any, path: Path) -> Any:
    for step in path:
        parts = _parts(value)
        assert parts is not None
        value = parts[step]
    return value


def _with_part(value: Any, path: Path, new: Any) -> Any:
    """A copy of an object in which one part is replaced. No constructor is run."""
    if not path:
        return new
    if isinstance(value, Noise):
        new = float("nan")
    step, parts = path[0], _parts(value)
    assert parts is not None
    parts[step] = _with_part(parts[step], path[1:], new)
    if isinstance(value, tuple):
        return type(value)(*parts.values()) if hasattr(value, "_fields") else tuple(parts.values())
    if isinstance(value, list):
        return list(parts.values())
    if isinstance(value, dict):
        return parts
    return with_fields(value, parts)


def with_fields(value: Any, changes: Mapping[str, Any]) -> Any:
    """Copy a dataclass with some fields changed, without its constructor and its checks.

    Args:
        value: The object.
        changes: New values by field, which may be traced.

    Returns:
        The copy. What the object has computed from its fields and cached is computed again.
    """
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    copied = object.__new__(type(value))
    copied.__dict__.update(fields | dict(changes))
    return copied
