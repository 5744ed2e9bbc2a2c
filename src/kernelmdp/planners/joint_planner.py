"""Optimism over whole functions: one reward and one transition function for the whole plan.

``GridPlanner`` chooses the best plausible reward and next state at each z and in each period, as if
these choices were free. But the truth is one function, and Lemma 7 bounds it as a whole. Here the
plan is optimal for one member of that set. The member is searched by repeating two steps:

1. Plan for the member. Its plan visits the pair z_i = (s, a) a number of times w_i in expectation,
   and its value rises with the mean next state of z_i by the gradient v_i.
2. Take the member that maximises Σ_i (w_i R(z_i) + ⟨v_i, P(z_i)⟩). It is known in closed form.

The search begins at the means, and at the plan that is optimistic at each point. The best member
that was seen is planned for. The search is local and misses the best member of a large set. A plan
is optimistic if its value is at least the optimum of the truth, and nothing here proves that. So no
bound of the regret is claimed.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.model import FunctionFamily, Prediction
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.numerics.checks import integer
from kernelmdp.numerics.modules import jit, replace_fields
from kernelmdp.planners.action_selection import optimistic_rewards
from kernelmdp.planners.grid_planner import GridPlan, GridPlanner
from kernelmdp.planners.optimism import with_radius
from kernelmdp.planners.planner import Spaces
from kernelmdp.types import ArrayLike, Key


@dataclasses.dataclass(frozen=True)
class JointPlanner(GridPlanner):
    """Plans on a grid for the best member of a set of whole functions; see the module's text.

    Attributes:
        iterations: Number of members that are planned for from each beginning. On ``rkhs``, seeds
            0 and 1, later ones than the fourth seldom changed the best value by 1 %.
        random_starts: Number of further beginnings, at random members. They find better members,
            and so explore more: with eight of them the regret on ``rkhs`` is twice as large.
            Without them, plans were above the optimum in all episodes but one of the runs in
            docs/results.md.

    >>> import kernelmdp as km
    >>> agent = km.GPUCRL("rkhs", confidence="valid", planner="joint", seed=0)
    >>> result = agent.learn(2, progress=False)
    >>> agent.planner.rounds_up(agent.problem)  # the search is local
    False
    """

    searches_functions: ClassVar[bool] = True
    safe_name: ClassVar[str | None] = None  # bounds of a risk are over choices at each point

    iterations: int = 4
    random_starts: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("iterations", self.iterations, least=1)
        integer("random_starts", self.random_starts, least=0)

    def rounds_up(self, spaces: Spaces) -> bool:
        return False

    def rounded_up(self) -> GridPlanner:
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(GridPlanner)}
        return GridPlanner(**fields).rounded_up()

    def plan(self, mdp: MDP, *, start: ArrayLike | None = None, key: Key) -> GridPlan:
        family = mdp.model.whole_functions()
        if family is None:
            return super().plan(mdp, start=start, key=key)
        if mdp.transition_noise.categorical:
            raise ArgumentError("planner", "'grid' for a table", "'joint'")
        grid, action_set = self.grid(mdp), self.action_set(mdp)[0]
        self._require_memory(mdp, len(grid.nodes), len(action_set))
        points = jnp.asarray(self.query_points(mdp))
        starts = None if start is None else jnp.asarray(start, float)[None, :]
        counts = self.iterations, self.random_starts
        name = _search(counts, mdp, family, grid, points, starts, key)
        return super().plan(replace_fields(mdp, model=family.member(name)), start=start, key=key)


@jit
def _search(
    counts: tuple[int, int],
    mdp: MDP,
    family: FunctionFamily,
    grid: StateGrid,
    points: Array,
    starts: Array | None,
    key: Key,
) -> Any:
    """The best member that was seen. Without a start, values are means over all nodes."""
    if starts is None:
        visits = jnp.full(len(grid.nodes), 1 / len(grid.nodes))
    else:
        visits = jax.grad(lambda table: grid.value_at(table, starts)[0])(jnp.zeros(len(grid.nodes)))
    pointwise = with_radius(mdp.model(points), mdp.metric)
    assert pointwise.reward_width is not None
    at_means = Prediction(pointwise.reward, pointwise.state)
    first = [
        value_and_gradient(mdp, grid, points, each, visits)[1] for each in (at_means, pointwise)
    ]

    iterations, random_starts = counts
    for each in jax.random.split(key, random_starts):
        draws = jax.random.normal(each, (len(points), 1 + pointwise.state.shape[1]))
        first.append((draws[:, 0], draws[:, 1:]))

    def improve(carry: tuple[Any, Array, Any], _: None) -> tuple[tuple[Any, Array, Any], None]:
        weights, highest, best = carry
        name = family.best(points, *weights)
        value, weights = value_and_gradient(mdp, grid, points, family.member(name)(points), visits)
        better = value > highest
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), name, best)
        return (weights, jnp.maximum(value, highest), best), None

    def search(weights: tuple[Array, Array]) -> tuple[Any, Array]:
        begin = weights, jnp.asarray(-jnp.inf), family.best(points, *weights)
        (_, highest, best), _ = jax.lax.scan(improve, begin, None, length=iterations)
        return best, highest

    names, values = jax.lax.map(search, jax.tree.map(lambda *each: jnp.stack(each), *first))
    best = jnp.argmax(values)
    return jax.tree.map(lambda leaf: leaf[best], names)


def value_and_gradient(
    mdp: MDP,
    grid: StateGrid,
    points: Float[Array, "n d"],
    prediction: Prediction,
    visits: Float[Array, " N"],
) -> tuple[Float[Array, ""], tuple[Float[Array, " n"], Float[Array, "n m"]]]:
    """Compute the optimal value, and how it changes with the reward and next state of each pair.

    Args:
        mdp: Defines horizon, noise, termination and the range of rewards.
        grid: The grid of N nodes.
        points: All pairs of node and action. The action varies fastest.
        prediction: What is predicted there. For a family, the best of a few plausible next states
            counts, and the best reward.
        visits: The weight of each node in the first period.

    Returns:
        The value, and its gradient with respect to rewards (n,) and mean next states (n, m).
    """
    count = len(grid.nodes)
    actions = points.shape[0] // count
    rewards = optimistic_rewards(prediction, mdp.reward_range)
    continues = mdp.continues(points, prediction.state)
    later = _Later(grid, mdp.metric, prediction, continues)
    everywhere = later.places(prediction.state, None)

    def back(after: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        values = (rewards + later.read(grid.expectation(after), everywhere)).reshape(count, -1)
        return jnp.max(values, axis=1), (after, jnp.argmax(values, axis=1))

    first, (tables, chosen) = jax.lax.scan(back, jnp.zeros(count), None, length=mdp.horizon)

    # From the first period on: where the plan goes, and what a change of the next state is worth.
    def forth(visits: Array, period: tuple[Array, Array]) -> tuple[Array, tuple[Array, ...]]:
        after, choice = period
        pairs = jnp.arange(count) * actions + choice

        def value(table: Array, states: Array) -> Array:
            return later.read(grid.expectation(table), later.places(states, pairs), pairs)

        changes = jax.vjp(value, after, prediction.state[pairs])[1]
        onward, slopes = changes(visits)
        return onward, (pairs, visits, slopes)

    periods = (tables[::-1], chosen[::-1])
    _, (pairs, counts, slopes) = jax.lax.scan(forth, visits, periods)
    pairs = pairs.reshape(-1)
    reward_weights = jnp.zeros(len(points)).at[pairs].add(counts.reshape(-1))
    flat = slopes.reshape(len(pairs), -1)
    state_weights = jnp.zeros_like(prediction.state).at[pairs].add(flat)
    return first @ visits, (reward_weights, state_weights)


@dataclasses.dataclass(frozen=True)
class _Later:
    """The expected value of the next state: at the mean, or the best of a few plausible ones.

    The few are the mean and, along each axis, the two ends of the plausible set.
    """

    grid: StateGrid
    metric: tuple[float, ...]
    prediction: Prediction
    continues: Bool[Array, " N"] | None

    def places(self, states: Array, pairs: Array | None) -> list[Any]:
        if self.prediction.certain:
            return [self.grid.stencil(states)]
        sides = self._sides if pairs is None else self._sides[pairs]
        ends = [
            states.at[:, axis].add(sign * sides[:, axis])
            for axis in range(states.shape[1])
            for sign in (-1, 1)
        ]
        return [self.grid.stencil(each) for each in (states, *ends)]

    def read(self, table: Array, places: list[Any], pairs: Array | None = None) -> Array:
        best = places[0].read(table)
        for place in places[1:]:
            best = jnp.maximum(best, place.read(table))
        if self.continues is None:
            return best
        return jnp.where(self.continues if pairs is None else self.continues[pairs], best, 0.0)

    @property
    def _sides(self) -> Float[Array, "N m"]:
        """How far the plausible set reaches along each axis. At most across the state space."""
        p, low, high = self.prediction, *map(jnp.asarray, self.grid.states.bounds)
        if p.sides is not None:
            sides = p.sides
        elif p.root is not None:
            sides = jnp.linalg.norm(p.root, axis=2)
        else:
            assert p.radius is not None
            sides = p.radius[:, None] * jnp.asarray(self.metric)[None, :]
        return jnp.minimum(sides, (high - low)[None, :])
