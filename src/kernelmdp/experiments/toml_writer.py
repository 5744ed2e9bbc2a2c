"""Write nested mappings as TOML. Python's own library only reads TOML."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any


def to_toml(content: Mapping[str, Any]) -> str:
    """Format a mapping as a TOML document.

    Args:
        content: Text, numbers, lists and mappings by name. None is left out.

    Returns:
        The document.

    >>> print(to_toml({"run": {"seed": 3, "settings": {"update": "step"}}}))
    [run]
    seed = 3
    <BLANKLINE>
    [run.settings]
    update = "step"
    <BLANKLINE>
    """
    return "\n".join(_lines(content, ())).lstrip("\n") + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    plain = {k: v for k, v in table.items() if v is not None and not isinstance(v, Mapping)}
    inner = {k: v for k, v in table.items() if isinstance(v, Mapping)}
    lines = ["", f"[{'.'.join(map(_key, path))}]"] if path and (plain or not inner) else []
    lines += [f"{_key(name)} = {_value(value)}" for name, value in plain.items()]
    for name, value in inner.items():
        lines += _lines(value, (*path, name))
    return lines


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)  # TOML writes inf, -inf and nan as Python does.
    # A JSON string is a TOML string, except for the character DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
