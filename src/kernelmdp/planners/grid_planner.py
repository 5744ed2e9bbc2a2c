"""Value iteration on a grid of states, for an MDP or for a family of plausible MDPs.

The model is evaluated once an episode at all pairs of nodes and actions. Each of the H backups then
only reads tables. Between nodes values are interpolated, so the plan is as good as the grid.
``GridPlanner.error`` estimates the error, and ``CertifiedPlanner`` bounds it.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.episode import state_action
from kernelmdp.mdp.evaluation import Value, action_grid, grid_value, refinement_error
from kernelmdp.mdp.mdp import MDP, Signal, rollout
from kernelmdp.mdp.model import Model, Prediction
from kernelmdp.mdp.noise import Noise
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.problem import Problem
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.numerics.checks import choice
from kernelmdp.numerics.modules import jit, replace_fields
from kernelmdp.numerics.tracing import array_library, as_float, is_traced
from kernelmdp.planners.action_selection import best_actions, optimistic_rewards
from kernelmdp.planners.lipschitz_envelope import lower_lipschitz_envelope
from kernelmdp.planners.optimism import backup_for, with_radius
from kernelmdp.planners.optimistic_backup import OptimisticBackup
from kernelmdp.planners.plan import Plan, ValueTable
from kernelmdp.planners.planner import Planner, Spaces
from kernelmdp.types import ArrayLike, Key, Period

#: Nodes along each axis of the state, by the number of axes. More nodes are more accurate. With
#: these numbers a plan with the default actions fits into memory.
STATE_POINTS = {1: 101, 2: 61, 3: 25, 4: 13}
#: Actions along each axis, by the number of axes. The choice between them is refined afterwards.
ACTION_POINTS = {1: 21, 2: 9, 3: 5}
#: Bytes that the tables of a plan may take. Larger grids are refused before memory runs out.
MEMORY = 4 * 2**30
#: Numbers S·S·A of a table of transition probabilities. For larger tables the default optimism is a
#: bonus, because a search would take too long.
LARGE_TABLE = 200_000
#: Episodes in which the value of a plan in another MDP is simulated. Plans are compared with the
#: same noise, so a few are enough.
SIMULATIONS = 16


class UnsetModel(Model):
    """The model of a policy inside a compiled program, before the true model replaces it."""

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        raise NotImplementedError


class GridPolicy(Policy):
    """One-step lookahead from the actual state, with the planned values of the next period.

    Attributes:
        model: The model of the MDP, or of a family.
        tables: For each period the table that ``optimistic_backup`` reads, a pytree with H rows.
        dilation_sizes: Sizes of plausible sets for which the tables were prepared.
        lipschitz: The Lipschitz constant L of the MDP, a scalar.
        action_set: The actions that are compared, (A, q).
        priority: Priorities of the actions in each period, which break ties, (H, A).
        node_actions: The actions at the nodes, (H, N, q).
        optimistic_backup: How the next state is chosen among the plausible ones.
        action_counts: Number of actions along each axis of their grid. None if actions are not
            refined between grid points.
        reward_range: The lowest and the highest mean reward.
        termination: The termination signal of the MDP, or None.

    >>> import kernelmdp as km
    >>> env = km.make("riverswim")
    >>> plan = GridPlanner().plan(env.mdp, key=jax.random.key(0))
    >>> plan.policy([0.0], 0)  # against the stream
    array([1.])
    """

    model: Model
    tables: Any
    dilation_sizes: Array
    lipschitz: Float[Array, ""]
    action_set: Float[Array, "A q"]
    priority: Float[Array, "H A"]
    node_actions: Float[Array, "H N q"]
    optimistic_backup: OptimisticBackup = eqx.field(static=True)
    reward_range: tuple[Any, ...]
    action_counts: tuple[int, ...] | None = eqx.field(static=True)
    termination: Signal | None = None

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        count, action_count = states.shape[0], self.action_set.shape[0]
        points = _pairs(states, self.action_set)
        prediction = with_radius(self.model(points), self.optimistic_backup.metric)
        positions = self.optimistic_backup.locate(prediction, self.dilation_sizes, self.lipschitz)
        table = jax.tree.map(lambda leaf: leaf[period], self.tables)
        later = self.optimistic_backup.read(table, positions)
        if self.termination is not None:
            ends = self.termination(
                points, self.optimistic_backup.grid.states.nearest(prediction.state)
            )
            later = jnp.where(ends, 0.0, later)
        values = optimistic_rewards(prediction, self.reward_range) + later
        return best_actions(
            values.reshape(count, action_count),
            self.action_set,
            self.priority[period],
            self.action_counts,
        )

    def at_nodes(self, grid: StateGrid, period: Period) -> Float[Array, "N q"]:
        """Return the actions at the nodes of a grid. For the plan's own grid they are stored.

        Args:
            grid: The grid of N nodes.
            period: The period, counted from 0.

        Returns:
            The actions, (N, q).
        """
        if grid == self.optimistic_backup.grid:
            return self.node_actions[period]
        return self.actions(jnp.asarray(grid.nodes), period)


class GridPlan(Plan):
    """A plan whose values are known at the nodes of a grid.

    Attributes:
        policy: The policy.
        values: Planned values at the nodes for h = 1..H + 1, (H + 1, N).
        grid: The grid of N nodes.
        error: Estimated error of the value at the start. NaN if it was not estimated.

    >>> import kernelmdp as km
    >>> env = km.make("riverswim")
    >>> GridPlanner().plan(env.mdp, key=jax.random.key(0)).values.shape  # H + 1 periods, 6 states
    (21, 6)
    """

    policy: Policy
    values: Float[Array, "H1 N"]
    grid: StateGrid = eqx.field(static=True)
    error: float = float("nan")

    def value(self, state: ArrayLike) -> float:
        row = array_library(state).asarray(state, float)[None, :]
        return as_float(_first_value(self.values, row, self.grid))

    def values_in(self, mdps: Sequence[MDP], start: ArrayLike) -> np.ndarray:
        """Compute the values of the policy in other MDPs: exactly in a table, else by simulation.

        Args:
            mdps: The MDPs. They have the spaces and the horizon of the one that was planned for.
            start: The first state, (m,).

        Returns:
            One value for each MDP. Simulated ones are means of ``SIMULATIONS`` episodes, whose
            noise is the same for all plans and MDPs.
        """
        if all(mdp.transition_noise.categorical for mdp in mdps):
            return np.array([grid_value(mdp, self.policy, self.grid, start) for mdp in mdps])
        starts = jnp.tile(jnp.asarray(start, float)[None, :], (SIMULATIONS, 1))
        return np.array([float(_mean_return(mdp, self.policy, starts)) for mdp in mdps])

    @property
    def table(self) -> ValueTable:
        return ValueTable(self.values, self.grid)


@jit
def _mean_return(mdp: MDP, policy: Policy, starts: Array) -> Array:
    rewards = rollout(mdp, policy, starts, key=jax.random.key(0))[2]
    return jnp.sum(jnp.mean(rewards, axis=1))


@jit
def _first_value(values: Array, row: Array, grid: StateGrid) -> Array:
    return grid.value_at(values[0], row)[0]


@dataclasses.dataclass(frozen=True)
class GridPlanner(Planner):
    """Plans by value iteration on a grid of states and actions.

    Attributes:
        state_points: Nodes along each axis of the state, or one number for all axes. None means
            the default for the number of axes.
        action_points: Actions along each axis, or one number for all axes. None means the default
            for the number of axes.
        optimism: How the next state of a family is chosen. "ball" searches the set of plausible
            states. "upper" uses an upper bound of what a search could find. "bonus" adds L times
            the radius of the set to the reward.
        envelope: Whether to enforce the Lipschitz constant L of the MDP, if it is finite.
        refine: Whether to move the chosen action off the grid, to the top of a parabola.

    >>> import kernelmdp as km
    >>> env = km.make("riverswim")
    >>> plan = GridPlanner().plan(env.mdp, key=jax.random.key(0))  # the truth, planned for
    >>> abs(plan.value(env.start) - env.optimal_value().value) < 1e-9
    True
    """

    uses_grid: ClassVar[bool] = True
    optimal: ClassVar[bool] = True
    safe_name: ClassVar[str | None] = "safe-grid"

    state_points: int | tuple[int, ...] | None = None
    action_points: int | tuple[int, ...] | None = None
    optimism: str = "ball"
    envelope: bool = True
    refine: bool = True

    def __post_init__(self) -> None:
        choice("optimism", self.optimism, ("ball", "upper", "bonus"))

    @classmethod
    def for_problem(cls, problem: Problem) -> "GridPlanner":
        """Make a planner with the grid of a problem.

        The optimism is a bonus for large tables and for finite sets of states. Otherwise it is a
        search.

        Args:
            problem: The problem to plan for.

        Returns:
            The planner.
        """
        cells = problem.mean_dimension**2 * len(problem.actions.spread_points(1))
        tabular = problem.transition_noise.categorical
        bonus = cells > LARGE_TABLE if tabular else problem.states.finite
        return cls(
            problem.state_points, problem.action_points, optimism="bonus" if bonus else "ball"
        )

    @property
    def keeps_lipschitz(self) -> bool:
        return self.envelope

    def rounds_up(self, spaces: Spaces) -> bool:
        # In one dimension and in tables the search is exact.
        searched = self.optimism == "ball" and not spaces.transition_noise.categorical
        return not searched or spaces.states.dimension == 1

    def rounded_up(self) -> "GridPlanner":
        optimism = "upper" if self.optimism == "ball" else self.optimism
        return dataclasses.replace(self, optimism=optimism)

    def grid(self, spaces: Spaces) -> StateGrid:
        """Make the grid of nodes.

        Args:
            spaces: An MDP or a problem.

        Returns:
            The grid.
        """
        return _layout(self, spaces.states, spaces.actions, spaces.transition_noise)[0]

    def action_set(self, spaces: Spaces) -> tuple[np.ndarray, tuple[int, ...] | None]:
        """List the actions that are compared.

        Args:
            spaces: An MDP or a problem.

        Returns:
            The actions (A, q), and their number along each axis if they form a grid that is
            refined.
        """
        return _layout(self, spaces.states, spaces.actions, spaces.transition_noise)[1:]

    def query_points(self, spaces: Spaces) -> np.ndarray:
        nodes, action_set = self.grid(spaces).nodes, self.action_set(spaces)[0]
        self._require_memory(spaces, len(nodes), len(action_set))
        return state_action(
            np.repeat(nodes, len(action_set), axis=0), np.tile(action_set, (len(nodes), 1))
        )

    def plan(self, mdp: MDP, *, start: ArrayLike | None = None, key: Key) -> GridPlan:
        grid = self.grid(mdp)
        action_set, counts = self.action_set(mdp)
        self._require_memory(mdp, len(grid.nodes), len(action_set))
        values, policy = _plan(self, mdp, grid, action_set, counts, key)
        # These are set here, because a compiled program copies what it returns.
        policy = replace_fields(
            policy, model=mdp.model, reward_range=mdp.reward_range, termination=mdp.termination
        )
        return GridPlan(policy=policy, values=values, grid=grid)

    def plan_within(self, tolerance: float, mdp: MDP, start: ArrayLike, *, key: Key) -> GridPlan:
        """Plan with an estimated error of at most a tolerance, on finer grids if necessary.

        This is the paper's approximate planner, with an estimate in place of a proof.

        Args:
            tolerance: The largest estimated error of the value at ``start``.
            mdp: The MDP, or a family of plausible MDPs.
            start: The state at which the error is estimated, (m,).
            key: Decides everything random in the plan.

        Returns:
            The plan, with its estimated error.
        """
        planner = self
        while True:
            plan = planner.plan(mdp, key=key)
            error = planner.error(mdp, plan, start, key=key).error
            if error <= tolerance:
                return replace_fields(plan, error=error)
            action_set, counts = planner.action_set(mdp)
            planner = dataclasses.replace(
                planner,
                state_points=tuple(2 * n - 1 for n in plan.grid.counts),
                action_points=tuple(2 * n - 1 for n in counts) if counts else len(action_set),
            )

    def error(self, mdp: MDP, plan: GridPlan, state: ArrayLike, *, key: Key) -> Value:
        """Estimate the error of a planned value, by plans on coarser grids.

        Args:
            mdp: The MDP, or a family of plausible MDPs.
            plan: The plan.
            state: The state of the value, (m,).
            key: Decides everything random in the coarser plans.

        Returns:
            The planned value and its error (``refinement_error``).
        """

        def values(planners: Iterable[GridPlanner]) -> tuple[float, float]:
            half, quarter = (each.plan(mdp, key=key).value(state) for each in planners)
            return half, quarter

        value, counts = plan.value(state), self.action_set(mdp)[1]
        states = _coarser(plan.grid.counts)
        pairs = [values(dataclasses.replace(self, state_points=n) for n in states)]
        if counts:
            actions = _coarser(counts)
            pairs.append(values(dataclasses.replace(self, action_points=n) for n in actions))
        return Value(value, refinement_error(value, pairs), "estimate")

    def _require_memory(self, spaces: Spaces, nodes: int, action_count: int) -> None:
        corners = 2**spaces.states.dimension
        width = spaces.states.dimension + spaces.actions.dimension
        needed = nodes * action_count * (12 * corners + 8 * (2 * width + 4))
        needed += 8 * spaces.horizon * nodes * 10
        if needed > MEMORY:
            raise ArgumentError(
                "state_points",
                f"a grid that fits in {MEMORY / 2**30:.0f} GiB: use fewer state_points or "
                "action_points",
                f"{nodes:,} states x {action_count:,} actions, about {needed / 2**30:.1f} GiB",
            )


@functools.lru_cache(maxsize=64)
def _layout(
    planner: GridPlanner, states: Domain, actions: Domain, noise: Noise
) -> tuple[StateGrid, np.ndarray, tuple[int, ...] | None]:
    """Nodes and actions. They are cached, because agents plan on the same ones every episode."""
    nodes = _counts("state_points", planner.state_points, states.dimension, STATE_POINTS)
    action_counts = _counts(
        "action_points", planner.action_points, actions.dimension, ACTION_POINTS
    )
    refined = actions.bounded and not actions.finite and planner.refine
    grid = StateGrid(states, nodes, noise)
    return grid, action_grid(actions, action_counts), action_counts if refined else None


@jit
def _plan(
    planner: GridPlanner,
    mdp: MDP,
    grid: StateGrid,
    action_set: ArrayLike,
    action_counts: tuple[int, ...] | None,
    key: Key,
) -> tuple[Array, GridPolicy]:
    """Values at the nodes for h = 1..H + 1, and a policy without its model."""
    action_set = jnp.asarray(action_set)
    nodes, action_count = jnp.asarray(grid.nodes), action_set.shape[0]
    points = _pairs(nodes, action_set)
    prediction = with_radius(mdp.model(points), mdp.metric)
    optimistic_backup = backup_for(planner.optimism, grid, mdp.metric, prediction)
    sizes = optimistic_backup.dilation_sizes(prediction)
    positions = optimistic_backup.locate(prediction, sizes, mdp.lipschitz)
    rewards = optimistic_rewards(prediction, mdp.reward_range)
    continues = mdp.continues(points, prediction.state)
    # Ties are common in the first episodes. One random order of the actions decides each period.
    priority = jax.random.uniform(key, (mdp.horizon, action_count))

    def backup(after: Array, period: Array) -> tuple[Array, tuple[Array, Array, Any]]:
        expected = grid.expectation(after)
        if not prediction.certain and planner.envelope and not grid.states.finite:
            expected = lower_lipschitz_envelope(expected, grid, mdp.metric, mdp.lipschitz)
        table = optimistic_backup.prepare(expected, sizes)

        def with_later() -> Array:
            later = optimistic_backup.read(table, positions)
            return rewards + (later if continues is None else jnp.where(continues, later, 0.0))

        # This branch is always taken. Without it the compiler reads the table again for each use of
        # the values, and a plan takes half as long again. It removes other barriers.
        values = jax.lax.cond(period >= 0, with_later, lambda: rewards)
        values = values.reshape(-1, action_count)
        periods_left = (mdp.horizon - period).astype(values.dtype)
        low, high = (_times(periods_left, bound) for bound in mdp.reward_range)
        best = jnp.clip(jnp.max(values, axis=1), low, high)
        chosen = best_actions(values, action_set, priority[period], action_counts)
        return best, (best, chosen, table)

    last = jnp.zeros(len(grid.nodes))
    _, (values, chosen, tables) = jax.lax.scan(backup, last, jnp.arange(mdp.horizon), reverse=True)
    policy = GridPolicy(
        model=UnsetModel(),
        tables=tables,
        dilation_sizes=sizes,
        lipschitz=mdp.lipschitz,
        action_set=action_set,
        priority=priority,
        node_actions=chosen,
        optimistic_backup=optimistic_backup,
        action_counts=action_counts,
        reward_range=(),
    )
    return jnp.concatenate([values, last[None]]), policy


def _halved(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Nodes along each axis with half the cells."""
    return tuple(max(2, (n - 1) // 2 + 1) for n in counts)


def _coarser(counts: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Nodes along each axis with half and with a quarter of the cells."""
    return _halved(counts), _halved(_halved(counts))


def _times(periods: Array, bound: float) -> Any:
    """The product, or the bound itself if it is infinite."""
    return periods * bound if is_traced(bound) or math.isfinite(bound) else bound


def _pairs(states: Array, action_set: Array) -> Array:
    """All points z = (s, a). The action varies fastest."""
    count, action_count = states.shape[0], action_set.shape[0]
    return state_action(jnp.repeat(states, action_count, axis=0), jnp.tile(action_set, (count, 1)))


def _counts(argument: str, points: Any, axes: int, defaults: dict[int, int]) -> tuple[int, ...]:
    """The number of points along each axis."""
    if points is None:
        if axes not in defaults:
            raise ArgumentError(
                argument,
                f"at most {max(defaults)} axes for a grid, or counts for each",
                f"{axes} axes",
            )
        points = defaults[axes]
    counts = (int(points),) * axes if np.ndim(points) == 0 else tuple(int(n) for n in points)
    if len(counts) != axes or min(counts) < 1:
        raise ArgumentError(argument, f"{axes} counts of at least 1", points)
    return counts
