"""SOMBRL: the mean transition, and a bonus for what is uncertain."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.planners.noise_bonus import theorem_weight


@pytest.fixture(scope="module")
def agent():
    agent = km.SOMBRL("rkhs", seed=0, bonus=0.5)
    agent.learn(3, progress=False)
    return agent


def test_the_reward_has_the_bonus_and_the_motion_is_the_mean(agent):
    points = jnp.asarray(np.random.default_rng(0).uniform(-1, 1, (20, 2)))
    mdp = agent.learner.with_bonus(agent.state, transition_weight=3.0, reward_weight=0.5)
    mean = agent.learner.mean(agent.state).model(points)
    _, state_std = agent.beliefs.predict_state(points)
    _, reward_std = agent.beliefs.predict_reward(points)
    expected = np.sqrt(9 * np.sum(np.asarray(state_std) ** 2, axis=1) + 0.25 * reward_std**2)
    prediction = mdp.model(points)
    np.testing.assert_allclose(prediction.reward - mean.reward, expected, rtol=1e-9)
    np.testing.assert_array_equal(prediction.state, mean.state)
    assert expected.min() > 0


def test_the_weight_has_the_units_of_the_data(agent):
    """λ is the bonus times the span of rewards over the mean motion in scaled units."""
    rewards = np.concatenate([np.asarray(each.rewards) for each in agent.history[:2]])
    changes = np.concatenate([each.outcomes - each.states[:-1] for each in agent.history[:2]])
    squares = np.sum((changes / np.asarray(agent.beliefs.scale)) ** 2, axis=1)
    expected = 0.5 * np.ptp(rewards) / np.sqrt(np.mean(squares))
    assert agent.diagnostics()["bonus_weight"] == pytest.approx(expected)


def test_it_explores_where_the_mean_does_not():
    """Far up the river is a reward that the greedy mean never looks for."""
    regrets = {}
    for kind in (km.SOMBRL, km.Greedy):
        settings = {"bonus": 1.0} if kind is km.SOMBRL else {}
        result = kind("riverswim", seed=0, **settings).learn(30, progress=False)
        regrets[kind.name] = result.episodes["cumulative_regret"][-1]
    assert regrets["sombrl"] < 0.7 * regrets["greedy"]


def test_no_theorem_covers_it(agent):
    assert not agent.coverage.covered


def test_mpc_plans_with_the_bonus():
    planner = km.MPCPlanner(horizon=4, samples=14, elites=3, iterations=1)
    agent = km.SOMBRL("Pendulum-v1", horizon=12, planner=planner, seed=0)
    result = agent.learn(2, progress=False)
    assert np.isnan(result.episodes["bonus_weight"][0])  # the first episode is not planned
    assert result.episodes["bonus_weight"][1] > 0


def test_the_bonus_is_positive():
    with pytest.raises(ArgumentError, match="bonus"):
        km.SOMBRL("rkhs", bonus=0.0)


def test_a_learner_without_posteriors_has_no_bonus():
    agent = km.SOMBRL("riverswim", learner="counts", seed=0)
    with pytest.raises(ArgumentError, match="posteriors"):
        agent.plan(key=jax.random.key(0))


def test_the_bonus_of_the_theorem_is_optimistic():
    """Planned values are above the optimum at every node, in every episode."""
    env = km.make("rkhs", horizon=3)
    agent = km.SOMBRL(env, seed=0, bonus="theorem", confidence="valid")
    start = agent.task.start
    optimum = agent.task.optimal_value(start)
    for _ in range(3):
        agent.ask(start)
        plan = agent.planned
        assert plan.value(start) >= optimum.value - optimum.error
        assert plan.values[0].max() <= 3 * agent.problem.reward_range[1] + 1e-9  # they are clipped
        agent.learn(1, progress=False)
    assert agent.coverage.covered
    assert agent.diagnostics()["bonus_weight"] == theorem_weight(agent.problem)


def test_the_weight_of_the_theorem():
    """λ = 2B(H − 1)/(σ√(2π)), with σ in units of the scale."""
    problem = km.make("rkhs", horizon=4).problem
    top = max(abs(end) for end in problem.reward_range)
    deviation = problem.transition_noise.standard_deviations(1)[0] / problem.scale[0]
    expected = 2 * top * 3 / (deviation * np.sqrt(2 * np.pi))
    assert theorem_weight(problem) == pytest.approx(expected, rel=1e-12)
    assert theorem_weight(km.make("rkhs", horizon=1).problem) == 0.0


def test_other_planners_have_no_such_bonus():
    with pytest.raises(ArgumentError, match="planner"):
        km.SOMBRL("rkhs", bonus="theorem", planner="mpc", seed=0)
    with pytest.raises(ArgumentError, match="bonus"):
        km.SOMBRL("rkhs", bonus=-1.0, seed=0)
