"""Planning with a proof: upper and lower values that enclose the optimum (note D6).

From Lipschitz constants of R̄ and P̄, every V_h is L_{V,h}-Lipschitz. Values at nodes extend to all
states (McShane): M⁺V(s) = min_j [V(s_j) + L‖s − s_j‖] from above, and from below
M⁻V(s) = max_j [V(s_j) − L‖s − s_j‖]. The noise is replaced by finitely many equally likely values
at Wasserstein distance e_q, and the actions by a net of radius η_A. Every approximation error is
charged to the bound that it could break:

    V⁺_h(s) = max_a [R + E_q M⁺V⁺_{h+1}] + L_{V,h+1} e_q + (L_{R,a} + L_{V,h+1} L_{P,a}) η_A,
    V⁻_h(s) = max_a [R + E_q M⁻V⁻_{h+1}] − L_{V,h+1} e_q,

and V⁻ ≤ V_π ≤ V* ≤ V⁺ for π = one-step lookahead on M⁻V⁻ at the actual state, up to round-off.
Both bounds are clipped to the sums that rewards in ``reward_range`` can have.

A family of MDPs is planned in bonus form (note D3): the reward at z is min(R + width, highest
reward) + L_{V,h+1}·radius. V⁺ is then at least V*_M for *every* member M that has the constants.
The reason is that M⁺V⁺ is L_V-Lipschitz. Over the ball it is at most its value at the centre plus
L_V·radius.

The lower bound is for the policy in the optimistic problem, not in any member. It needs centre and
widths that have the constants too. The gap is then planning error alone, as note B21 needs.
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
from kernelmdp.numerics.modules import jit, replace_fields
from kernelmdp.planners.discretisation import DiscretisationSizes, gap_shares
from kernelmdp.planners.lipschitz_bounds import LipschitzConstants
from kernelmdp.planners.mcshane import Lookahead
from kernelmdp.planners.plan import Plan
from kernelmdp.planners.planner import Planner
from kernelmdp.types import ArrayLike, Key, Period


class LookaheadPolicy(Policy):
    """The best action of the net, by one-step lookahead on the lower value (note D6).

    Attributes:
        lookahead: Scores all actions of the net.
        lower: Lower values V⁻ at the nodes for h = 1..H + 1, (H + 1, N).
    """

    lookahead: Lookahead
    lower: Float[Array, "H1 N"]

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        after = self.lower[period + 1]
        table = self.lookahead.predictions(states)
        scores, _ = self.lookahead.scores(table, after, after, self.lookahead.slopes[period + 1])
        return self.lookahead.actions[jnp.argmax(scores, axis=1)]


class CertifiedPlan(Plan):
    """A policy with lower ≤ V_π ≤ V* ≤ upper at the start, up to round-off.

    Attributes:
        policy: The policy.
        lower: Lower bound of V_π at the start.
        upper: Upper bound of V* at the start.
        a_priori_gap: Bound of upper − lower that was known before planning.
        within_tolerance: Whether upper − lower is at most the planner's tolerance.
        tables: V⁻ and V⁺ at the nodes for h = 1..H + 1, each (H + 1, N).
        sizes: Numbers of nodes, actions and noise values.
        error: Half of upper − lower: how far the value can be from V* and from V_π at the start.
        certified: True, because the bounds are proved.

    >>> CertifiedPlan.certified
    True
    """

    policy: LookaheadPolicy
    lower: float
    upper: float
    a_priori_gap: float
    within_tolerance: bool
    tables: tuple[Array, Array]
    sizes: DiscretisationSizes = eqx.field(static=True)
    error: float = math.inf
    certified: ClassVar[bool] = True

    @property
    def gap(self) -> float:
        """The difference upper − lower at the start."""
        return self.upper - self.lower

    def value(self, state: ArrayLike) -> float:
        """Return the midpoint of the two bounds at a state.

        Args:
            state: The state, (m,).

        Returns:
            The midpoint.
        """
        return sum(self.bounds(state)) / 2

    def bounds(self, state: ArrayLike) -> tuple[float, float]:
        """Compute the bounds of the value of the first period at a state.

        Args:
            state: The state, (m,).

        Returns:
            The lower bound of V_π and the upper bound of V*.
        """
        row = jnp.asarray(state, float)[None, :]
        low, high = _first_bounds(self.policy.lookahead, self.tables, row)
        return float(low[0]), float(high[0])


@dataclasses.dataclass(frozen=True)
class CertifiedPlanner(Planner):
    """Refines nodes, actions and noise until the gap at the start is at most a tolerance.

    States are a Box, or a FiniteSet without noise and with finitely many actions (which is exact).
    A FiniteSet with noise has no certificate, because rounding to the nearest of finitely many
    states is not Lipschitz.

    Attributes:
        constants: Lipschitz constants of R̄ and P̄.
        tolerance: The largest gap between upper and lower value at the start.
        max_terms: Bound of the terms of one backup (nodes × actions × noise values × nodes that
            each reads). It bounds time and memory.
        strict: What happens if ``max_terms`` stops refinement before the tolerance is reached. True
            raises an error that names the gap. False returns the plan, whose ``within_tolerance``
            is then False.

    >>> import kernelmdp as km
    >>> planner = km.planners.as_planner("certified", km.make("rkhs", horizon=2).problem)
    >>> planner.strict
    False
    """

    constants: LipschitzConstants
    tolerance: float
    max_terms: int = 2**28
    strict: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.constants, LipschitzConstants):
            raise ArgumentError("constants", "LipschitzConstants of R̄ and P̄", self.constants)
        positive_number("tolerance", self.tolerance)
        integer("max_terms", self.max_terms, least=1)

    @classmethod
    def for_problem(cls, problem: Problem) -> "CertifiedPlanner":
        """Make a planner with constants from norms and kernels (note D6).

        The tolerance is a tenth of the largest return. The planner is not strict.

        Args:
            problem: The problem to plan for. It must know its norms.

        Returns:
            The planner.
        """
        norms = problem.lipschitz_norms
        highest_reward = norms[0] * math.sqrt(problem.reward_kernel.variance_bound(problem.points))
        return cls(
            LipschitzConstants.from_norms(*norms),
            tolerance=0.1 * max(problem.horizon * highest_reward, 1e-9),
            strict=False,
        )

    def plan(self, mdp: MDP, *, start: ArrayLike | None, key: Key) -> CertifiedPlan:
        """Plan a policy with bounds of its value at the start. Nothing in the plan is random.

        Args:
            mdp: The MDP, or a family of plausible MDPs.
            start: The state in which the episode starts, (m,). It is required.
            key: Not used.

        Returns:
            The plan.

        Raises:
            ArgumentError: If ``start`` is None, or ``max_terms`` is too small for the coarsest net,
                or a strict planner cannot reach its tolerance.
            ShapeError: If ``start`` has another shape than a state.
        """
        _require_supported(mdp)
        if start is None:
            raise ArgumentError("start", "the state in which the episode starts", None)
        state = np.asarray(start, float)
        if state.shape != (mdp.states.dimension,):
            raise ShapeError("start", f"shape ({mdp.states.dimension},)", f"shape {state.shape}")
        mdp.states.require_inside("start", jnp.asarray(state[None, :]))
        sizes = DiscretisationSizes.coarsest(mdp)
        if sizes.terms(mdp) > self.max_terms:
            raise ArgumentError(
                "max_terms", f"at least {sizes.terms(mdp)} for the coarsest net", self.max_terms
            )
        while True:
            plan = self._solve(mdp, state, sizes)
            finer = self._refined(mdp, plan)
            if plan.within_tolerance or (finer == sizes and not self.strict):
                return plan
            if finer == sizes:
                raise ArgumentError(
                    "tolerance",
                    f"at least {plan.gap:.4g}, the gap reached with {sizes} under max_terms="
                    f"{self.max_terms}; or larger max_terms, or smaller constants",
                    self.tolerance,
                )
            sizes = finer

    def _solve(self, mdp: MDP, start: np.ndarray, sizes: DiscretisationSizes) -> CertifiedPlan:
        """The plan for nets of these sizes."""
        lookahead = Lookahead.for_mdp(mdp, self.constants, sizes)
        tables = _backward_induction(lookahead)
        lookahead.require_consistent(tables)
        plan = CertifiedPlan(
            policy=LookaheadPolicy(lookahead, tables[0]),
            lower=-math.inf,
            upper=math.inf,
            sizes=sizes,
            a_priori_gap=sum(gap_shares(self.constants, mdp.horizon, sizes.errors(mdp))),
            within_tolerance=False,
            tables=tables,
        )
        lower, upper = plan.bounds(start)
        return replace_fields(
            plan,
            lower=lower,
            upper=upper,
            error=(upper - lower) / 2,
            within_tolerance=upper - lower <= self.tolerance,
        )

    def _refined(self, mdp: MDP, plan: CertifiedPlan) -> DiscretisationSizes:
        """Finer sizes: the part with the largest share of the a-priori gap is refined first.

        It assumes that the gap shrinks in proportion to the a-priori gap, and refines until the
        predicted gap is below the tolerance. Smaller steps would compile more programs.
        """
        sizes, scale = plan.sizes, plan.gap / plan.a_priori_gap if plan.a_priori_gap > 0 else 0.0
        while scale * sum(shares := self._shares_at(mdp, sizes)) > 0.98 * self.tolerance:
            ranked = sorted(range(3), key=lambda part: -shares[part])
            candidates = (sizes.refined(part, mdp) for part in ranked if shares[part] > 0)
            finer = next((s for s in candidates if s.terms(mdp) <= self.max_terms), sizes)
            if finer == sizes:
                break
            sizes = finer
        return sizes

    def _shares_at(self, mdp: MDP, sizes: DiscretisationSizes) -> tuple[float, float, float]:
        return gap_shares(self.constants, mdp.horizon, sizes.errors(mdp))


def _require_supported(mdp: MDP) -> None:
    """Raise an error for MDPs without a certificate."""
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
def _backward_induction(lookahead: Lookahead) -> tuple[Float[Array, "H1 N"], Float[Array, "H1 N"]]:
    """V⁻ and V⁺ at the nodes for h = 1..H + 1."""
    nodes = jnp.asarray(lookahead.grid.nodes)
    table = lookahead.predictions(nodes)
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
    """V⁻ and V⁺ of the first period at any states."""
    # Lookahead from the state itself is tighter than the extension of the first period's values.
    table = lookahead.predictions(states)
    return lookahead.values(table, (tables[0][1], tables[1][1]), jnp.asarray(0))
