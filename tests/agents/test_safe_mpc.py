"""Agents with fitted kernels that keep constraints by model-predictive control."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments import interact
from kernelmdp.planners.safe_mpc import SafeMPCPlan

SMALL = {"horizon": 8, "samples": 16, "first_rounds": 2}
SETTINGS = {"horizon": 12, "seed": 0, "risk": 0.05, "risk_for": "episode"}


class Arm(gymnasium.Env):
    """Turn an arm to a quarter turn. Observations are cosine, sine and speed."""

    observation_space = gymnasium.spaces.Box(
        np.array([-1.0, -1.0, -6.0]), np.array([1.0, 1.0, 6.0]), dtype=np.float64
    )
    action_space = gymnasium.spaces.Box(-np.ones(1), np.ones(1), dtype=np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.angle, self.speed = 0.05 * self.np_random.uniform(-1, 1), 0.0
        return self._observed(), {}

    def step(self, action):
        self.speed += 0.4 * float(action[0]) + 0.01 * self.np_random.normal()
        self.angle += 0.2 * self.speed
        return self._observed(), np.sin(self.angle), False, False, {}

    def _observed(self):
        return np.array([np.cos(self.angle), np.sin(self.angle), self.speed])


ALLOWED = km.Box([-1.0, -1.0, -6.0], [1.0, 1.0, 0.8])


TRUSTED = km.Box([-1.0, -1.0, -0.3], [1.0, 1.0, 0.5])


def slow(observation, period):
    """Hold a speed of 0.2. It is written for observations."""
    return jnp.clip(2.0 * (0.2 - observation[2:]), -1.0, 1.0)


def slow_in_python(observation, period):
    return np.clip(2.0 * (0.2 - np.asarray(observation)[2:]), -1.0, 1.0)


def made(**settings):
    agent = km.Frugal(Arm(), planner={"name": "mpc"} | SMALL, **SETTINGS | settings)
    return agent


@pytest.fixture(scope="module")
def learned():
    agent = made(constraints=ALLOWED, fallback=(slow, TRUSTED))
    return agent, list(interact(agent, 4))


def test_speeds_stay_within_the_box_and_returns_grow(learned):
    agent, rows = learned
    speeds = np.stack([np.asarray(episode.states)[:, 1] for episode in agent.history])
    assert speeds.max() <= 0.8
    assert speeds.max() > 0.5  # beyond the fallback's speed
    assert sum(row["violations"] for row in rows) == 0
    totals = [episode.total for episode in agent.history]
    assert max(totals[1:]) > 1.5 * totals[0]


def test_the_fallback_acts_at_once_where_a_decision_is_late(learned):
    """The rest of a plan was not checked."""
    agent, _ = learned
    observation = [1.0, 0.0, 0.3]
    with agent.controller(time_limit=1e-9) as controller:
        controller.reset(observation)
        controller(observation)
        action = controller([1.0, 0.0, 0.0])
        sources = [step.source for step in controller.log.steps]
    assert sources == ["plan", "fallback"]
    np.testing.assert_allclose(action, slow(np.array([1.0, 0.0, 0.0]), 1), atol=1e-6)


def test_columns_say_who_acted_and_what_was_predicted(learned):
    rows = learned[1]
    assert rows[0]["fallback_share"] == 1.0
    assert np.isnan(rows[0]["planned_risk"])
    assert all(row["fallback_share"] < 1.0 for row in rows[1:])
    assert all(0.0 <= row["planned_risk"] < 0.5 for row in rows[1:])


def test_no_theorem_is_claimed(learned):
    assert not learned[0].safety.covered
    agent = km.GPUCRL(Arm(), constraints=ALLOWED, **SETTINGS)
    assert any("estimate" in reason for reason in agent.safety.reasons)


def test_predict_is_safe_too_and_survives_a_file(learned, tmp_path):
    agent = learned[0]
    assert isinstance(agent.controller_plan(), SafeMPCPlan)
    fast = np.array([1.0, 0.0, 0.78])
    action = agent.predict(fast)
    assert action[0] < 0.1
    agent.save(tmp_path / "arm")
    again = km.Frugal.load(
        tmp_path / "arm", task=Arm(), constraints=ALLOWED, fallback=(slow, TRUSTED)
    )
    np.testing.assert_allclose(again.predict(fast), action, atol=1e-6)


def test_a_fallback_in_plain_python_serves_too():
    agent = made(constraints=ALLOWED, fallback=slow_in_python, horizon=5)
    assert len(list(interact(agent, 2))) == 2


def test_functions_of_observations_are_constraints():
    agent = made(
        constraints=[lambda observations: observations[:, 2] - 0.8], fallback=slow_in_python
    )
    (limit,) = agent.problem.constraints
    states = jnp.array([[0.3, 0.9], [0.3, 0.7]])
    np.testing.assert_allclose(limit.values(states, None), [0.1, -0.1], atol=1e-9)
    action = agent.problem.fallback.policy.actions(states, 0)
    np.testing.assert_allclose(np.asarray(action), [[-1.0], [-1.0]])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"constraints": km.Box([-1, -1, 2.0], [1, 1, 3.0])}, "start"),
        ({"constraints": ALLOWED, "risk": 1.5}, "risk"),
        ({"constraints": ALLOWED, "fallback": lambda o, h: 9.0 * o[2:]}, "fallback"),
        ({"constraints": ALLOWED, "fallback": (slow, km.Box([-1] * 3, [1] * 3))}, "fallback"),
    ],
)
def test_bad_input_is_one_sentence_before_anything_is_played(settings, words):
    with pytest.raises(ArgumentError, match=words) as caught:
        made(**settings).learn(1, progress=False)
    assert "\n" not in str(caught.value)


def angle_reward(z):
    return jnp.sin(z[:, 0])


def test_a_known_reward_within_constraints():
    """A plain function is no array, and is the same in all drawn models."""
    agent = made(constraints=ALLOWED, fallback=slow, reward=angle_reward, at_least=0.5)
    result = agent.learn(episodes=2, progress=False)
    assert result.episodes["violations"][-1] == 0
    assert np.isfinite(result.episodes["planned_risk"][-1])
