"""Gymnasium in both directions."""

import warnings

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from kernelmdp.domains import Box, FiniteSet
from kernelmdp.envs import from_gymnasium, gymnasium_env, register
from kernelmdp.errors import ArgumentError, DataError, DomainError, KernelMDPError, ShapeError
from tests.envs.instances import instance

register()


@pytest.fixture(autouse=True)
def _made_once(monkeypatch):
    """The checker makes an environment several times; its truth is solved once."""
    monkeypatch.setattr(gymnasium_env, "make", lambda name, *, seed, **_: instance(name, seed))


@pytest.mark.parametrize("identifier", gymnasium_env.IDS)
def test_gymnasium_checker(identifier):
    register()  # again: nothing changes
    env = gymnasium.make(identifier)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)


@pytest.mark.parametrize("identifier", gymnasium_env.IDS)
def test_an_episode(identifier):
    env = gymnasium.make(identifier)
    mdp = env.unwrapped.environment.mdp
    env.action_space.seed(0)
    state, info = env.reset(seed=3)
    assert info["period"] == 0
    for period in range(mdp.horizon):
        action = env.action_space.sample()
        state, reward, terminated, truncated, info = env.step(action)
        assert isinstance(reward, float)
        assert not terminated
        assert truncated == (period + 1 == mdp.horizon)
        assert info["period"] == period + 1
        np.testing.assert_allclose(state, mdp.states.nearest(info["outcome"][None, :])[0])
    with pytest.raises(KernelMDPError, match="call reset"):
        env.unwrapped.step(action)


def test_noise_is_seeded_and_fresh():
    env = gymnasium.make("kernelmdp/Rkhs-v0")
    action = np.array([0.3])

    def steps(seed):
        env.reset(seed=seed)
        return [env.step(action)[1] for _ in range(3)]

    first, again, other, next_episode = steps(1), steps(1), steps(2), steps(None)
    assert first == again
    assert len({*first, *other, *next_episode}) == 9


def test_a_given_start_and_bad_steps():
    env = gymnasium.make("kernelmdp/Rkhs-v0").unwrapped
    state, _ = env.reset(seed=0, options={"state": [0.25]})
    assert state.tolist() == [0.25]
    with pytest.raises(ArgumentError, match="action"):
        env.step(np.array([2.0]))
    with pytest.raises(DomainError, match="start"):
        env.reset(options={"state": [4.0]})
    with pytest.raises(ArgumentError, match="render_mode"):
        gymnasium_env.GymnasiumEnvironment("rkhs", render_mode="human")


# The other way.


def test_ours_played_through_gymnasium():
    env = instance("pendulum-swingup")
    task = from_gymnasium("kernelmdp/PendulumSwingup-v0")
    assert (task.horizon, task.states, task.actions) == (100, env.mdp.states, env.mdp.actions)
    episode = task.play(lambda state, period: [1.0] if period % 30 < 15 else [-0.5], seed=0)
    model = env.mdp.model(jnp.asarray(episode.points))
    np.testing.assert_allclose(episode.outcomes, model.state, atol=1e-9)
    np.testing.assert_allclose(episode.rewards, model.reward, atol=1e-9)
    np.testing.assert_allclose(episode.states[1:], env.mdp.states.nearest(episode.outcomes))
    assert (np.abs(episode.outcomes[:, 0]) > np.pi).any()  # unwrapped, unlike the states


def test_the_classic_pendulum():
    task = from_gymnasium("Pendulum-v1", horizon=20)
    assert task.states.dimension == 3
    assert isinstance(task.actions, Box)
    assert from_gymnasium("Pendulum-v1").horizon == 200
    episode = task.play(lambda state, period: [2 * state[1]], seed=0)
    assert episode.states.shape == (21, 3)
    np.testing.assert_array_equal(episode.states[1:], episode.outcomes)
    again = task.play(lambda state, period: [2 * state[1]], seed=0)
    np.testing.assert_array_equal(episode.rewards, again.rewards)


def test_discrete_actions_and_early_ends():
    with pytest.raises(ArgumentError, match=r"states=Box.*coordinates \[1, 3\]"):
        from_gymnasium("CartPole-v1")
    box = Box([-5.0, -10.0, -1.0, -10.0], [5.0, 10.0, 1.0, 10.0])
    task = from_gymnasium("CartPole-v1", states=box, horizon=100)
    assert task.actions == FiniteSet([[0.0], [1.0]])
    with pytest.raises(ArgumentError, match=r"episodes of 100 steps.*terminated after step"):
        task.play(lambda state, period: [1.0], seed=0)
    with pytest.raises(DomainError, match="policy"):
        task.play(lambda state, period: [0.5], seed=0)
    narrow = Box([-5.0, -1e-3, -1.0, -10.0], [5.0, 1e-3, 1.0, 10.0])
    with pytest.raises(DomainError, match="coordinate 1"):
        from_gymnasium("CartPole-v1", states=narrow).play(lambda state, period: [1.0], seed=0)


class Turning(gymnasium.Env):
    """An angle in [0, 1) that advances by the action; breaks as told."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (1,))
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))

    def __init__(self, observe=lambda angle, count: [angle], earn=lambda count: 0.0):
        self.observe, self.earn = observe, earn

    def reset(self, *, seed=None, options=None):
        self.angle, self.count = 0.9, 0
        return np.array([self.angle]), {}

    def step(self, action):
        self.angle, self.count = (self.angle + float(action[0])) % 1.0, self.count + 1
        return (
            np.array(self.observe(self.angle, self.count)),
            self.earn(self.count),
            False,
            False,
            {},
        )


def test_angles_are_unwrapped():
    task = from_gymnasium(Turning(), horizon=4, states=Box([0.0], [1.0], periodic=[0]))
    episode = task.play(lambda state, period: [0.3])
    np.testing.assert_allclose(episode.outcomes[:, 0], [1.2, 0.5, 0.8, 1.1], atol=1e-6)
    np.testing.assert_allclose(episode.states[:, 0], [0.9, 0.2, 0.5, 0.8, 0.1], atol=1e-6)


@pytest.mark.parametrize(
    ("broken", "error", "words"),
    [
        (
            {"observe": lambda a, n: [np.nan if n == 2 else a]},
            DataError,
            "coordinate 0 after step 1",
        ),
        ({"earn": lambda n: np.inf if n == 3 else 0.0}, DataError, "reward.*after step 2"),
        ({"observe": lambda a, n: [a] * n}, ShapeError, r"shape \(2,\) after step 1"),
        ({"observe": lambda a, n: [2.0]}, DomainError, "after step 0.*outside by 1"),
    ],
)
def test_bad_episodes_say_where(broken, error, words):
    task = from_gymnasium(Turning(**broken), horizon=4)
    with pytest.raises(error, match=words):
        task.play(lambda state, period: [0.0])


def test_bad_tasks():
    with pytest.raises(ArgumentError, match="horizon"):
        from_gymnasium(Turning())
    with pytest.raises(ArgumentError, match="time limit of 200"):
        from_gymnasium("Pendulum-v1", horizon=201)
    with pytest.raises(ShapeError, match="3 coordinates"):
        from_gymnasium("Pendulum-v1", states=Box([0.0], [1.0]))
    with pytest.raises(ArgumentError, match="policy"):
        from_gymnasium(Turning(), horizon=2).play(lambda state, period: [0.0, 0.0])
    turning = Turning()
    turning.observation_space = gymnasium.spaces.MultiBinary(3)
    with pytest.raises(ArgumentError, match="observations, or a Box"):
        from_gymnasium(turning, horizon=2)
