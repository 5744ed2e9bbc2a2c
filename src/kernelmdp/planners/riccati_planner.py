"""The planner for linear transitions and quadratic rewards: Riccati, with optimism by duality.

The matrices are read off the model. A plain MDP without bounds is solved exactly. In a bounded
action space actions are projected to it, and in a bounded state space states are projected during
the episode. The plan does not foresee these projections, so with bounds it is approximate and its
error is unknown (NaN). ``QuadraticTruth`` measures the error for a known truth. In one dimension
you can compare with the grid planner.
"""

import dataclasses
from typing import Any, ClassVar

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
from kernelmdp.numerics.modules import jit, replace_fields
from kernelmdp.numerics.tracing import array_library, as_float, is_traced
from kernelmdp.planners.lqr_duality import DualSolution, best_dual, is_cost_unchanged
from kernelmdp.planners.plan import Plan
from kernelmdp.planners.planner import Planner
from kernelmdp.types import ArrayLike, Key

#: Least eigenvalue of Q as a share of the largest entry of C. With a smaller one the Riccati
#: recursion cannot be solved.
FLOOR = 1e-6
#: A direction of the action has no effect if the squares of its coefficients are below this share
#: of the squares of all coefficients.
NEGLIGIBLE_SQUARE = 1e-20


class RiccatiPlan(Plan):
    """A linear policy and its planned cost sᵀGs + c.

    For a family the value is optimistic. If the plan is certified, no policy is worth more in any
    plausible MDP.

    Attributes:
        policy: The policy.
        curvature: G, (m, m).
        constant: c, a scalar.
        multiplier: The multiplier η of the dual, a scalar. It is 0 for a plain MDP.
        certified: Whether the planned value is a proved bound. It is False if the optimistic cost
            had to be raised to be solvable.
        error: 0 if states and actions have no bounds, otherwise NaN.

    >>> import kernelmdp as km
    >>> plan = RiccatiPlanner().plan(km.make("lqr-1d").mdp, key=jax.random.key(0))
    >>> plan.value([2.0]) < plan.value([1.0])
    True
    """

    policy: LinearPolicy
    curvature: Float[Array, "m m"]
    constant: Float[Array, ""]
    multiplier: Float[Array, ""]
    certified: Bool[Array, ""]
    error: float = float("nan")

    def value(self, state: ArrayLike) -> float:
        library = array_library(state, self.curvature)
        s, G, constant = map(library.asarray, (state, self.curvature, self.constant))
        return as_float(-(s @ G @ s + constant))


@dataclasses.dataclass(frozen=True)
class RiccatiPlanner(Planner):
    """Plans for linear-quadratic MDPs and families. Other models raise an error.

    Attributes:
        floor: Least eigenvalue of the action cost Q, as a share of the largest entry of the cost C.

    >>> import kernelmdp as km
    >>> env = km.make("lqr-1d")
    >>> plan = RiccatiPlanner().plan(env.mdp, key=jax.random.key(0))
    >>> plan.policy([0.0], 0)  # nothing to do at the origin
    array([0.])
    """

    needs_quadratic_rewards: ClassVar[bool] = True

    floor: float = FLOOR

    def solvable(self, mdp: MDP) -> bool:
        """Return whether costs grow with every action: Q ≻ 0.

        PSRL draws MDPs until this holds.

        Args:
            mdp: The MDP.

        Returns:
            Whether it can be solved.
        """
        solvable: Any = _solvable(mdp, self.floor)
        return solvable if is_traced(solvable) else bool(solvable)

    def plan(self, mdp: MDP, *, start: ArrayLike | None = None, key: Key) -> RiccatiPlan:
        """Plan the optimal policy for an MDP, or the optimistic policy for a family.

        Args:
            mdp: The MDP or family.
            start: The state in which the episode starts, (m,). The multiplier of a family is the
                best one for it. None means starts of typical size.
            key: Decides actions that have no effect in the model.

        Returns:
            The plan.

        Raises:
            ArgumentError: If episodes may end early.
            PositiveDefiniteError: If the cost has no minimum over actions.
        """
        if mdp.termination is not None:
            raise ArgumentError("planner", "'grid' or 'mpc' where episodes end", "'riccati'")
        low, high = mdp.states.extent
        moment: Any = np.diag(((high - low) / 2) ** 2 / 3)
        if start is not None:
            moment = array_library(start).outer(start, start)
        dual, certified, misfit = _plan(mdp, self.floor, moment, key)
        if not is_traced(misfit):
            require_fit(float(misfit))
        if not is_traced(dual.constant) and not np.isfinite(np.asarray(dual.constant)):
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
            # Projection to a box lowers costs, so no bound is proved for bounded states.
            certified=certified & (not mdp.states.bounded),
            error=float("nan") if bounded else 0.0,
        )


@jit
def _solvable(mdp: MDP, floor: float) -> Array:
    system, misfit = linear_quadratic_from_prediction(
        mdp, mdp.model(jnp.asarray(probe_points(mdp.points.dimension)))
    )
    least = jnp.linalg.eigvalsh(system.cost_blocks[2])[0]
    return (least > _absolute_floor(system, floor)) & jnp.isfinite(misfit)


@jit
def _plan(mdp: MDP, floor: float, moment: Array, key: Key) -> tuple[DualSolution, Array, Array]:
    """The solution, whether it is certified, and how badly the model fits."""
    m, d = mdp.states.dimension, mdp.points.dimension
    tie_key, sign_key = jax.random.split(key)
    prediction = mdp.model(jnp.asarray(probe_points(d)))
    system, misfit = linear_quadratic_from_prediction(mdp, prediction)
    random_actions = _ineffective_actions(mdp, system, key=tie_key)
    absolute_floor = _absolute_floor(system, floor)
    metric = jnp.asarray(mdp.metric)
    if prediction.certain:
        cost = solvable_cost(
            system.cost, m, floor=absolute_floor, least=jnp.zeros_like(absolute_floor)
        )
        solution = optimal_solution(replace_fields(system, cost=cost), mdp.horizon)
        plain = DualSolution(
            solution.gains,
            random_actions,
            solution.curvatures[0],
            solution.constants[0],
            jnp.zeros_like(absolute_floor),
        )
        return plain, is_cost_unchanged(cost, system.cost), misfit
    if prediction.radius is not None:
        squares = prediction.radius**2
    elif prediction.sides is not None:  # the ball around the box
        squares = jnp.sum((prediction.sides / metric[None, :]) ** 2, axis=1)
    else:
        assert prediction.root is not None
        scaled = prediction.root / metric[None, :, None]
        squares = jnp.linalg.eigvalsh(scaled @ jnp.swapaxes(scaled, 1, 2))[:, -1]
    W = quadratic_form(squares, d)
    misfit = jnp.maximum(misfit, quadratic_misfit(squares, W))
    optimistic = system.cost
    if prediction.reward_width is not None:
        width = mdp.model.quadratic_width()
        misfit = misfit + jnp.sum(0 * width)
        optimistic = optimistic - jnp.diag(width)
    # Costs are known to be at least 0.
    cost = solvable_cost(optimistic, m, floor=absolute_floor, least=absolute_floor)
    dual = best_dual(
        replace_fields(system, cost=cost), W, metric, mdp.horizon, jnp.asarray(moment), key=sign_key
    )
    certified = is_cost_unchanged(cost, optimistic)
    return dual._replace(offsets=dual.offsets + random_actions), certified, misfit


def _absolute_floor(system: LinearQuadraticSystem, floor: float) -> Float[Array, ""]:
    return floor * jnp.max(jnp.abs(system.cost)) + 1e-12


def _ineffective_actions(
    mdp: MDP, system: LinearQuadraticSystem, *, key: Key
) -> Float[Array, "H q"]:
    """Random actions along directions that have no effect in the model.

    With zero prior means these are all directions in the first episode. Without the draw,
    round-off would decide.
    """
    _, N, Q = system.cost_blocks
    B = system.B
    effects, axes = jnp.linalg.eigh(Q @ Q + N.T @ N + B.T @ B)
    largest = 1 + jnp.sum(system.cost**2) + jnp.sum(system.dynamics**2)
    ineffective = (effects <= NEGLIGIBLE_SQUARE * largest).astype(Q.dtype)
    low, high = (jnp.asarray(end)[None, :] for end in mdp.actions.extent)
    unit = jax.random.uniform(key, (mdp.horizon, Q.shape[0]), Q.dtype)
    # Half the range is enough: the cost grows with the square of an action, the information of the
    # observation does not.
    drawn = (low + high) / 2 + (high - low) / 2 * (unit - 0.5)
    return drawn @ ((axes * ineffective[None, :]) @ axes.T)
