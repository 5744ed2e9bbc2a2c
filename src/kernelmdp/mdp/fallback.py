"""Fallback controllers: a policy that is safe and mediocre, with the states where it is trusted.

A trusted set is one that the fallback does not leave: from each of its states, the fallback's next
state is in the set again, and keeps every constraint. This is your knowledge. No data can prove it.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.domains import Box, Domain
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp.constraints import Violation
from kernelmdp.mdp.policy import Policy, PolicyPlayer
from kernelmdp.numerics.checks import require_finite
from kernelmdp.types import Key, Period

#: States at which a fallback and its trusted set are tried when an agent is made.
FALLBACK_PROBES = 512
#: Size of the excitation of a fallback's first episode, as a share of half the action space.
EXCITATION = 0.1
#: Actions may leave the action space by this share of its sides. It allows for round-off.
ROUNDING = 1e-9


class FunctionPolicy(Policy):
    """A policy from a function f(state, period) -> action for one state.

    Attributes:
        function: The function. It gets a state (m,) and the period, and returns an action (q,).
        size: The number q of coordinates of an action.
        traced: Whether the function can be compiled with JAX. If not, it is called from Python.
    """

    function: Callable[..., Any] = eqx.field(static=True)
    size: int = eqx.field(static=True)
    traced: bool = eqx.field(static=True)

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        if self.traced:
            one = lambda state: jnp.asarray(self.function(state, period), float)  # noqa: E731
            return jax.vmap(lambda state: one(state).reshape(self.size))(states)
        shape = jax.ShapeDtypeStruct((states.shape[0], self.size), states.dtype)
        return jax.pure_callback(self._from_python, shape, states, jnp.asarray(period))

    def _from_python(self, states: Any, period: Any) -> np.ndarray:
        rows = [self.function(state, int(period)) for state in np.asarray(states)]
        return np.array(rows, np.asarray(states).dtype).reshape(len(rows), self.size)


class PID(Policy):
    """A proportional-integral-derivative controller of one coordinate by one action.

    With the error e = set point − coordinate, the action is
    bias + proportional·e + integral·Σ e + derivative·Δe, clipped to its limits. Sums and
    differences are over periods. The sum stops while the action is at a limit (anti-windup).

    With an integral, or a derivative without ``rate``, the controller remembers what came before
    in the episode. ``decide`` passes that on. ``actions`` alone has no memory, and acts as in the
    first period.

    Attributes:
        coordinate: The number of the coordinate of the state.
        set_point: The value at which the coordinate is to be held.
        proportional: The gain of the error.
        integral: The gain of the sum of errors.
        derivative: The gain of the error's change.
        bias: The action at the set point.
        low: The lowest action.
        high: The highest action.
        rate: The number of a coordinate that is the derivative of the controlled one. It then takes
            the place of differences between periods.

    >>> heater = PID(coordinate=0, set_point=20.0, proportional=0.5, low=0.0, high=1.0)
    >>> heater([19.0], period=0)
    array([0.5])
    """

    coordinate: int = eqx.field(static=True)
    set_point: float
    proportional: float
    integral: float = 0.0
    derivative: float = 0.0
    bias: float = 0.0
    low: float = -float("inf")
    high: float = float("inf")
    rate: int | None = eqx.field(static=True, default=None)

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
        error = self.set_point - states[:, self.coordinate]
        total, last = memory if self.remembers else (jnp.zeros_like(error), error)
        if self.rate is None:
            change = jnp.where(jnp.isnan(last), 0.0, error - last)
        else:
            change = -states[:, self.rate]
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


class ExcitedPolicy(Policy):
    """A fallback with small random changes of its actions in trusted states.

    Attributes:
        policy: The fallback's policy.
        trusted: Tells which states are trusted, (n, m) to (n,).
        space: The action space. Actions of a finite set are not changed.
        key: Decides the changes.
    """

    policy: Policy
    trusted: Callable[..., Any] = eqx.field(static=True)
    space: Domain = eqx.field(static=True)
    key: Key

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return self._excited(self.policy.actions(states, period), states, period)

    def reset(self, count: int) -> Any:
        return self.policy.reset(count)

    def decide(
        self, memory: Any, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], Any]:
        actions, memory = self.policy.decide(memory, states, period)
        return self._excited(actions, states, period), memory

    def player(self) -> Callable[[Any, int], np.ndarray]:
        return player_of(self)

    def _excited(self, actions: Array, states: Array, period: Period) -> Array:
        if self.space.finite or not self.space.bounded:
            return actions
        low, high = (jnp.asarray(end)[None, :] for end in self.space.bounds)
        unit = jax.random.uniform(
            jax.random.fold_in(self.key, period), actions.shape, minval=-1.0, maxval=1.0
        )
        changed = jnp.clip(actions + EXCITATION * unit * (high - low) / 2, low, high)
        return jnp.where(self.trusted(states)[:, None], changed, actions)


@dataclasses.dataclass(frozen=True, eq=False)
class Fallback:
    """A fallback controller, and where it is trusted.

    Attributes:
        policy: The policy, or a function f(state, period) -> action.
        trusted: The states from which the fallback's next state is trusted again: a ``Domain``, or
            a function from states (n, m) to truth values (n,). None if no state is trusted.
        leaves: The probability with which the fallback may leave the trusted set in one period.

    Raises:
        ArgumentError: If ``leaves`` is not a probability below 1.

    >>> from kernelmdp.domains import Box
    >>> pid = PID(coordinate=0, set_point=20.0, proportional=0.5)
    >>> Fallback(pid, trusted=Box([10.0], [30.0])).is_trusted(jnp.array([[25.0], [35.0]]))
    Array([ True, False], dtype=bool)
    """

    policy: Any
    trusted: Any = None
    leaves: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.leaves < 1:
            raise ArgumentError("leaves", "a probability below 1", self.leaves)

    @property
    def remembers(self) -> bool:
        """Whether actions depend on earlier periods of the episode."""
        return bool(jax.tree.leaves(self.policy.reset(1)))

    def is_trusted(self, states: Float[Array, "n m"]) -> Bool[Array, " n"]:
        """Tell which states are trusted.

        Args:
            states: The states, (n, m).

        Returns:
            Whether they are trusted, (n,).
        """
        if self.trusted is None:
            return jnp.zeros(states.shape[0], bool)
        if isinstance(self.trusted, Domain):
            low, high = (jnp.asarray(end)[None, :] for end in self.trusted.bounds)
            if self.trusted.points is None:
                return jnp.all((states >= low) & (states <= high), axis=1)
            points = jnp.asarray(np.array(self.trusted.points))
            return jnp.any(jnp.all(states[:, None, :] == points[None], axis=2), axis=1)
        return jnp.asarray(self.trusted(states), bool)

    def touches(self, low: Any, high: Any) -> np.ndarray | None:
        """Tell which boxes contain a trusted state, if the trusted set is a box itself.

        Args:
            low: The lowest corners of n boxes, (n, m).
            high: Their highest corners, (n, m).

        Returns:
            Whether each box has a trusted state, (n,). None if the trusted set is no box.
        """
        if not isinstance(self.trusted, Box):
            return None
        ends = self.trusted.bounds
        return np.asarray(((low <= ends[1]) & (high >= ends[0])).all(axis=1))


def as_fallback(
    fallback: Any, *, states: Domain, actions: Domain, violation: Violation | None = None
) -> Fallback | None:
    """Make a fallback from what a user may write, and try it.

    Args:
        fallback: A function f(state, period) -> action, a ``Policy`` such as a ``PID``, a pair of
            one of these and its trusted set, or a ``Fallback``. None is none.
        states: The state space.
        actions: The action space.
        violation: The constraints, which every trusted state must keep.

    Returns:
        The fallback.

    Raises:
        ArgumentError: If the fallback is none of these, an action leaves the action space, or a
            trusted state breaks a constraint.

    >>> from kernelmdp.domains import Box
    >>> box = Box([-1.0], [1.0])
    >>> brake = as_fallback((lambda state, period: -0.5 * state, box), states=box, actions=box)
    >>> brake.policy([0.4], 0)
    array([-0.2])
    """
    if fallback is None:
        return None
    if isinstance(fallback, tuple | list) and len(fallback) == 2:
        fallback = Fallback(*fallback)
    elif not isinstance(fallback, Fallback):
        fallback = Fallback(fallback)
    policy = _as_policy(fallback.policy, states, actions)
    if policy is not fallback.policy:
        fallback = dataclasses.replace(fallback, policy=policy)
    rows = jnp.asarray(states.spread_points(FALLBACK_PROBES), float)
    trusted = np.asarray(fallback.is_trusted(rows))
    if fallback.trusted is not None:
        if not trusted.any() and not isinstance(fallback.trusted, Domain):
            raise ArgumentError("fallback", "a trusted set with some states", "none")
        if isinstance(fallback.trusted, Domain):
            rows = jnp.asarray(fallback.trusted.spread_points(FALLBACK_PROBES), float)
            if rows.shape[1] != states.dimension:
                expected = f"a trusted set of {states.dimension} coordinates"
                raise ArgumentError("fallback", expected, f"{rows.shape[1]}")
            rows = rows[np.flatnonzero(np.asarray(fallback.is_trusted(rows)))]
        else:
            rows = rows[np.flatnonzero(trusted)]
        if violation is not None:
            broken = np.flatnonzero(np.asarray(violation.at_states(rows)))
            if len(broken):
                state = np.asarray(rows)[broken[0]]
                expected = "a trusted set that keeps the constraints"
                raise ArgumentError("fallback", expected, f"the trusted state {state}")
    _require_actions(policy, rows, actions)
    return fallback


def player_of(policy: Policy) -> Callable[[Any, int], np.ndarray]:
    """Return a function that plays one episode of a policy, with its memory if it has one.

    Args:
        policy: The policy.

    Returns:
        A function ``player(state, period) -> action``.
    """
    return PolicyPlayer(policy) if jax.tree.leaves(policy.reset(1)) else policy


def _as_policy(policy: Any, states: Domain, actions: Domain) -> Policy:
    if isinstance(policy, Policy):
        return policy
    if not callable(policy):
        expected = "a function f(state, period) -> action, a Policy, or one with its trusted set"
        raise ArgumentError("fallback", expected, repr(policy))
    state = jax.ShapeDtypeStruct((states.dimension,), jnp.float64)
    period = jax.ShapeDtypeStruct((), jnp.int64)
    try:
        shape = jax.eval_shape(lambda s, h: jnp.asarray(policy(s, h), float), state, period).shape
    except Exception:
        try:
            shape = np.shape(policy(states.spread_points(1)[0], 0))
        except Exception as error:
            expected = "a function f(state, period) -> action"
            raise ArgumentError("fallback", expected, f"{type(error).__name__}: {error}") from None
        traced = False
    else:
        traced = True
    size = int(np.prod(shape))
    if size != actions.dimension:
        raise ShapeError("fallback", f"actions of {actions.dimension} numbers", f"shape {shape}")
    return FunctionPolicy(policy, size, traced)


def _require_actions(policy: Policy, rows: Float[Array, "n m"], actions: Domain) -> None:
    """Raise ArgumentError if an action of the first period lies outside the action space."""
    chosen = np.asarray(policy.actions(rows, 0))
    if chosen.shape != (rows.shape[0], actions.dimension):
        expected = f"actions of {actions.dimension} numbers"
        raise ShapeError("fallback", expected, f"{chosen.shape[1:]}")
    require_finite("fallback", chosen)
    low, high = actions.bounds
    outside = (actions.distance_outside(chosen) > ROUNDING * np.maximum(high - low, 1.0)).any(1)
    if outside.any():
        row = int(np.argmax(outside))
        state = np.asarray(rows)[row]
        expected = f"actions inside {actions}"
        raise ArgumentError("fallback", expected, f"{chosen[row]} in state {state}")
