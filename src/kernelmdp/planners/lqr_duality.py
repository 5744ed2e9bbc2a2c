"""Optimism for linear-quadratic control by a Lagrangian dual (note D8).

Every plausible next state is Âs + B̂a + w with ‖w‖² ≤ zᵀWz, where W is the squared radius as a
quadratic form and ‖·‖ the metric M. The dual drops this constraint on w, and charges for violating
it instead:

    cost zᵀ(C − ηW)z + η wᵀMw,   controls (a, w),   η ≥ 0.

The least cost D(η) of this linear-quadratic problem is at most the cost of every policy in every
plausible MDP (weak duality; finite-horizon form of the idea of Abeille & Lazaric 2020). D is
concave, and −∞ where a Hessian in (a, w) is not positive definite.

In the last period w changes no cost. There η = 0, which is allowed (one η a period) and never
worse. At η = 0 in every period w is free and D(0) = sᵀP̃s + (H − 1) tr(P̃Σ), P̃ = P − NQ⁻¹Nᵀ.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelmdp.mdp.linear_quadratic import LinearQuadraticSystem, RiccatiSolution, riccati
from kernelmdp.types import Key

#: Number of multipliers that each round of the search tries, evenly spaced on a logarithmic scale.
MULTIPLIERS = 28
#: Number of rounds. Each one after the first searches between the neighbours of the best
#: multiplier, and so divides the spacing by 13.5.
ROUNDS = 4
#: The first round covers the relevant multipliers, and this factor below and above them.
MARGIN = 1e4


class ExtendedProblem(NamedTuple):
    """The problem with controls (a, w) for the periods before the last, at one η.

    Attributes:
        B: How the next state depends on the controls, (m, q + m).
        P: Cost of the state, (m, m).
        N: Cost of state times controls, (m, q + m).
        Q: Cost of the controls, (q + m, q + m).
    """

    B: Float[Array, "m qm"]
    P: Float[Array, "m m"]
    N: Float[Array, "m qm"]
    Q: Float[Array, "qm qm"]


class DualSolution(NamedTuple):
    """The policy a = offset_h − K_h s of the best dual problem, and its bound sᵀGs + c.

    Attributes:
        gains: K_h, (H, q, m).
        offsets: Offsets of the actions, (H, q).
        curvature: G of the first period, (m, m).
        constant: c of the first period, a scalar.
        multiplier: The multiplier η, a scalar.
    """

    gains: Float[Array, "H q m"]
    offsets: Float[Array, "H q"]
    curvature: Float[Array, "m m"]
    constant: Float[Array, ""]
    multiplier: Float[Array, ""]


def extended_problem(
    system: LinearQuadraticSystem,
    W: Float[Array, "d d"],
    metric: Float[Array, " m"],
    eta: Float[Array, ""],
) -> ExtendedProblem:
    """Build the problem whose least cost is D(η).

    Args:
        system: The centre of the family, and the costs.
        W: Squared radius of the plausible next states, as a quadratic form of z, (d, d).
        metric: The metric of the MDP, (m,).
        eta: The multiplier η, a scalar.

    Returns:
        The problem for the periods before the last.
    """
    m, q = system.B.shape
    cost = system.cost - eta * W
    no_cross_cost = jnp.zeros((m, m), cost.dtype)
    return ExtendedProblem(
        B=jnp.concatenate([system.B, jnp.eye(m, dtype=cost.dtype)], axis=1),
        P=cost[:m, :m],
        N=jnp.concatenate([cost[:m, m:], no_cross_cost], axis=1),
        Q=jnp.block(
            [
                [cost[m:, m:], jnp.zeros((q, m), cost.dtype)],
                [jnp.zeros((m, q), cost.dtype), eta * jnp.diag(metric**-2)],
            ]
        ),
    )


def relaxed_solution(
    system: LinearQuadraticSystem,
    W: Float[Array, "d d"],
    metric: Float[Array, " m"],
    eta: Float[Array, ""],
    horizon: int,
) -> RiccatiSolution:
    """Solve the relaxed problem of one multiplier by the Riccati recursion.

    Args:
        system: The centre of the family, and the costs.
        W: Squared radius of the plausible next states, as a quadratic form of z, (d, d).
        metric: The metric of the MDP, (m,).
        eta: The multiplier η, a scalar.
        horizon: The number of periods H.

    Returns:
        The solution. G_1 and c_1 give D(η). They are NaN where D(η) = −∞.
    """
    P, N, Q = system.cost_blocks
    last = riccati(system.A, system.B, P, Q, 1, system.noise, cross=N)
    extended = extended_problem(system, W, metric, eta)
    before = riccati(
        system.A,
        extended.B,
        extended.P,
        extended.Q,
        horizon - 1,
        system.noise,
        cross=extended.N,
        terminal=last.curvatures[0],
    )
    q = system.B.shape[1]
    return RiccatiSolution(
        jnp.concatenate([before.gains[:, :q], last.gains]),
        jnp.concatenate([before.curvatures, last.curvatures[1:]]),
        jnp.concatenate([before.constants, last.constants[1:]]),
    )


def best_dual(
    system: LinearQuadraticSystem,
    W: Float[Array, "d d"],
    metric: Float[Array, " m"],
    horizon: int,
    moment: Float[Array, "m m"],
    *,
    key: Key,
) -> DualSolution:
    """Maximise D(η), and return the a-part of the policy.

    Every η gives a valid bound. The search only makes it tight.

    Args:
        system: The centre of the family, and the costs, with Q ≻ 0.
        W: Squared radius of the plausible next states, as a quadratic form of z, (d, d).
        metric: The metric of the MDP, (m,).
        horizon: The number of periods H.
        moment: Second moment of the first state, (m, m).
        key: Decides the signs of actions where both are equally good.

    Returns:
        The solution.
    """

    def bound(eta: Array) -> Array:
        solution = relaxed_solution(system, W, metric, eta, horizon)
        total = jnp.sum(solution.curvatures[0] * moment) + solution.constants[0]
        return jnp.where(jnp.isfinite(total), total, -jnp.inf)

    cost_size = jnp.linalg.norm(system.cost) * jnp.max(metric) ** 2 + 1e-300
    set_size = jnp.linalg.norm(W) * jnp.max(metric) ** 2 + 1e-300
    low = jnp.log(cost_size / jnp.maximum(set_size, 1.0) / MARGIN)
    high = jnp.log(cost_size / jnp.minimum(set_size, 1.0) * MARGIN)

    def narrow(logs: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        values = jax.vmap(bound)(jnp.exp(logs))
        best = jnp.argmax(values)
        ends = logs[jnp.maximum(best - 1, 0)], logs[jnp.minimum(best + 1, MULTIPLIERS - 1)]
        return jnp.linspace(*ends, MULTIPLIERS), (logs, values)

    _, (rounds, round_values) = jax.lax.scan(
        narrow, jnp.linspace(low, high, MULTIPLIERS), None, length=ROUNDS
    )
    logs, values = rounds[-1], round_values[-1]
    best = jnp.argmax(values)
    eta = jnp.exp(logs[best])
    solution = relaxed_solution(system, W, metric, eta, horizon)
    free_gain, curvature = _unconstrained(system)
    constant = (horizon - 1) * jnp.sum(curvature * system.noise)
    useful = values[best] >= jnp.sum(curvature * moment) + constant
    slope = _dual_slope(values, jnp.exp(logs), best)
    at_border = (values[jnp.minimum(best + 1, MULTIPLIERS - 1)] == -jnp.inf) & useful
    offsets = _border_offsets(
        system, W, metric, eta, solution.curvatures[1], slope, horizon, key=key
    )
    q = system.B.shape[1]
    return DualSolution(
        gains=jnp.where(
            useful, solution.gains, jnp.broadcast_to(free_gain[None], solution.gains.shape)
        ),
        offsets=jnp.where(at_border, offsets, jnp.zeros((horizon, q), offsets.dtype)),
        curvature=jnp.where(useful, solution.curvatures[0], curvature),
        constant=jnp.where(useful, solution.constants[0], constant),
        multiplier=jnp.where(useful, eta, 0.0),
    )


def _unconstrained(
    system: LinearQuadraticSystem,
) -> tuple[Float[Array, "q m"], Float[Array, "m m"]]:
    """Gain and curvature at η = 0, where w is free: those of a single period."""
    P, N, Q = system.cost_blocks
    solution = riccati(system.A, system.B, P, Q, 1, system.noise, cross=N)
    return solution.gains[0], solution.curvatures[0]


def _dual_slope(
    values: Float[Array, " n"], multipliers: Float[Array, " n"], best: Array
) -> Float[Array, ""]:
    """D′(η) by a finite difference: how far w exceeds its constraint."""
    left = jnp.maximum(best - 1, 0)
    step = multipliers[best] - multipliers[left]
    slope = (values[best] - values[left]) / jnp.where(step > 0, step, 1.0)
    return jnp.where((step > 0) & jnp.isfinite(slope), jnp.maximum(slope, 0.0), 0.0)


def _border_offsets(
    system: LinearQuadraticSystem,
    W: Float[Array, "d d"],
    metric: Float[Array, " m"],
    eta: Float[Array, ""],
    after: Float[Array, "m m"],
    slope: Float[Array, ""],
    horizon: int,
    *,
    key: Key,
) -> Float[Array, "H q"]:
    """Offsets of actions at the border of the allowed η, as in the hard case of a trust region.

    There the Hessian is singular: (a, w) may move along its null vector at no cost, and the best
    plan moves until Σ‖w‖² = ΣzᵀWz. From state 0 both signs are equally good, so the sign is random
    in every period.
    """
    q = system.B.shape[1]
    extended = extended_problem(system, W, metric, eta)
    hessian = extended.Q + extended.B.T @ after @ extended.B
    null = jnp.linalg.eigh((hessian + hessian.T) / 2)[1][:, 0]
    state_change = extended.B @ null
    unit_excess = (
        null[:q] @ system.cost_blocks[2] @ null[:q] + state_change @ after @ state_change
    ) / eta
    usable = (unit_excess > 0) & (horizon > 1)
    size = jnp.sqrt(slope / jnp.where(usable, unit_excess * max(horizon - 1, 1), 1.0))
    signs = jax.random.rademacher(key, (horizon,)).astype(null.dtype)
    before_last = (jnp.arange(horizon) < horizon - 1).astype(null.dtype)
    offsets = (signs * before_last)[:, None] * (size * null[:q])[None, :]
    return jnp.where(usable & jnp.isfinite(size), offsets, jnp.zeros_like(offsets))


def is_cost_unchanged(
    solved_cost: Float[Array, "d d"], cost: Float[Array, "d d"]
) -> Bool[Array, ""]:
    """Return whether the cost that was solved equals the bound of all plausible costs.

    Args:
        solved_cost: The cost that was solved, which may have been raised, (d, d).
        cost: The cost below every plausible cost, (d, d).

    Returns:
        Whether they are equal up to round-off, so that the solution bounds every plausible cost.
    """
    return jnp.max(jnp.abs(solved_cost - cost)) <= 1e-12 * (1e-300 + jnp.max(jnp.abs(cost)))
