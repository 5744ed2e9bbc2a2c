"""Value iteration on a grid of states, for an MDP or for a family of plausible ones.

Tables of the model are computed once an episode for all pairs of nodes and actions; then each of
the H backups is a few reads. Between nodes values are interpolated: the plan is as good as the
grid, and its error is estimated by ``GridPlanner.error``, certified by ``CertifiedPlanner``.
"""

import dataclasses
import functools
import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.episode import state_action
from kernelmdp.mdp.evaluation import Value, action_grid
from kernelmdp.mdp.mdp import MDP, Signal
from kernelmdp.mdp.model import Model, Prediction
from kernelmdp.mdp.noise import Noise
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.problem import Problem
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.numerics.checks import choice
from kernelmdp.numerics.modules import changed, jit
from kernelmdp.planners.action_selection import best_actions, optimistic_rewards
from kernelmdp.planners.lipschitz_envelope import lipschitz_envelope
from kernelmdp.planners.optimism import backup_for, with_radius
from kernelmdp.planners.optimistic_backup import OptimisticBackup
from kernelmdp.planners.plan import Plan, ValueTable
from kernelmdp.planners.planner import Planner, Spaces
from kernelmdp.types import ArrayLike, Key, Period

#: Nodes along each axis when nothing is said, by the number of axes.
STATE_POINTS = {1: 101, 2: 61, 3: 25, 4: 13}
ACTION_POINTS = {1: 21, 2: 9, 3: 5}
#: Bytes that the tables of a plan may take.
MEMORY = 4 * 2**30
#: Numbers S·S·A of a table beyond which optimism is a bonus rather than a search.
LARGE_TABLE = 200_000


class UnsetModel(Model):
    """Where a model is yet to be put."""

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        raise NotImplementedError


class GridPolicy(Policy):
    """Looks one period ahead from the actual state, with the plan's values after that.

    >>> import kernelmdp as km
    >>> env = km.make("riverswim")
    >>> plan = GridPlanner().plan(env.mdp, key=jax.random.key(0))
    >>> plan.policy([0.0], 0)  # against the stream
    array([1.])
    """

    model: Model
    tables: Any  # of each period, prepared for the choice of the next state
    ladder: Array
    lipschitz: Float[Array, ""]
    action_set: Float[Array, "A q"]
    priority: Float[Array, "H A"]
    node_actions: Float[Array, "H N q"]
    choice: OptimisticBackup = eqx.field(static=True)
    action_counts: tuple[int, ...] | None = eqx.field(static=True)  # to refine between actions
    reward_range: tuple[float, float] = eqx.field(static=True)
    termination: Signal | None = None

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        count, options = states.shape[0], self.action_set.shape[0]
        points = _pairs(states, self.action_set)
        prediction = with_radius(self.model(points), self.choice.metric)
        places = self.choice.locate(prediction, self.ladder, self.lipschitz)
        table = jax.tree.map(lambda leaf: leaf[period], self.tables)
        later = self.choice.read(table, places)
        if self.termination is not None:
            ends = self.termination(points, self.choice.grid.states.nearest(prediction.state))
            later = jnp.where(ends, 0.0, later)
        values = optimistic_rewards(prediction, self.reward_range) + later
        return best_actions(
            values.reshape(count, options),
            self.action_set,
            self.priority[period],
            self.action_counts,
        )

    def at_nodes(self, grid: StateGrid, period: Period) -> Float[Array, "N q"]:
        """Actions at the nodes: the tables of the plan know them."""
        if grid == self.choice.grid:
            return self.node_actions[period]
        return self.actions(jnp.asarray(grid.nodes), period)


class GridPlan(Plan):
    """A plan whose values are known at the nodes of a grid.

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
        row: Any = np.asarray(state, float)[None, :]
        return float(_first(self.values, row, self.grid))

    @property
    def table(self) -> ValueTable:
        return ValueTable(self.values, self.grid)


@jit
def _first(values: Array, row: Array, grid: StateGrid) -> Array:
    return grid.value_at(values[0], row)[0]


@dataclasses.dataclass(frozen=True)
class GridPlanner(Planner):
    """Plans on a grid of states and actions.

    ``state_points`` and ``action_points`` are numbers of nodes along each axis (one number for
    all). ``optimism`` says how a family's next state is chosen: "ball" searches the set of
    plausible ones, "bonus" adds L times its radius. ``envelope`` enforces the MDP's L, when that
    is finite. ``refine`` moves the chosen action off the grid to the top of a parabola.

    >>> import kernelmdp as km
    >>> env = km.make("riverswim")
    >>> plan = GridPlanner().plan(env.mdp, key=jax.random.key(0))  # the truth, planned for
    >>> abs(plan.value(env.start) - env.optimal_value().value) < 1e-9
    True
    """

    uses_grid: ClassVar[bool] = True
    optimal: ClassVar[bool] = True

    state_points: int | tuple[int, ...] | None = None
    action_points: int | tuple[int, ...] | None = None
    optimism: str = "ball"
    envelope: bool = True
    refine: bool = True

    def __post_init__(self) -> None:
        choice("optimism", self.optimism, ("ball", "bonus"))

    @classmethod
    def for_problem(cls, problem: Problem) -> "GridPlanner":
        """With the grid of the problem; optimism is a bonus where a search would be too large."""
        cells = problem.mean_dimension**2 * len(problem.actions.spread(1))
        table = problem.transition_noise.categorical
        bonus = cells > LARGE_TABLE if table else problem.states.finite
        return cls(
            problem.state_points, problem.action_points, optimism="bonus" if bonus else "ball"
        )

    @property
    def keeps_lipschitz(self) -> bool:
        return self.envelope

    def grid(self, spaces: Spaces) -> StateGrid:
        """The nodes this planner lays over the states."""
        return _layout(self, spaces.states, spaces.actions, spaces.transition_noise)[0]

    def action_set(self, spaces: Spaces) -> tuple[np.ndarray, tuple[int, ...] | None]:
        """Actions tried, (A, q), and their counts along each axis when they form a grid."""
        return _layout(self, spaces.states, spaces.actions, spaces.transition_noise)[1:]

    def query_points(self, spaces: Spaces) -> np.ndarray:
        """All points z at which a plan asks the model: every node with every action."""
        nodes, action_set = self.grid(spaces).nodes, self.action_set(spaces)[0]
        self._require_memory(spaces, len(nodes), len(action_set))
        return state_action(
            np.repeat(nodes, len(action_set), axis=0), np.tile(action_set, (len(nodes), 1))
        )

    def plan(self, mdp: MDP, *, start: ArrayLike | None = None, key: Key) -> GridPlan:
        """The optimal policy for the MDP, or for the best member of a family."""
        grid = self.grid(mdp)
        action_set, counts = self.action_set(mdp)
        self._require_memory(mdp, len(grid.nodes), len(action_set))
        values, policy = _plan(self, mdp, grid, action_set, counts, key)
        # The model is put in here: what a compiled program returns it copies.
        policy = changed(policy, model=mdp.model, termination=mdp.termination)
        return GridPlan(policy=policy, values=values, grid=grid)

    def within(self, tolerance: float, mdp: MDP, start: ArrayLike, *, key: Key) -> GridPlan:
        """A plan whose estimated error at a state is at most the tolerance, on a finer grid if
        need be: the paper's approximate planner, with an estimate in place of a proof."""
        planner = self
        while True:
            plan = planner.plan(mdp, key=key)
            found = planner.error(mdp, plan, start, key=key).error
            if found <= tolerance:
                return changed(plan, error=found)
            action_set, counts = planner.action_set(mdp)
            planner = dataclasses.replace(
                planner,
                state_points=tuple(2 * n - 1 for n in plan.grid.counts),
                action_points=tuple(2 * n - 1 for n in counts) if counts else len(action_set),
            )

    def error(self, mdp: MDP, plan: GridPlan, state: ArrayLike, *, key: Key) -> Value:
        """The planned value with an estimate of its error: the change from half the cells."""
        counts = self.action_set(mdp)[1]
        coarse = dataclasses.replace(
            self,
            state_points=_halved(plan.grid.counts),
            action_points=_halved(counts) if counts else self.action_points,
        )
        value = plan.value(state)
        return Value(value, abs(value - coarse.plan(mdp, key=key).value(state)), "estimate")

    def _require_memory(self, spaces: Spaces, nodes: int, options: int) -> None:
        corners = 2**spaces.states.dimension
        width = spaces.states.dimension + spaces.actions.dimension
        needed = nodes * options * (12 * corners + 8 * (2 * width + 4))
        needed += 8 * spaces.horizon * nodes * 10
        if needed > MEMORY:
            raise ArgumentError(
                "state_points",
                f"a grid that fits in {MEMORY / 2**30:.0f} GiB: use fewer state_points or "
                "action_points",
                f"{nodes:,} states x {options:,} actions, about {needed / 2**30:.1f} GiB",
            )


@functools.lru_cache(maxsize=64)
def _layout(
    planner: GridPlanner, states: Domain, actions: Domain, noise: Noise
) -> tuple[StateGrid, np.ndarray, tuple[int, ...] | None]:
    """Nodes and actions, made once: agents plan on the same ones every episode."""
    nodes = _counts("state_points", planner.state_points, states.dimension, STATE_POINTS)
    options = _counts("action_points", planner.action_points, actions.dimension, ACTION_POINTS)
    regular = actions.bounded and not actions.finite and planner.refine
    grid = StateGrid(states, nodes, noise)
    return grid, action_grid(actions, options), options if regular else None


@jit
def _plan(
    planner: GridPlanner,
    mdp: MDP,
    grid: StateGrid,
    action_set: ArrayLike,
    action_counts: tuple[int, ...] | None,
    key: Key,
) -> tuple[Array, GridPolicy]:
    action_set = jnp.asarray(action_set)
    nodes, options = jnp.asarray(grid.nodes), action_set.shape[0]
    points = _pairs(nodes, action_set)
    prediction = with_radius(mdp.model(points), mdp.metric)
    chooser = backup_for(planner.optimism, grid, mdp.metric, prediction)
    ladder = chooser.ladder_for(prediction)
    places = chooser.locate(prediction, ladder, mdp.lipschitz)
    rewards = optimistic_rewards(prediction, mdp.reward_range)
    going_on = _going_on(mdp, points, prediction)
    # Ties are common in the first episodes; one seeded order of actions for each period.
    priority = jax.random.uniform(key, (mdp.horizon, options))

    def backup(after: Array, period: Array) -> tuple[Array, tuple[Array, Array, Any]]:
        expected = grid.expectation(after)
        if not prediction.certain and planner.envelope and not grid.states.finite:
            expected = lipschitz_envelope(expected, grid, mdp.metric, mdp.lipschitz)
        table = chooser.prepare(expected, ladder)
        later = chooser.read(table, places)
        later = later if going_on is None else jnp.where(going_on, later, 0.0)
        values = (rewards + later).reshape(-1, options)
        left = (mdp.horizon - period).astype(values.dtype)
        low, high = (_times(left, bound) for bound in mdp.reward_range)
        best = jnp.clip(jnp.max(values, axis=1), low, high)
        chosen = best_actions(values, action_set, priority[period], action_counts)
        return best, (best, chosen, table)

    last = jnp.zeros(len(grid.nodes))
    _, (values, chosen, tables) = jax.lax.scan(backup, last, jnp.arange(mdp.horizon), reverse=True)
    policy = GridPolicy(
        model=UnsetModel(),
        tables=tables,
        ladder=ladder,
        lipschitz=mdp.lipschitz,
        action_set=action_set,
        priority=priority,
        node_actions=chosen,
        choice=chooser,
        action_counts=action_counts,
        reward_range=mdp.reward_range,
    )
    return jnp.concatenate([values, last[None]]), policy


def _going_on(mdp: MDP, points: Array, prediction: Prediction) -> Array | None:
    """Which episodes go on after the *mean* next state of each point; None when none ends.

    The noise of the next state is left out here, and so is the choice among plausible ones.
    """
    if mdp.termination is None:
        return None
    return ~jnp.asarray(mdp.termination(points, mdp.states.nearest(prediction.state)), bool)


def _halved(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Nodes along each axis with half the cells."""
    return tuple(max(2, (n - 1) // 2 + 1) for n in counts)


def _times(left: Array, bound: float) -> Any:
    return left * bound if math.isfinite(bound) else bound


def _pairs(states: Array, action_set: Array) -> Array:
    """All points z = (s, a), actions fastest."""
    count, options = states.shape[0], action_set.shape[0]
    return state_action(jnp.repeat(states, options, axis=0), jnp.tile(action_set, (count, 1)))


def _counts(argument: str, given: Any, axes: int, typical: dict[int, int]) -> tuple[int, ...]:
    if given is None:
        if axes not in typical:
            raise ArgumentError(
                argument,
                f"at most {max(typical)} axes for a grid, or counts for each",
                f"{axes} axes",
            )
        given = typical[axes]
    counts = (int(given),) * axes if np.ndim(given) == 0 else tuple(int(n) for n in given)
    if len(counts) != axes or min(counts) < 1:
        raise ArgumentError(argument, f"{axes} counts of at least 1", given)
    return counts
