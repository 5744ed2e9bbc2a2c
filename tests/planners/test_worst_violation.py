"""The worst probability of a violation: against dense NumPy, closed forms and simulation."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import (
    MDP,
    NO_NOISE,
    Categorical,
    Gaussian,
    MeanModel,
    Model,
    Prediction,
    rollout,
)
from kernelmdp.mdp.constraint_parsing import as_constraints
from kernelmdp.mdp.constraints import Constraint, Violation
from kernelmdp.mdp.fallback import Fallback, as_fallback
from kernelmdp.mdp.noise import Uniform
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.planners import GridPlanner, SafeGridPlanner
from kernelmdp.planners.state_cells import StateCells
from kernelmdp.planners.worst_violation import broken_points, cell_facts, violation_bound

BOX = km.Box([-1.0], [1.0])
NOISE = Gaussian(0.1)


class Family(Model):
    """Means around a centre: s' = gain·s + push·a, within a radius."""

    gain: float
    push: float
    radius: float

    def __call__(self, points):
        m = points.shape[1] - 1
        state = self.gain * points[:, :m] + self.push * points[:, m:]
        return Prediction(
            reward=points[:, 0],
            state=state,
            reward_width=jnp.zeros(points.shape[0]),
            radius=jnp.full(points.shape[0], self.radius),
        )


def made(model, *, states=BOX, noise=NOISE, horizon=4, constraints="state <= 0.6"):
    limits = as_constraints(constraints, states=states, actions=BOX)
    return MDP(
        model,
        states=states,
        actions=BOX,
        horizon=horizon,
        reward_noise=NO_NOISE,
        transition_noise=noise,
        signals={"violation": Violation(limits, states.dimension)},
    )


def planned(mdp, *, points=41, actions=5, risk=0.1, gain=0.9, fallback=None, **fields):
    grid = GridPlanner(state_points=points, action_points=actions, refine=False, envelope=False)
    slopes = (gain,) * mdp.states.dimension
    planner = SafeGridPlanner(grid, slopes, risk=risk, fallback=fallback, **fields)
    return planner.plan(mdp, key=jax.random.key(0))


# Cells and noise.


@pytest.mark.parametrize("noise", [Gaussian(0.07), Uniform(0.1), NO_NOISE, Gaussian(0.4)])
@pytest.mark.parametrize("periodic", [(), (0,)])
def test_expectations_are_rounded_up_and_close(noise, periodic):
    """Compared with the exact sum of probabilities of cells, at many means."""
    states = km.Box([-1.0], [1.0], periodic=periodic)
    cells = StateCells(StateGrid(states, (20,), noise), 4)
    table = np.random.default_rng(0).random(20)
    bound = violation_bound(cells.grid, (1.0,))
    means = np.linspace(-1.8, 1.8, 301)
    prediction = Prediction(reward=jnp.zeros(301), state=jnp.asarray(means)[:, None])
    inflation = jnp.zeros(1)
    positions = bound.locate(prediction, inflation, jnp.zeros(()))
    ours = np.asarray(bound.read(bound.prepare(jnp.asarray(table), inflation), positions))
    draws = np.linspace(0, 1, 20_002)[1:-1]
    size = noise.sizes[0]
    unit = 2 * draws - 1 if noise.__class__ is Uniform else scipy.stats.norm.ppf(draws)
    outcomes = states.nearest(jnp.asarray((means[:, None] + size * unit[None]).reshape(-1, 1)))
    exact = table[np.asarray(cells.index(outcomes))].reshape(len(means), -1).mean(axis=1)
    assert (ours >= exact - 1e-3).all()
    assert np.mean(ours - exact) < (0.25 if size < 0.2 else 0.05)


@pytest.mark.parametrize("slope", [None, 1.0])
def test_a_cell_across_the_seam_is_checked_on_both_sides(slope):
    """Angles beyond 3.1 are forbidden, between the corners of the cell of -π."""
    states = km.Box([-np.pi, -1.0], [np.pi, 1.0], periodic=[0])
    cells = StateCells(StateGrid(states, (8, 3), NOISE), 2)
    assert (cells.corners[0] == cells.grid.nodes).all()
    assert (np.abs(cells.corners[..., 0]) <= np.pi).all()
    limits = as_constraints("state[0] <= 3.1", states=states, actions=BOX)
    if slope is not None:
        limits = (Constraint(lambda s: s[:, 0] - 3.1, "angle", slope=slope),)
    facts = cell_facts(cells, Violation(limits, 2), None)
    first = cells.grid.nodes[:, 0] == -np.pi
    assert np.asarray(facts.broken)[first].all()
    assert not np.asarray(facts.broken)[np.abs(cells.grid.nodes[:, 0]) < 2].any()
    on_actions = (Constraint(lambda s, a: s[:, 0] - 3.1 + 0 * a[:, 0], "angle", slope=slope),)
    pairs = np.asarray(broken_points(cells, Violation(on_actions, 2), jnp.zeros((2, 1))))
    assert pairs[first].all()


def test_a_trusted_box_that_ends_at_the_seam():
    """The cell of -π has states that are not trusted, between corners that are."""
    states = km.Box([-np.pi], [np.pi], periodic=[0])
    cells = StateCells(StateGrid(states, (8,), NOISE), 2)
    limits = as_constraints("state <= 3.1", states=states, actions=BOX)
    fallback = Fallback(None, km.Box([-3.1], [3.1]))
    facts = cell_facts(cells, Violation(limits, 1), fallback)
    assert facts.inside.tolist() == [False] + [True] * 7
    assert facts.touched.all()
    near = Fallback(None, km.Box([3.0], [3.1]))  # in the part of the first cell beyond the seam
    assert cell_facts(cells, Violation(limits, 1), near).touched.tolist() == [True] + [False] * 7


def test_the_closed_form_of_one_period():
    """H = 1 from a known mean: P(p + ε > limit) of a Gaussian, up to a part of a cell."""
    mdp = made(MeanModel(lambda z: z[:, 0], lambda z: 0.5 * z[:, :1]), horizon=1)
    plan = planned(mdp, points=401, actions=1, risk=0.5, gain=0.5)
    for start in (0.0, 0.5, 0.9):
        exact = scipy.stats.norm.sf((0.6 - 0.5 * start) / 0.1)
        worst = scipy.stats.norm.sf((0.6 - 0.0075 - 0.5 * start) / 0.1)
        assert exact <= plan.risk([start]) <= worst * 1.1 + 1e-12


def test_the_closed_form_of_a_worst_mean():
    """With a radius, the worst mean is the one nearest to the limit."""
    mdp = made(Family(0.5, 0.0, 0.2), horizon=1)
    plan = planned(mdp, points=401, actions=1, risk=0.9, gain=0.5)
    exact = scipy.stats.norm.sf((0.6 - 0.2) / 0.1)
    assert exact <= plan.risk([0.0]) <= scipy.stats.norm.sf((0.6 - 0.2 - 0.0075) / 0.1) * 1.1


# A naive oracle: dense loops over cells, actions, members and cells.


def oracle(*, gain, push, radius, slope, noise, counts, actions, limit, horizon, risk):
    """W̄ by loops. Reward is the state, so values are found along the way, without optimism."""
    nodes = np.linspace(-1, 1, counts)
    h = nodes[1] - nodes[0]
    broken = np.minimum(nodes + h / 2, 1) > limit
    worst = np.where(broken, 1.0, 0.0)
    low = np.concatenate([[-np.inf], nodes[1:] - h / 2])
    high = np.concatenate([nodes[:-1] + h / 2, [np.inf]])
    tables = [worst]
    for _ in range(horizon):
        risks = np.zeros((counts, len(actions)))
        for i, a in itertools.product(range(counts), range(len(actions))):
            centre = gain * nodes[i] + push * actions[a]
            reach = radius + slope * h / 2
            means = np.linspace(centre - reach, centre + reach, 41)
            cdf = scipy.stats.norm.cdf
            shares = cdf((high - means[:, None]) / noise) - cdf((low - means[:, None]) / noise)
            risks[i, a] = (shares @ worst).max()
        tables.append(risks)
        worst = np.where(broken, 1.0, risks.min(axis=1))
    return tables


@pytest.mark.parametrize("radius", [0.0, 0.1, 0.3])
def test_the_least_risk_is_that_of_a_naive_oracle(radius):
    """With no risk allowed, every cell takes its least W: both inductions are the same."""
    actions = np.linspace(-1, 1, 3)
    facts = {"gain": 0.8, "push": 0.3, "radius": radius, "horizon": 3}
    exact = oracle(**facts, slope=0.8, noise=0.1, counts=21, actions=actions, limit=0.6, risk=0.0)
    mdp = made(Family(0.8, 0.3, radius), horizon=3)
    plan = planned(mdp, points=21, actions=3, risk=0.0, gain=0.8)
    worst = np.asarray(plan.policy.risks.worst)[::-1]
    broken = exact[0] == 1
    for left in (1, 2, 3):
        expected = np.where(broken, 1.0, exact[left].min(axis=1))
        assert (worst[left] >= expected - 1e-9).all()
        assert np.abs(worst[left] - expected).max() < 0.12
        assert np.median(worst[left] - expected) < 0.03


# Properties.


@settings(max_examples=15, deadline=None)
@given(st.floats(0.0, 0.4), st.floats(0.0, 0.4), st.floats(0.0, 0.5), st.integers(0, 2**16))
def test_risks_are_probabilities_that_grow_with_radius_and_time(first, second, risk, seed):
    small, large = sorted((first, second))
    tables = [
        np.asarray(planned(made(Family(0.8, 0.3, r)), risk=0.0).policy.risks.worst)
        for r in (small, large)
    ]
    assert all((table >= 0).all() and (table <= 1).all() for table in tables)
    assert (tables[0] <= tables[1] + 1e-12).all()  # more members, more risk
    assert (tables[0][:-1] >= tables[0][1:] - 1e-12).all()  # more periods, more risk


class Played(Policy):
    """The actions of a plan, for simulation with many episodes at once."""

    policy: Policy

    def actions(self, states, period):
        return self.policy.actions(states, period)


def simulated(policy, *, start, gain, push, shift, horizon=4, episodes=4000):
    """The share of episodes with a violation, where the mean is a member of the family."""
    truth = made(
        MeanModel(lambda z: z[:, 0], lambda z: gain * z[:, :1] + push * z[:, 1:] + shift),
        horizon=horizon,
    )
    starts = jnp.full((episodes, 1), start)
    states = rollout(truth, policy, starts, key=jax.random.key(1))[0]
    return float(jnp.mean(jnp.any(states[1:, :, 0] > 0.6, axis=0)))


@pytest.mark.parametrize("shift", [-0.15, 0.0, 0.15])
@pytest.mark.parametrize("risk", [0.02, 0.2, 0.6])
def test_no_member_violates_more_often_than_planned(shift, risk):
    plan = planned(made(Family(0.9, 0.4, 0.15)), points=81, actions=9, risk=risk)
    for start in (-0.4, 0.13, 0.5):
        share = simulated(plan.policy, start=start, gain=0.9, push=0.4, shift=shift)
        error = np.sqrt(share * (1 - share) / 4000) + 1e-3
        assert share <= plan.risk([start]) + 4 * error


def test_more_risk_is_worth_more():
    values = [
        planned(made(Family(0.9, 0.4, 0.05)), points=81, actions=9, risk=risk).value([0.0])
        for risk in (0.001, 0.05, 0.5)
    ]
    assert values[0] < values[1] < values[2]


def test_plans_keep_to_the_risk_where_they_can():
    plan = planned(made(Family(0.9, 0.4, 0.1)), points=81, actions=9, risk=0.05)
    assert 0 < plan.risk([0.0]) <= 0.05


# The fallback.


def braking(trusted, **fields):
    made_fallback = as_fallback((lambda s, h: -1.0 + 0 * s, trusted), states=BOX, actions=BOX)
    return Fallback(made_fallback.policy, trusted, **fields)


def test_a_trusted_fallback_acts_where_nothing_is_known():
    fallback = braking(km.Box([-1.0], [0.3]))
    plan = planned(made(Family(0.9, 0.4, 3.0)), risk=0.05, fallback=fallback)
    assert plan.risk([0.0]) == 0.0
    assert plan.policy([0.0], 0) == -1.0
    assert plan.fallback_acts(np.array([[0.0], [0.29], [0.1]]), np.zeros((3, 1))).all()
    # The cell of 0.3 is cut by the border of the trusted set, and the state decides.
    assert plan.risk([0.299]) == 0.0
    assert plan.risk([0.301]) == 1.0


def test_a_fallback_that_may_leave_costs_its_probability():
    fallback = braking(km.Box([-1.0], [0.3]), leaves=0.01)
    plan = planned(made(Family(0.9, 0.4, 3.0), horizon=4), risk=0.05, fallback=fallback)
    assert np.isclose(plan.risk([0.0]), 0.04)


@pytest.mark.parametrize("radius", [0.05, 0.2, 0.5])
def test_in_trusted_states_the_risk_is_always_kept(radius):
    fallback = braking(km.Box([-1.0], [0.25]))
    plan = planned(made(Family(0.9, 0.4, radius)), risk=0.03, fallback=fallback)
    assert max(plan.risk([s]) for s in np.linspace(-1, 0.25, 26)) <= 0.03 + 1e-12


def test_every_state_keeps_the_bound_of_its_cell():
    """Also where a cell is trusted in part, and the fallback is worth more there, at more risk."""
    trusted = km.Box([-1.0], [0.31])
    policy = as_fallback(lambda s, h: 0.37 + 0 * s, states=BOX, actions=BOX).policy
    fallback = Fallback(policy, trusted, leaves=0.02)
    plan = planned(made(Family(0.5, 0.5, 0.02)), actions=2, risk=0.2, gain=0.5, fallback=fallback)
    safe, states = plan.policy, jnp.linspace(-1, 1, 2001)[:, None]
    cells = safe.risk_bound.cells.index(states)
    acted = False
    for period in range(4):
        _, _, risks, acts = safe.choose(safe.reset(2001), states, jnp.asarray(period))
        assert (risks <= safe.risks.worst[period][cells] + 1e-12).all()
        acted |= bool(acts[(states[:, 0] > 0.28) & (states[:, 0] < 0.31)].any())
    assert acted


def test_without_trust_the_fallback_acts_when_all_is_equally_unsafe():
    policy = as_fallback(lambda s, h: -0.3 + 0 * s, states=BOX, actions=BOX)
    plan = planned(made(Family(0.9, 0.4, 3.0)), risk=0.05, fallback=policy)
    assert plan.risk([0.0]) == 1.0
    assert np.isclose(plan.policy([0.0], 0), -0.3)


# Other spaces.


def test_constraints_on_actions():
    mdp = made(Family(0.5, 0.1, 0.0), constraints=["state <= 0.9", "action <= 0.2"])
    plan = planned(mdp, actions=11, risk=0.05)
    assert all(plan.policy([s], 0) <= 0.2 for s in (-0.5, 0.0, 0.5))


def test_a_function_with_a_slope_is_rounded_up():
    curve = Constraint(lambda s: s[:, 0] ** 3 - 0.3, "curve", slope=3.0)
    mdp = made(Family(0.5, 0.1, 0.0), constraints=[curve])
    broken = np.asarray(planned(mdp, points=41).policy.risks.worst[-1]) == 1
    nodes = np.linspace(-1, 1, 41)
    assert (broken == (nodes**3 - 0.3 + 3.0 * 0.025 > 0)).all()


def test_two_coordinates_and_three():
    for m, points in ((2, 15), (3, 7)):
        states = km.Box([-1.0] * m, [1.0] * m)
        mdp = made(Family(0.8, 0.3, 0.05), states=states, constraints="state[1] <= 0.7")
        plan = planned(mdp, points=points, actions=3, risk=0.2, gain=0.8)
        share = _share_in(plan.policy, states, 0.8, 0.3, limit=0.7)
        assert share <= plan.risk([0.0] * m) + 0.03


def _share_in(policy, states, gain, push, limit):
    truth = made(
        MeanModel(
            lambda z: z[:, 0],
            lambda z: gain * z[:, : states.dimension] + push * z[:, states.dimension :],
        ),
        states=states,
        constraints="state[1] <= 0.7",
    )
    starts = jnp.zeros((2000, states.dimension))
    visited = rollout(truth, policy, starts, key=jax.random.key(2))[0]
    return float(jnp.mean(jnp.any(visited[1:, :, 1] > limit, axis=0)))


class TableFamily(Model):
    """Distributions around those of a table."""

    rows: jnp.ndarray
    radius: float

    def __call__(self, points):
        state, action = (jnp.round(points[:, j]).astype(int) for j in (0, 1))
        count = points.shape[0]
        return Prediction(
            reward=points[:, 1],
            state=self.rows[state, action],
            reward_width=jnp.zeros(count),
            radius=jnp.full(count, self.radius),
        )


@pytest.mark.parametrize("radius", [0.0, 0.1, 0.4, 2.0])
def test_tables_against_a_convex_program(radius):
    """One period of a table: sup ⟨p, W̄⟩ over a ball in the simplex, by SciPy."""
    rng = np.random.default_rng(3)
    rows = rng.dirichlet(np.ones(4), (4, 2))
    states, actions = km.FiniteSet.range(4), km.FiniteSet.range(2)
    limits = as_constraints("state <= 2", states=states, actions=actions)
    mdp = MDP(
        TableFamily(jnp.asarray(rows), radius),
        states=states,
        actions=actions,
        horizon=3,
        reward_noise=NO_NOISE,
        transition_noise=Categorical(states),
        signals={"violation": Violation(limits, 1)},
    )
    plan = SafeGridPlanner(GridPlanner(), risk=0.0).plan(mdp, key=jax.random.key(0))
    worst = np.array([0.0, 0.0, 0.0, 1.0])
    for period in (2, 1, 0):
        risks = np.array([[_largest(rows[s, a], worst, radius) for a in (0, 1)] for s in range(4)])
        worst = np.where(np.arange(4) == 3, 1.0, risks.min(axis=1))
        ours = np.asarray(plan.policy.risks.worst[period])
        assert (ours >= worst - 1e-6).all()
        assert np.allclose(ours, worst, atol=1e-3)


def _largest(centre, worst, radius):
    if radius == 0:
        return float(centre @ worst)
    result = scipy.optimize.minimize(
        lambda p: -p @ worst,
        centre,
        bounds=[(0, 1)] * len(centre),
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "ineq", "fun": lambda p: radius**2 - ((p - centre) ** 2).sum()},
        ],
        tol=1e-12,
    )
    return -float(result.fun)


def test_a_finite_set_that_is_no_table_is_refused():
    states = km.FiniteSet([[0.0], [1.0]])
    with pytest.raises(ArgumentError, match="a box of at most 3 coordinates, or a table"):
        violation_bound(StateGrid(states, (), Gaussian(0.1)), (1.0,))
