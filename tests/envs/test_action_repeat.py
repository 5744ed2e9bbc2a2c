"""Actions that are held for several steps of an environment."""

import gymnasium
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.envs import from_gymnasium, gymnasium_env, register
from kernelmdp.errors import ArgumentError, CheckpointError, DataError
from kernelmdp.experiments import RunConfig, run
from kernelmdp.experiments.systems import as_playable
from tests.envs.instances import instance

register()


class Wheel(gymnasium.Env):
    """An angle that advances by the action and earns its step's number; ends as told."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gymnasium.spaces.Box(-3.0, 3.0, (1,), np.float64)

    def __init__(self, *, terminate_at=None, truncate_at=None, earn=float):
        self.terminate_at, self.truncate_at, self.earn = terminate_at, truncate_at, earn

    def reset(self, *, seed=None, options=None):
        self.angle, self.count = 0.5, 0
        return np.array([self.angle]), {}

    def step(self, action):
        self.angle, self.count = self.angle + float(action[0]), self.count + 1
        wrapped = np.mod(self.angle + np.pi, 2 * np.pi) - np.pi
        ends = self.count == self.terminate_at, self.count == self.truncate_at
        return np.array([wrapped]), self.earn(self.count), *ends, {}


def turn(state, period):
    return [2.5]


def test_rewards_are_summed_and_states_are_those_of_decisions():
    task = from_gymnasium(Wheel(), horizon=4, angles=[0], action_repeat=3)
    episode = task.play(turn)
    np.testing.assert_array_equal(episode.rewards, [6.0, 15.0, 24.0, 33.0])
    # Each decision turns the wheel by more than a whole turn, and all of it is motion.
    np.testing.assert_allclose(episode.outcomes[:, 0] - episode.states[:-1, 0], 7.5, atol=1e-9)
    np.testing.assert_allclose(
        episode.states[1:, 0], task.states.nearest(np.asarray(episode.outcomes))[:, 0], atol=1e-9
    )
    assert (len(episode), task.environment_steps) == (4, 12)
    task.play(turn)
    assert task.environment_steps == 24


def test_a_held_action_is_the_same_action_several_times():
    def play(**options):
        return from_gymnasium("Pendulum-v1", **options).play(lambda state, period: [1.0], seed=0)

    once, held = play(horizon=20), play(horizon=10, action_repeat=2)
    np.testing.assert_array_equal(once.states[::2], held.states)
    np.testing.assert_allclose(held.rewards, np.asarray(once.rewards).reshape(10, 2).sum(axis=1))


@pytest.mark.parametrize("how", ["terminate_at", "truncate_at"])
def test_an_end_stops_the_repetition(how):
    task = from_gymnasium(Wheel(**{how: 4}), horizon=5, angles=[0], action_repeat=3)
    episode = task.play(turn)
    assert episode.rewards.tolist() == [6.0, 4.0]
    assert episode.terminated == (how == "terminate_at")
    assert task.environment_steps == 4


def test_the_horizon_counts_decisions():
    assert from_gymnasium("CartPole-v1", action_repeat=3).horizon == 167  # of 500 steps
    task = from_gymnasium("Pendulum-v1", action_repeat=150)
    assert task.horizon == 2
    assert len(task.play(lambda state, period: [0.0], seed=0)) == 2
    assert task.environment_steps == 200
    with pytest.raises(ArgumentError, match="200 steps: 50 actions, each for 4 of them, got 51"):
        from_gymnasium("Pendulum-v1", horizon=51, action_repeat=4)
    for bad in (0, -1):
        with pytest.raises(ArgumentError, match="action_repeat"):
            from_gymnasium(Wheel(), horizon=4, action_repeat=bad)


def test_errors_name_the_step_of_the_environment():
    task = from_gymnasium(
        Wheel(earn=lambda n: np.nan if n == 5 else 0.0), horizon=4, action_repeat=3
    )
    with pytest.raises(DataError, match="after step 4"):
        task.play(turn)
    assert task.environment_steps == 5


def test_a_table_counts_only_what_was_played():
    task = from_gymnasium("FrozenLake-v1", action_repeat=2)
    episode = task.play(lambda state, period: [1.0], seed=0)
    assert (len(episode), task.horizon) == (50, 50)
    assert episode.terminated
    assert task.environment_steps < 50


def test_a_known_reward_is_that_of_one_step(monkeypatch):
    monkeypatch.setattr(gymnasium_env, "make", lambda name, *, seed, **_: instance(name, seed))
    assert from_gymnasium("kernelmdp/Pendulum-v0").known_reward is not None
    assert from_gymnasium("kernelmdp/Pendulum-v0", action_repeat=2).known_reward is None


# Agents and runs.


def test_an_agent_takes_it_and_stores_it(tmp_path):
    agent = km.PSRL("Pendulum-v1", action_repeat=5, seed=0)
    assert (agent.problem.horizon, agent.task.action_repeat) == (40, 5)
    assert agent.problem.name == "Pendulum-v1 (action_repeat=5)"
    agent.save(tmp_path / "agent.kmdp")
    assert km.load(tmp_path / "agent.kmdp").task.action_repeat == 5
    with pytest.raises(CheckpointError, match=r"name was 'Pendulum-v1 \(action_repeat=5\)'"):
        km.load(tmp_path / "agent.kmdp", task=gymnasium.make("Pendulum-v1"))
    object_agent = km.PSRL(from_gymnasium("Pendulum-v1", horizon=9, action_repeat=2))
    object_agent.save(tmp_path / "other.kmdp")
    loaded = km.load(tmp_path / "other.kmdp")
    assert (loaded.problem.horizon, loaded.task.action_repeat) == (9, 2)


def test_where_actions_cannot_be_repeated():
    task = from_gymnasium(Wheel(), horizon=4, action_repeat=2)
    assert km.Random(task, action_repeat=2).task is task
    with pytest.raises(ArgumentError, match="action_repeat: expected 2, as the task has, got 3"):
        km.Random(task, action_repeat=3)
    for name in ("riverswim", km.make("riverswim")):
        with pytest.raises(ArgumentError, match="action_repeat: expected 1"):
            km.Random(name, action_repeat=2)
    with pytest.raises(ArgumentError, match="action_repeat"):
        km.Random(km.make("riverswim").problem, action_repeat=2)


def test_a_run_stores_it():
    options = {"horizon": 7, "action_repeat": 4}
    config = RunConfig("Pendulum-v1", "random", 0, options)
    system = config.system()
    assert (system.task.horizon, system.task.action_repeat) == (7, 4)
    assert system.spec == {"name": "Pendulum-v1", **options}
    assert as_playable(system.spec).task.action_repeat == 4
    with pytest.raises(ArgumentError, match="horizon, angles, action_repeat, clock"):
        RunConfig("Pendulum-v1", env_options={"repeat": 4}).require_environment()


def make_wheel():
    return gymnasium.wrappers.TimeLimit(Wheel(), 20)


def test_a_run_of_an_object_stores_it():
    config = RunConfig(make_wheel, "random", 0, {"action_repeat": 4})
    assert config.system().task.horizon == 5  # it has no spec, but a TimeLimit
    system = as_playable({"name": config.env, "action_repeat": 4}, default_horizon=5)
    assert system.spec == {"name": config.env, "action_repeat": 4}
    with pytest.raises(ArgumentError, match="action_repeat: expected 1"):
        RunConfig("riverswim", "random", 0, {"action_repeat": 4}).system()


def test_a_resumed_run_goes_on(tmp_path):
    config = RunConfig("Pendulum-v1", "random", 0, {"horizon": 5, "action_repeat": 4})
    whole = run(config, tmp_path / "whole", episodes=3).episodes["return"]
    run(config, tmp_path / "parts", episodes=1)
    again = run(config, tmp_path / "parts", episodes=3).episodes["return"]
    np.testing.assert_array_equal(whole, again)
