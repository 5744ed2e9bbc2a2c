"""Typed settings: one frozen dataclass for each part, in which every field states its meaning.

Python, the command line and study files use the same objects. An unknown name is an error that
suggests the most similar one. All settings can be printed. Settings of plain values can be saved.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import with_suggestion

S = TypeVar("S", bound="Settings")

#: Types that are saved as they are.
PLAIN = (str, int, float, bool, type(None))


def setting(default: Any, meaning: str) -> Any:
    """Declare a field of a ``Settings`` class.

    Args:
        default: The default value.
        meaning: One sentence that says what the setting means, and why it has this default.

    Returns:
        A dataclass field that holds the meaning in its metadata.
    """
    return dataclasses.field(default=default, metadata={"meaning": meaning})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Base class of the settings of a part.

    A subclass is a frozen dataclass that declares each field with ``setting``.

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

    #: Name of the part, for error messages.
    part: ClassVar[str] = "settings"

    @classmethod
    def of(
        cls: type[S],
        settings: "Mapping[str, object] | Settings | None",
        other_names: Sequence[str] = (),
    ) -> S:
        """Return settings of this class from a mapping.

        Args:
            settings: Values by name, where missing names keep their defaults. Settings of this
                class are returned unchanged. None means all defaults.
            other_names: Names that users may have meant besides those of settings.

        Returns:
            The settings.

        Raises:
            ArgumentError: If a name is unknown, or the argument is of another type.
        """
        if settings is None:
            return cls()
        if isinstance(settings, cls):
            return settings
        if not isinstance(settings, Mapping):
            raise ArgumentError(cls.part, f"{cls.__name__} or a mapping", repr(settings))
        names = list(cls.meanings())
        for name in settings:
            if name not in names:
                expected = "settings among " + ", ".join(names)
                known = [*names, *other_names]
                raise ArgumentError(cls.part, expected, with_suggestion(name, known))
        return cls(**settings)

    @classmethod
    def meanings(cls) -> dict[str, str]:
        """Return the meaning of each setting.

        Returns:
            The meanings by name; empty text for fields that are not declared with ``setting``.
        """
        fields = dataclasses.fields(cls)
        return {field.name: field.metadata.get("meaning", "") for field in fields if field.init}


def to_plain(value: Any) -> Any:
    """Convert a value to the types of JSON and TOML, as far as possible.

    Args:
        value: Any value.

    Returns:
        The value, in which tuples are lists, and settings and other dataclasses are mappings from
        text. Other values are unchanged.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): to_plain(item) for name, item in value.items()}
    return [to_plain(item) for item in value] if isinstance(value, list | tuple) else value


def is_plain(value: Any) -> bool:
    """Return whether a value holds nothing but text, numbers, truth values and None.

    Args:
        value: A result of ``to_plain``.

    Returns:
        Whether it can be saved.
    """
    if isinstance(value, Mapping):
        return all(map(is_plain, value.values()))
    return all(map(is_plain, value)) if isinstance(value, list) else isinstance(value, PLAIN)


def nest(settings: Mapping[str, object]) -> dict[str, Any]:
    """Turn dotted names into nested mappings; ``flatten`` is the inverse.

    ``planner.horizon`` becomes ``horizon`` in the mapping ``planner``. If a part has both a name
    and settings, as in ``planner=mpc`` with ``planner.horizon=20``, it becomes
    {"name": "mpc", "horizon": 20}.

    Args:
        settings: Values by name. A name may have dots.

    Returns:
        The nested settings.

    >>> nest({"planner": "mpc", "planner.horizon": 20, "update": "step"})
    {'planner': {'name': 'mpc', 'horizon': 20}, 'update': 'step'}
    """
    tree: dict[str, Any] = {}
    for name, value in settings.items():
        part, dot, inner_name = name.partition(".")
        if not dot:
            part_settings = tree.get(name)
            tree[name] = value if part_settings is None else {"name": value} | part_settings
            continue
        outer = tree.get(part, {})
        outer = dict(outer) if isinstance(outer, Mapping) else {"name": outer}
        tree[part] = outer | nest({inner_name: value})
    return tree


def flatten(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Turn nested mappings into dotted names, as on the command line; ``nest`` is the inverse.

    Args:
        settings: Values by name. A value may be a mapping, whose "name" is that of a part.

    Returns:
        The values by dotted name.

    >>> flatten({"planner": {"name": "mpc", "horizon": 20}, "update": "step"})
    {'planner': 'mpc', 'planner.horizon': 20, 'update': 'step'}
    """
    dotted: dict[str, Any] = {}
    for name, value in settings.items():
        if not isinstance(value, Mapping):
            dotted[name] = value
            continue
        for inner_name, inner_value in flatten(value).items():
            dotted[name if inner_name == "name" else f"{name}.{inner_name}"] = inner_value
    return dotted
