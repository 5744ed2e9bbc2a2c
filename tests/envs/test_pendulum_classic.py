"""Gymnasium's pendulum: motion and rewards against Gymnasium itself, and optimal values."""

import math

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.envs import make
from kernelmdp.envs.pendulum_classic import (
    HANGING,
    NOISY_OPTIMUM,
    STATES,
    ClassicPendulumDynamics,
    PendulumCost,
)
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import play
from kernelmdp.mdp.policy import UniformPolicy
from tests.envs.instances import instance

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
POINTS = RNG.uniform([-math.pi, -6.0, -2.0], [math.pi, 6.0, 2.0], (50, 3))


def test_motion_and_cost_are_those_of_gymnasium():
    classic = gymnasium.make("Pendulum-v1").unwrapped
    classic.reset(seed=0)
    ours, costs = (
        ClassicPendulumDynamics()(jnp.asarray(POINTS)),
        PendulumCost(at_next_state=False)(jnp.asarray(POINTS)),
    )
    late = PendulumCost(at_next_state=True)(jnp.asarray(POINTS))
    for point, after, cost, later in zip(POINTS, ours, costs, late, strict=True):
        classic.state = point[:2].copy()
        _, reward, *_ = classic.step(point[2:])
        np.testing.assert_allclose(after, classic.state, atol=1e-12)
        assert float(cost) == pytest.approx(reward, abs=1e-12)
        _, reward, *_ = classic.step(np.zeros(1))
        assert float(later) == pytest.approx(reward - 0.001 * point[2] ** 2, abs=1e-12)


def test_speed_is_clipped_by_the_projection_only():
    point = jnp.array([[math.pi / 2, 7.9, 2.0]])
    after = ClassicPendulumDynamics()(point)
    assert float(after[0, 1]) == pytest.approx(7.9 + 0.05 * 21)
    assert float(STATES.nearest(after)[0, 1]) == 8.0
    assert float(PendulumCost(at_next_state=True)(point)[0]) == pytest.approx(
        -((math.pi / 2 + 0.05 * 8.95) ** 2 + 6.4 + 0.004)
    )


def test_rewards_at_known_points_and_their_range():
    still = jnp.array([[0.0, 0.0, 0.0], [-math.pi, 0.0, 0.0]])
    np.testing.assert_allclose(
        PendulumCost(at_next_state=True)(still), [0.0, -(math.pi**2)], atol=1e-12
    )
    for name in ("pendulum", "pendulum-noisy"):
        mdp = instance(name).mdp
        rewards = mdp.model(jnp.asarray(mdp.points.net(5000)[0])).reward
        assert mdp.reward_range[0] <= rewards.min() <= rewards.max() <= mdp.reward_range[1]


def test_starts():
    env = instance("pendulum")
    starts = np.stack([np.asarray(env.draw_start(jax.random.key(i))) for i in range(200)])
    assert (np.abs(starts) <= [math.pi, 1.0]).all()
    assert (np.abs(starts).max(axis=0) > [3.0, 0.9]).all()
    assert instance("pendulum-noisy").start == pytest.approx(HANGING)


def test_options():
    env = make("pendulum-noisy", noise=0.05, reward_noise=0.2, horizon=30)
    assert env.mdp.transition_noise.sizes == (0.05,)
    assert env.mdp.reward_noise.sizes == (0.2,)
    assert (env.mdp.horizon, env.optimum) == (30, None)
    with pytest.raises(ArgumentError, match="noise"):
        make("pendulum-noisy", noise=0.0)
    with pytest.raises(ArgumentError, match="horizon"):
        make("pendulum", horizon=0)


def test_the_optimum_of_a_short_pendulum_is_solved_once_for_all_starts(monkeypatch):
    env = make("pendulum", horizon=2)
    upright = env.optimal_value([0.0, 0.0])
    assert upright.value == pytest.approx(0.0, abs=0.01)
    # Two steps of hanging: nearly all of the cost is the angle's.
    monkeypatch.setattr("kernelmdp.envs.environment.solve", None)
    hanging = env.optimal_value([-math.pi, 0.0])
    assert hanging.value == pytest.approx(-2 * math.pi**2, abs=0.5)
    assert hanging.error < 0.1


def test_the_stored_optimum_is_that_of_the_noisy_pendulum():
    assert instance("pendulum-noisy").optimal_value() is NOISY_OPTIMUM
    # Uniform torques are far from it.
    env = instance("pendulum-noisy")
    random = play(env.mdp, UniformPolicy(env.mdp.actions, KEY), env.draw_start(KEY), key=KEY)
    assert random.total < 2 * NOISY_OPTIMUM.value
