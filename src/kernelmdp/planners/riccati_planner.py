"""The planner for linear transitions and quadratic rewards: Riccati, optimistic by duality.

The matrices are read off the model. A plain MDP is solved exactly, but for bounds: actions are
brought into a bounded action space, and states into a bounded state space when they are played,
which the plan does not foresee. A plan under bounds is approximate and its error not known (NaN);
``QuadraticTruth`` measures it for a known truth, the grid planner checks it in one dimension.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.errors import ArgumentError, PositiveDefiniteError
from kernelmdp.mdp.linear_policy import LinearPolicy
from kernelmdp.mdp.linear_quadratic import (
    LinearQuadraticSystem,
    linear_quadratic_from_prediction,
    optimal_solution,
    probe_points,
    quadratic_form,
    quadratic_misfit,
    require_fit,
    solvable_cost,
)
from kernelmdp.mdp.mdp import MDP
from kernelmdp.numerics.modules import changed, jit
from kernelmdp.planners.lqr_duality import Dual, best_dual, is_certified
from kernelmdp.planners.plan import Plan
from kernelmdp.planners.planner import Planner
from kernelmdp.types import ArrayLike, Key

#: Least eigenvalue of Q, as a share of the largest entry of C: below it nothing can be solved.
FLOOR = 1e-6
#: Directions of the action on which nothing depends, up to this share, squared.
IDLE = 1e-20


class RiccatiPlan(Plan):
    """A linear policy and its planned cost sᵀGs + c.

    For a family ``value`` is optimistic: with ``certified``, no policy is worth more in any
    plausible MDP. It is not certified when the optimistic cost had to be raised to be solvable.

    >>> import kernelmdp as km
    >>> plan = RiccatiPlanner().plan(km.make("lqr-1d").mdp, key=jax.random.key(0))
    >>> plan.value([2.0]) < plan.value([1.0])
    True
    """

    policy: LinearPolicy
    curvature: Float[Array, "m m"]
    constant: Float[Array, ""]
    multiplier: Float[Array, ""]  # η of the dual; 0 for a plain MDP
    certified: Bool[Array, ""]
    error: float = float("nan")

    def value(self, state: ArrayLike) -> float:
        s, G = np.asarray(state, float), np.asarray(self.curvature)
        return -float(s @ G @ s + float(self.constant))


@dataclasses.dataclass(frozen=True)
class RiccatiPlanner(Planner):
    """Plans for linear-quadratic MDPs and families; an error says when a model is neither.

    >>> import kernelmdp as km
    >>> env = km.make("lqr-1d")
    >>> plan = RiccatiPlanner().plan(env.mdp, key=jax.random.key(0))
    >>> plan.policy([0.0], 0)  # nothing to do at the origin
    array([0.])
    """

    floor: float = FLOOR

    def solvable(self, mdp: MDP) -> bool:
        """Whether costs grow with every action: Q ≻ 0. PSRL draws again until they do."""
        return bool(_solvable(mdp, self.floor))

    def plan(self, mdp: MDP, *, start: ArrayLike | None = None, key: Key) -> RiccatiPlan:
        """The optimal policy for the MDP, or the optimistic one for a family.

        A family's multiplier is the best one for ``start``, or for starts of typical size.
        """
        if mdp.termination is not None:
            raise ArgumentError("planner", "'grid' or 'mpc' where episodes end", "'riccati'")
        low, high = mdp.states.extent
        moment: Any = np.diag(((high - low) / 2) ** 2 / 3)
        if start is not None:
            moment = np.outer(start, start)
        dual, certified, off = _plan(mdp, self.floor, moment, key)
        require_fit(float(off))
        if not np.isfinite(np.asarray(dual.constant)):
            raise PositiveDefiniteError(
                "the costs of this MDP have no minimum over actions: Q + BᵀGB is not positive "
                "definite at some period"
            )
        bounded = any(space.bounded for space in (mdp.actions, mdp.states))
        return RiccatiPlan(
            policy=LinearPolicy(dual.gains, dual.offsets, mdp.actions),
            curvature=dual.curvature,
            constant=dual.constant,
            multiplier=dual.multiplier,
            certified=certified,
            error=float("nan") if bounded else 0.0,
        )


@jit
def _solvable(mdp: MDP, floor: float) -> Array:
    system, off = linear_quadratic_from_prediction(
        mdp, mdp.model(jnp.asarray(probe_points(mdp.points.dimension)))
    )
    least = jnp.linalg.eigvalsh(system.blocks[2])[0]
    return (least > _least(system, floor)) & jnp.isfinite(off)


@jit
def _plan(mdp: MDP, floor: float, moment: Array, key: Key) -> tuple[Dual, Array, Array]:
    m, d = mdp.states.dimension, mdp.points.dimension
    tie_key, push_key = jax.random.split(key)
    prediction = mdp.model(jnp.asarray(probe_points(d)))
    system, off = linear_quadratic_from_prediction(mdp, prediction)
    ties = _ties(mdp, system, key=tie_key)
    floor_here = _least(system, floor)
    metric = jnp.asarray(mdp.metric)
    if prediction.certain:
        cost = solvable_cost(system.cost, m, floor=floor_here, least=jnp.zeros_like(floor_here))
        found = optimal_solution(changed(system, cost=cost), mdp.horizon)
        plain = Dual(
            found.gains, ties, found.curvatures[0], found.constants[0], jnp.zeros_like(floor_here)
        )
        return plain, is_certified(cost, system.cost), off
    if prediction.radius is not None:
        squares = prediction.radius**2
    elif prediction.sides is not None:  # the ball around the box
        squares = jnp.sum((prediction.sides / metric[None, :]) ** 2, axis=1)
    else:
        assert prediction.root is not None
        scaled = prediction.root / metric[None, :, None]
        squares = jnp.linalg.eigvalsh(scaled @ jnp.swapaxes(scaled, 1, 2))[:, -1]
    W = quadratic_form(squares, d)
    off = jnp.maximum(off, quadratic_misfit(squares, W))
    optimistic = system.cost
    if prediction.reward_width is not None:
        width = mdp.model.quadratic_width()
        off = off + jnp.sum(0 * width)
        optimistic = optimistic - jnp.diag(width)
    # Costs are known to be at least 0.
    cost = solvable_cost(optimistic, m, floor=floor_here, least=floor_here)
    dual = best_dual(
        changed(system, cost=cost), W, metric, mdp.horizon, jnp.asarray(moment), key=push_key
    )
    certified = is_certified(cost, optimistic)
    return dual._replace(offsets=dual.offsets + ties), certified, off


def _least(system: LinearQuadraticSystem, floor: float) -> Float[Array, ""]:
    return floor * jnp.max(jnp.abs(system.cost)) + 1e-12


def _ties(mdp: MDP, system: LinearQuadraticSystem, *, key: Key) -> Float[Array, "H q"]:
    """Actions along directions on which, as far as is known, nothing depends: drawn.

    With zero prior means that is every direction in the first episode; round-off must not decide.
    """
    _, N, Q = system.blocks
    B = system.B
    matters, axes = jnp.linalg.eigh(Q @ Q + N.T @ N + B.T @ B)
    largest = 1 + jnp.sum(system.cost**2) + jnp.sum(system.dynamics**2)
    idle = (matters <= IDLE * largest).astype(Q.dtype)
    low, high = (jnp.asarray(end)[None, :] for end in mdp.actions.extent)
    unit = jax.random.uniform(key, (mdp.horizon, Q.shape[0]), Q.dtype)
    # Within half the range: costs grow with the square of an action, what it shows does not.
    drawn = (low + high) / 2 + (high - low) / 2 * (unit - 0.5)
    return drawn @ ((axes * idle[None, :]) @ axes.T)
