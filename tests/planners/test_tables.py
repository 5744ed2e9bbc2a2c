"""Planning in tables: the ball in the simplex, and backward induction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from kernelmdp.domains import FiniteSet
from kernelmdp.envs import make, tabular
from kernelmdp.mdp import Categorical, StateGrid
from kernelmdp.mdp.noise import onto_simplex
from kernelmdp.planners import GridPlanner
from kernelmdp.planners.optimism import SimplexBackup, TableBonusBackup


def choice(kind, states):
    space = FiniteSet.range(states)
    return kind(StateGrid(space, (2,), Categorical(space)), (1.0,) * states)


def best_in_ball(kind, means, radius, values):
    chooser = choice(kind, len(values))
    table = chooser.prepare(jnp.asarray(values), jnp.zeros(1))
    return np.asarray(chooser.read(table, (jnp.asarray(means), jnp.asarray(radius))))


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_nearest_distribution(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1, 6)) * 10 ** rng.uniform(-2, 2)
    found = np.asarray(onto_simplex(jnp.asarray(x)))[0]
    np.testing.assert_allclose(found.sum(), 1.0, atol=1e-12)
    assert (found >= 0).all()
    for _ in range(50):  # the variational inequality of a projection
        other = rng.dirichlet(np.ones(6))
        assert (x[0] - found) @ (other - found) <= 1e-9 * max(1, np.abs(x).max())


def test_the_best_distribution_in_a_ball_is_exact():
    rng = np.random.default_rng(0)
    means = rng.dirichlet(np.full(6, 0.5), 30)
    radius, values = 10 ** rng.uniform(-2, 0.2, 30), rng.normal(size=6) * 3
    found = best_in_ball(SimplexBackup, means, radius, values)
    bound = best_in_ball(TableBonusBackup, means, radius, values)
    for mean, size, ours, above in zip(means, radius, found, bound, strict=True):
        theirs = minimize(
            lambda p: -p @ values,
            mean,
            jac=lambda p: -values,
            bounds=[(0, 1)] * 6,
            constraints=[
                {"type": "eq", "fun": lambda p: p.sum() - 1},
                {"type": "ineq", "fun": lambda p, m=mean, r=size: r**2 - ((p - m) ** 2).sum()},
            ],
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert -theirs.fun <= ours + 1e-5
        assert ours <= -theirs.fun + 1e-3 * (1 + abs(ours)) or not theirs.success
        assert ours <= above + 1e-9


@pytest.mark.parametrize("radius", [0.0, 5.0])
def test_no_room_and_all_room(radius):
    means, values = np.array([[0.2, 0.3, 0.5]]), np.array([1.0, -2.0, 4.0])
    expected = means[0] @ values if radius == 0 else 4.0
    for kind in (SimplexBackup, TableBonusBackup):
        np.testing.assert_allclose(
            best_in_ball(kind, means, np.array([radius]), values), expected, atol=1e-9
        )


def tables(environment):
    model = environment.mdp.model
    return np.asarray(model.transition.table), np.asarray(model.reward.table)


def test_backward_induction_is_exact():
    environment = make("tabular-random", seed=3)
    P, R = tables(environment)
    V = np.zeros(10)
    for _ in range(environment.mdp.horizon):
        V = (R + P @ V).max(axis=1)
    plan = GridPlanner().plan(environment.mdp, key=jax.random.key(0))
    np.testing.assert_allclose(plan.value([0.0]), V[0], atol=1e-12)
    optimum = environment.optimal_value()
    assert optimum.kind == "exact"
    np.testing.assert_allclose(optimum.value, V[0], atol=1e-12)


def test_slopes_of_expected_values_are_exact():
    """L = max_h |V_h − mean(V_h)|: attained on the simplex, never exceeded."""
    environment = make("riverswim", horizon=6)
    P, R = tables(environment)
    V, rng, steepest = np.zeros(6), np.random.default_rng(0), 0.0
    for _ in range(5):
        V = (R + P @ V).max(axis=1)
        p, q = rng.dirichlet(np.ones(6), 200), rng.dirichlet(np.ones(6), 200)
        slope = np.abs((p - q) @ V) / np.linalg.norm(p - q, axis=1)
        assert slope.max() <= environment.problem.lipschitz + 1e-12
        direction = V - V.mean()
        steepest = max(steepest, direction @ V / np.linalg.norm(direction))
    np.testing.assert_allclose(environment.problem.lipschitz, steepest, rtol=1e-12)


@pytest.mark.parametrize(
    ("transitions", "rewards", "words"),
    [
        ([[[0.5, 0.4]], [[1.0, 0.0]]], [[0.0], [1.0]], "sum to 1.*state 0, action 0"),
        ([[[1.5, -0.5]], [[1.0, 0.0]]], [[0.0], [1.0]], "sum to 1"),
        ([[[0.0, 1.0]], [[1.0, 0.0]]], [[0.0], [np.nan]], "rewards"),
        ([[[0.0, 1.0]], [[1.0, 0.0]]], [["a"], ["b"]], "numbers"),
        ([[[0.0, 1.0]], [[1.0, 0.0]]], [0.0, 1.0], "rewards.*shape"),
        ([[0.0, 1.0]], [[0.0]], "transitions.*shape"),
    ],
)
def test_bad_tables(transitions, rewards, words):
    with pytest.raises(ValueError, match=words):
        tabular(transitions, rewards, horizon=2)
