"""Fallback controllers: a policy that is safe and mediocre, with the states where it is trusted.

A trusted set is one that the fallback does not leave: from each of its states, the fallback's next
state is in the set again, and keeps every constraint. This is your knowledge. No data can prove it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp.constraints import Violation
from kernelmdp.mdp.episode import state_action
from kernelmdp.mdp.function_policy import as_policy
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.trusted_set import as_trusted
from kernelmdp.numerics.checks import require_finite

#: States at which a fallback and its trusted set are tried when an agent is made.
FALLBACK_PROBES = 512
#: Actions may leave the action space by this share of its sides. It allows for round-off.
ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class Fallback:
    """A fallback controller, and where it is trusted.

    Attributes:
        policy: The policy, or a function f(state, period) -> action.
        trusted: The states from which the fallback's next state is trusted again: a ``Domain``, or
            a function from states (n, m) to truth values (n,). It becomes a ``TrustedSet``. None
            if no state is trusted.
        leaves: The probability with which the fallback may leave the trusted set in one period.

    Raises:
        ArgumentError: If ``leaves`` is not a probability below 1.

    >>> from kernelmdp.domains import Box
    >>> from kernelmdp.mdp.pid import PID
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
        object.__setattr__(self, "trusted", as_trusted(self.trusted))

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
        return self.trusted.contains(states)


def with_names(fallback: Any, names: Sequence[str]) -> Any:
    """Tell a controller the names of the coordinates that it is written for.

    Args:
        fallback: What ``as_fallback`` takes.
        names: The names.

    Returns:
        The same, where a controller such as ``PID`` knows its coordinates by number.
    """
    if isinstance(fallback, tuple | list) and len(fallback) == 2:
        fallback = Fallback(*fallback)
    if isinstance(fallback, Fallback):
        return dataclasses.replace(fallback, policy=with_names(fallback.policy, names))
    return fallback.for_coordinates(names) if isinstance(fallback, Policy) else fallback


def as_fallback(
    fallback: Any, *, states: Domain, actions: Domain, violation: Violation | None = None
) -> Fallback | None:
    """Make a fallback from what a user may write, and try it.

    Args:
        fallback: A function f(state, period) -> action, a ``Policy`` such as a ``PID``, a pair of
            one of these and its trusted set, or a ``Fallback``. None is none.
        states: The state space.
        actions: The action space.
        violation: The constraints, which every trusted state must keep, also with the fallback's
            action.

    Returns:
        The fallback.

    Raises:
        ArgumentError: If the fallback is none of these, an action leaves the action space, or a
            trusted state breaks a constraint, by itself or with the fallback's action.

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
    policy = as_policy(fallback.policy, states=states, actions=actions)
    if policy is not fallback.policy:
        fallback = dataclasses.replace(fallback, policy=policy)
    trusted = fallback.trusted
    if trusted is None:
        rows = jnp.asarray(states.spread_points(FALLBACK_PROBES), float)
        _require_actions(policy, rows, actions)
        return fallback
    rows = trusted.probes(states, FALLBACK_PROBES)
    if violation is not None and (broken := np.asarray(violation.at_states(rows))).any():
        state = np.asarray(rows)[np.argmax(broken)]
        expected = "a trusted set that keeps the constraints"
        raise ArgumentError("fallback", expected, f"the trusted state {state}")
    chosen = _require_actions(policy, rows, actions)
    points = state_action(rows, jnp.asarray(chosen))
    if violation is not None and (broken := np.asarray(violation.at_points(points))).any():
        row = np.argmax(broken)
        expected = "actions that keep the constraints in trusted states"
        got = f"{chosen[row]} in state {np.asarray(rows)[row]}"
        raise ArgumentError("fallback", expected, got)
    return fallback


def _require_actions(
    policy: Policy, rows: Float[Array, "n m"], actions: Domain
) -> Float[np.ndarray, "n q"]:
    """The actions of the first period, or ArgumentError if one is outside the action space."""
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
    return chosen
