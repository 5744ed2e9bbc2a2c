"""Constraints and fallbacks that are written for observations, where states are something else.

An observation with a cosine and a sine has one angle as its state, and a measured cost is a part of
the state that no observation has. Users know the observation only, so their functions, boxes and
controllers take observations.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Box
from kernelmdp.mdp.constraints import Constraint, Limit
from kernelmdp.mdp.fallback import Fallback
from kernelmdp.mdp.policy import Policy, PolicyPlayer
from kernelmdp.mdp.trusted_set import TrustedLeading
from kernelmdp.types import Period

#: From states (n, m) to observations (n, k).
Observe = Callable[[Float[Array, "n m"]], Float[Array, "n k"]]


@dataclasses.dataclass(frozen=True, eq=False)
class ObservedCoordinates:
    """What users see instead of the state.

    Attributes:
        observe: From states (n, m) to observations (n, k).
        names: The names of the k coordinates.
        low: Their lowest values, (k,).
        high: Their highest values, (k,).
        leading: The number k if an observation is the first k coordinates of the state; else 0.
    """

    observe: Observe
    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray
    leading: int = 0


@dataclasses.dataclass(frozen=True)
class LeadingCoordinates:
    """The first coordinates of states, and what follows from them.

    Attributes:
        count: The number of coordinates.
        observe: From these coordinates to observations; None if they are the observation.
    """

    count: int
    observe: Observe | None = None

    def __call__(self, states: Float[Array, "n m"]) -> Float[Array, "n k"]:
        rows = states[:, : self.count]
        return rows if self.observe is None else self.observe(rows)


@dataclasses.dataclass(frozen=True)
class OfObservation:
    """A function of observations, or of observations and actions, applied to states.

    Attributes:
        function: The function of observations.
        observe: From states to observations.
    """

    function: Callable[..., Any]
    observe: Observe

    def __call__(self, states: Any) -> Any:
        return self.function(self.observe(states))


@dataclasses.dataclass(frozen=True)
class OfObservationAndAction(OfObservation):
    """The same for a function of observations and actions."""

    def __call__(self, states: Any, actions: Any) -> Any:  # type: ignore[override]
        return self.function(self.observe(states), actions)


class ObservingPolicy(Policy):
    """A policy of observations, applied to states.

    Attributes:
        policy: The policy of observations.
        observe: From states to observations.
    """

    policy: Policy
    observe: Observe = eqx.field(static=True)

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return self.policy.actions(self.observe(states), period)

    def reset(self, count: int) -> Any:
        return self.policy.reset(count)

    def decide(
        self, memory: Any, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], Any]:
        return self.policy.decide(memory, self.observe(states), period)

    def player(self) -> PolicyPlayer:
        return PolicyPlayer(self)


def observed_constraints(constraints: Any, observation: ObservedCoordinates) -> Any:
    """Rewrite constraints on observations as constraints on states.

    Args:
        constraints: What ``as_constraints`` takes. Functions and boxes are about observations.
            Text and mappings name coordinates, and stay as they are.
        observation: What users see.

    Returns:
        The same for states. Limits that observations keep by themselves are left out.
    """
    if isinstance(constraints, list | tuple):
        return [observed_constraints(each, observation) for each in constraints]
    observe = observation.observe
    if isinstance(constraints, Box) and constraints.dimension == len(observation.names):
        if observation.leading:
            pairs = zip(constraints.low, constraints.high, strict=True)
            return dict(zip(observation.names, pairs, strict=True))
        sides = (
            (-1.0, ">=", constraints.low, observation.low),
            (1.0, "<=", constraints.high, observation.high),
        )
        return [
            Constraint(
                OfObservation(Limit(j, float(limits[j]), sign), observe),
                f"{name} {symbol} {limits[j]:g}",
            )
            for j, name in enumerate(observation.names)
            for sign, symbol, limits, ends in sides
            if sign * (ends[j] - limits[j]) > 0
        ]
    if callable(constraints) and not isinstance(constraints, Constraint):
        name = getattr(constraints, "__name__", "constraint")
        constraints = Constraint(constraints, "constraint" if name == "<lambda>" else name)
    if isinstance(constraints, Constraint):
        wrapper = OfObservationAndAction if constraints.on_actions else OfObservation
        return dataclasses.replace(
            constraints, function=wrapper(constraints.function, observe), slope=None
        )
    return constraints


def observed_fallback(fallback: Any, observation: ObservedCoordinates) -> Any:
    """Rewrite a fallback on observations as one on states.

    Args:
        fallback: What ``as_fallback`` takes, for observations.
        observation: What users see.

    Returns:
        The same for states.
    """
    if fallback is None:
        return None
    if isinstance(fallback, tuple | list) and len(fallback) == 2:
        fallback = Fallback(*fallback)
    observe = observation.observe
    if isinstance(fallback, Fallback):
        trusted: Any = fallback.trusted
        if trusted is not None and observation.leading:
            trusted = TrustedLeading(trusted, observation.leading)
        elif trusted is not None:
            given = dataclasses.replace(fallback, policy=None)
            trusted = OfObservation(given.is_trusted, observe)
        policy = observed_fallback(fallback.policy, observation)
        return dataclasses.replace(fallback, policy=policy, trusted=trusted)
    if isinstance(fallback, Policy):
        return ObservingPolicy(fallback, observe)
    if not callable(fallback):
        return fallback

    def controller(state: Any, period: Any) -> Any:
        return fallback(observe(jnp.asarray(state)[None, :])[0], period)

    return controller
