"""Policies from functions of one state, written with JAX or in plain Python."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp.policy import Policy
from kernelmdp.types import Period

#: What a function raises when it cannot be traced. JAX's own errors are a TypeError or an
#: IndexError. The others come from libraries that take a tracer for a broken array.
UNTRACEABLE = (TypeError, IndexError, ValueError, AttributeError, RuntimeError)


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

            def action(state: Float[Array, " m"]) -> Float[Array, " q"]:
                return jnp.asarray(self.function(state, period), float).reshape(self.size)

            return jax.vmap(action)(states)
        shape = jax.ShapeDtypeStruct((states.shape[0], self.size), states.dtype)
        return jax.pure_callback(
            self._from_python, shape, states, jnp.asarray(period), vmap_method="expand_dims"
        )

    def _from_python(self, states: Any, period: Any) -> np.ndarray:
        # Under ``vmap`` there are more axes before (n, m), and one period for all of them.
        given, number = np.asarray(states), int(np.ravel(period)[0])
        rows = [self.function(state, number) for state in given.reshape(-1, given.shape[-1])]
        return np.array(rows, given.dtype).reshape(*given.shape[:-1], self.size)


def as_policy(policy: Any, *, states: Domain, actions: Domain) -> Policy:
    """Make a policy from a function f(state, period) -> action.

    Args:
        policy: The function, or a policy, which is returned unchanged.
        states: The state space.
        actions: The action space.

    Returns:
        The policy.

    Raises:
        ArgumentError: If it is neither, or the function fails.
        ShapeError: If its action has another number of coordinates.

    >>> from kernelmdp.domains import Box
    >>> box = Box([-1.0], [1.0])
    >>> as_policy(lambda state, period: -0.5 * state, states=box, actions=box)([0.4], 0)
    array([-0.2])
    """
    if isinstance(policy, Policy):
        return policy
    if not callable(policy):
        expected = "a function f(state, period) -> action, a Policy, or one with its trusted set"
        raise ArgumentError("fallback", expected, repr(policy))
    try:
        shape, traced = _try(policy, states)
    except Exception as error:  # a user's function may raise anything, and one sentence tells it
        expected = "a function f(state, period) -> action"
        raise ArgumentError("fallback", expected, f"{type(error).__name__}: {error}") from None
    size = int(np.prod(shape))
    if size != actions.dimension:
        raise ShapeError("fallback", f"actions of {actions.dimension} numbers", f"shape {shape}")
    return FunctionPolicy(policy, size, traced)


def _try(function: Callable[..., Any], states: Domain) -> tuple[tuple[int, ...], bool]:
    """The shape of an action, and whether the function can be traced."""
    state = jax.ShapeDtypeStruct((states.dimension,), jnp.float64)
    period = jax.ShapeDtypeStruct((), jnp.int64)
    try:
        made = jax.eval_shape(lambda s, h: jnp.asarray(function(s, h), float), state, period)
    except UNTRACEABLE:
        return np.shape(function(states.spread_points(1)[0], 0)), False
    return made.shape, True
