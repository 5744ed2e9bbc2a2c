"""Agents that keep limits of a cost which is measured, and which observations do not show."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError, DataError, KernelMDPError, ShapeError
from kernelmdp.experiments import RunConfig, interact, run
from kernelmdp.experiments.run_files import read_config
from kernelmdp.experiments.safety_record import SAFETY_FILE, write_safety

HORIZON = 12
SMALL = {"name": "mpc", "horizon": 6, "samples": 16, "first_rounds": 2}
SETTINGS = {"horizon": HORIZON, "seed": 0, "risk_for": "episode", "planner": SMALL}
LIMIT = 0.3
LIMITED = "cost <= 0.3 K"


def moved(position, speed, force, rng):
    """A cart on a rail, and how warm its motor was: that is measured, and depends on both."""
    heat = 0.5 * speed**2 + 0.2 * force**2 + 0.005 * rng.normal()
    speed = speed + 0.3 * force - 0.1 * speed + 0.005 * rng.normal()
    position = position + 0.2 * speed
    return position, speed, -((position - 1.5) ** 2), heat


class Cart(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(
        np.array([-1.0, -2.0]), np.array([3.0, 2.0]), dtype=np.float64
    )
    action_space = gymnasium.spaces.Box(-np.ones(1), np.ones(1), dtype=np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = self.speed = 0.0
        return np.zeros(2), {}

    def step(self, action):
        self.position, self.speed, reward, heat = moved(
            self.position, self.speed, float(action[0]), self.np_random
        )
        return np.array([self.position, self.speed]), reward, False, False, {"cost": heat}


def slow(observation, period):
    """Hold a speed of 0.3. It is written for observations, which do not show the cost."""
    assert observation.shape == (2,)
    return jnp.clip(0.3 - observation[1:], -0.5, 0.5)


TRUSTED = km.Box([-1.0, -0.2], [3.0, 0.4])


def made(kind, task=None, constraints=LIMITED, **settings):
    task = Cart() if task is None else task
    return kind(task, constraints=constraints, fallback=(slow, TRUSTED), **SETTINGS | settings)


@pytest.fixture(scope="module", params=[km.PSRL, km.Frugal])
def learned(request):
    agent = made(request.param)
    return agent, list(interact(agent, 4))


def test_limits_are_kept_and_returns_grow(learned):
    agent, rows = learned
    costs = np.stack([np.asarray(episode.states)[1:, 2] for episode in agent.history])
    assert sum(row["violations"] for row in rows) == 0
    assert costs[0].max() < 0.1 < costs.max() <= LIMIT  # beyond what the fallback costs
    totals = [episode.total for episode in agent.history]
    assert max(totals[1:]) > totals[0] + 2.0


def test_violations_are_steps_whose_measured_cost_was_too_high():
    agent = km.Random(Cart(), constraints="cost <= 0.05", horizon=HORIZON, seed=0)
    row = next(interact(agent, 1))
    costs = np.asarray(agent.history[0].states)[1:, 2]
    assert 0 < row["violations"] == np.sum(costs > 0.05) < HORIZON


def test_nothing_depends_on_the_cost(learned):
    agent = learned[0]
    mean = agent.learner.mean(agent.state).model
    points = jnp.array([[0.5, 0.2, cost, 0.3] for cost in (0.0, 0.7)])
    free, costly = (np.asarray(part) for part in mean(points).state)
    np.testing.assert_array_equal(free, costly)
    assert len(set(np.asarray(mean(points).reward).tolist())) == 1
    assert abs(free[2] - (0.5 * 0.2**2 + 0.2 * 0.3**2)) < 0.02


def test_costs_beyond_all_measured_ones_are_predicted():
    """After an episode of the fallback, no cost was above 0.1. Full force costs 0.2 and more."""
    agent = made(km.PSRL)
    list(interact(agent, 1))
    assert np.asarray(agent.history[0].states)[:, 2].max() < 0.1
    points = jnp.array([[0.5, 1.0, 0.0, 1.0]])
    deviation = agent.learner.beliefs(agent.state).predict_state(points)[1][0]
    scale = np.asarray(agent.learner.beliefs(agent.state).scale)
    assert deviation[2] * scale[2] > 0.05


def test_predict_takes_observations(learned):
    agent = learned[0]
    action = agent.predict([0.0, 0.0])
    np.testing.assert_array_equal(action, agent.predict({"observation": [0.0, 0.0], "cost": 0.2}))
    policy = agent.ask()
    np.testing.assert_array_equal(policy([0.0, 0.0], 0), policy([0.0, 0.0, 0.2], 0))
    with pytest.raises(ShapeError, match="observation: expected 2 numbers"):
        agent.predict([0.0, 0.0, 0.0])


def test_a_file_keeps_it(learned, tmp_path):
    agent = learned[0]
    agent.save(tmp_path / "agent.kmdp")
    again = km.load(tmp_path / "agent.kmdp", task=Cart(), fallback=(slow, TRUSTED))
    assert again.problem.coordinates == ("observation[0]", "observation[1]", "cost")
    np.testing.assert_array_equal(again.predict([0.0, 0.0]), agent.predict([0.0, 0.0]))


PROBLEM = km.Problem.from_spaces(
    states=km.Box([-1.0, -2.0], [3.0, 2.0]), actions=km.Box([-1.0], [1.0]), horizon=HORIZON
)


def told_settings(**settings):
    return SETTINGS | {"horizon": None, "constraints": LIMITED} | settings


def bench(policy, seed):
    rng, states, actions, rewards, costs = np.random.default_rng(seed), [[0.0, 0.0]], [], [], []
    for period in range(HORIZON):
        actions.append(np.asarray(policy(states[-1], period)))
        *state, reward, heat = moved(*states[-1], float(actions[-1][0]), rng)
        states.append(state)
        rewards.append(reward)
        costs.append(heat)
    return states, actions, rewards, costs


def test_ask_and_tell_with_costs():
    agent = km.PSRL(PROBLEM, fallback=(slow, TRUSTED), **told_settings())
    highest, totals = [], []
    for episode in range(3):
        states, actions, rewards, costs = bench(agent.ask([0.0, 0.0]), episode)
        agent.tell(states, actions, rewards, costs=costs)
        np.testing.assert_array_equal(agent.history[-1].states[1:, 2], costs)
        highest.append(max(costs))
        totals.append(sum(rewards))
    assert highest[0] < 0.1 < max(highest) <= LIMIT
    assert max(totals[1:]) > totals[0] + 2.0
    assert agent.problem.violation.count(agent.history[0].states, agent.history[0].actions) == 0


def test_a_reward_function_does_not_see_the_cost():
    def reward(points):
        assert points.shape[1] == 3
        return -((points[:, 0] - 1.5) ** 2)

    agent = km.PSRL(PROBLEM, reward=reward, **told_settings())
    points = jnp.array([[0.5, 0.2, 0.9, 0.3]])
    assert float(agent.problem.reward(points)[0]) == -1.0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"costs": None}, ArgumentError, "costs: expected what each of the 12 steps was measured"),
        ({"costs": [0.1] * 13}, ShapeError, "costs: expected one cost for each of the 12 steps"),
        ({"costs": [0.1] * 11 + [np.nan]}, DataError, "costs: expected finite"),
        ({"states": [[0.0]] * 13}, ShapeError, "states: expected 2 coordinates, without the cost"),
        ({"outcomes": [[0.0]] * 12}, ShapeError, "outcomes: expected shape"),
    ],
)
def test_bad_costs(changes, error, message):
    agent = km.PSRL(PROBLEM, **told_settings())
    zeros = {"states": [[0.0, 0.0]] * 13, "actions": [[0.0]] * 12, "rewards": [0.0] * 12}
    with pytest.raises(error, match=message):
        agent.tell(**zeros | {"costs": [0.1] * 12} | changes)
    assert agent.episode == 0


def test_outcomes_go_without_the_cost_too():
    agent = km.PSRL(PROBLEM, **told_settings())
    outcomes = [[0.1, 0.2]] * 12
    states, actions, rewards = [[0.0, 0.0]] * 13, [[0.0]] * 12, [0.0] * 12
    agent.tell(states, actions, rewards, outcomes, costs=np.arange(12) / 100)
    np.testing.assert_allclose(agent.history[0].outcomes[3], [0.1, 0.2, 0.03])


def test_costs_that_nobody_asked_for():
    agent = km.PSRL(PROBLEM, seed=0)
    with pytest.raises(ArgumentError, match="costs: expected None, as no constraint names 'cost'"):
        agent.tell([[0.0, 0.0]] * 13, [[0.0]] * 12, [0.0] * 12, costs=[0.0] * 12)


def test_fixed_kernels_learn_no_cost():
    with pytest.raises(KernelMDPError, match="learner: expected 'fitted', where a cost is"):
        km.PSRL(PROBLEM, **told_settings(learner="fixed", planner="mpc"))


@pytest.mark.parametrize("constraints", ["|cost| <= 1", "0 <= cost <= 1", {"cost": (-1, 1)}])
def test_limits_on_both_sides(constraints):
    agent = km.PSRL(PROBLEM, **told_settings(constraints=[constraints, "|state[1]| <= 1.5"]))
    assert {each.coordinate for each in agent.problem.constraints} == {1, 2}


def test_boxes_are_about_what_users_see():
    agent = km.PSRL(
        PROBLEM, **told_settings(constraints=[km.Box([-1.0, -1.0], [3.0, 1.0]), LIMITED])
    )
    names = [each.name for each in agent.problem.constraints]
    assert names == ["state[1] >= -1", "state[1] <= 1", "cost <= 0.3"]


class Contact(Cart):
    """The same cart, which only reports whether its motor was too warm."""

    def step(self, action):
        *values, info = super().step(action)
        return *values, {"cost": float(info["cost"] > LIMIT)}


def test_an_indicator_that_was_always_zero_is_uncertain_elsewhere():
    agent = made(km.PSRL, task=Contact(), constraints="cost <= 0.5")
    list(interact(agent, 1))
    assert np.asarray(agent.history[0].states)[:, 2].max() == 0.0
    beliefs = agent.learner.beliefs(agent.state)
    points = jnp.array([[0.1, 0.2, 0.0, 0.0], [0.5, 1.5, 0.0, 1.0]])
    deviations = np.asarray(beliefs.predict_state(points)[1])[:, 2] * np.asarray(beliefs.scale)[2]
    assert deviations[0] < 0.1 < 0.2 < deviations[1]


def test_a_run_on_disk_resumes_with_it(tmp_path):
    gymnasium.register("MeasuredCart-v0", entry_point=Cart, max_episode_steps=HORIZON)
    config = RunConfig("MeasuredCart-v0", "random", settings={"constraints": ["cost <= 0.05"]})
    run(config, tmp_path / "run", episodes=1)
    result = run(read_config(tmp_path / "run"), tmp_path / "run", episodes=2)
    whole = run(config, tmp_path / "whole", episodes=2)
    np.testing.assert_array_equal(result.episodes["violations"], whole.episodes["violations"])
    assert min(whole.episodes["violations"]) > 0
    write_safety(tmp_path / "run")
    with np.load(tmp_path / "run" / SAFETY_FILE) as file:
        assert file["quantities"].tolist() == ["cost"]
        assert file["limit_names"].tolist() == ["cost <= 0.05"]
        assert file["highs"].max() > 0.05
