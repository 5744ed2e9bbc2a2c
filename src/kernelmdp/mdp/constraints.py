"""Constraints: functions of state and action that must stay at or below 0.

A constraint on the state is checked at every visited state, also at the one after the last action.
A constraint on state and action is checked at (s_h, a_h) in every period h.
"""

import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.domains import Box, Domain
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.numerics.checks import require_finite, with_suggestion
from kernelmdp.numerics.tracing import is_traced

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


@dataclasses.dataclass(frozen=True)
class Limit:
    """A limit of one coordinate: sign · (x_j − bound), which is at most 0 where it is kept.

    Attributes:
        coordinate: The number j of the coordinate.
        bound: The limit.
        sign: 1 for an upper limit, −1 for a lower one.

    >>> Limit(0, 80.0)(np.array([[75.0]]))
    array([-5.])
    """

    coordinate: int
    bound: float
    sign: float = 1.0

    def __call__(self, rows: Any) -> Any:
        return self.sign * (rows[:, self.coordinate] - self.bound)


@dataclasses.dataclass(frozen=True)
class ActionLimit:
    """A limit of one coordinate of the action.

    Attributes:
        limit: The limit of the coordinate.
    """

    limit: Limit

    def __call__(self, states: Any, actions: Any) -> Any:
        return self.limit(actions)


@dataclasses.dataclass(frozen=True)
class Constraint:
    """A function that must stay at or below 0.

    Attributes:
        function: From states (n, m), or from states and actions (n, q), to values (n,). The number
            of its parameters decides. It uses JAX, or NumPy's operators only.
        name: What is constrained, for tables and messages.
        unit: The unit of the values.
        slope: A bound of how fast the function changes with the state, in Euclidean distance. None
            if it is unknown. A proof of safety on a grid needs it, unless the function is a limit
            of a coordinate.

    Raises:
        ArgumentError: If the function takes neither one nor two arguments, or the slope is
            negative.

    >>> power = Constraint(lambda states, actions: states[:, 0] * actions[:, 0] - 5.0, "power", "W")
    >>> power.on_actions, Constraint(Limit(0, 80.0), "temperature").on_actions
    (True, False)
    """

    function: Callable[..., Any]
    name: str = "constraint"
    unit: str = ""
    slope: float | None = None

    def __post_init__(self) -> None:
        if self._parameters not in (1, 2):
            expected = "a function of states, or of states and actions"
            raise ArgumentError("constraints", expected, repr(self.function))
        if self.slope is not None and not (math.isfinite(self.slope) and self.slope >= 0):
            raise ArgumentError("slope", "a finite number of at least 0", self.slope)

    @property
    def _parameters(self) -> int:
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):
            return 0
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return sum(p.kind in positional and p.default is p.empty for p in parameters)

    @property
    def on_actions(self) -> bool:
        """Whether the constraint depends on the action."""
        return self._parameters == 2

    @property
    def is_limit(self) -> bool:
        """Whether the constraint limits one coordinate, so that corners of a cell decide."""
        return isinstance(self.function, Limit | ActionLimit)

    def values(self, states: Float[Array, "n m"], actions: Float[Array, "n q"] | None) -> Array:
        """Evaluate the constraint.

        Args:
            states: The states, (n, m).
            actions: The actions, (n, q). None for a constraint on states.

        Returns:
            The values, (n,). A positive value is a violation.

        Raises:
            ShapeError: If the function returns another shape.
        """
        given = (states, actions) if self.on_actions else (states,)
        values = jnp.asarray(self.function(*given), float)
        if values.shape != states.shape[:1]:
            expected = f"a function of n states with values (n,), here {states.shape[:1]}"
            raise ShapeError(self.name, expected, f"shape {values.shape}")
        return values


@dataclasses.dataclass(frozen=True)
class Violation:
    """The signal "violation" of an MDP: whether a step breaks a constraint.

    Attributes:
        constraints: The constraints.
        dimension: The number of coordinates m of a state.

    >>> cold = Violation((Constraint(Limit(0, 80.0), "temperature"),), dimension=1)
    >>> cold(jnp.zeros((1, 2)), jnp.array([[90.0]]))
    Array([ True], dtype=bool)
    """

    constraints: tuple[Constraint, ...]
    dimension: int

    def __call__(self, points: Float[Array, "n d"], after: Float[Array, "n m"]) -> Array:
        """Tell which steps break a constraint, at the point or at the state after it.

        Args:
            points: z = (s, a), (n, d).
            after: The next states, (n, m).

        Returns:
            Whether a constraint is broken, (n,).
        """
        return self.at_points(points) | self.at_states(after)

    def at_states(self, states: Float[Array, "n m"]) -> Bool[Array, " n"]:
        """Tell which states break a constraint on states.

        Args:
            states: The states, (n, m).

        Returns:
            Whether a constraint is broken, (n,).
        """
        return self.largest(states, None) > 0

    def at_points(self, points: Float[Array, "n d"]) -> Bool[Array, " n"]:
        """Tell which points z = (s, a) break a constraint on states and actions.

        Args:
            points: The points, (n, d).

        Returns:
            Whether a constraint is broken, (n,).
        """
        states, actions = points[:, : self.dimension], points[:, self.dimension :]
        return self.largest(states, actions) > 0

    def largest(self, states: Float[Array, "n m"], actions: Float[Array, "n q"] | None) -> Array:
        """Return the largest value of the constraints on states, or on states and actions.

        Args:
            states: The states, (n, m).
            actions: The actions, (n, q). None for the constraints on states alone.

        Returns:
            The values, (n,); −∞ if there is no such constraint.
        """
        largest = jnp.full(states.shape[0], -jnp.inf)
        for constraint in self.constraints:
            if constraint.on_actions == (actions is not None):
                largest = jnp.maximum(largest, constraint.values(states, actions))
        return largest

    def count(self, states: Any, actions: Any) -> int:
        """Count the steps of an episode that break a constraint.

        Args:
            states: The visited states, (H + 1, m).
            actions: The actions, (H, q).

        Returns:
            The number of steps.
        """
        before, after = (jnp.asarray(rows, float) for rows in (states[:-1], states[1:]))
        points = jnp.concatenate([before, jnp.asarray(actions, float)], axis=1)
        return int(jnp.sum(self(points, after)))


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
        limits = (each for name, pair in pairs for each in _limits(name, *pair, places=places))
        return tuple(each for each in limits if not _kept_by(states, each))
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


def require_allowed(
    violation: Violation | None, argument: str, state: Float[np.ndarray, " m"]
) -> None:
    """Raise an error if a state breaks a constraint.

    Args:
        violation: The constraints, or None.
        argument: The name of the state, for the message.
        state: The state, (m,). A traced state is not checked.

    Raises:
        ArgumentError: If it breaks a constraint.
    """
    if violation is None or is_traced(state):
        return
    row = jnp.asarray(state, float)[None, :]
    for constraint in violation.constraints:
        if not constraint.on_actions and float(constraint.values(row, None)[0]) > 0:
            raise ArgumentError(
                argument, f"a state that keeps {constraint.name}", np.asarray(state)
            )


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
) -> tuple[Constraint, ...]:
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
            limit: Any = Limit(coordinate, float(bound), sign)
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
    limits = (each for name, low, high in sides for each in _limits(name, low, high, places=places))
    return tuple(each for each in limits if not _kept_by(states, each))


def _kept_by(states: Domain, constraint: Constraint) -> bool:
    """Whether the state space keeps a limit by itself."""
    limit, (low, high) = constraint.function, states.bounds
    if not isinstance(limit, Limit):
        return False
    end = high if limit.sign > 0 else low
    return bool(limit.sign * (end[limit.coordinate] - limit.bound) <= 0)


def _pair(name: str, limits: Any) -> tuple[float | None, float | None]:
    try:
        low, high = limits
        return tuple(None if end is None else float(end) for end in (low, high))  # type: ignore[return-value]
    except (TypeError, ValueError):
        raise ArgumentError("constraints", f"(low, high) for {name}", repr(limits)) from None
