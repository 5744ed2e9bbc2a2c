"""The frugal agent: careful plans, explorations that pay, and a record of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.agents.exploration_record import ExplorationRecord
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import Episode
from kernelmdp.mdp.evaluation import grid_value
from kernelmdp.planners import MPCPlanner

KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def agent():
    """After five episodes."""
    made = km.Frugal("rkhs", seed=0)
    made.learn(episodes=5, progress=False)
    return made


def test_pessimistic_rewards_are_lower_by_standard_deviations(agent):
    points = jnp.asarray(agent.problem.points.spread_points(50))
    mean = agent.learner.mean(agent.state).model(points)
    low = agent.learner.pessimistic(agent.state, deviations=2.0).model(points)
    deviation = agent.beliefs.predict_reward(points)[1]
    np.testing.assert_allclose(mean.reward - low.reward, 2 * deviation, atol=1e-9)
    np.testing.assert_allclose(mean.state, low.state)
    known = km.Frugal("rkhs", reward="known", seed=0)
    unchanged = known.learner.pessimistic(known.state, deviations=2.0).model(points)
    np.testing.assert_allclose(unchanged.reward, known.problem.reward(points))


def test_plans_are_evaluated_in_other_mdps(agent):
    plan = agent.planner.plan(agent.learner.mean(agent.state), start=None, key=KEY)
    draws = [agent.learner.sample(agent.state, key=key) for key in jax.random.split(KEY, 2)]
    expected = [grid_value(mdp, plan.policy, plan.grid, [0.0]) for mdp in draws]
    # Sixteen episodes with noise 0.1 in ten rewards, and what it does to states.
    np.testing.assert_allclose(plan.values_in(draws, [0.0]), expected, atol=0.5)


def test_plans_in_tables_are_evaluated_exactly():
    agent = km.Frugal("riverswim", seed=0)
    agent.learn(3, progress=False)
    plan = agent.planner.plan(agent.learner.mean(agent.state), start=None, key=KEY)
    draws = [agent.learner.sample(agent.state, key=key) for key in jax.random.split(KEY, 2)]
    expected = [grid_value(mdp, plan.policy, plan.grid, [0.0]) for mdp in draws]
    np.testing.assert_allclose(plan.values_in(draws, [0.0]), expected)


def test_open_loop_values_of_mpc():
    """In its own deterministic MDP the planned sequence is worth the planned return."""
    env = km.make("cartpole-swingup", horizon=8)
    plan = MPCPlanner(horizon=8, first_rounds=2).plan(env.mdp, key=KEY)
    start = np.asarray(env.draw_start(KEY))
    (value,) = plan.values_in([env.mdp], start)
    assert value == pytest.approx(plan.value(start), abs=1e-6)


def test_the_last_episode_is_careful(agent):
    fresh = km.Frugal("rkhs", seed=0, learning_episodes=1)
    fresh.ask([0.0])
    assert fresh.diagnostics() == {"explored": 0.0, "promised_gain": 0.0, "expected_cost": 0.0}


def test_decisions_follow_the_rule(agent):
    rows = km.Frugal("rkhs", seed=1).learn(episodes=6, progress=False).episodes
    assert set(rows["explored"]) <= {0.0, 1.0}
    assert (rows["promised_gain"] >= 0).all()
    assert (rows["expected_cost"] >= 0).all()
    assert rows["explored"][-1] == 0.0  # nothing comes after it


def test_explorations_are_tried_where_nothing_was_found():
    """RiverSwim: careful plans stay downstream, and the reward is upstream."""
    frugal = km.Frugal("riverswim", seed=0)
    rows = frugal.learn(episodes=40, progress=False).episodes
    assert rows["explored"].sum() > 0


def test_a_loaded_agent_decides_as_before(tmp_path):
    whole = km.Frugal("rkhs", seed=2, learning_episodes=8)
    whole.learn(episodes=4, progress=False)
    whole.save(tmp_path / "agent.kmdp")
    loaded = km.load(tmp_path / "agent.kmdp")
    assert loaded.totals == whole.totals
    first, second = (each.learn(episodes=2, progress=False).episodes for each in (whole, loaded))
    for column in ("return", *whole.columns):
        np.testing.assert_array_equal(first[column], second[column])


def test_the_record_of_explorations():
    record = ExplorationRecord({})
    assert record.improvement == np.inf
    record.see_other(1.0)
    record.see_careful(2.0)
    assert record.improvement == 1.0
    record.see_exploration(0.0, promised=4.0)  # costs 2 and earns nothing of its promise
    assert record.trust(0.2, 5.0) == pytest.approx(1 / 6)
    assert record.corrected_cost(4.0) == pytest.approx(3.0)
    record.see_careful(4.0)  # half of what was promised, one episode later
    assert record.trust(0.2, 5.0) == pytest.approx(1.5 / 6)
    assert record.improvement == 2.0


def test_a_draw_that_knows_less_than_experience_promises_nothing():
    """The gain is counted from what careful episodes have earned, where that is more."""
    promised = {}
    for level in (-np.inf, 3.0, 1e6):
        agent = km.Frugal("rkhs", seed=0, learning_episodes=20)
        agent.learn(episodes=3, progress=False)
        agent.totals["level"] = level
        assert ExplorationRecord(agent.totals).level == level
        agent.ask([0.0])
        promised[level] = agent.diagnostics()["promised_gain"]
    assert promised[1e6] == 0.0
    assert promised[-np.inf] >= promised[3.0] >= 0.0
    assert promised[-np.inf] > 0.0


def test_nothing_tells_plans_apart_until_rewards_differ_or_an_episode_ends():
    def episode(rewards, **ending):
        rewards = np.asarray(rewards, float)
        states = np.zeros((len(rewards) + 1, 1))
        return Episode(states, np.zeros((len(rewards), 1)), rewards, states[1:], **ending)

    for informative in (episode([-1, -2]), episode([-2, -2]), episode([-1], terminated=True)):
        record = ExplorationRecord({})
        record.see_steps(episode([-1, -1]))
        record.see_steps(episode([-1, -1]))
        assert not record.is_informed
        record.see_steps(informative)
        assert record.is_informed


@pytest.mark.parametrize(
    "settings",
    [{"draws": 1}, {"trust": 1.5}, {"pessimism": -1.0}, {"learning_episodes": 0}],
)
def test_bad_input(settings):
    with pytest.raises(ArgumentError, match=next(iter(settings))):
        km.Frugal("rkhs", seed=0, **settings)


@pytest.mark.parametrize("kernel", [None, "auto"])
def test_careful_plans_of_linear_quadratic_systems(kernel):
    """Lowered rewards are not quadratic, so Riccati plans are for the mean."""
    agent = km.Frugal("lqr-1d", seed=0, kernel=kernel)
    assert type(agent.planner) is km.planners.RiccatiPlanner
    assert agent.pessimism == 0
    assert km.Frugal("lqr-1d", seed=0, kernel=kernel, planner="mpc").pessimism == 1
    if kernel is None:
        result = agent.learn(episodes=12, progress=False)
        random = km.Random("lqr-1d", seed=0).learn(episodes=12, progress=False)
        assert result.regret < 0.2 * random.regret
