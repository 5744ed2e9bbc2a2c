"""Names of the coordinates of a Box, wherever a name is used."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import kernelmdp as km
from kernelmdp.envs import NamedBox, NamedCoordinates
from kernelmdp.errors import ArgumentError


def test_names_are_used():
    """Observations stay arrays; constraints, angles, printed agents and exports know the names."""
    env = NamedCoordinates(gymnasium.make("CartPole-v1"), ["x", "speed", "tilt", "spin"])
    agent = km.Greedy(env, horizon=20, constraints="-2 <= x <= 2", planner="mpc", seed=0)
    assert agent.problem.coordinates == ("x", "speed", "tilt", "spin")
    assert [each.name for each in agent.problem.violation.constraints] == ["x >= -2", "x <= 2"]
    assert "tilt" in str(agent)
    assert env.reset(seed=0)[0].shape == (4,)
    task = km.from_gymnasium(env, horizon=20, angles=["tilt"])
    assert task.states.periodic == (2,)
    assert task.play(lambda state, period: [1], seed=0).states.shape[1] == 4


def test_cosines_parts_and_clocks():
    pendulum = NamedCoordinates(gymnasium.make("Pendulum-v1"), ["cos", "sin", "spin"])
    assert km.from_gymnasium(pendulum).coordinate_names == ("angle(cos, sin)", "spin")
    timed = km.from_gymnasium(pendulum, clock=True)
    assert timed.coordinate_names[-2:] == ("spin", "clock")
    arm = spaces.Dict({"arm": NamedBox(spaces.Box(-1, 1, (2, 1)), ["up", "out"])})
    flat = km.envs.flat_spaces.flat_space(arm, "observation")
    assert flat.names == ("arm.up", "arm.out")
    np.testing.assert_array_equal(flat.to_vector({"arm": [[0.1], [0.2]]}, ""), [0.1, 0.2])


@pytest.mark.parametrize("names", [["x"], ["x", "x"], "xy", ["x", "y", "z"]])
def test_names_that_do_not_fit(names):
    with pytest.raises(ArgumentError, match="names: expected 2 different names"):
        NamedCoordinates(gymnasium.make("MountainCar-v0"), names)


def test_only_boxes_have_names():
    with pytest.raises(ArgumentError, match="observations that are a Box"):
        NamedCoordinates(gymnasium.make("FrozenLake-v1"), ["place"])
