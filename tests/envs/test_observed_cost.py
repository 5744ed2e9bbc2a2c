"""The measured cost of a step as a coordinate of the state."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.envs import from_gymnasium
from kernelmdp.errors import ArgumentError, DataError
from kernelmdp.experiments import RunConfig


class Press(gymnasium.Env):
    """Press a spring. Its strain is a cost that observations do not show."""

    action_space = gymnasium.spaces.Box(0.0, 1.0, (1,), np.float64)

    def __init__(self, observation_space=None, report=lambda strain: {"cost": strain}):
        whole = gymnasium.spaces.Box(0.0, 9.0, (1,), np.float64)
        self.observation_space = whole if observation_space is None else observation_space
        self.report = report

    def observe(self):
        whole = np.array([self.length])
        return whole if self.observation_space.shape else {"length": whole}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.length = 0.0
        return self.observe(), {}

    def step(self, action):
        self.length += float(action[0])
        strain = self.length * float(action[0]) * 3.0
        reported = self.report(strain)
        if isinstance(reported, dict):
            return self.observe(), self.length, False, False, reported
        return self.observe(), self.length, reported, False, False, {}


def press(state, period):
    return [1.0 if period == 1 else 0.5]


STRAINS = [0.75, 4.5, 3.0]


@pytest.mark.parametrize("report", [lambda strain: {"cost": strain}, lambda strain: strain])
def test_the_cost_is_the_last_coordinate(report):
    """It comes from the info, or is the third of six values."""
    task = from_gymnasium(Press(report=report), horizon=3, cost=True)
    assert task.coordinate_names == ("observation[0]", "cost")
    assert (task.unbounded, task.problem.measured) == ((1,), (1,))
    for _ in range(2):  # it is 0 again at every start
        episode = task.play(press, seed=0)
        np.testing.assert_allclose(episode.states[:, 1], [0.0, *STRAINS])
        np.testing.assert_allclose(episode.outcomes[:, 1], STRAINS)
    plain = from_gymnasium(Press(), horizon=3).play(press, seed=0)
    np.testing.assert_array_equal(episode.states[:, :1], plain.states)
    np.testing.assert_array_equal(episode.rewards, plain.rewards)


def test_the_start_may_report_a_cost():
    class Warm(Press):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0], {"cost": 0.25}

    task = from_gymnasium(Warm(), horizon=3, cost=True)
    assert task.play(press, seed=0).states[0].tolist() == [0.0, 0.25]


def test_a_held_action_costs_what_its_worst_step_does():
    task = from_gymnasium(Press(), horizon=2, cost=True, action_repeat=2)
    episode = task.play(lambda state, period: [1.0 - period], seed=0)
    np.testing.assert_allclose(episode.states[:, 1], [0.0, 6.0, 0.0])
    falling = from_gymnasium(
        Press(report=lambda strain: {"cost": -strain}), horizon=1, cost=True, action_repeat=2
    )
    assert falling.play(lambda state, period: [1.0], seed=0).states[1].tolist() == [2.0, -3.0]
    assert task.name == "Press (action_repeat=2, cost=True)"


def test_observations_are_passed_without_it():
    task = from_gymnasium(Press(), horizon=3, cost=True)
    assert task.state_of([1.5]).tolist() == [1.5, 0.0]
    assert task.state_of({"observation": [1.5], "cost": 2.0}).tolist() == [1.5, 2.0]
    parts = gymnasium.spaces.Dict({"length": gymnasium.spaces.Box(0.0, 9.0, (1,), np.float64)})
    task = from_gymnasium(Press(parts), horizon=3, cost=True, clock=True)
    assert task.coordinate_names == ("length[0]", "clock", "cost")
    assert task.state_of({"length": [1.5], "clock": 2.0}).tolist() == [1.5, 2.0, 0.0]


def test_angles_are_found_beside_it():
    task = from_gymnasium("Pendulum-v1", cost=True)
    assert (task.states.dimension, task.states.periodic) == (3, (0,))
    observation = task.problem.observation
    assert observation.names == tuple(f"observation[{j}]" for j in range(3))
    shown = observation.observe(jnp.array([[np.pi / 2, 3.0, 0.7]]))
    np.testing.assert_allclose(shown, [[0.0, 1.0, 3.0]], atol=1e-12)


def test_a_cost_that_never_changes_is_no_reason_to_warn(recwarn):
    task = from_gymnasium(Press(report=lambda strain: {"cost": 0.0}), horizon=9, cost=True)
    for _ in range(3):
        task.play(lambda state, period: [0.1 * period], seed=0)
    assert not recwarn


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (
            lambda strain: {"price": strain},
            r"info: expected the measured cost of the step as info\['cost'\].*got 'price'",
        ),
        (lambda strain: {"cost": float("nan")}, r"info\['cost'\]: expected a finite number"),
        (lambda strain: {"cost": "high"}, r"info\['cost'\]: expected one number, got 'high'"),
        (lambda strain: {"cost": [1.0, 2.0]}, r"info\['cost'\]: expected one number"),
    ],
)
def test_what_is_no_cost(report, message):
    task = from_gymnasium(Press(report=report), horizon=3, cost=True)
    with pytest.raises(DataError, match=message):
        task.play(press, seed=0)


@pytest.mark.parametrize("name", ["FrozenLake-v1", "kernelmdp/PendulumSwingup-v0"])
def test_where_no_cost_is_measured(name):
    km.envs.register()
    with pytest.raises(ArgumentError, match="cost: expected no measured cost of a table or"):
        from_gymnasium(name, cost=True)
    with pytest.raises(ArgumentError, match="constraints: expected no limit of a cost"):
        km.PSRL("rkhs", constraints="cost <= 1")


def test_a_run_and_a_file_store_it(tmp_path):
    config = RunConfig("Pendulum-v1", "random", 0, {"horizon": 5, "cost": True})
    assert config.system().task.cost
    agent = km.Random(from_gymnasium("Pendulum-v1", cost=True))
    agent.save(tmp_path / "agent.kmdp")
    assert km.load(tmp_path / "agent.kmdp").task.cost
    with pytest.raises(ArgumentError, match="cost: expected False"):
        RunConfig("riverswim", "random", 0, {"cost": True}).system()
