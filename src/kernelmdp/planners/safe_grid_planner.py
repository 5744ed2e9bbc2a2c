"""Planning on a grid with constraints: optimism for the reward, pessimism for the constraints.

One backward induction computes two tables. V_h is the optimistic value of the grid planner. W̄_h
bounds the probability of a violation from period h on, in every state of a cell and in every
plausible MDP, if the plan is followed. In each cell the plan takes the action of the largest value
among those with W ≤ τ_h, where τ_h = risk·(H − h + 1)/H. If there is none, it takes the action of
the least W. In trusted states the fallback is an option, whose W is the largest W̄_{h+1} of all
trusted states. So in trusted states W never exceeds the risk.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.constraints import Violation
from kernelmdp.mdp.episode import state_action
from kernelmdp.mdp.fallback import Fallback
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.problem import Problem
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.numerics.modules import jit, replace_fields
from kernelmdp.planners.grid_planner import GridPlan, GridPlanner, UnsetModel
from kernelmdp.planners.grid_wrapper import GridWrapper
from kernelmdp.planners.lipschitz_envelope import lower_lipschitz_envelope
from kernelmdp.planners.optimism import backup_for, with_radius
from kernelmdp.planners.safe_policy import (
    RiskTables,
    SafeGridPolicy,
    centres,
    select,
    values_of,
)
from kernelmdp.planners.worst_violation import (
    CellFacts,
    broken_points,
    cell_facts,
    violation_bound,
)
from kernelmdp.types import ArrayLike, Key


class SafeGridPlan(GridPlan):
    """A plan on a grid, with the planned probability of a violation.

    Attributes:
        policy: The policy.

    >>> import kernelmdp as km
    >>> agent = km.GPUCRL("rkhs", constraints="state <= 0.8", risk=0.1, seed=0)
    >>> policy = agent.ask([0.0])
    >>> 0 <= agent.planned.risk([0.0]) <= 1
    True
    """

    policy: SafeGridPolicy

    def risk(self, state: ArrayLike) -> float:
        return float(self.risks(np.asarray(state, float)[None, :])[0])

    def risks(self, states: Float[np.ndarray, "n m"]) -> Float[np.ndarray, " n"]:
        return np.asarray(_first_risks(self.policy, jnp.asarray(states, float)))

    def fallback_acts(
        self, states: Float[np.ndarray, "H m"], actions: Float[np.ndarray, "H q"]
    ) -> Bool[np.ndarray, " H"]:
        return np.asarray(_fallback_acts(self.policy, jnp.asarray(states, float)))


@jit
def _first_risks(policy: SafeGridPolicy, states: Float[Array, "n m"]) -> Float[Array, " n"]:
    return policy.choose(policy.reset(states.shape[0]), states, jnp.asarray(0))[2]


@jit
def _fallback_acts(policy: SafeGridPolicy, states: Float[Array, "H m"]) -> Bool[Array, " H"]:
    def one_period(memory: Any, step: tuple[Array, Array]) -> tuple[Any, Array]:
        state, period = step
        _, memory, _, acts = policy.choose(memory, state[None, :], period)
        return memory, acts[0]

    periods = jnp.arange(states.shape[0])
    return jax.lax.scan(one_period, policy.reset(1), (states, periods))[1]


@dataclasses.dataclass(frozen=True)
class SafeGridPlanner(GridWrapper):
    """Plans on a grid, within a probability of breaking the constraints of the MDP.

    Attributes:
        grid_planner: The nodes, the actions and the optimism. Actions are not refined.
        slopes: Bounds of how fast the mean next state changes with the state: one number for each
            axis, in Euclidean distance. The part of the offset is not counted.
        offset_slope: How fast the offset of the mean next state changes: 1 if it is the state.
        certified: Whether the slopes follow from norms and kernels, as a proof needs.
        optimistic: Whether values are optimistic. False plans for the centre of the family, as a
            controller that no longer explores does.
        risk: The probability of a violation that a plan may take.
        fallback: The fallback, or None.

    >>> import kernelmdp as km
    >>> agent = km.GPUCRL("rkhs", constraints="state <= 0.8", risk=0.05, seed=0)
    >>> agent.planner.keeps_constraints
    True
    """

    keeps_constraints: ClassVar[bool] = True
    bounds_risk: ClassVar[bool] = True

    slopes: tuple[float, ...] = ()
    offset_slope: float = 0.0
    certified: bool = False
    optimistic: bool = True
    risk: float = 0.0
    fallback: Fallback | None = None

    @classmethod
    def for_problem(cls, problem: Problem) -> "SafeGridPlanner":
        return cls.wrapping(GridPlanner.for_problem(problem), problem)

    @classmethod
    def wrapping(cls, planner: Any, problem: Problem) -> "SafeGridPlanner":
        """Make the planner from a grid planner.

        The slopes are B_P Λ_j times the scale, from the norm and the kernel of the transition.

        Args:
            planner: The grid planner.
            problem: The problem, with constraints.

        Returns:
            The planner.

        Raises:
            ArgumentError: If the kernel of the transition has functions that are not Lipschitz.
        """
        exact = dataclasses.replace(planner, refine=False)
        offset_slope = 1.0 if problem.offset == "identity" else 0.0
        if problem.states.finite:
            return cls(exact, (0.0,) * problem.states.dimension, 0.0, certified=True)
        norm = problem.norm_transition
        independent = problem.transition_kernel.decompose(same_noise=False) is not None
        norm_used = problem.assumed_norms[1] if norm is None else norm
        parts = problem.transition_kernel.parts()
        lipschitz = [kernel.constants(problem.points).lipschitz for kernel in parts]
        if len(lipschitz) == 1:
            lipschitz = lipschitz * problem.mean_dimension
        slopes = tuple(
            norm_used * each * scale for each, scale in zip(lipschitz, problem.scale, strict=True)
        )
        if not np.isfinite(slopes).all():
            expected = "a kernel of Lipschitz functions, for constraints on a grid"
            raise ArgumentError("transition_kernel", expected, str(problem.transition_kernel))
        return cls(exact, slopes, offset_slope, certified=norm is not None and independent)

    def within(self, risk: float, fallback: Fallback | None) -> "SafeGridPlanner":
        return dataclasses.replace(self, risk=risk, fallback=fallback)

    def without_optimism(self) -> "SafeGridPlanner":
        return dataclasses.replace(self, optimistic=False)

    def plan(self, mdp: MDP, *, start: ArrayLike | None = None, key: Key) -> SafeGridPlan:
        """Plan a policy within the risk. Without constraints every action is safe.

        Args:
            mdp: The MDP, or a family of plausible MDPs, with the signal "violation".
            start: Not used.
            key: Breaks ties between equally good actions.

        Returns:
            The plan.
        """
        grid = self.grid_planner.grid(mdp)
        action_set, _ = self.grid_planner.action_set(mdp)
        signal: Any = mdp.signals.get("violation")
        violation: Violation = signal or Violation((), mdp.states.dimension)
        cells = violation_bound(grid, mdp.metric).cells
        facts = cell_facts(cells, violation, self.fallback)
        settings = dataclasses.replace(self, risk=0.0)  # another risk compiles no new program
        risk = jnp.asarray(self.risk, float)
        values, policy = _plan(settings, mdp, grid, action_set, violation, facts, risk, key)
        # These are set here, because a compiled program copies what it returns.
        policy = replace_fields(
            policy, model=mdp.model, reward_range=mdp.reward_range, termination=mdp.termination
        )
        return SafeGridPlan(policy=policy, values=values, grid=grid)

    def inflation(self, half_sides: Float[np.ndarray, " m"]) -> np.ndarray:
        """Bound how far the mean next states of a cell are from that of its node.

        Args:
            half_sides: Half the sides of a cell, (m,).

        Returns:
            The largest distance along each axis, (m,).
        """
        slopes = np.array(self.slopes or (0.0,) * len(half_sides))
        return self.offset_slope * half_sides + slopes * float(np.linalg.norm(half_sides))


@jit
def _plan(
    planner: SafeGridPlanner,
    mdp: MDP,
    grid: StateGrid,
    action_set: ArrayLike,
    violation: Violation,
    facts: CellFacts,
    risk: Float[Array, ""],
    key: Key,
) -> tuple[Float[Array, "H1 N"], SafeGridPolicy]:
    """Values at the nodes for h = 1..H + 1, and a policy without its model."""
    actions, fallback = jnp.asarray(action_set), planner.fallback
    nodes, count = jnp.asarray(grid.nodes), jnp.asarray(action_set).shape[0]
    bound = violation_bound(grid, mdp.metric)
    points = state_action(jnp.repeat(nodes, count, axis=0), jnp.tile(actions, (len(nodes), 1)))
    prediction = with_radius(mdp.model(points), mdp.metric)
    shown = prediction if planner.optimistic else centres(prediction)
    backup = backup_for(planner.optimism, grid, mdp.metric, shown)
    sizes = backup.dilation_sizes(shown)
    continues = mdp.continues(points, prediction.state)
    inflation = jnp.asarray(planner.inflation(bound.cells.half_sides))
    where = bound.locate(prediction, inflation, mdp.lipschitz)
    forbidden = broken_points(bound.cells, violation, actions)
    limits = risk * jnp.asarray(1 - np.arange(mdp.horizon) / mdp.horizon)
    priority = jax.random.uniform(key, (mdp.horizon, count + 1))

    def shown_values(rows: Any, table: Any) -> Array:
        return values_of(backup, rows, table, sizes, mdp.lipschitz, mdp.reward_range)

    def backward(after: tuple[Array, Array, Array], period: Array) -> tuple[Any, Any]:
        later, worst, known = after
        expected = grid.expectation(later)
        if not shown.certain and planner.grid_planner.envelope and not grid.states.finite:
            expected = lower_lipschitz_envelope(expected, grid, mdp.metric, mdp.lipschitz)
        table = backup.prepare(expected, sizes)
        values = shown_values(shown, table)
        if continues is not None:
            rewards = values - backup.read(table, backup.locate(shown, sizes, mdp.lipschitz))
            values = jnp.where(continues, values, rewards)
        values = values.reshape(-1, count)
        risks = jnp.clip(bound.read(bound.prepare(worst, inflation), where), 0.0, 1.0)
        risks = jnp.where(forbidden, 1.0, risks.reshape(-1, count))
        trusted_values, trusted_risks = values, risks
        if fallback is not None:
            proposed = fallback.policy.actions(nodes, period)
            rows = with_radius(mdp.model(state_action(nodes, proposed)), mdp.metric)
            worth = shown_values(rows if planner.optimistic else centres(rows), table)
            by_trust = jnp.full(len(nodes), jnp.minimum(known + fallback.leaves, 1.0))
            trusted_values = jnp.concatenate([values, worth[:, None]], axis=1)
            trusted_risks = jnp.concatenate([risks, by_trust[:, None]], axis=1)
        allowed, order = limits[period], priority[period]
        choices, chosen_values, chosen_risks = _best(values, risks, allowed, order)
        safe, safe_values, safe_risks = _best(trusted_values, trusted_risks, allowed, order)
        choices = jnp.where(facts.inside, safe, choices)
        chosen_risks = jnp.where(facts.inside, safe_risks, chosen_risks)
        chosen_values = jnp.where(facts.inside, safe_values, chosen_values)
        # A cell that is trusted in part has states of both kinds, and bounds the risk of both.
        of_both = jnp.maximum(chosen_risks, safe_risks)
        worst = jnp.where(facts.touched, of_both, chosen_risks)
        worst = jnp.where(facts.broken, 1.0, worst)
        known = jnp.max(jnp.where(facts.touched, safe_risks, 0.0))
        periods_left = (mdp.horizon - period).astype(chosen_values.dtype)
        low, high = (periods_left * end for end in mdp.reward_range)
        best = jnp.clip(chosen_values, *(jnp.nan_to_num(end, nan=0.0) for end in (low, high)))
        return (best, worst, known), (best, worst, safe_risks, known, choices, safe, table)

    last = (jnp.zeros(len(nodes)), jnp.where(facts.broken, 1.0, 0.0), jnp.zeros(()))
    _, stacked = jax.lax.scan(backward, last, jnp.arange(mdp.horizon), reverse=True)
    values, worst, trusted, known, choices, safe, tables = stacked
    policy = SafeGridPolicy(
        model=UnsetModel(),
        risks=RiskTables(
            worst=jnp.concatenate([worst, last[1][None]]),
            trusted=trusted,
            bounds=jnp.concatenate([known, last[2][None]]),
            choices=choices,
            trusted_choices=safe,
            limits=limits,
        ),
        tables=tables,
        dilation_sizes=sizes,
        lipschitz=mdp.lipschitz,
        action_set=actions,
        priority=priority,
        value_backup=backup,
        risk_bound=bound,
        violation=violation,
        fallback=fallback,
        optimistic=planner.optimistic,
        reward_range=(),
    )
    return jnp.concatenate([values, last[0][None]]), policy


def _best(
    values: Float[Array, "N k"],
    risks: Float[Array, "N k"],
    allowed: Float[Array, ""],
    priority: Float[Array, " A1"],
) -> tuple[Array, Array, Array]:
    """The choice of each cell, its value and its W."""
    least = jnp.argmin(risks, axis=1).astype(jnp.int32)
    lowest = jnp.min(risks, axis=1)
    # Within what plans may take, the limit is just that. Else it is the least W.
    limit = jnp.maximum(allowed, lowest)
    capped = jnp.where(lowest <= allowed, allowed, limit)
    index = select(values, risks, capped, least, allowed, priority)
    rows = jnp.arange(values.shape[0])
    return index, values[rows, index], risks[rows, index]
