"""Functions that the command line and files name: ``module:function``."""

import warnings

import numpy as np
import pytest

import kernelmdp as km
import kmdp
from kernelmdp.errors import ApproximationWarning, ArgumentError
from kernelmdp.experiments.run_files import read_config
from kernelmdp.serving.plant import Plant

MODULE = """
import kernelmdp as km

def reward(z):
    return -(z[:, 0] ** 2)

def limit(states):
    return states[:, 0] - 2.0

def model(state, action):
    return state

class Hold(km.mdp.PID):
    def __init__(self):
        super().__init__(coordinate=0, set_point=0.0, proportional=0.5, low=-1.0, high=1.0)
"""
SETTINGS = {"reward": "by_name:reward", "fallback": "by_name:Hold", "constraints": "by_name:limit"}


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "by_name.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


def test_settings():
    agent = km.Frugal("rkhs", seed=0, planner="mpc", **SETTINGS)
    z = np.array([[0.5, 0.0]])
    assert float(agent.problem.reward(z)[0]) == -0.25
    assert float(agent.problem.fallback.policy([0.4], 0)[0]) == -0.2
    listed = km.Frugal("rkhs", seed=0, constraints=["state <= 0.9", "by_name:limit"])
    assert len(listed.problem.violation.constraints) == 2
    rough = km.Frugal("rkhs", kernel="auto", prior_model="by_name:model", seed=0)
    assert rough.problem.known_motion.is_prior


def test_the_command_line(tmp_path, monkeypatch):
    arguments = ["run", "rkhs", "--agent", "greedy", "--episodes", "2", "--out", "run"]
    arguments += ["--set", "reward=by_name:reward", "--set", "fallback=by_name:Hold"]
    monkeypatch.setattr("sys.argv", ["kmdp", *arguments])
    kmdp.main()
    assert 'fallback = "by_name:Hold"' in (tmp_path / "run" / "config.toml").read_text()
    again = km.experiments.run(read_config("run"), "run", episodes=3)
    assert len(again.episodes) == 3


def test_plants_of_the_server():
    plant = Plant("heater", {"heat": (-1, 1)}, {"power": (-1, 1)}, 5, settings=dict(SETTINGS))
    assert plant.make_agent().problem.reward is not None


def test_a_misspelt_name_is_one_sentence():
    with pytest.raises(ArgumentError, match="module:Name of a fallback that can be imported"):
        km.Frugal("rkhs", fallback="by_name:hodl", seed=0)


def test_one_kernel_keeps_the_other_from_being_fitted():
    task = km.Problem.from_spaces(
        states=km.Box([-1.0], [1.0]), actions=km.Box([-1.0], [1.0]), horizon=5
    )
    with pytest.warns(ApproximationWarning, match="transition_kernel is a default"):
        km.Greedy(task, reward_kernel="se(0.5)", seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ApproximationWarning)
        km.Greedy(task, reward_kernel="se(0.5)", kernel="auto", seed=0)
        km.Greedy(task, reward_kernel="se(0.5)", transition_kernel="se(0.5)", seed=0)
        km.Greedy("rkhs", reward_kernel="se(0.5)", seed=0)
