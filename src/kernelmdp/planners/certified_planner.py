"""Planning with a proof: upper and lower values that enclose the optimum (math D6).

From Lipschitz constants of R̄ and P̄, every V_h is L_{V,h}-Lipschitz. Values at nodes extend to all
states by cones (McShane): M⁺V(s) = min_j [V(s_j) + L‖s − s_j‖] from above, M⁻V(s) = max_j [V(s_j)
− L‖s − s_j‖] from below; noise becomes finitely many equally likely values at Wasserstein distance
e_q; actions a net of radius η_A. Every rounding is charged to the side where it could hurt:

    V⁺_h(s) = max_a [R + E_q M⁺V⁺_{h+1}] + L_{V,h+1} e_q + (L_{R,a} + L_{V,h+1} L_{P,a}) η_A,
    V⁻_h(s) = max_a [R + E_q M⁻V⁻_{h+1}] − L_{V,h+1} e_q,

and V⁻ ≤ V_π ≤ V* ≤ V⁺ for π = one-step lookahead on M⁻V⁻ at the actual state, up to round-off.
Both sides are clipped to what rewards in ``reward_range`` can add up to.

A family of MDPs is planned in bonus form (math D3): the reward at z is min(R + width, highest
reward) + L_{V,h+1}·radius. V⁺ is then at least V*_M for *every* member M that has the constants,
for M⁺V⁺ is L_V-Lipschitz: over the ball it is at most its value at the centre plus L_V·radius.
The lower side bounds the policy in the optimistic problem, not in any member (and only if centre
and widths have the constants too): the gap is planning error alone, as math B21 needs.
"""

import dataclasses
import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.problem import Problem
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.numerics.modules import changed, jit
from kernelmdp.planners.discretisation import DiscretisationSizes, gap_shares
from kernelmdp.planners.lipschitz_bounds import LipschitzConstants
from kernelmdp.planners.mcshane import Lookahead
from kernelmdp.planners.plan import Plan
from kernelmdp.planners.planner import Planner
from kernelmdp.types import ArrayLike, Key, Period


class LookaheadPolicy(Policy):
    """The best action of the net, looking one step ahead on the lower value (math D6)."""

    lookahead: Lookahead
    lower: Float[Array, "H1 N"]

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        after = self.lower[period + 1]
        table = self.lookahead.outcomes(states)
        below, _ = self.lookahead.scores(table, after, after, self.lookahead.slopes[period + 1])
        return self.lookahead.actions[jnp.argmax(below, axis=1)]


class CertifiedPlan(Plan):
    """A policy with lower ≤ V_π ≤ V* ≤ upper at the start, up to round-off.

    ``reached`` says whether upper − lower is within the tolerance asked for, ``error`` is half of
    it: how far the value can be from V* and from V_π at the start.

    >>> CertifiedPlan.certified
    True
    """

    policy: LookaheadPolicy
    lower: float
    upper: float
    a_priori: float
    reached: bool
    tables: tuple[Array, Array]
    sizes: DiscretisationSizes = eqx.field(static=True)
    error: float = math.inf
    certified: ClassVar[bool] = True

    @property
    def gap(self) -> float:
        """upper − lower at the start."""
        return self.upper - self.lower

    def value(self, state: ArrayLike) -> float:
        """Midpoint of the two bounds at a state."""
        return sum(self.bounds(state)) / 2

    def bounds(self, state: ArrayLike) -> tuple[float, float]:
        """Lower bound of V_π and upper bound of V* at period 0."""
        row = jnp.asarray(state, float)[None, :]
        low, high = _first_bounds(self.policy.lookahead, self.tables, row)
        return float(low[0]), float(high[0])


@dataclasses.dataclass(frozen=True)
class CertifiedPlanner(Planner):
    """Refines nodes, actions and noise until the gap at the start is at most ``tolerance``.

    ``limit`` bounds the terms of one backup (nodes × actions × noise values × nodes read), hence
    time and memory. Where it stops refinement short of the tolerance an error says what was
    reached, or with ``strict=False`` the plan says so by ``reached``.

    States are a Box, or a FiniteSet without noise and with finitely many actions (which is exact);
    rounding to the nearest of finitely many states is not Lipschitz, so noise has no certificate.

    >>> import kernelmdp as km
    >>> planner = km.planners.as_planner("certified", km.make("rkhs", horizon=2).problem)
    >>> planner.strict
    False
    """

    constants: LipschitzConstants
    tolerance: float
    limit: int = 2**28
    strict: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.constants, LipschitzConstants):
            raise ArgumentError("constants", "LipschitzConstants of R̄ and P̄", self.constants)
        positive_number("tolerance", self.tolerance)
        integer("limit", self.limit, least=1)

    @classmethod
    def for_problem(cls, problem: Problem) -> "CertifiedPlanner":
        """With constants from norms and kernels (math D6), and a tenth of the largest return as
        the tolerance; a plan that stays further off says so."""
        numbers = problem.lipschitz_norms
        highest = numbers[0] * math.sqrt(problem.reward_kernel.variance_bound(problem.points))
        return cls(
            LipschitzConstants.from_norms(*numbers),
            tolerance=0.1 * max(problem.horizon * highest, 1e-9),
            strict=False,
        )

    def plan(self, mdp: MDP, *, start: ArrayLike | None, key: Key) -> CertifiedPlan:
        """A policy for the MDP, with bounds of its value at the start; nothing in it is random."""
        _require_supported(mdp)
        if start is None:
            raise ArgumentError("start", "the state in which the episode starts", None)
        state = np.asarray(start, float)
        if state.shape != (mdp.states.dimension,):
            raise ShapeError("start", f"shape ({mdp.states.dimension},)", f"shape {state.shape}")
        mdp.states.require_inside("start", jnp.asarray(state[None, :]))
        sizes = DiscretisationSizes.coarsest(mdp)
        if sizes.terms(mdp) > self.limit:
            raise ArgumentError(
                "limit", f"at least {sizes.terms(mdp)} for the coarsest net", self.limit
            )
        while True:
            plan = self._solve(mdp, state, sizes)
            finer = self._refined(mdp, plan)
            if plan.reached or (finer == sizes and not self.strict):
                return plan
            if finer == sizes:
                raise ArgumentError(
                    "tolerance",
                    f"at least {plan.gap:.4g}, the gap reached with {sizes} under limit="
                    f"{self.limit}; or a larger limit, or smaller constants",
                    self.tolerance,
                )
            sizes = finer

    def _solve(self, mdp: MDP, start: np.ndarray, sizes: DiscretisationSizes) -> CertifiedPlan:
        lookahead = Lookahead.over(mdp, self.constants, sizes)
        tables = _sweep(lookahead)
        lookahead.require_consistent(tables)
        plan = CertifiedPlan(
            policy=LookaheadPolicy(lookahead, tables[0]),
            lower=-math.inf,
            upper=math.inf,
            sizes=sizes,
            a_priori=sum(gap_shares(self.constants, mdp.horizon, sizes.errors(mdp))),
            reached=False,
            tables=tables,
        )
        lower, upper = plan.bounds(start)
        return changed(
            plan,
            lower=lower,
            upper=upper,
            error=(upper - lower) / 2,
            reached=upper - lower <= self.tolerance,
        )

    def _refined(self, mdp: MDP, plan: CertifiedPlan) -> DiscretisationSizes:
        """Finer sizes, the largest share of the a-priori gap first.

        As far as the gap, if it shrinks like the a-priori one, needs; each step compiles anew.
        """
        sizes, scale = plan.sizes, plan.gap / plan.a_priori if plan.a_priori > 0 else 0.0
        while scale * sum(shares := self._shares_at(mdp, sizes)) > 0.98 * self.tolerance:
            ranked = sorted(range(3), key=lambda part: -shares[part])
            finer = (sizes.refined(part, mdp) for part in ranked if shares[part] > 0)
            sizes_next = next((s for s in finer if s.terms(mdp) <= self.limit), sizes)
            if sizes_next == sizes:
                break
            sizes = sizes_next
        return sizes

    def _shares_at(self, mdp: MDP, sizes: DiscretisationSizes) -> tuple[float, float, float]:
        return gap_shares(self.constants, mdp.horizon, sizes.errors(mdp))


def _require_supported(mdp: MDP) -> None:
    if mdp.termination is not None:
        raise ArgumentError("planner", "'grid' or 'mpc' where episodes end", "'certified'")
    if not mdp.states.bounded:
        raise ArgumentError("states", "a Box or a FiniteSet", mdp.states)
    if not mdp.actions.bounded:
        raise ArgumentError("actions", "a Box or a FiniteSet", mdp.actions)
    if mdp.states.finite:
        if any(mdp.transition_noise.sizes):
            raise ArgumentError("transition_noise", "none in a FiniteSet", mdp.transition_noise)
        if not mdp.actions.finite:
            raise ArgumentError("actions", "a FiniteSet when states are one", mdp.actions)


@jit
def _sweep(lookahead: Lookahead) -> tuple[Float[Array, "H1 N"], Float[Array, "H1 N"]]:
    """V⁻ and V⁺ at the nodes for h = 1..H + 1."""
    nodes = jnp.asarray(lookahead.grid.nodes)
    table = lookahead.outcomes(nodes)
    last = jnp.zeros(nodes.shape[0])

    def backup(after: tuple[Array, Array], period: Array) -> tuple[Any, Any]:
        values = lookahead.values(table, after, period)
        return values, values

    _, (lower, upper) = jax.lax.scan(
        backup, (last, last), jnp.arange(lookahead.horizon), reverse=True
    )
    return jnp.concatenate([lower, last[None]]), jnp.concatenate([upper, last[None]])


@jit
def _first_bounds(
    lookahead: Lookahead, tables: tuple[Array, Array], states: Float[Array, "n m"]
) -> tuple[Array, Array]:
    # Looking ahead from the state itself is sharper than the cones of the first period.
    table = lookahead.outcomes(states)
    return lookahead.values(table, (tables[0][1], tables[1][1]), jnp.asarray(0))
