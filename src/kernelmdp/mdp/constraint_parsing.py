"""Constraints from what users write: text, boxes, limits by name and functions."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.domains import Box, Domain
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp.constraints import ActionLimit, Constraint, Limit
from kernelmdp.numerics.checks import require_finite, with_suggestion

#: Points at which constraints are tried when an agent is made. A set of allowed states that is
#: smaller than this share of the state space may be mistaken for an empty one.
PROBES = 4096
#: A number, as in 80, -0.5 or 1e-3.
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
#: The name of a coordinate, as in temperature, velocity[1] or |speed|.
_NAME = r"\|?\s*[A-Za-z_][\w.]*(?:\[\d+\])?\s*\|?"
#: Texts such as "speed <= 2 m/s", with a unit after the number.
_ONE_SIDE = re.compile(rf"\s*({_NAME})\s*(<=|>=|<|>)\s*({_NUMBER})\s*(.*?)\s*")
#: Texts such as "-1 <= angle <= 1".
_TWO_SIDES = re.compile(rf"\s*({_NUMBER})\s*<=?\s*({_NAME})\s*<=?\s*({_NUMBER})\s*(.*?)\s*")


def as_constraints(
    constraints: Any, *, states: Domain, actions: Domain, names: Sequence[str] = ()
) -> tuple[Constraint, ...]:
    """Make constraints from what a user may write.

    Args:
        constraints: A ``Constraint``, a function of states, or of states and actions, or a ``Box``
            of allowed states. Or text such as "temperature <= 80 °C" or "-1 <= action <= 1". Or a
            mapping from names to pairs (low, high), where None is no limit. Or a list of these.
        states: The state space.
        actions: The action space.
        names: The names of the coordinates of the state. They are also called ``state[0]``,
            ``state[1]`` and so on, and those of the action ``action[0]`` and so on.

    Returns:
        The constraints. Limits that the state space keeps by itself are left out.

    Raises:
        ArgumentError: If a constraint is none of these, or names an unknown coordinate.

    >>> box = Box([0.0, -1.0], [100.0, 1.0])
    >>> limits = as_constraints("temperature <= 80 °C", states=box, actions=box,
    ...                         names=("temperature", "rate"))
    >>> [(limit.name, limit.unit) for limit in limits]
    [('temperature <= 80', '°C')]
    """
    if constraints is None:
        return ()
    if isinstance(constraints, Constraint):
        return (constraints,)
    places = _places(states, actions, names)
    if isinstance(constraints, str):
        return _from_text(constraints, places)
    if isinstance(constraints, Box):
        return _from_box(constraints, states, names)
    if isinstance(constraints, Mapping):
        pairs = ((name, _pair(name, limits)) for name, limits in constraints.items())
        return tuple(
            each
            for name, pair in pairs
            for each in _limits(name, *pair, places=places, states=states)
        )
    if callable(constraints):
        name = getattr(constraints, "__name__", "constraint")
        return (Constraint(constraints, "constraint" if name == "<lambda>" else name),)
    if not isinstance(constraints, Iterable):
        expected = "a Box, text, a function, a Constraint, or a list of those"
        raise ArgumentError("constraints", expected, repr(constraints))
    return tuple(
        each
        for part in constraints
        for each in as_constraints(part, states=states, actions=actions, names=names)
    )


def named_coordinates(constraints: Any) -> set[str]:
    """List the coordinates that constraints name in text or in a mapping.

    Args:
        constraints: What ``as_constraints`` takes.

    Returns:
        The names.

    >>> sorted(named_coordinates(["|angle| <= 1", {"speed": (0, 1)}]))
    ['angle', 'speed']
    """
    if isinstance(constraints, str):
        if match := _TWO_SIDES.fullmatch(constraints):
            return {match[2].strip("| ")}
        match = _ONE_SIDE.fullmatch(constraints)
        return {match[1].strip("| ")} if match else set()
    if isinstance(constraints, Mapping):
        return {str(name).strip() for name in constraints}
    if isinstance(constraints, list | tuple):
        return {name for part in constraints for name in named_coordinates(part)}
    return set()


def require_possible(
    constraints: tuple[Constraint, ...], *, states: Domain, actions: Domain
) -> None:
    """Raise an error if constraints exclude every state or every action, or cannot be evaluated.

    Args:
        constraints: The constraints.
        states: The state space.
        actions: The action space.

    Raises:
        ArgumentError: If no state, or no pair of state and action, is allowed.
    """
    if not constraints:
        return
    rows = jnp.asarray(states.spread_points(PROBES), float)
    allowed = jnp.ones(rows.shape[0], bool)
    for constraint in constraints:
        if not constraint.on_actions:
            values = constraint.values(rows, None)
            require_finite(constraint.name, values)
            allowed = allowed & (values <= 0)
    if not bool(allowed.any()):
        raise ArgumentError("constraints", "constraints that allow some state", _names(constraints))
    on_actions = tuple(each for each in constraints if each.on_actions)
    if not on_actions:
        return
    rows = rows[np.flatnonzero(np.asarray(allowed))]
    tried = jnp.asarray(actions.spread_points(PROBES), float)
    count = max(rows.shape[0], tried.shape[0])
    pairs = tuple(jnp.resize(part, (count, part.shape[1])) for part in (rows, tried))
    values = jnp.max(jnp.stack([each.values(*pairs) for each in on_actions]), axis=0)
    require_finite("constraints", values)
    if not bool((values <= 0).any()):
        raise ArgumentError("constraints", "constraints that allow some action", _names(on_actions))


def _names(constraints: Iterable[Constraint]) -> str:
    return ", ".join(constraint.name for constraint in constraints)


def _places(states: Domain, actions: Domain, names: Sequence[str]) -> dict[str, tuple[str, int]]:
    """From names of coordinates to the space, "state" or "action", and the number."""
    places: dict[str, tuple[str, int]] = {}
    for kind, domain in (("state", states), ("action", actions)):
        places |= {f"{kind}[{j}]": (kind, j) for j in range(domain.dimension)}
        if domain.dimension == 1:
            places[kind] = (kind, 0)
    return places | {name: ("state", j) for j, name in enumerate(names)}


def _from_text(text: str, places: Mapping[str, tuple[str, int]]) -> tuple[Constraint, ...]:
    if match := _TWO_SIDES.fullmatch(text):
        low, name, high, unit = match.groups()
        return _limits(name, float(low), float(high), places=places, unit=unit)
    if match := _ONE_SIDE.fullmatch(text):
        name, sign, number, unit = match.groups()
        bound = float(number)
        name = name.strip()
        if name.startswith("|") and name.endswith("|"):
            if sign[0] == ">":
                raise ArgumentError("constraints", "an upper limit of an absolute value", text)
            return _limits(name.strip("| "), -bound, bound, places=places, unit=unit)
        limits = (None, bound) if sign[0] == "<" else (bound, None)
        return _limits(name, *limits, places=places, unit=unit)
    raise ArgumentError("constraints", "text such as 'temperature <= 80'", repr(text))


def _limits(
    name: str,
    low: float | None,
    high: float | None,
    *,
    places: Mapping[str, tuple[str, int]],
    unit: str = "",
    states: Domain | None = None,
) -> tuple[Constraint, ...]:
    """Limits of a coordinate, without those that ``states`` keeps by itself."""
    name = name.strip()
    if name not in places:
        expected = "coordinates among " + ", ".join(places)
        raise ArgumentError("constraints", expected, with_suggestion(name, places))
    kind, coordinate = places[name]
    if low is not None and high is not None and not low <= high:
        raise ArgumentError("constraints", f"limits of {name}, the lower one first", (low, high))
    constraints = []
    for bound, sign, symbol in ((low, -1.0, ">="), (high, 1.0, "<=")):
        if bound is not None and math.isfinite(bound):
            limit = Limit(coordinate, float(bound), sign)
            if kind == "state" and states is not None and limit.is_kept_by(states):
                continue
            function = ActionLimit(limit) if kind == "action" else limit
            constraints.append(Constraint(function, f"{name} {symbol} {bound:g}", unit))
    return tuple(constraints)


def _from_box(box: Box, states: Domain, names: Sequence[str]) -> tuple[Constraint, ...]:
    if box.dimension != states.dimension:
        raise ShapeError("constraints", f"a Box of {states.dimension} axes", box.dimension)
    places = {f"state[{j}]": ("state", j) for j in range(box.dimension)}
    named = list(names) if len(names) == box.dimension else list(places)
    places |= {name: ("state", j) for j, name in enumerate(named)}
    sides = zip(named, box.low, box.high, strict=True)
    return tuple(
        each
        for name, low, high in sides
        for each in _limits(name, low, high, places=places, states=states)
    )


def _pair(name: str, limits: Any) -> tuple[float | None, float | None]:
    try:
        low, high = limits
        return _number_or_none(low), _number_or_none(high)
    except (TypeError, ValueError):
        raise ArgumentError("constraints", f"(low, high) for {name}", repr(limits)) from None


def _number_or_none(value: Any) -> float | None:
    return None if value is None else float(value)
