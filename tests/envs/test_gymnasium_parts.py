"""Environments whose observations or actions have parts, such as those of dm_control."""

import sys
import types

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import kernelmdp as km
from kernelmdp.domains import Box, FiniteSet
from kernelmdp.envs import from_gymnasium
from kernelmdp.errors import ArgumentError, DomainError, KernelMDPError
from kernelmdp.experiments import RunConfig


def unbounded(*shape):
    return spaces.Box(-np.inf, np.inf, shape, np.float64)


class CartPole(gymnasium.Env):
    """The form of dm_control's cart-pole in Shimmy; its physics are a pole alone."""

    observation_space = spaces.Dict(
        {"height": unbounded(), "position": unbounded(3), "velocity": unbounded(2)}
    )
    action_space = spaces.Box(-1.0, 1.0, (1,), np.float64)

    def observe(self):
        position = np.array([self.cart, np.cos(self.angle), np.sin(self.angle)])
        velocity = np.array([0.1, self.speed])
        return {"position": position, "height": np.array(self.cart**2), "velocity": velocity}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cart, self.angle = 0.0, np.pi + 0.01 * self.np_random.standard_normal()
        self.speed, self.count = 0.01 * self.np_random.standard_normal(), 0
        return self.observe(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.speed += 0.1 * np.sin(self.angle) + 0.2 * float(action[0])
        self.angle, self.cart = self.angle + 0.1 * self.speed, self.cart + 0.1
        self.count += 1
        return self.observe(), float(np.cos(self.angle)), False, self.count == 10, {}


@pytest.fixture
def dm_control(monkeypatch):
    """An environment that the package Shimmy registers when it is imported."""
    identifier = "dm_control/fake-swingup-v0"
    monkeypatch.setitem(sys.modules, "shimmy", types.ModuleType("shimmy"))
    gymnasium.register(identifier, entry_point=CartPole)
    yield identifier
    del gymnasium.registry[identifier]


def test_an_environment_of_dm_control(dm_control):
    with pytest.raises(ArgumentError, match=r"horizon: .* no time limit"):
        from_gymnasium(dm_control)
    task = from_gymnasium(dm_control, horizon=8, action_repeat=2)
    assert task.coordinate_names == (
        *("height", "position[0]", "angle(position[1], position[2])"),
        *("velocity[0]", "velocity[1]"),
    )
    assert task.states.periodic == (2,)
    assert task.unbounded == (0, 1, 3, 4)
    episode = task.play(lambda state, period: [1.0], seed=0)
    assert (episode.states.shape, task.environment_steps) == ((6, 5), 10)  # truncated
    assert not episode.terminated
    observation, _ = task.env.reset(seed=0)
    np.testing.assert_allclose(task.state_of(observation), episode.states[0])
    agent = km.Random(dm_control, horizon=8, seed=0)
    assert agent.learn(episodes=1, progress=False).episodes["return"][0] < 0
    config = RunConfig(dm_control, "random", 0, {"horizon": 4, "angles": ["velocity[1]"]})
    assert config.system().problem.states.periodic == (2, 4)


def test_dm_control_needs_shimmy(monkeypatch):
    monkeypatch.setitem(sys.modules, "shimmy", None)  # importing it fails
    for make in (from_gymnasium, km.PSRL, lambda name: RunConfig(name).system()):
        with pytest.raises(ArgumentError, match="shimmy to be installed, for dm_control/x-v0"):
            make("dm_control/x-v0")


class Machine(gymnasium.Env):
    """Observes and does whatever its spaces hold; the action is the next observation."""

    def __init__(self, space, action_space):
        self.observation_space, self.action_space = space, action_space
        self.taken = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.taken.append(action)
        return self.observation_space.sample(), 0.0, False, False, {}


@pytest.mark.parametrize(
    "space",
    [
        spaces.Discrete(4, start=-1),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary([2, 2]),
        spaces.Dict({"gear": spaces.Discrete(3), "lights": spaces.MultiBinary(2)}),
        spaces.Tuple([spaces.Discrete(2), spaces.Discrete(2, start=5)]),
    ],
)
@pytest.mark.parametrize("observation_space", [spaces.Box(0, 1, (1,)), spaces.Discrete(3)])
def test_every_choice_reaches_the_environment(observation_space, space):
    machine = Machine(observation_space, space)
    task = from_gymnasium(machine, horizon=20)
    rows = np.array(task.actions.points)
    task = from_gymnasium(machine, horizon=len(rows))
    episode = task.play(lambda state, period: rows[period], seed=0)
    np.testing.assert_array_equal(episode.actions, rows)
    assert len({str(action) for action in machine.taken}) == len(rows)
    assert [str(task.env_action(row)) for row in rows] == [str(each) for each in machine.taken]
    assert task.problem.actions == task.actions
    with pytest.raises((DomainError, ArgumentError), match="policy"):
        task.env_action(rows[0] + 0.5)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (2, 2)),
        spaces.Dict({"a": spaces.Box(0, 2, ()), "b": spaces.Box(-1, 1, (2,))}),
        spaces.Tuple([spaces.Box(0, 2, (1,), np.float64), spaces.Box(-1, 1, (1,))]),
    ],
)
def test_continuous_actions_reach_the_environment(space):
    machine = Machine(spaces.Box(0, 1, (1,)), space)
    task = from_gymnasium(machine, horizon=3)
    low, high = task.actions.bounds
    episode = task.play(lambda state, period: low + (high - low) * period / 2, seed=0)
    np.testing.assert_array_equal(episode.actions[::2], [low, high])
    assert len(machine.taken) == 3


def test_the_wrapper_that_sets_bounds():
    machine = Machine(spaces.Box(0, 1, (1,)), unbounded(1))
    with pytest.raises(ArgumentError, match="TransformAction"):
        from_gymnasium(machine, horizon=2)
    bounds = spaces.Box(-2.0, 2.0, (1,), np.float64)
    wrapped = gymnasium.wrappers.TransformAction(machine, lambda action: action, bounds)
    from_gymnasium(wrapped, horizon=2).play(lambda state, period: [1.5], seed=0)
    np.testing.assert_array_equal(machine.taken, [[1.5], [1.5]])


def test_observations_of_several_axes():
    machine = Machine(spaces.Box(0, 1, (2, 2), np.float64), spaces.Discrete(2))
    task = from_gymnasium(machine, horizon=3)
    assert task.states == Box([0.0] * 4, [1.0] * 4)
    assert task.coordinate_names[1] == "observation[0,1]"
    seen = np.arange(4).reshape(2, 2) / 4
    np.testing.assert_array_equal(task.state_of(seen), seen.ravel())


def test_only_a_whole_discrete_observation_is_a_table():
    choices = spaces.Discrete(2)
    assert from_gymnasium(Machine(spaces.Discrete(3, start=4), choices), horizon=2).states == (
        FiniteSet.range(3)
    )
    numbers = from_gymnasium(Machine(spaces.MultiDiscrete([4, 2]), choices), horizon=2)
    assert numbers.states == Box([0.0, 0.0], [3.0, 1.0])
    part = from_gymnasium(Machine(spaces.Dict(level=spaces.Discrete(3)), choices), horizon=2)
    assert part.states == Box([0.0], [2.0])
    assert part.coordinate_names == ("level",)


def test_a_start_that_fails_while_angles_are_searched():
    machine = Machine(unbounded(2), spaces.Discrete(2))
    machine.reset = lambda **_: 1 / 0
    with pytest.raises(KernelMDPError, match="Machine raised ZeroDivisionError at the start"):
        from_gymnasium(machine, horizon=2)


def test_an_agent_learns_from_parts():
    class Cart(gymnasium.Env):
        observation_space = spaces.Dict(place=spaces.Box(-2, 2, ()), load=spaces.Discrete(2))
        action_space = spaces.MultiDiscrete([3, 2])

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.place, self.load = float(self.np_random.uniform(-1, 1)), 0
            return {"place": self.place, "load": self.load}, {}

        def step(self, action):
            push, self.load = 0.2 * (int(action[0]) - 1), int(action[1])
            self.place = float(np.clip(self.place + push * (1 + self.load), -2, 2))
            return {"place": self.place, "load": self.load}, -abs(self.place), False, False, {}

    agent = km.PSRL(Cart(), horizon=6, planner=km.GridPlanner((9, 2)), seed=0)
    returns = agent.learn(episodes=2, progress=False).episodes["return"]
    assert np.isfinite(returns).all()
    action = agent.predict({"place": 0.4, "load": 1})
    assert tuple(action) in agent.task.actions.points
