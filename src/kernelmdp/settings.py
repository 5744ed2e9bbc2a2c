"""Settings as typed objects: one frozen dataclass for each part, each field with its meaning.

The same object serves Python, the command line and study files. An unknown name is an error that
suggests the nearest one. Every object prints, and every object that holds plain values is saved.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import suggested

S = TypeVar("S", bound="Settings")

#: Values that JSON and TOML hold as they are.
PLAIN = (str, int, float, bool, type(None))


def setting(default: Any, meaning: str) -> Any:
    """A field of settings with its default value and one sentence on what it means and why."""
    return dataclasses.field(default=default, metadata={"meaning": meaning})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one part. A subclass is a frozen dataclass with a ``setting`` for each field.

    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class Search(Settings):
    ...     part: ClassVar[str] = "search"
    ...     steps: int = setting(25, "Steps of the search; more than 25 changed nothing.")
    >>> Search.of({"steps": 3}).steps
    3
    >>> Search.of({"step": 3})
    Traceback (most recent call last):
    kernelmdp.errors.ArgumentError: search: expected settings among steps, got 'step'; did you mean
    'steps'?
    >>> Search.meanings()
    {'steps': 'Steps of the search; more than 25 changed nothing.'}
    """

    #: What the part is called in messages.
    part: ClassVar[str] = "settings"

    @classmethod
    def of(cls: type[S], given: "Mapping[str, object] | Settings | None") -> S:
        """Settings from a mapping; those that are missing keep their defaults.

        Raises:
            ArgumentError: If a name is unknown.
        """
        if given is None:
            return cls()
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise ArgumentError(cls.part, f"{cls.__name__} or a mapping", repr(given))
        names = list(cls.meanings())
        for name in given:
            if name not in names:
                expected = "settings among " + ", ".join(names)
                raise ArgumentError(cls.part, expected, suggested(name, names))
        return cls(**given)

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """What each setting means, by name."""
        fields = dataclasses.fields(cls)
        return {f.name: f.metadata.get("meaning", "") for f in fields if f.init}


def plain(value: Any) -> Any:
    """A value as JSON and TOML hold it: tuples become lists, settings become mappings."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def is_plain(value: Any) -> bool:
    """Whether a value that went through ``plain`` holds nothing but text, numbers and None."""
    if isinstance(value, Mapping):
        return all(map(is_plain, value.values()))
    return all(map(is_plain, value)) if isinstance(value, list) else isinstance(value, PLAIN)


def nested(settings: Mapping[str, object]) -> dict[str, Any]:
    """Dotted names as mappings within mappings: ``planner.horizon`` is ``horizon`` of ``planner``.

    A part that is named and also changed, as in ``planner=mpc`` with ``planner.horizon=20``,
    becomes {"name": "mpc", "horizon": 20}.

    >>> nested({"planner": "mpc", "planner.horizon": 20, "update": "step"})
    {'planner': {'name': 'mpc', 'horizon': 20}, 'update': 'step'}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        part, dot, inner = name.partition(".")
        if not dot:
            inside = found.get(name)
            found[name] = value if inside is None else {"name": value} | inside
            continue
        outer = found.get(part, {})
        outer = dict(outer) if isinstance(outer, Mapping) else {"name": outer}
        found[part] = outer | nested({inner: value})
    return found


def flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Nested settings with dotted names, as the command line has them; ``nested`` undoes it.

    >>> flat({"planner": {"name": "mpc", "horizon": 20}, "update": "step"})
    {'planner': 'mpc', 'planner.horizon': 20, 'update': 'step'}
    """
    found: dict[str, Any] = {}
    for name, value in settings.items():
        if not isinstance(value, Mapping):
            found[name] = value
            continue
        for inner, each in flat(value).items():
            found[name if inner == "name" else f"{name}.{inner}"] = each
    return found
