"""What people bring from Gymnasium: time limits, angles, the old interface, missing spaces."""

import warnings

import gymnasium
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.envs import from_gymnasium
from kernelmdp.errors import ArgumentError, KernelMDPError, ObservationWarning

BOX = gymnasium.spaces.Box(-4.0, 4.0, (2,))


class Wheel(gymnasium.Env):
    """An angle and a speed."""

    observation_space = BOX
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 2)
        return self.state.astype(np.float32), {}

    def step(self, action):
        self.state = np.clip(0.9 * self.state + 0.1 * float(action[0]), -4, 4)
        return self.state.astype(np.float32), 0.0, False, False, {}


# The time limit.


def test_a_time_limit_is_the_horizon():
    limited = gymnasium.wrappers.TimeLimit(Wheel(), 12)
    assert from_gymnasium(limited).horizon == 12
    assert from_gymnasium(gymnasium.wrappers.TransformReward(limited, float)).horizon == 12
    assert from_gymnasium(limited, action_repeat=5).horizon == 3
    assert km.Greedy(limited, seed=0).problem.horizon == 12
    shorter = gymnasium.wrappers.TimeLimit(gymnasium.make("Pendulum-v1"), 30)
    assert from_gymnasium(shorter).horizon == 30
    with pytest.raises(ArgumentError, match="horizon: expected at most the time limit of 12 steps"):
        from_gymnasium(limited, horizon=13)


def test_no_time_limit():
    with pytest.raises(ArgumentError, match="no time limit"):
        km.Greedy(Wheel())


# Angles.


@pytest.mark.parametrize("angles", [[0], ["observation[0]"]])
def test_angles_can_be_said_to_the_agent(angles):
    agent = km.Greedy(Wheel(), horizon=4, angles=angles, seed=0)
    assert agent.problem.states.periodic == (0,)
    named = km.Greedy("MountainCarContinuous-v0", horizon=4, angles=angles)
    assert named.problem.states.periodic == (0,)


def test_angles_are_saved_with_the_task(tmp_path):
    agent = km.Random("MountainCarContinuous-v0", horizon=4, angles=[0], seed=0)
    agent.learn(1, progress=False)
    agent.save(tmp_path / "agent")
    assert km.load(tmp_path / "agent").problem.states.periodic == (0,)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (Wheel(), "angles: expected coordinates below 2, or of observation"),
        ("riverswim", "angles: expected None, as the task has"),
        (from_gymnasium(Wheel(), horizon=3), "say it to from_gymnasium"),
        (
            km.Problem.from_spaces(states=km.Box([0], [1]), actions=km.Box([0], [1]), horizon=2),
            "periodic",
        ),
    ],
)
def test_angles_that_cannot_be(task, said):
    with pytest.raises(ArgumentError, match=said):
        km.Greedy(task, angles=[5], horizon=3 if isinstance(task, Wheel) else None)


# The old interface, and what is missing.


class OldReset(Wheel):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class NoSeed(Wheel):
    def reset(self):
        return np.zeros(2, np.float32), {}


class OldStep(Wheel):
    def step(self, action):
        observation, reward, *_ = super().step(action)
        return observation, reward, False, {}


class NoObservations(Wheel):
    observation_space = None


class NoActions(Wheel):
    action_space = "left or right"


class OldEnvironment:
    observation_space, action_space = BOX, BOX

    def reset(self):
        return np.zeros(2)

    def step(self, action):
        return np.zeros(2), 0.0, False, {}


class Unbounded(Wheel):
    action_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))


class Mixed(Wheel):
    action_space = gymnasium.spaces.Tuple([BOX, gymnasium.spaces.Discrete(2)])


class Sentence(Wheel):
    observation_space = gymnasium.spaces.Text(5)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (OldReset, "reset to return .observation, info., where info may be .., got a ndarray"),
        (NoSeed, "a method reset.self, .*, seed=None, options=None."),
        (OldStep, "step to return .observation, reward, terminated, truncated, info., got 4 va"),
        (NoObservations, "an attribute observation_space, such as gymnasium.spaces.Box"),
        (NoActions, "an attribute action_space"),
        (OldEnvironment, "derive your class from gymnasium.Env, and wrap one of the old package"),
        (Unbounded, "gymnasium.wrappers.TransformAction.env, lambda"),
        (Mixed, "gymnasium.wrappers.TransformAction converts one part"),
        (Sentence, "gymnasium.wrappers.TransformObservation converts others"),
    ],
)
def test_one_sentence_says_what_to_do(kind, said):
    with pytest.raises(KernelMDPError, match=said) as error:
        km.Random(kind(), horizon=3, seed=0).learn(1, progress=False)
    assert "\n" not in str(error.value)


# Many coordinates.


class Crowd(Wheel):
    def __init__(self, count):
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (count,))

    def reset(self, *, seed=None, options=None):
        return np.zeros(self.observation_space.shape, np.float32), {}


def test_a_note_on_many_coordinates():
    with pytest.warns(ObservationWarning, match="9 coordinates.*a known reward .* above all"):
        km.Greedy(Crowd(9), horizon=3)
    with pytest.warns(ObservationWarning, match="What helps is fewer coordinates"):
        km.Greedy(Crowd(9), horizon=3, reward=lambda z: -(z[:, 0] ** 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ObservationWarning)
        km.Greedy(Crowd(8), horizon=3)
