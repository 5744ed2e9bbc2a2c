"""Constraints: functions of state and action that must stay at or below 0.

A constraint on the state is checked at every visited state, also at the one after the last action.
A constraint on state and action is checked at (s_h, a_h) in every period h.
"""

import dataclasses
import inspect
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.numerics.tracing import is_traced


@dataclasses.dataclass(frozen=True)
class Limit:
    """A limit of one coordinate: sign · (x_j − bound), which is at most 0 where it is kept.

    Attributes:
        coordinate: The number j of the coordinate.
        bound: The limit.
        sign: 1 for an upper limit, −1 for a lower one.
        is_limit: The largest value over a box is at one of its corners.

    >>> Limit(0, 80.0)(np.array([[75.0]]))
    array([-5.])
    """

    is_limit: ClassVar[bool] = True

    coordinate: int
    bound: float
    sign: float = 1.0

    def __call__(self, rows: Any) -> Any:
        return self.sign * (rows[:, self.coordinate] - self.bound)

    def is_kept_by(self, domain: Domain) -> bool:
        """Return whether all points of a domain keep the limit.

        Args:
            domain: The domain.

        Returns:
            Whether they do.
        """
        low, high = domain.bounds
        end = high if self.sign > 0 else low
        return bool(self.sign * (end[self.coordinate] - self.bound) <= 0)


@dataclasses.dataclass(frozen=True)
class ActionLimit:
    """A limit of one coordinate of the action.

    Attributes:
        limit: The limit of the coordinate.
        is_limit: It does not depend on the state, so corners of a cell decide.
    """

    is_limit: ClassVar[bool] = True

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
        return bool(getattr(self.function, "is_limit", False))

    @property
    def coordinate(self) -> int | None:
        """The number of the coordinate of the state that is limited; None if it is not one."""
        return getattr(self.function, "coordinate", None)

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
