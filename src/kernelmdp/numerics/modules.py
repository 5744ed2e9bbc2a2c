"""Copies of frozen modules with some fields changed."""

import copy
from typing import Any, TypeVar

M = TypeVar("M")


def changed(module: M, **fields: Any) -> M:
    """``dataclasses.replace`` without running the constructor again.

    For modules whose fields were checked when they were made, in steps taken every episode: a
    constructor costs more than the arithmetic of an update.
    """
    twin = copy.copy(module)
    for name, value in fields.items():
        if name not in twin.__dict__:
            raise AttributeError(f"{type(module).__name__} has no field {name!r}")
        object.__setattr__(twin, name, value)
    return twin
