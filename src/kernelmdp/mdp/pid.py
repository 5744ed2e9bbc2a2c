"""Proportional-integral-derivative controllers."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.policy import Policy, player_of
from kernelmdp.numerics.checks import with_suggestion
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.types import Period


class PID(Policy):
    """A proportional-integral-derivative controller of one coordinate by one action.

    With the error e = set point − coordinate, the action is
    bias + proportional·e + integral·Σ e + derivative·Δe, clipped to its limits. Sums and
    differences are over periods. The sum stops while the action is at a limit (anti-windup).

    With an integral, or a derivative without ``rate``, the controller remembers what came before
    in the episode. ``decide`` passes that on. ``actions`` alone has no memory, and acts as in the
    first period.

    Attributes:
        coordinate: The coordinate of the state, by number, or by name where an agent takes the
            controller as its fallback.
        set_point: The value at which the coordinate is to be held.
        proportional: The gain of the error.
        integral: The gain of the sum of errors.
        derivative: The gain of the error's change.
        bias: The action at the set point.
        low: The lowest action.
        high: The highest action.
        rate: A coordinate that is the derivative of the controlled one. It then takes the place of
            differences between periods.

    >>> heater = PID(coordinate=0, set_point=20.0, proportional=0.5, low=0.0, high=1.0)
    >>> heater([19.0], period=0)
    array([0.5])
    """

    coordinate: int | str = eqx.field(static=True)
    set_point: float
    proportional: float
    integral: float = 0.0
    derivative: float = 0.0
    bias: float = 0.0
    low: float = -float("inf")
    high: float = float("inf")
    rate: int | str | None = eqx.field(static=True, default=None)

    def for_coordinates(self, names: Sequence[str]) -> "PID":
        rate = None if self.rate is None else _number("rate", self.rate, names)
        coordinate = _number("coordinate", self.coordinate, names)
        return replace_fields(self, coordinate=coordinate, rate=rate)

    @property
    def remembers(self) -> bool:
        """Whether the action depends on earlier periods of the episode."""
        return self.integral != 0 or (self.derivative != 0 and self.rate is None)

    def reset(self, count: int) -> Any:
        if not self.remembers:
            return ()
        return jnp.zeros(count), jnp.full(count, jnp.nan)  # sum of errors, last error

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return self.decide(self.reset(states.shape[0]), states, period)[0]

    def decide(
        self, memory: Any, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], Any]:
        error = self.set_point - _column(states, self.coordinate)
        total, last = memory if self.remembers else (jnp.zeros_like(error), error)
        if self.rate is None:
            change = jnp.where(jnp.isnan(last), 0.0, error - last)
        else:
            change = -_column(states, self.rate)
        summed = total + error
        wanted = (
            self.bias
            + self.proportional * error
            + self.integral * summed
            + self.derivative * change
        )
        action = jnp.clip(wanted, self.low, self.high)
        summed = jnp.where(action == wanted, summed, total)
        return action[:, None], (summed, error) if self.remembers else ()

    def player(self) -> Callable[[Any, int], np.ndarray]:
        return player_of(self)


def _number(argument: str, coordinate: int | str, names: Sequence[str]) -> int:
    """The number of a coordinate that is given by number or name."""
    if coordinate in names:
        return list(names).index(str(coordinate))
    if isinstance(coordinate, int) and 0 <= coordinate < len(names):
        return coordinate
    expected = f"a number below {len(names)}, or a name among {', '.join(names)}"
    raise ArgumentError(argument, expected, with_suggestion(coordinate, names))


def _column(states: Float[Array, "n m"], coordinate: int | str) -> Float[Array, " n"]:
    if isinstance(coordinate, str):
        raise ArgumentError("coordinate", "a number, or an agent that knows names", coordinate)
    return states[:, coordinate]
