"""Descriptions of plants."""

import pytest

from kernelmdp.errors import ArgumentError
from kernelmdp.serving import Plant, open_agent
from tests.serving.conftest import plant

TEXT = """
horizon = 40
agent = "gp-ucrl"
periodic = ["angle"]
[states]
angle = [-3.2, 3.2]
speed = [-8, 8]
[actions]
torque = [-2, 2]
[settings]
planner.name = "mpc"
reward = "tests.serving.test_plant:rest"
constraints = ["speed <= 7"]
"""


def rest(z):
    return -(z[:, 0] ** 2)


def test_a_file(tmp_path):
    path = tmp_path / "pendulum.toml"
    path.write_text(TEXT)
    agent = open_agent(path)
    problem = agent.problem
    assert (agent.name, problem.name, problem.horizon) == ("gp-ucrl", "pendulum", 40)
    assert problem.coordinates == ("angle", "speed")
    assert problem.states.periodic == (0,)
    assert problem.reward is rest
    assert [constraint.name for constraint in problem.constraints] == ["speed <= 7"]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"state": {}}, "states"),
        ({"horizon": 0}, "horizon"),
        ({"states": {}}, "states"),
        ({"states": {"temperature": [1.0]}}, "temperature"),
        ({"states": {"temperature": [2.0, 1.0]}}, "temperature"),
        ({"states": {"temperature": "warm"}}, "states"),
        ({"actions": [0, 1]}, "actions"),
        ({"periodic": ["power"]}, "periodic"),
        ({"seed": -1}, "seed"),
        ({"settings": 3}, "settings"),
    ],
)
def test_bad_descriptions(changes, named, unchecked):
    with pytest.raises(ArgumentError, match=named):
        plant(**changes)


def test_bad_files(tmp_path):
    path = tmp_path / "plant.toml"
    for text, named in (("horizon = ", "TOML"), ("horizon = 3", "states")):
        path.write_text(text)
        with pytest.raises(ArgumentError, match=named):
            Plant.read(path)
    with pytest.raises(ArgumentError, match="a file to read"):
        Plant.read(tmp_path / "nothing.toml")
