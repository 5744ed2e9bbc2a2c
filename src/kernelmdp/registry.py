"""Registries of named parts, such as environments, agents, learners, planners and kernels.

A name is looked up among the registered parts, then among the entry points of installed packages
(group ``kernelmdp.agents`` and so on). ``module:Name`` imports a part from a module.
"""

import importlib
import importlib.metadata
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import with_suggestion

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from names to parts of one kind, such as classes of agents.

    Args:
        kind: The kind of the parts, for error messages and entry points, such as "agent".

    >>> colours = Registry[str]("colour")
    >>> colours.register("red", "#f00")
    '#f00'
    >>> colours["red"]
    '#f00'
    >>> colours.find("rde")
    Traceback (most recent call last):
    kernelmdp.errors.ArgumentError: colour: expected one of 'red', or module:Name, got 'rde'; did
    you mean 'red'?
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._parts: dict[str, T] = {}

    def register(self, name: str, part: T) -> T:
        """Register a part under a name.

        Args:
            name: The name.
            part: The part.

        Returns:
            The part.

        Raises:
            ArgumentError: If another part has the name.
        """
        if self._parts.get(name, part) is not part:
            raise ArgumentError("name", f"the name of no other {self.kind}", repr(name))
        self._parts[name] = part
        return part

    def find(self, name: object) -> T:
        """Return the part of a name.

        Args:
            name: Name of a registered part or of an entry point, or ``module:Name``.

        Returns:
            The part.

        Raises:
            ArgumentError: If there is none. The message suggests the most similar name.
        """
        name = str(name)
        if name in self._parts:
            return self._parts[name]
        if ":" in name:
            return import_object(name, self.kind)
        for entry in importlib.metadata.entry_points(group=f"kernelmdp.{self.kind}s"):
            if entry.name == name:
                return self.register(name, entry.load())
        expected = "one of " + ", ".join(map(repr, self._parts)) + ", or module:Name"
        raise ArgumentError(self.kind, expected, with_suggestion(name, self._parts))

    def name_of(self, part: object) -> str | None:
        """Return the name of a registered part.

        Args:
            part: The part.

        Returns:
            The first name under which it is registered, or None if it is not registered.
        """
        return next((name for name, known_part in self._parts.items() if known_part is part), None)

    def __getitem__(self, name: str) -> T:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


def is_reference(text: str) -> bool:
    """Return whether a text has the form ``module:Name``.

    Args:
        text: The text.

    Returns:
        Whether it names an object of a module.

    >>> is_reference("package.module:Name"), is_reference("se(0.5)[0:2]")
    (True, False)
    """
    return re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", text) is not None


def import_object(reference: str, kind: str) -> T:  # type: ignore[type-var]
    """Import the object that ``module:Name`` names.

    Modules of the working directory are found too: it is added to ``sys.path``.

    Args:
        reference: The text ``module:Name``.
        kind: The kind of the object, for the error message, such as "agent".

    Returns:
        The object.

    Raises:
        ArgumentError: If the module cannot be imported or has no such name.
    """
    module, _, name = reference.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        article = "an" if kind[0] in "aeiou" else "a"
        expected = f"module:Name of {article} {kind} that can be imported"
        raise ArgumentError(kind, expected, f"{reference!r} ({error})") from None


def reference_to(part: Callable[..., object], kind: str) -> str:
    """Return the text ``module:Name`` of a class or function.

    Other processes and ``config.toml`` use it to refer to the object.

    Args:
        part: The class or function.
        kind: Its kind, for the error message, such as "agent".

    Returns:
        The text ``module:Name``.

    Raises:
        ArgumentError: If another process could not import it.
    """
    module, name = part.__module__, part.__qualname__
    if module == "__main__" or "<" in name:
        expected = f"a {kind} of a module that can be imported, at its top level"
        raise ArgumentError(kind, expected, f"{module}:{name}")
    return f"{module}:{name}"
