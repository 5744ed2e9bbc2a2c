"""Gymnasium in both directions."""

import warnings

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from kernelmdp.domains import Box, FiniteSet
from kernelmdp.envs import from_gymnasium, gymnasium_env, register
from kernelmdp.errors import ArgumentError, DomainError, KernelMDPError
from tests.envs.instances import instance

register()


@pytest.fixture(autouse=True)
def _made_once(monkeypatch):
    """The checker makes an environment several times; its truth is solved once."""
    monkeypatch.setattr(gymnasium_env, "make", lambda name, *, seed, **_: instance(name, seed))


@pytest.mark.parametrize("identifier", gymnasium_env.GYMNASIUM_IDS)
def test_gymnasium_checker(identifier):
    register()  # again: nothing changes
    env = gymnasium.make(identifier)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # A recommendation: torques of the classic pendulum go to 2.
        warnings.filterwarnings("ignore", message=".*symmetric and normalized space.*")
        check_env(env.unwrapped)


@pytest.mark.parametrize("identifier", gymnasium_env.GYMNASIUM_IDS)
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
        assert truncated == (period + 1 == mdp.horizon)
        assert info["period"] == period + 1
        assert env.observation_space.contains(state)
        assert not terminated or mdp.termination is not None
        if terminated:
            break
        if identifier != "kernelmdp/PendulumNoisy-v0":
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
    for name, mode in (("rkhs", "rgb_array"), ("pendulum", "human")):
        with pytest.raises(ArgumentError, match="render_mode"):
            gymnasium_env.GymnasiumEnvironment(name, render_mode=mode)
    with pytest.raises(ArgumentError, match="observation"):
        gymnasium_env.GymnasiumEnvironment("pendulum", observation="pixels")


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
    assert task.states.dimension == 2  # the cosine and the sine are one angle
    assert isinstance(task.actions, Box)
    assert from_gymnasium("Pendulum-v1").horizon == 200
    episode = task.play(lambda state, period: [2 * np.sin(state[0])], seed=0)
    assert episode.states.shape == (21, 2)
    np.testing.assert_allclose(episode.states[1:], task.states.nearest(episode.outcomes))
    again = task.play(lambda state, period: [2 * np.sin(state[0])], seed=0)
    np.testing.assert_array_equal(episode.rewards, again.rewards)


def test_discrete_actions_and_early_ends():
    box = Box([-5.0, -10.0, -1.0, -10.0], [5.0, 10.0, 1.0, 10.0])
    task = from_gymnasium("CartPole-v1", states=box, horizon=100)
    assert task.actions == FiniteSet([[0.0], [1.0]])
    assert task.unbounded == ()
    episode = task.play(lambda state, period: [1.0], seed=0)
    steps = len(episode.rewards)
    assert episode.terminated
    assert steps < 15
    assert episode.states.shape == (steps + 1, 4)
    assert episode.actions.shape == (steps, 1)
    assert episode.outcomes.shape == (steps, 4)
    with pytest.raises(DomainError, match="policy"):
        task.play(lambda state, period: [0.5], seed=0)
    narrow = Box([-5.0, -1e-3, -1.0, -10.0], [5.0, 1e-3, 1.0, 10.0])
    with pytest.raises(DomainError, match="coordinate 1"):
        from_gymnasium("CartPole-v1", states=narrow).play(lambda state, period: [1.0], seed=0)
