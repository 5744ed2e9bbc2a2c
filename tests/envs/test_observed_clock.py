"""The time as a coordinate of the state."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.envs import from_gymnasium
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments import RunConfig


class Tariff(gymnasium.Env):
    """A store that is filled for a price. It doubles after the third step, which nothing shows."""

    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)

    def __init__(self, observation_space=None):
        whole = gymnasium.spaces.Box(-5.0, 5.0, (1,), np.float64)
        self.observation_space = whole if observation_space is None else observation_space

    def observe(self):
        whole = np.array([self.level])
        return whole if self.observation_space.shape else {"level": whole}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.level, self.count = 0.0, 0
        return self.observe(), {}

    def step(self, action):
        self.level, self.count = np.clip(self.level + action[0], -5, 5), self.count + 1
        price = 1.0 if self.count <= 3 else 2.0
        return self.observe(), -price * float(action[0]), False, False, {}


def fill(state, period):
    return [0.5]


def test_the_clock_is_the_last_coordinate():
    task = from_gymnasium(Tariff(), horizon=6, clock=True)
    assert task.coordinate_names == ("observation[0]", "clock")
    assert [end.tolist() for end in task.states.bounds] == [[-5.0, 0.0], [5.0, 6.0]]
    for _ in range(2):  # it starts again in every episode
        episode = task.play(fill, seed=0)
        np.testing.assert_array_equal(episode.states[:, 1], np.arange(7.0))
        np.testing.assert_array_equal(episode.outcomes[:, 1], np.arange(1.0, 7.0))
    plain = from_gymnasium(Tariff(), horizon=6).play(fill, seed=0)
    np.testing.assert_array_equal(episode.states[:, :1], plain.states)
    np.testing.assert_array_equal(episode.rewards, plain.rewards)


def test_it_counts_steps_of_the_environment():
    task = from_gymnasium(Tariff(), horizon=3, clock=True, action_repeat=2)
    np.testing.assert_array_equal(task.play(fill, seed=0).states[:, 1], [0.0, 2.0, 4.0, 6.0])
    assert task.name == "Tariff (action_repeat=2, clock=True)"


def test_parts_keep_their_names():
    parts = gymnasium.spaces.Dict({"level": gymnasium.spaces.Box(-5.0, 5.0, (1,), np.float64)})
    task = from_gymnasium(Tariff(parts), horizon=4, clock=True)
    assert task.coordinate_names == ("level[0]", "clock")
    assert task.state_of({"level": [1.5], "clock": 2.0}).tolist() == [1.5, 2.0]


def test_angles_are_found_beside_it():
    task = from_gymnasium("Pendulum-v1", clock=True)
    assert (task.states.dimension, task.states.periodic) == (3, (0,))


@pytest.mark.parametrize("name", ["FrozenLake-v1", "kernelmdp/PendulumSwingup-v0"])
def test_where_there_is_no_clock(name):
    km.envs.register()
    with pytest.raises(ArgumentError, match="clock: expected False"):
        from_gymnasium(name, clock=True)


def test_a_run_and_a_file_store_it(tmp_path):
    config = RunConfig("Pendulum-v1", "random", 0, {"horizon": 5, "clock": True})
    system = config.system()
    assert system.task.clock
    assert system.spec == {"name": "Pendulum-v1", "horizon": 5, "clock": True}
    agent = km.Random(from_gymnasium("Pendulum-v1", clock=True))
    agent.save(tmp_path / "agent.kmdp")
    assert km.load(tmp_path / "agent.kmdp").task.clock
    with pytest.raises(ArgumentError, match="clock: expected False"):
        RunConfig("riverswim", "random", 0, {"clock": True}).system()


def test_an_agent_learns_when_the_price_rises():
    """Without the clock all steps look alike. With it, the learned price is that of the time."""
    task = from_gymnasium(Tariff(), horizon=6, clock=True)
    agent = km.PSRL(task, seed=0, planner="mpc")
    agent.learn(episodes=4, progress=False)
    mean = agent.learner.mean(agent.state).model
    points = jnp.array([[0.0, 0.0, 1.0], [0.0, 5.0, 1.0]])
    early, late = np.asarray(mean(points).reward)
    assert late < early - 0.5
