"""Linear policies and their values in a linear-quadratic MDP, with or without bounds.

Without bounds on states and actions the value has a closed form. With bounds it is that, plus the
mean effect of the bounds over fixed rollouts. If no rollout meets a bound, it is the closed form.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain, Unbounded
from kernelmdp.errors import ArgumentError, UnknownPropertyError
from kernelmdp.mdp.evaluation import Value
from kernelmdp.mdp.linear_quadratic import (
    LinearQuadraticSystem,
    linear_quadratic_system,
    optimal_solution,
    solvable_cost,
)
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.policy import Policy
from kernelmdp.numerics.modules import jit, replace_fields
from kernelmdp.numerics.tracing import as_float
from kernelmdp.types import Period

#: Number of rollouts that measure the effect of bounds. All policies share their noise. The error
#: decreases with the square root of this number.
ROLLOUTS = 2000


class LinearPolicy(Policy):
    """The policy a = offset_h − K_h s, projected to a bounded action space.

    Attributes:
        gains: K_h, (H, q, m).
        offsets: The offsets, (H, q).
        space: The action space. None means no projection.
    """

    gains: Float[Array, "H q m"]
    offsets: Float[Array, "H q"]
    space: Domain | None = eqx.field(static=True, default=None)

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        chosen = self.offsets[period][None, :] - states @ self.gains[period].T
        return chosen if self.space is None else self.space.nearest(chosen)


def _as_linear(policy: Policy) -> LinearPolicy | None:
    """The policy if it is linear, otherwise None."""
    return policy if isinstance(policy, LinearPolicy) else None


def linear_policy(gains: Float[Array, "H q m"], space: Domain | None = None) -> LinearPolicy:
    """Make the policy a = −K_h s, projected to an action space.

    Args:
        gains: K_h, (H, q, m).
        space: The action space. None means no projection.

    Returns:
        The policy.
    """
    return LinearPolicy(gains, jnp.zeros(gains.shape[:2], gains.dtype), space)


def linear_cost(
    system: LinearQuadraticSystem, policy: LinearPolicy
) -> tuple[Float[Array, "H1 m1 m1"], Float[Array, " H1"]]:
    """Compute the expected cost to go xᵀG_h x + c_h at x = (s, 1), without bounds.

    With z = Z_h x, Z_h = [[I, 0], [−K_h, offset_h]], and T_h = [ΘZ_h; (0, 1)]:
    G_h = Z_hᵀCZ_h + T_hᵀG_{h+1}T_h,  c_h = c_{h+1} + tr(G_{h+1} Σ_ε).

    Args:
        system: The matrices of the MDP.
        policy: The policy. Its action space is ignored.

    Returns:
        G_h (H + 1, m + 1, m + 1) and c_h (H + 1,) for h = 1..H + 1.
    """
    m = system.dynamics.shape[0]
    state_rows = jnp.eye(m, m + 1, dtype=system.cost.dtype)
    constant_row = jnp.eye(m + 1, dtype=system.cost.dtype)[m:]

    def step(after: tuple[Array, Array], row: tuple[Array, Array]) -> Any:
        G, c = after
        K, offset = row
        Z = jnp.concatenate([state_rows, jnp.concatenate([-K, offset[:, None]], axis=1)])
        T = jnp.concatenate([system.dynamics @ Z, constant_row])
        before = Z.T @ system.cost @ Z + T.T @ G @ T
        total = c + jnp.sum(G[:m, :m] * system.noise)
        return (before, total), (before, total)

    last = (jnp.zeros_like(state_rows, shape=(m + 1, m + 1)), jnp.zeros((), system.cost.dtype))
    _, (G, c) = jax.lax.scan(step, last, (policy.gains, policy.offsets), reverse=True)
    return jnp.concatenate([G, last[0][None]]), jnp.concatenate([c, last[1][None]])


@jit
def linear_value(
    system: LinearQuadraticSystem, policy: LinearPolicy, start: Float[Array, " m"]
) -> Float[Array, ""]:
    """Compute V^π_1 at a state exactly, without bounds.

    Args:
        system: The matrices of the MDP.
        policy: The policy π. Its action space is ignored.
        start: The state, (m,).

    Returns:
        The value, a scalar.
    """
    G, c = linear_cost(system, policy)
    x = jnp.concatenate([start, jnp.ones(1, start.dtype)])
    return -(x @ G[0] @ x + c[0])


class QuadraticTruth:
    """A known linear-quadratic MDP, bounded or not: its optimum, and the value of any policy.

    Values by rollouts use two control variates, whose means are known exactly: the same policy
    without bounds, and the optimal policy without bounds. All policies share the same noise.

    Args:
        mdp: The MDP. Its costs must be convex.

    Attributes:
        mdp: The MDP.
        system: Its matrices.
        solution: The Riccati solution.
        policy: The optimal policy without bounds, projected to the action space.
        noise: The noise of the rollouts, (ROLLOUTS, H, m).
        unbounded_mdp: The MDP without bounds on states.
        bounded: Whether states or actions have bounds.
    """

    def __init__(self, mdp: MDP) -> None:
        self.mdp, self.system = mdp, linear_quadratic_system(mdp)
        P, N, Q = (np.asarray(block) for block in self.system.cost_blocks)
        require_convex(P, N, Q)
        self.solution = _solution(self.system, mdp.horizon)
        self.policy = linear_policy(self.solution.gains, mdp.actions)
        shape = (ROLLOUTS, mdp.horizon, mdp.states.dimension)
        self.noise = mdp.transition_noise.draw(shape, key=jax.random.key(0))
        self.unbounded_mdp = replace_fields(mdp, states=Unbounded(mdp.states.dimension))
        self.bounded = mdp.states.bounded or mdp.actions.bounded

    def optimum(self, start: Any) -> Value:
        """Compute V*_1 at a state: the value of the Riccati policy within the bounds of actions.

        Bounds of actions only lower the value. The optimum therefore lies between that value and
        the value without bounds. The error is their gap plus the 99 % interval of the rollouts.
        Bounds of states raise the value, because projection to a box lowers costs. No bound of
        the optimum is known then.

        Args:
            start: The state, (m,).

        Returns:
            The value, exact without bounds.

        Raises:
            UnknownPropertyError: If states are bounded.
        """
        if self.mdp.states.bounded:
            raise UnknownPropertyError(
                "the optimum of linear-quadratic control in a box is unknown"
            )
        state = jnp.asarray(start, float)
        unbounded = float(linear_value(self.system, self.policy, state))
        if not self.bounded:
            return Value(unbounded, 0.0, "exact")
        value, standard_error = map(float, self._value(self.policy, state))
        return Value(value, max(unbounded - value, 0.0) + 2.576 * standard_error, "estimate")

    def value(self, policy: Policy, start: Any) -> float:
        """Compute V^π_1 at a state.

        Args:
            policy: The policy π.
            start: The state, (m,).

        Returns:
            The value.
        """
        state = jnp.asarray(start, float)
        linear = _as_linear(policy)
        if linear is not None and not self.bounded:
            return as_float(linear_value(self.system, linear, state))
        return as_float(self._value(policy, state)[0])

    def _value(self, policy: Policy, start: Array) -> tuple[Array, Array]:
        return _value(
            self.mdp, self.unbounded_mdp, self.system, policy, self.policy, start, self.noise
        )


def require_convex(P: np.ndarray, N: np.ndarray, Q: np.ndarray) -> None:
    """Check that Q ≻ 0 and sᵀPs + 2sᵀNa + aᵀQa ≥ 0.

    Args:
        P: Cost of the state, (m, m).
        N: Cost of state times action, (m, q).
        Q: Cost of the action, (q, q).

    Raises:
        ArgumentError: If one of them does not hold.
    """
    least = np.linalg.eigvalsh((Q + Q.T) / 2).min()
    if not least > 0:
        raise ArgumentError("Q", "positive definite", f"its least eigenvalue is {least:g}")
    schur_complement = P - N @ np.linalg.solve((Q + Q.T) / 2, N.T)
    least = np.linalg.eigvalsh((schur_complement + schur_complement.T) / 2).min()
    if not least >= -1e-9 * max(1.0, np.abs(P).max()):
        raise ArgumentError(
            "P", "P − NQ⁻¹Nᵀ positive semi-definite", f"its least eigenvalue is {least:g}"
        )


@jit
def _solution(system: LinearQuadraticSystem, horizon: int) -> Any:
    """The Riccati solution, with costs made convex up to round-off."""
    m = system.dynamics.shape[0]
    zero = jnp.zeros((), system.cost.dtype)
    cost = solvable_cost(system.cost, m, floor=zero, least=zero)
    return optimal_solution(replace_fields(system, cost=cost), horizon)


def _returns(mdp: MDP, policy: Policy, start: Array, noise: Array) -> Array:
    """Sums of mean rewards (n,) along rollouts with this noise (n, H, m)."""

    def step(states: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        period, period_noise = row
        points = jnp.concatenate([states, policy.actions(states, period)], axis=1)
        prediction = mdp.model(points)
        return mdp.states.nearest(prediction.state + period_noise), prediction.reward

    states = jnp.broadcast_to(start[None, :], (noise.shape[0], start.shape[0]))
    rows = (jnp.arange(mdp.horizon), jnp.swapaxes(noise, 0, 1))
    return jnp.sum(jax.lax.scan(step, states, rows)[1], axis=0)


@jit
def _value(
    mdp: MDP,
    unbounded_mdp: MDP,
    system: LinearQuadraticSystem,
    policy: Policy,
    optimal: LinearPolicy,
    start: Array,
    noise: Array,
) -> tuple[Array, Array]:
    """The value and its standard error, with control variates."""
    values = _returns(mdp, policy, start, noise)
    linear = _as_linear(policy)
    controls = [optimal] if linear is None else [linear, optimal]
    shift = jnp.zeros(())
    for control in controls:
        unprojected = replace_fields(control, space=None)
        control_values = _returns(unbounded_mdp, unprojected, start, noise)
        exact = linear_value(system, unprojected, start)
        centred = control_values - jnp.mean(control_values)
        size = jnp.max(jnp.abs(centred))
        unit = centred / jnp.where(size > 0, size, 1.0)
        weight = jnp.sum(unit * values) / jnp.maximum(jnp.sum(unit**2), 1e-300)
        # A policy that diverges without bounds says nothing about one within bounds.
        usable = jnp.isfinite(size) & jnp.isfinite(exact) & (size > 0)
        correction = (exact - jnp.mean(control_values)) / jnp.where(size > 0, size, 1.0)
        shift = shift + jnp.where(usable, weight * correction, 0.0)
        values = values - jnp.where(usable, weight * unit, jnp.zeros_like(unit))
    return jnp.mean(values) + shift, jnp.std(values) / math.sqrt(noise.shape[0])
