"""What ``print(agent)`` and ``repr(result)`` say, and the table as a data frame."""

import numpy as np
import pandas as pd
import pytest

import kernelmdp as km
from kernelmdp.agents.agent_summary import kernel_text, model_rows

NAMES = ("angle", "speed", "torque")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("se([0.123456, 2.0, 3.0])", "se(angle: 0.123, speed: 2, torque: 3)"),
        ("se(0.5)", "se(0.5)"),
        ("se([0.5, 2.0])[0, 2] * linear[1]", "se(angle: 0.5, torque: 2) * linear[speed]"),
        ("matern(2.5, [1.0, 2.0])[1:3]", "matern(2.5, speed: 1, torque: 2)"),
        ("0.25 * periodic(1.5, 6.283185)[0]", "0.25 * periodic(1.5, 6.28)[angle]"),
        ("1e-07 * se(1.0)[1]", "1e-07 * se(1)[speed]"),
    ],
)
def test_kernels_name_their_coordinates(text, expected):
    assert kernel_text(km.kernel(text), NAMES) == expected


def test_an_agent_says_what_it_is():
    agent = km.PSRL("lqr-2d", seed=3)
    assert repr(agent) == "PSRL('lqr-2d', 0 episodes)"
    result = agent.learn(2, progress=False)
    for said in (str(agent), repr(result)):
        for part in ("lqr-2d", "last ", "RiccatiPlanner", "reward 0.1; state[0] 0.1"):
            assert part in said, part
        assert "quadratic[state[0], state[1]] + quadratic[action]" in said
        assert "not covered: the truth is not known to be drawn from the prior" in said
    assert "learned from              2 episodes, 20 steps" in str(agent)
    assert f"{result.regret:.4g}" in repr(result)
    before = repr(result)
    agent.learn(1, progress=False)
    assert repr(result) == before


def test_fitted_kernels_before_and_after_the_first_data():
    problem = km.Problem.from_spaces(
        states=km.Box([0.0, -1.0], [1.0, 1.0]),
        actions=km.Box([0.0], [1.0]),
        horizon=10,
        coordinates=("heat", "flow"),
        name="oven",
    )
    agent = km.PSRL(problem, planner=km.GridPlanner((5, 5), (3,)), seed=0)
    assert "kernel of" not in str(agent)
    rng = np.random.default_rng(0)
    states = rng.uniform(0, 1, (11, 2))
    agent.tell(states, rng.uniform(0, 1, (10, 1)), states[1:, 0])
    said = str(agent)
    assert "oven: states heat, flow; actions action; H = 10" in said
    assert "kernel of heat" in said
    assert "heat: " in said
    assert "flow: " in said


def test_a_motion_along_a_line_says_so():
    problem = km.Problem.from_spaces(
        states=km.Box([-2.0, -2.0], [2.0, 2.0]),
        actions=km.Box([-1.0], [1.0]),
        horizon=20,
        coordinates=("position", "speed"),
        name="rail",
    )
    agent = km.Greedy(problem, planner=km.GridPlanner((5, 5), (3,)), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(3):
        actions, states = rng.uniform(-1, 1, (20, 1)), [rng.uniform(-1, 1, 2)]
        for (force,) in actions:
            position, speed = states[-1]
            bend = np.sin(4 * position) - 0.5 * speed**3
            states.append(
                np.array([position + 0.1 * speed, 0.8 * speed + 0.1 * bend + 0.1 * force])
            )
        agent.tell(np.stack(states), actions, np.zeros(20))
    rows = dict(model_rows(agent.learner, agent.state, problem))
    assert rows["kernel of position"].startswith("a line + ")
    assert not rows["kernel of speed"].startswith("a line")
    assert "a line" not in rows["kernel of the reward"]


def test_a_table_is_a_data_frame():
    result = km.Random("riverswim", seed=0).learn(3, progress=False)
    for frame in (pd.DataFrame(result.episodes), result.episodes.frame()):
        assert list(frame.columns) == list(result.episodes.columns)
        assert frame["episode"].tolist() == [1, 2, 3]
        np.testing.assert_array_equal(frame["return"], result.episodes["return"])
    assert frame.dtypes.drop("episode").eq(float).all()
