"""Check what came as JSON against the part of JSON Schema that the endpoints use."""

import json
import math
from collections.abc import Mapping
from typing import Any

from kernelmdp.numerics.checks import with_suggestion
from kernelmdp.serving.request_error import BAD_REQUEST, RequestError

#: Types of Python for types of JSON. A truth value is no number here.
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "string": (str,),
}


def parsed(body: bytes) -> Any:
    """Parse JSON. NaN and infinity, which JSON does not know, are refused.

    Args:
        body: The text.

    Returns:
        The value.

    Raises:
        RequestError: If it is no JSON.

    >>> parsed(b'{"observation": [20.0]}')
    {'observation': [20.0]}
    """

    def refuse(constant: str) -> None:
        raise RequestError(BAD_REQUEST, f"JSON has no number {constant}")

    try:
        return json.loads(body.decode(), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise RequestError(BAD_REQUEST, f"the body is no JSON ({error})") from None


def require(value: Any, schema: Mapping[str, Any], place: str = "the body") -> None:
    """Require that a value fits a schema.

    Args:
        value: What ``parsed`` returned.
        schema: The schema. It uses ``type``, ``properties``, ``required``, ``items``, ``minItems``,
            ``minimum`` and ``enum``.
        place: The name of the value in the error.

    Raises:
        RequestError: If it does not fit.

    >>> step = {"type": "object", "properties": {"reward": {"type": "number"}}}
    >>> require({"reward": "high"}, step)
    Traceback (most recent call last):
    kernelmdp.serving.request_error.RequestError: reward: expected a number, got a string
    """
    kind = schema["type"]
    fits = isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
    if not fits:
        raise RequestError(BAD_REQUEST, f"{place}: expected {_a(kind)}, got {_a(_kind_of(value))}")
    if kind in ("number", "integer"):
        _require_number(value, schema, place)
    elif kind == "array":
        if len(value) < schema.get("minItems", 0):
            raise RequestError(BAD_REQUEST, f"{place}: expected at least one entry, got none")
        for position, item in enumerate(value):
            require(item, schema["items"], f"{place}[{position}]")
    elif kind == "object":
        properties = schema["properties"]
        for name in schema.get("required", ()):
            if name not in value:
                raise RequestError(BAD_REQUEST, f"{name}: expected it to be given")
        for name, item in value.items():
            if name not in properties:
                known = f"expected fields among {', '.join(properties) or 'none'}"
                text = f"{place}: {known}, got {with_suggestion(name[:50], properties)}"
                raise RequestError(BAD_REQUEST, text)
            require(item, properties[name], name)


def _require_number(value: Any, schema: Mapping[str, Any], place: str) -> None:
    try:
        finite = math.isfinite(float(value))
    except OverflowError:
        finite = False
    if not finite:
        raise RequestError(BAD_REQUEST, f"{place}: expected a finite number")
    if value < schema.get("minimum", -math.inf):
        raise RequestError(BAD_REQUEST, f"{place}: expected at least {schema['minimum']}")


def _kind_of(value: Any) -> str:
    kinds = [kind for kind, types in TYPES.items() if type(value) in types]
    return kinds[0] if kinds else "null"


def _a(kind: str) -> str:
    article = {"null": ""}.get(kind, "an " if kind[0] in "aio" else "a ")
    return article + {"boolean": "truth value", "integer": "whole number"}.get(kind, kind)
