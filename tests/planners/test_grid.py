"""The grid planner: optimality, optimism in all its forms, and the envelope."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp import Box
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import (
    MDP,
    Gaussian,
    MeanModel,
    Model,
    Prediction,
    StateGrid,
    grid_value,
    policy_values,
)
from kernelmdp.planners import GridPlanner
from kernelmdp.planners.dilation import BallBackup, BoxBackup
from kernelmdp.planners.lipschitz_envelope import lower_lipschitz_envelope
from kernelmdp.planners.optimism import EllipsoidBackup, IntervalBackup
from kernelmdp.planners.pessimism import pessimistic_values

KEY = jax.random.key(0)
H = 5


def reward(z):
    return jnp.exp(-((z[:, 0] - 0.5) ** 2) / 0.1) - 0.1 * z[:, -1] ** 2


def move(z):
    m = z.shape[1] - 1
    shift = 0.3 * jnp.sin(3 * z[:, :m]) + 0.2 * z[:, m:]
    return 0.8 * z[:, :m] + shift


class Wrong(Model):
    """A family whose centre is off the truth by less than its widths."""

    widths: jax.Array  # of reward, of state
    off: jax.Array
    shape: str = "ball"

    def __call__(self, points):
        n, m = points.shape[0], points.shape[1] - 1
        centre = move(points) + self.off * self.widths[1] / np.sqrt(m)
        reward_width = jnp.full(n, self.widths[0])
        if self.shape == "box":
            sides = jnp.full((n, m), self.widths[1])
            return Prediction(reward(points), centre, reward_width, sides=sides)
        if self.shape == "ellipsoid":
            root = jnp.broadcast_to(self.widths[1] * jnp.eye(m)[None], (n, m, m))
            return Prediction(reward(points), centre, reward_width, root=root)
        return Prediction(reward(points), centre, reward_width, radius=jnp.full(n, self.widths[1]))


def make(model, m=1, **options):
    words = {
        "states": Box([-1.0] * m, [1.0] * m),
        "actions": Box([-1.0], [1.0]),
        "horizon": H,
        "reward_noise": Gaussian(0.1),
        "transition_noise": Gaussian(0.1),
    }
    return MDP(model, **(words | options))


TRUTH = MeanModel(reward, move)
FAMILY = Wrong(jnp.array([0.05, 0.08]), jnp.asarray(0.9))
# The Gaussian-noise bound: span(V) / √(2πv) with rewards in [−0.1, 1].
SLOPE = 1.1 * (H - 1) / np.sqrt(2 * np.pi * 0.01)


def points_for(m):
    return GridPlanner(state_points=81 if m == 1 else 31, action_points=11)


def test_policy_is_worth_what_was_planned():
    mdp, planner = make(TRUTH), GridPlanner(state_points=161, action_points=41)
    plan = planner.plan(mdp, key=KEY)
    for state in ([-0.7], [0.2]):
        worth = grid_value(mdp, plan.policy, plan.grid, state)
        assert worth == pytest.approx(plan.value(state), abs=2e-3)
        assert worth <= planner.error(mdp, plan, state, key=KEY).error + plan.value(state) + 1e-3


def test_at_nodes_is_the_policy_itself():
    plan = points_for(1).plan(make(TRUTH), key=KEY)
    nodes = jnp.asarray(plan.grid.nodes)
    for period in (0, H - 1):
        np.testing.assert_allclose(
            plan.policy.at_nodes(plan.grid, period), plan.policy.actions(nodes, period), atol=1e-6
        )


def test_refined_actions_beat_those_of_the_grid():
    mdp = make(TRUTH)
    worth = {}
    for refine in (False, True):
        planner = GridPlanner(state_points=161, action_points=7, refine=refine)
        plan = planner.plan(mdp, key=KEY)
        worth[refine] = grid_value(mdp, plan.policy, plan.grid, [-0.7])
    assert worth[True] > worth[False]


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("form", ["ball", "ellipsoid", "box", "bonus", "envelope"])
def test_optimism(m, form):
    """G 31: with the truth inside the sets V̄_h ≥ V*_h at all states and periods."""
    shape = form if form in ("ellipsoid", "box") else "ball"
    family = dataclasses.replace(FAMILY, shape=shape)
    lipschitz = SLOPE if form in ("bonus", "envelope") else np.inf
    planner = dataclasses.replace(points_for(m), optimism="bonus" if form == "bonus" else "ball")
    true_plan = planner.plan(make(TRUTH, m), key=KEY)
    plan = planner.plan(make(family, m, lipschitz=lipschitz), key=KEY)
    slack = 1e-6 if m == 1 else 2e-2  # discs, boxes and candidates are up to the lattice
    assert float(jnp.min(plan.values - true_plan.values)) >= -slack
    assert plan.value([0.0] * m) > true_plan.value([0.0] * m) + 0.05


@pytest.mark.parametrize("m", [1, 2])
def test_order_of_optimistic_values(m):
    """G 31: ellipsoid ≤ ball ≤ box ≤ wider ball, and ball ≤ bonus at equal radius."""
    planner = points_for(m)
    wide = dataclasses.replace(FAMILY, widths=FAMILY.widths * jnp.array([1.0, np.sqrt(2)]))
    centred = dataclasses.replace(FAMILY, off=jnp.asarray(0.0))
    value = {}
    for name, family in (
        ("ellipsoid", dataclasses.replace(centred, shape="ellipsoid")),
        ("box", dataclasses.replace(centred, shape="box")),
        ("ball", centred),
        ("wide", dataclasses.replace(wide, off=jnp.asarray(0.0))),
    ):
        value[name] = planner.plan(make(family, m), key=KEY).values
    bonus = dataclasses.replace(planner, optimism="bonus")
    value["bonus"] = bonus.plan(make(centred, m, lipschitz=SLOPE), key=KEY).values
    slack = 1e-9 if m == 1 else 3e-2
    pairs = ("ellipsoid", "ball"), ("ball", "box"), ("box", "wide"), ("ball", "bonus")
    for less, more in pairs:
        assert float(jnp.max(value[less] - value[more])) <= slack, (less, more)


def test_excess_is_at_most_twice_the_widths():
    """G 33: Q̄ − R* − E V̄ ≤ 2β_Rσ_R + 2Lρ at every node and action."""
    mdp = make(FAMILY, lipschitz=SLOPE)
    planner = points_for(1)
    plan = planner.plan(mdp, key=KEY)
    truth = make(TRUTH)
    nodes = jnp.asarray(plan.grid.nodes)
    for period in range(H):
        actions = plan.policy.at_nodes(plan.grid, period)
        z = jnp.concatenate([nodes, actions], axis=1)
        expected = plan.grid.expectation(plan.values[period + 1])
        after = plan.grid.stencil(truth.model(z).state).read(expected)
        excess = plan.values[period] - reward(z) - after
        bound = 2 * FAMILY.widths[0] + 2 * SLOPE * FAMILY.widths[1]
        assert float(jnp.max(excess)) <= float(bound) + 1e-3


@pytest.mark.parametrize("m", [1, 2])
def test_pessimism_is_below_the_true_value(m):
    planner = points_for(m)
    family = make(FAMILY, m)
    plan = planner.plan(family, key=KEY)
    low = pessimistic_values(family, plan.policy, plan.grid)
    true = policy_values(make(TRUTH, m), plan.policy, plan.grid)
    assert float(jnp.max(low - true)) <= (1e-6 if m == 1 else 2e-2)
    assert float(low[0].mean()) < float(true[0].mean()) - 0.05


@pytest.mark.parametrize(("counts", "periodic"), [((40,), ()), ((40,), (0,)), ((12, 9), (0,))])
def test_envelope(rng, counts, periodic):
    """G 32: W ≤ U, W is L-Lipschitz, W is the largest such, and U itself when it is one."""
    box = Box([-1.0] * len(counts), [1.0] * len(counts), periodic)
    grid = StateGrid(box, counts, Gaussian(0.0))
    metric = (0.5, 2.0)[: len(counts)]
    table = rng.normal(size=len(grid.nodes))
    L = 1.7
    found = np.asarray(lower_lipschitz_envelope(jnp.asarray(table), grid, metric, jnp.asarray(L)))
    gaps = np.abs(grid.nodes[:, None, :] - grid.nodes[None, :, :])
    for j in periodic:
        gaps[:, :, j] = np.minimum(gaps[:, :, j], 2.0 - gaps[:, :, j])
    distance = np.sqrt(((gaps / np.array(metric)) ** 2).sum(axis=2))
    np.testing.assert_allclose(found, (table[None, :] + L * distance).min(axis=1), atol=1e-12)
    assert (found <= table + 1e-12).all()
    assert (np.abs(found[:, None] - found[None, :]) <= L * distance + 1e-9).all()
    again = lower_lipschitz_envelope(jnp.asarray(found), grid, metric, jnp.asarray(L))
    np.testing.assert_allclose(again, found, atol=1e-12)


@pytest.mark.parametrize("periodic", [(), (0,)])
def test_interval_maximum_is_exact(rng, periodic):
    grid = StateGrid(Box([-1.0], [1.0], periodic), (17,), Gaussian(0.0))
    backup = IntervalBackup(grid, (0.5,))
    table = rng.normal(size=17)
    means, radii = rng.uniform(-1, 1, size=300), rng.uniform(0, 1.2, size=300) ** 2
    prediction = Prediction(jnp.zeros(300), jnp.asarray(means)[:, None], radius=jnp.asarray(radii))
    places = backup.locate(prediction, jnp.zeros(1), jnp.asarray(0.0))
    found = np.asarray(backup.read(backup.prepare(jnp.asarray(table), jnp.zeros(1)), places))
    for i in range(300):
        reach = 0.5 * radii[i]
        fine = np.linspace(means[i] - reach, means[i] + reach, 4001)
        if not periodic:
            fine = np.clip(fine, -1, 1)
        oracle = np.asarray(grid.value_at(jnp.asarray(table), jnp.asarray(fine)[:, None])).max()
        assert oracle - 1e-12 <= found[i] <= oracle + 2e-2 * reach


@pytest.mark.parametrize("periodic", [(), (0,)])
def test_balls_against_samples(rng, periodic):
    """Dilation against dense samples of the ball, in a metric that is not the Euclidean one."""
    box = Box([-1.0, -2.0], [1.0, 2.0], periodic)
    grid = StateGrid(box, (14, 11), Gaussian(0.0))
    metric = (0.7, 1.5)
    backup = BallBackup(grid, metric)
    x, y = grid.nodes.T
    table = np.sin(np.pi * x + 0.3) * np.cos(y) + 0.05 * rng.normal(size=len(x))
    prediction = Prediction(jnp.zeros(2), jnp.zeros((2, 2)), radius=jnp.array([0.9, 0.1]))
    sizes = backup.dilation_sizes(prediction)
    found = np.asarray(backup.prepare(jnp.asarray(table), sizes))
    angles, shares = np.linspace(0, 2 * np.pi, 97), np.linspace(0, 1, 25)
    disc = np.stack(
        [np.outer(shares, np.cos(angles)).ravel(), np.outer(shares, np.sin(angles)).ravel()], axis=1
    )
    gaps = np.abs(grid.nodes[:, None, :] - grid.nodes[None, :, :])
    for j in periodic:
        gaps[:, :, j] = np.minimum(gaps[:, :, j], 2.0 - gaps[:, :, j])
    distance = np.sqrt(((gaps / np.array(metric)) ** 2).sum(axis=2))
    for row, radius in zip(found, np.asarray(sizes), strict=True):
        nodes_inside = np.where(distance <= radius, table[None, :], -np.inf).max(axis=1)
        assert (row >= nodes_inside - 1e-12).all()
        for node in range(0, len(table), 7):
            around = grid.nodes[node] + radius * disc * np.array(metric)
            values = grid.value_at(jnp.asarray(table), jnp.asarray(around))
            # The samples leave gaps, and the chords miss what lies between columns.
            assert float(values.max()) - 0.15 <= row[node] <= float(values.max()) + 0.05
    assert found[-1].mean() > found[1].mean() > found[0].mean()


@pytest.mark.parametrize("periodic", [(), (0,)])
def test_boxes_find_the_maximum(periodic, rng):
    """At nodes, with sides among the sizes, against dense samples of the box; between, linear."""
    grid = StateGrid(Box([-1.0, -2.0], [1.0, 2.0], periodic), (14, 11), Gaussian(0.0))
    backup = BoxBackup(grid, (0.7, 1.5))
    x, y = grid.nodes.T
    table = np.sin(np.pi * x + 0.3) * np.cos(y) + 0.05 * rng.normal(size=len(x))
    count = len(table)

    def found(sides):
        rows = np.concatenate([np.tile(sides, (count, 1)), [[0.9, 0.5]]])  # the last: the largest
        prediction = Prediction(
            jnp.zeros(count + 1), jnp.asarray([*grid.nodes, [0, 0]]), sides=jnp.asarray(rows)
        )
        sizes = backup.dilation_sizes(prediction)
        places = backup.locate(prediction, sizes, jnp.asarray(0.0))
        return np.asarray(backup.read(backup.prepare(jnp.asarray(table), sizes), places))[:-1]

    offsets = np.stack([g.ravel() for g in np.meshgrid(*[np.linspace(-1, 1, 41)] * 2)], axis=1)
    for sides in ([0.0, 0.0], [0.9, 0.5], [0.9, 0.0], [0.9 * 0.16, 0.5 * 0.36]):
        values = found(sides)
        for node in range(0, count, 7):
            around = grid.nodes[node] + offsets * np.array(sides)
            dense = float(grid.value_at(jnp.asarray(table), jnp.asarray(around)).max())
            # Ends between nodes are looked at along each axis, not at once.
            assert dense - 0.05 <= values[node] <= dense + 0.05
    low, high, middle = found([0.9 * 0.16, 0.5]), found([0.9 * 0.36, 0.5]), found([0.9 * 0.26, 0.5])
    np.testing.assert_allclose(middle, (low + high) / 2, atol=1e-12)


def test_candidates_lie_in_the_ellipsoid(rng):
    units = EllipsoidBackup(
        StateGrid(Box([-1.0] * 3, [1.0] * 3), (3, 3, 3), Gaussian(0.0)), (1.0,) * 3
    )
    assert np.linalg.norm(units._unit_members(), axis=1).max() <= 1 + 1e-12


def test_ties_are_broken_by_the_seed():
    flat = make(MeanModel(lambda z: 0 * z[:, 0], move))
    planner = GridPlanner(state_points=11, action_points=11)
    actions = {
        seed: np.asarray(
            jnp.stack(
                [
                    planner.plan(flat, key=jax.random.key(seed)).policy.actions(
                        jnp.zeros((1, 1)), h
                    )
                    for h in range(H)
                ]
            )
        )
        for seed in (0, 1)
    }
    assert len(np.unique(actions[0])) > 1
    assert not np.array_equal(actions[0], actions[1])


def test_values_are_clipped_at_their_trivial_bound():
    family = dataclasses.replace(FAMILY, widths=jnp.array([5.0, 0.5]))
    plan = points_for(1).plan(make(family, reward_range=(-1.0, 1.0)), key=KEY)
    assert float(jnp.max(plan.values[0])) <= H + 1e-12
    assert float(jnp.max(plan.values[H - 1])) <= 1 + 1e-12


def test_grid_too_large_is_refused_with_its_size():
    planner = GridPlanner(state_points=2000, action_points=2000)
    with pytest.raises(ArgumentError, match=r"fewer state_points.*4,000,000 states x 2,000"):
        planner.plan(make(TRUTH, 2), key=KEY)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"optimism": "hope"}, "optimism: expected one of 'ball', 'upper', 'bonus'"),
        ({"state_points": (5, 5)}, "state_points: expected 1 counts"),
        ({"action_points": 0}, "action_points: expected 1 counts of at least 1"),
        ({"state_points": 1}, "state_points: expected at least 2 nodes"),
    ],
)
def test_bad_input(words, message):
    with pytest.raises(ArgumentError, match=message):
        GridPlanner(**words).plan(make(TRUTH), key=KEY)


def test_nothing_retraces():
    mdp, planner, traces = make(TRUTH), points_for(1), []

    class Counted(Model):
        gain: jax.Array

        def __call__(self, points):
            traces.append(1)
            return Prediction(self.gain * reward(points), move(points))

    for gain in range(3):
        planner.plan(dataclasses.replace(mdp, model=Counted(jnp.asarray(float(gain)))), key=KEY)
    assert len(traces) == 1
