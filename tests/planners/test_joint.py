"""Optimism over whole functions: extreme functions, gradients, plans and what is claimed."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.confidence import AdaptiveConfidence
from kernelmdp.errors import ArgumentError, UnknownPropertyError
from kernelmdp.experiments import run_bound
from kernelmdp.gp.ellipsoid import function_set
from kernelmdp.mdp import MDP, Gaussian, MeanModel
from kernelmdp.planners.joint_planner import JointPlanner, value_and_gradient

LINE = km.Box([-1.0], [1.0])
PAIRS = km.join(state=LINE, action=LINE)


def observed(outputs, kernel="se(0.7)"):
    """A posterior from ten rows, and its dense twin: kernel function, rows and targets."""
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (10, 2))
    targets = rng.standard_normal((10, outputs))
    rule = km.kernel(f"{kernel} @ index({outputs})")
    held = km.gp.posterior(rule, noise_variance=0.1, domain=PAIRS, tolerance=1e-10)
    return held.condition(points, targets), km.kernel(kernel), points, targets


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_extreme_function_is_that_of_dense_arithmetic(outputs):
    """max Σ⟨d_i, f(z_i)⟩ = ⟨d, μ⟩ + β√(dᵀΣd), attained by μ + βΣd/√(dᵀΣd)."""
    held, kernel, points, targets = observed(outputs)
    rng = np.random.default_rng(1)
    places = rng.uniform(-1, 1, (6, 2))
    directions, beta = rng.standard_normal((6, outputs)), 1.7
    K = np.asarray(kernel(points)) + 0.1 * np.eye(10)
    cross = np.asarray(kernel(places, points))
    mean = cross @ np.linalg.solve(K, targets)
    covariance = np.asarray(kernel(places)) - cross @ np.linalg.solve(K, cross.T)
    length = np.sqrt(np.sum(directions * (covariance @ directions)))
    functions = function_set([held], [beta])
    best = functions.function(functions.extreme(jnp.asarray(places), jnp.asarray(directions)))
    expected = mean + beta * covariance @ directions / length
    assert np.allclose(best(places), expected, atol=1e-6)
    deviation = np.sqrt(np.diag(covariance))
    lengths = np.linalg.norm(np.asarray(best(places)) - mean, axis=1)
    assert (lengths <= beta * deviation + 1e-6).all()


def test_of_several_ellipsoids_the_least_maximum_counts():
    held = observed(1)[0]
    places, directions = jnp.asarray([[0.2, 0.1], [0.5, -0.3]]), jnp.asarray([1.0, -0.4])

    def maximum(radii):
        functions = function_set([held] * len(radii), radii)
        best = functions.function(functions.extreme(places, directions))
        return float(directions @ best(places)[:, 0])

    assert maximum([2.0, 1.0]) == maximum([1.0]) < maximum([2.0])


def problem(horizon, termination=None):
    truth = MeanModel(
        lambda z: jnp.cos(2 * z[:, 0]) - 0.3 * z[:, 1] ** 2,
        lambda z: 0.77 * z[:, :1] + 0.31 * z[:, 1:] + 0.093,  # between the nodes
    )
    noise = Gaussian(0.1)
    return MDP(
        truth,
        states=LINE,
        actions=LINE,
        horizon=horizon,
        reward_noise=noise,
        transition_noise=noise,
        termination=termination,
    )


@pytest.mark.parametrize("ends", [False, True])
def test_gradients_are_those_of_the_optimal_value(ends):
    mdp = problem(3, (lambda z, after: after[:, 0] > 0.6) if ends else None)
    planner = JointPlanner(state_points=9, action_points=3)
    grid, points = planner.grid(mdp), jnp.asarray(planner.query_points(mdp))
    visits = jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(9)))
    prediction = mdp.model(points)
    value, (rewards, states) = value_and_gradient(mdp, grid, points, prediction, visits)
    step, rng = 1e-6, np.random.default_rng(1)
    for _ in range(5):
        by_reward, by_state = rng.standard_normal(27), rng.standard_normal((27, 1))
        moved = prediction._replace(
            reward=prediction.reward + step * by_reward, state=prediction.state + step * by_state
        )
        change = (value_and_gradient(mdp, grid, points, moved, visits)[0] - value) / step
        expected = rewards @ by_reward + jnp.sum(states * by_state)
        assert float(change) == pytest.approx(float(expected), abs=1e-4)
    # Without termination, every period is spent somewhere.
    assert float(jnp.sum(rewards)) == pytest.approx(3.0) or ends


@pytest.fixture(scope="module")
def learned():
    agent = km.GPUCRL("rkhs", confidence="valid", planner="joint", seed=0)
    return agent, agent.learn(12, progress=False).episodes


def test_plans_lie_between_the_mean_and_optimism_at_each_point(learned):
    agent, _ = learned
    family = agent.plausible()[1]
    start, key = np.zeros(1), jax.random.key(0)
    joint = agent.planner.plan(family, start=start, key=key)
    # Members need not keep the Lipschitz constant of the truth.
    free = dataclasses.replace(agent.planner.rounded_up(), envelope=False)
    pointwise = free.plan(family, start=start, key=key)
    mean = dataclasses.replace(family, model=agent.careful_mdp().model)
    assert agent.planner.plan(mean, start=start, key=key).value(start) < joint.value(start)
    assert joint.value(start) < pointwise.value(start)
    # More beginnings can only find a better member.
    thorough = dataclasses.replace(agent.planner, random_starts=8)
    better = thorough.plan(family, start=start, key=key)
    assert joint.value(start) <= better.value(start) <= pointwise.value(start)


def test_members_are_in_the_sets(learned):
    agent, _ = learned
    sets, family = agent.plausible()
    functions, rng = family.model.whole_functions(), np.random.default_rng(0)
    points = jnp.asarray(rng.uniform(-1, 1, (50, 2)))
    for _ in range(5):
        weights = jnp.asarray(rng.standard_normal((50, 2)))
        name = functions.best(points, weights[:, 0], weights[:, 1:])
        assert sets.contains(functions.member(name), points)


def test_plans_are_optimistic_here_and_sets_hold_the_truth(learned):
    _, episodes = learned
    assert np.all(episodes["covered_reward"])
    assert np.all(episodes["covered_transition"])
    shortfall = np.asarray(episodes["optimal_value"]) - np.asarray(episodes["planned_value"])
    assert np.all(shortfall <= np.asarray(episodes["optimal_value_error"]))


def test_no_bound_is_claimed_and_certificates_use_the_larger_sets(learned):
    agent, episodes = learned
    assert agent.coverage.covered  # the sets are
    bound = run_bound(agent)
    assert not bound.covered
    assert "short of optimism" in bound.text
    certificate = agent.certificate([0.0])
    optimum = episodes["optimal_value"][-1]
    assert certificate.value <= optimum <= certificate.optimum
    assert certificate.probability == pytest.approx(0.9)


def test_one_period_is_optimism_at_a_point():
    """With H = 1 one pair is visited, so a whole function is as good as a value there."""
    agent = km.GPUCRL(km.make("rkhs", horizon=1), confidence="valid", planner="joint", seed=0)
    agent.learn(3, progress=False)
    family = agent.plausible()[1]
    key, start = jax.random.key(0), np.zeros(1)
    joint = agent.planner.plan(family, start=start, key=key).value(start)
    pointwise = agent.planner.rounded_up().plan(family, start=start, key=key).value(start)
    assert joint == pytest.approx(pointwise, rel=1e-3)  # up to the error of compiled kernels


def test_dual_sets_two_dimensions_and_known_rewards():
    known = km.GPUCRL(
        "rkhs-2d",
        confidence="dual",
        planner={"name": "joint", "state_points": 15, "action_points": 5},
        reward=lambda z: -jnp.sum(z[:, :2] ** 2, axis=1),
        transition_kernel="se(2) @ index(2)",
        seed=0,
    )
    episodes = known.learn(3, progress=False).episodes
    assert np.all(np.isfinite(episodes["planned_value"]))
    family = known.plausible()[1]
    start, key = np.zeros(2), jax.random.key(0)
    wide = dataclasses.replace(known.planner.rounded_up(), optimism="ball")
    pointwise = wide.plan(family, start=start, key=key).value(start)
    assert known.planner.plan(family, start=start, key=key).value(start) < pointwise


def test_sets_that_are_not_of_whole_functions_are_refused():
    family = [("se(2)", 1.0)]
    adaptive = AdaptiveConfidence(reward_family=family, transition_family=family)
    for task, rule in (("gp-prior", {"name": "valid", "setting": "gp"}), ("rkhs", adaptive)):
        agent = km.GPUCRL(task, confidence=rule, planner="joint", seed=0)
        with pytest.raises(UnknownPropertyError, match="not for whole functions"):
            agent.learn(1, progress=False)
    table = km.GPUCRL("riverswim", confidence="valid", planner="joint", seed=0)
    with pytest.raises((ArgumentError, UnknownPropertyError), match=r"grid|weights"):
        table.learn(1, progress=False)


def test_bad_numbers_are_refused():
    for fields in ({"iterations": 0}, {"random_starts": -1}):
        with pytest.raises(ArgumentError, match=next(iter(fields))):
            JointPlanner(**fields)


def test_constraints_are_refused_and_not_planned_for_by_another_planner():
    with pytest.raises(ArgumentError, match="keeps constraints"):
        km.GPUCRL(
            "rkhs",
            confidence="valid",
            planner="joint",
            constraints="-0.9 <= state[0] <= 0.9",
            seed=0,
        )
