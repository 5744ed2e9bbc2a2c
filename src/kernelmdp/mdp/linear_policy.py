"""Linear policies, what they are worth in a linear-quadratic MDP, and what bounds change of that.

Without bounds on states and actions the value is a closed form. With them it is that, plus the
mean effect of the bounds over fixed rollouts: exactly the closed form when no bound is met.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain, Unbounded
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.evaluation import Value
from kernelmdp.mdp.linear_quadratic import (
    LinearQuadraticSystem,
    linear_quadratic_system,
    optimal_solution,
    solvable_cost,
)
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.policy import Policy
from kernelmdp.numerics.modules import changed, jit
from kernelmdp.types import Period

#: Rollouts that the effect of bounds is measured on; the same for every policy.
ROLLOUTS = 2000


class LinearPolicy(Policy):
    """a = offset_h − K_h s, brought into ``space`` where that is bounded."""

    gains: Float[Array, "H q m"]
    offsets: Float[Array, "H q"]
    space: Domain | None = eqx.field(static=True, default=None)

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        chosen = self.offsets[period][None, :] - states @ self.gains[period].T
        return chosen if self.space is None else self.space.nearest(chosen)


def _as_linear(policy: Policy) -> LinearPolicy | None:
    return policy if isinstance(policy, LinearPolicy) else None


def linear_policy(gains: Float[Array, "H q m"], space: Domain | None = None) -> LinearPolicy:
    """a = −K_h s, brought into a space of actions."""
    return LinearPolicy(gains, jnp.zeros(gains.shape[:2], gains.dtype), space)


def linear_cost(
    system: LinearQuadraticSystem, policy: LinearPolicy
) -> tuple[Float[Array, "H1 m1 m1"], Float[Array, " H1"]]:
    """G_h and c_h with expected cost to go xᵀG_h x + c_h at x = (s, 1), no bounds met.

    With z = Z_h x, Z_h = [[I, 0], [−K_h, offset_h]], and T_h = [ΘZ_h; (0, 1)]:
    G_h = Z_hᵀCZ_h + T_hᵀG_{h+1}T_h,  c_h = c_{h+1} + tr(G_{h+1} Σ_ε).
    """
    m = system.dynamics.shape[0]
    top = jnp.eye(m, m + 1, dtype=system.cost.dtype)
    one = jnp.eye(m + 1, dtype=system.cost.dtype)[m:]

    def step(after: tuple[Array, Array], row: tuple[Array, Array]) -> Any:
        G, c = after
        K, offset = row
        Z = jnp.concatenate([top, jnp.concatenate([-K, offset[:, None]], axis=1)])
        T = jnp.concatenate([system.dynamics @ Z, one])
        before = Z.T @ system.cost @ Z + T.T @ G @ T
        total = c + jnp.sum(G[:m, :m] * system.noise)
        return (before, total), (before, total)

    last = (jnp.zeros_like(top, shape=(m + 1, m + 1)), jnp.zeros((), system.cost.dtype))
    _, (G, c) = jax.lax.scan(step, last, (policy.gains, policy.offsets), reverse=True)
    return jnp.concatenate([G, last[0][None]]), jnp.concatenate([c, last[1][None]])


@jit
def linear_value(
    system: LinearQuadraticSystem, policy: LinearPolicy, start: Float[Array, " m"]
) -> Float[Array, ""]:
    """V^π_1 at a state, bounds aside: exact."""
    G, c = linear_cost(system, policy)
    x = jnp.concatenate([start, jnp.ones(1, start.dtype)])
    return -(x @ G[0] @ x + c[0])


class QuadraticTruth:
    """A known linear-quadratic MDP, bounded or not: its optimum, and the value of any policy.

    Values by rollouts have two control variates, whose means are exact: the same policy without
    bounds, and the optimal one without bounds. All rollouts share one draw of the noise.
    """

    def __init__(self, mdp: MDP) -> None:
        self.mdp, self.system = mdp, linear_quadratic_system(mdp)
        P, N, Q = (np.asarray(block) for block in self.system.blocks)
        require_convex(P, N, Q)
        self.solution = _solution(self.system, mdp.horizon)
        self.policy = linear_policy(self.solution.gains, mdp.actions)
        shape = (ROLLOUTS, mdp.horizon, mdp.states.dimension)
        self.noise = mdp.transition_noise.draw(shape, key=jax.random.key(0))
        self.free = changed(mdp, states=Unbounded(mdp.states.dimension))
        self.bounded = mdp.states.bounded or mdp.actions.bounded

    def optimum(self, start: Any) -> Value:
        """V*_1 at a state: the value of the Riccati policy within the bounds.

        The optimum lies between that and the value without bounds: their gap is the error, with
        what the rollouts leave open (99 %).
        """
        state = jnp.asarray(start, float)
        ideal = float(linear_value(self.system, self.policy, state))
        if not self.bounded:
            return Value(ideal, 0.0, "exact")
        value, spread = map(float, self._value(self.policy, state))
        return Value(value, max(ideal - value, 0.0) + 2.576 * spread, "estimate")

    def value(self, policy: Policy, start: Any) -> float:
        """V^π_1 at a state."""
        state = jnp.asarray(start, float)
        linear = _as_linear(policy)
        if linear is not None and not self.bounded:
            return float(linear_value(self.system, linear, state))
        return float(self._value(policy, state)[0])

    def _value(self, policy: Policy, start: Array) -> tuple[Array, Array]:
        return _value(self.mdp, self.free, self.system, policy, self.policy, start, self.noise)


def require_convex(P: np.ndarray, N: np.ndarray, Q: np.ndarray) -> None:
    """ArgumentError unless Q ≻ 0 and sᵀPs + 2sᵀNa + aᵀQa ≥ 0."""
    least = np.linalg.eigvalsh((Q + Q.T) / 2).min()
    if not least > 0:
        raise ArgumentError("Q", "positive definite", f"its least eigenvalue is {least:g}")
    rest = P - N @ np.linalg.solve((Q + Q.T) / 2, N.T)
    least = np.linalg.eigvalsh((rest + rest.T) / 2).min()
    if not least >= -1e-9 * max(1.0, np.abs(P).max()):
        raise ArgumentError(
            "P", "P − NQ⁻¹Nᵀ positive semi-definite", f"its least eigenvalue is {least:g}"
        )


@jit
def _solution(system: LinearQuadraticSystem, horizon: int) -> Any:
    m = system.dynamics.shape[0]
    zero = jnp.zeros((), system.cost.dtype)
    cost = solvable_cost(system.cost, m, floor=zero, least=zero)
    return optimal_solution(changed(system, cost=cost), horizon)


def _returns(mdp: MDP, policy: Policy, start: Array, noise: Array) -> Array:
    """Sums of mean rewards along rollouts with this noise (n, H, m), (n,)."""

    def step(states: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        period, shock = row
        points = jnp.concatenate([states, policy.actions(states, period)], axis=1)
        prediction = mdp.model(points)
        return mdp.states.nearest(prediction.state + shock), prediction.reward

    states = jnp.broadcast_to(start[None, :], (noise.shape[0], start.shape[0]))
    rows = (jnp.arange(mdp.horizon), jnp.swapaxes(noise, 0, 1))
    return jnp.sum(jax.lax.scan(step, states, rows)[1], axis=0)


@jit
def _value(
    mdp: MDP,
    free: MDP,
    system: LinearQuadraticSystem,
    policy: Policy,
    best: LinearPolicy,
    start: Array,
    noise: Array,
) -> tuple[Array, Array]:
    """The value and its standard error."""
    values = _returns(mdp, policy, start, noise)
    linear = _as_linear(policy)
    controls = [best] if linear is None else [linear, best]
    shift = jnp.zeros(())
    for control in controls:
        unbound = changed(control, space=None)
        along = _returns(free, unbound, start, noise)
        exact = linear_value(system, unbound, start)
        centred = along - jnp.mean(along)
        size = jnp.max(jnp.abs(centred))
        unit = centred / jnp.where(size > 0, size, 1.0)
        weight = jnp.sum(unit * values) / jnp.maximum(jnp.sum(unit**2), 1e-300)
        # A plan that diverges without bounds says nothing about one that cannot.
        sound = jnp.isfinite(size) & jnp.isfinite(exact) & (size > 0)
        missing = (exact - jnp.mean(along)) / jnp.where(size > 0, size, 1.0)
        shift = shift + jnp.where(sound, weight * missing, 0.0)
        values = values - jnp.where(sound, weight * unit, jnp.zeros_like(unit))
    return jnp.mean(values) + shift, jnp.std(values) / math.sqrt(noise.shape[0])
