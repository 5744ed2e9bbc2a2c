"""Optimism for linear-quadratic control by a Lagrangian dual (math D8).

Every plausible next state is Âs + B̂a + w with ‖w‖² ≤ zᵀWz, where W is the squared radius as a
quadratic form and ‖·‖ the metric M. Instead of choosing w within that, charge for going beyond it:

    cost zᵀ(C − ηW)z + η wᵀMw,   controls (a, w),   η ≥ 0,

a linear-quadratic problem whose least cost D(η) is at most the cost of every policy in every
plausible MDP (weak duality; finite-horizon form of the idea of Abeille & Lazaric 2020). D is
concave, −∞ where a Hessian in (a, w) is not positive definite. In the last period w moves nothing
that is paid for: there η = 0, which is allowed (one η a period) and never worse. At η = 0 in every
period w is free and D(0) = sᵀP̃s + (H − 1) tr(P̃Σ), P̃ = P − NQ⁻¹Nᵀ.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelmdp.mdp.linear_quadratic import LinearQuadraticSystem, RiccatiSolution, riccati
from kernelmdp.types import Key

#: Multipliers tried over the range, then in each further round between the best one's neighbours.
TRIED, ROUNDS = 28, 4
#: The range reaches so many times below and above the multipliers that matter.
MARGIN = 1e4


class Extended(NamedTuple):
    """The problem with controls (a, w) for the periods before the last, at one η."""

    B: Float[Array, "m qm"]
    P: Float[Array, "m m"]
    N: Float[Array, "m qm"]
    Q: Float[Array, "qm qm"]


class Dual(NamedTuple):
    """The best bound found: gains and offsets of a, sᵀGs + c, the multiplier."""

    gains: Float[Array, "H q m"]
    offsets: Float[Array, "H q"]
    curvature: Float[Array, "m m"]
    constant: Float[Array, ""]
    multiplier: Float[Array, ""]


def extended(
    system: LinearQuadraticSystem,
    W: Float[Array, "d d"],
    metric: Float[Array, " m"],
    eta: Float[Array, ""],
) -> Extended:
    """The problem whose least cost is D(η)."""
    m, q = system.B.shape
    cost = system.cost - eta * W
    nothing = jnp.zeros((m, m), cost.dtype)
    return Extended(
        B=jnp.concatenate([system.B, jnp.eye(m, dtype=cost.dtype)], axis=1),
        P=cost[:m, :m],
        N=jnp.concatenate([cost[:m, m:], nothing], axis=1),
        Q=jnp.block(
            [
                [cost[m:, m:], jnp.zeros((q, m), cost.dtype)],
                [jnp.zeros((m, q), cost.dtype), eta * jnp.diag(metric**-2)],
            ]
        ),
    )


def relaxed(
    system: LinearQuadraticSystem,
    W: Float[Array, "d d"],
    metric: Float[Array, " m"],
    eta: Float[Array, ""],
    horizon: int,
) -> RiccatiSolution:
    """Riccati for the relaxed problem: G_1 and c_1 give D(η); NaN where D(η) = −∞."""
    P, N, Q = system.blocks
    last = riccati(system.A, system.B, P, Q, 1, system.noise, cross=N)
    wide = extended(system, W, metric, eta)
    before = riccati(
        system.A,
        wide.B,
        wide.P,
        wide.Q,
        horizon - 1,
        system.noise,
        cross=wide.N,
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
) -> Dual:
    """The largest D(η), for starts with this second moment, and the a-part of its policy.

    Any η gives a bound; the search only makes it tight. ``system.cost`` must have Q ≻ 0.
    """

    def bound(eta: Array) -> Array:
        found = relaxed(system, W, metric, eta, horizon)
        total = jnp.sum(found.curvatures[0] * moment) + found.constants[0]
        return jnp.where(jnp.isfinite(total), total, -jnp.inf)

    size = jnp.linalg.norm(system.cost) * jnp.max(metric) ** 2 + 1e-300
    room = jnp.linalg.norm(W) * jnp.max(metric) ** 2 + 1e-300
    low = jnp.log(size / jnp.maximum(room, 1.0) / MARGIN)
    high = jnp.log(size / jnp.minimum(room, 1.0) * MARGIN)

    def closer(tried: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        values = jax.vmap(bound)(jnp.exp(tried))
        best = jnp.argmax(values)
        ends = tried[jnp.maximum(best - 1, 0)], tried[jnp.minimum(best + 1, TRIED - 1)]
        return jnp.linspace(*ends, TRIED), (tried, values)

    _, (rounds, found_values) = jax.lax.scan(
        closer, jnp.linspace(low, high, TRIED), None, length=ROUNDS
    )
    tried, values = rounds[-1], found_values[-1]
    best = jnp.argmax(values)
    eta = jnp.exp(tried[best])
    found = relaxed(system, W, metric, eta, horizon)
    free, curvature = _free(system)
    constant = (horizon - 1) * jnp.sum(curvature * system.noise)
    useful = values[best] >= jnp.sum(curvature * moment) + constant
    slope = _slope(values, jnp.exp(tried), best)
    at_border = (values[jnp.minimum(best + 1, TRIED - 1)] == -jnp.inf) & useful
    pushes = _pushes(system, W, metric, eta, found.curvatures[1], slope, horizon, key=key)
    q = system.B.shape[1]
    return Dual(
        gains=jnp.where(useful, found.gains, jnp.broadcast_to(free[None], found.gains.shape)),
        offsets=jnp.where(at_border, pushes, jnp.zeros((horizon, q), pushes.dtype)),
        curvature=jnp.where(useful, found.curvatures[0], curvature),
        constant=jnp.where(useful, found.constants[0], constant),
        multiplier=jnp.where(useful, eta, 0.0),
    )


def _free(system: LinearQuadraticSystem) -> tuple[Float[Array, "q m"], Float[Array, "m m"]]:
    """Gain and curvature at η = 0, where the next state is as one likes: those of one period."""
    P, N, Q = system.blocks
    alone = riccati(system.A, system.B, P, Q, 1, system.noise, cross=N)
    return alone.gains[0], alone.curvatures[0]


def _slope(
    values: Float[Array, " n"], multipliers: Float[Array, " n"], best: Array
) -> Float[Array, ""]:
    """D′(η), which is how much w spends beyond what the set allows."""
    left = jnp.maximum(best - 1, 0)
    step = multipliers[best] - multipliers[left]
    rise = (values[best] - values[left]) / jnp.where(step > 0, step, 1.0)
    return jnp.where((step > 0) & jnp.isfinite(rise), jnp.maximum(rise, 0.0), 0.0)


def _pushes(
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
    """Actions that pay for w at the border of the η allowed, as in the hard case of a trust region.

    There the Hessian is singular: (a, w) may move along its null vector at no cost, and the best
    plan moves until Σ‖w‖² = ΣzᵀWz. Seen from 0 either sign is as good: drawn for every period.
    """
    q = system.B.shape[1]
    wide = extended(system, W, metric, eta)
    hessian = wide.Q + wide.B.T @ after @ wide.B
    null = jnp.linalg.eigh((hessian + hessian.T) / 2)[1][:, 0]
    moved = wide.B @ null
    paid = (null[:q] @ system.blocks[2] @ null[:q] + moved @ after @ moved) / eta
    usable = (paid > 0) & (horizon > 1)
    size = jnp.sqrt(slope / jnp.where(usable, paid * max(horizon - 1, 1), 1.0))
    signs = jax.random.rademacher(key, (horizon,)).astype(null.dtype)
    early = (jnp.arange(horizon) < horizon - 1).astype(null.dtype)
    pushed = (signs * early)[:, None] * (size * null[:q])[None, :]
    return jnp.where(usable & jnp.isfinite(size), pushed, jnp.zeros_like(pushed))


def is_certified(raised: Float[Array, "d d"], cost: Float[Array, "d d"]) -> Bool[Array, ""]:
    """Whether the cost that was solved is not above the one that bounds every plausible cost."""
    return jnp.max(jnp.abs(raised - cost)) <= 1e-12 * (1e-300 + jnp.max(jnp.abs(cost)))
