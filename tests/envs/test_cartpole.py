"""Cart-poles: motion against Gymnasium and Lagrange, energy, rewards, ends, optimal values."""

import math

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.envs import cartpole_balance, cartpole_swingup, make
from kernelmdp.envs.cartpole import CartPoleDynamics
from kernelmdp.envs.cartpole_swingup import OPTIMUM, STATES, TipReward
from kernelmdp.errors import UnknownPropertyError
from kernelmdp.mdp import Policy, play
from kernelmdp.mdp.policy import OpenLoopPolicy, UniformPolicy
from tests.envs.instances import instance

KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
POINTS = RNG.uniform([-2, -3, -3, -9, -1], [2, 3, 3, 9, 1], (40, 5))


def test_balance_moves_as_gymnasiums_cart_pole():
    classic = gymnasium.make("CartPole-v1").unwrapped
    classic.reset(seed=0)
    for point in POINTS:
        for action, push in ((0, -1.0), (1, 1.0)):
            classic.state, classic.steps_beyond_terminated = point[:4].copy(), None
            classic.step(action)
            row = jnp.asarray([*point[:4], push])[None, :]
            after = cartpole_balance.DYNAMICS(row)[0]
            np.testing.assert_allclose(after, classic.state, atol=1e-10)


def test_swingup_moves_as_pilcos():
    # PILCO's angle is zero hanging and goes anticlockwise: φ = π − θ; its tip is x + l sin φ.
    m = M = 0.5
    l, b, g = 0.6, 0.1, 9.82  # noqa: E741
    x, v, angle, turning, action = POINTS.T
    phi, w, u = math.pi - angle, -turning, 10 * action
    s, c = np.sin(phi), np.cos(phi)
    push = (2 * m * l * w**2 * s + 3 * m * g * s * c + 4 * u - 4 * b * v) / (
        4 * (M + m) - 3 * m * c**2
    )
    turn = (-3 * m * l * w**2 * s * c - 6 * (M + m) * g * s - 6 * (u - b * v) * c) / (
        4 * l * (m + M) - 3 * m * l * c**2
    )
    expected = np.stack([x + 0.1 * v, v + 0.1 * push, angle + 0.1 * turning, turning - 0.1 * turn])
    np.testing.assert_allclose(
        cartpole_swingup.DYNAMICS(jnp.asarray(POINTS)), expected.T, atol=1e-10
    )


def test_energy_is_kept_without_friction_and_lost_with_it():
    for friction in (0.0, 0.5):
        system = CartPoleDynamics(0.5, 0.7, 0.6, friction, 9.82, 10.0, 1e-5)
        state = jnp.asarray([[0.3, 1.0, 2.0, -3.0]])
        before = float(system.energy(state)[0])

        def one(_, rows, system=system):
            return system(jnp.concatenate([rows, jnp.zeros((1, 1))], axis=1))

        after = float(system.energy(jax.lax.fori_loop(0, 50_000, one, state))[0])
        if friction:
            assert after < before - 0.05
        else:
            assert after == pytest.approx(before, abs=2e-3)


def test_the_reward_of_the_tip():
    # One step later, so that speeds move the tip and the action does not.
    points = jnp.array(
        [
            [0.0, 0.0, 0.0, 0.0, 1.0],
            [0.25, 0.0, 0.0, 0.0, 0.0],
            [-0.6, 0.0, math.pi / 2, 0.0, 0.0],
            [0.0, 0.0, math.pi, 0.0, 0.0],
            [0.1, -1.0, 0.2, -2.0, -1.0],
        ]
    )
    gone = [0.0, 1 - math.exp(-0.5), 1 - math.exp(-0.36 / 0.125), 1 - math.exp(-1.44 / 0.125), 0.0]
    np.testing.assert_allclose(TipReward()(points), -np.array(gone), atol=1e-12)
    # The published code has the pole on the other side in the reward: here 1.2 to the left.
    assert float(TipReward(-1)(points)[2]) == pytest.approx(math.exp(-1.8 / 0.125) - 1)
    assert make("cartpole-swingup", mirrored=True).known_reward.side == -1


def test_swingup_starts_hanging_and_stays_in_its_box():
    env = instance("cartpole-swingup")
    starts = np.stack([np.asarray(env.draw_start(jax.random.key(i))) for i in range(100)])
    around = np.concatenate([starts[:, :2], np.sin(starts[:, 2:3]), starts[:, 3:]], axis=1)
    np.testing.assert_allclose(around.std(axis=0), 0.02, rtol=0.3)
    assert (np.cos(starts[:, 2]) < -0.99).all()
    for i in range(5):
        policy = UniformPolicy(env.mdp.actions, jax.random.key(i))
        episode = play(env.mdp, policy, jnp.asarray(starts[i]), key=KEY)
        inside = np.abs(np.asarray(episode.outcomes))[:, [0, 1, 3]]
        assert (inside < np.array(STATES.high)[[0, 1, 3]]).all()


def test_the_stored_optimum_of_swingup_is_within_reach():
    env = instance("cartpole-swingup")
    start = env.draw_start(KEY)
    assert env.optimal_value(start) is OPTIMUM
    hanging = jnp.asarray([0.0, 0.0, -math.pi, 0.0])
    plan = jnp.asarray(cartpole_swingup.PLAN)[:, None]
    earned = play(env.mdp, OpenLoopPolicy(plan), hanging, key=KEY).total
    assert earned == pytest.approx(OPTIMUM.value, abs=OPTIMUM.error)
    for change in ({"mirrored": True}, {"horizon": 10}):
        with pytest.raises(UnknownPropertyError, match="optimal value is known for"):
            make("cartpole-swingup", **change).optimal_value(start)
    with pytest.raises(UnknownPropertyError, match="hanging at rest"):
        env.optimal_value([1.0, 0.0, 0.0, 0.0])


class Linear(Policy):
    """The controller that bounds the optimum from below."""

    def actions(self, states, period):
        return jnp.clip(states @ jnp.asarray(cartpole_balance.FEEDBACK_GAINS)[:, None], -1.0, 1.0)


class Push(Policy):
    def actions(self, states, period):
        return jnp.ones((states.shape[0], 1))


def test_balance_is_possible():
    env = instance("cartpole-balance")
    for i in range(3):
        key = jax.random.key(i)
        episode = env.play(Linear(), env.draw_start(key), key=key)
        assert len(episode.rewards) == 200
        assert not episode.terminated
        assert episode.total == pytest.approx(200, abs=1.0)
    optimum = env.optimal_value(env.draw_start(KEY))
    assert (optimum.value, optimum.kind) == (200.0, "interval")
    for bad in ([1.0, 0.0, 0.0, 0.0], None):
        error = UnknownPropertyError if bad else Exception
        with pytest.raises(error):
            env.optimal_value(bad)
    with pytest.raises(UnknownPropertyError, match="noise of at most"):
        make("cartpole-balance", noise=0.1).optimal_value([0.0] * 4)


def test_an_episode_ends_where_the_pole_falls():
    env = instance("cartpole-balance")
    episode = env.play(Push(), jnp.zeros(4), key=KEY)
    steps = len(episode.rewards)
    assert episode.terminated
    assert 5 < steps < 20
    assert episode.states.shape == (steps + 1, 4)
    assert episode.actions.shape == (steps, 1)
    assert episode.outcomes.shape == (steps, 4)
    angles = np.abs(np.asarray(episode.states))[:, 2]
    assert (angles[:-1] <= math.radians(12)).all()
    assert angles[-1] > math.radians(12)
    # Every step begun between the bounds earns 1, as Gymnasium's does.
    np.testing.assert_allclose(episode.rewards, 1.0, atol=0.05)
    whole = play(env.mdp, Push(), jnp.zeros(4), key=KEY)
    np.testing.assert_array_equal(whole.rewards[:steps], episode.rewards)
    assert not np.asarray(whole.rewards[steps:]).any()


def test_rewards_of_balance():
    points = jnp.array([[0, 0, 0, 0, 1], [2.5, 0, 0, 0, 0], [0, 9, -0.22, 0, 0.0]], float)
    np.testing.assert_array_equal(instance("cartpole-balance").known_reward(points), [1, 0, 0])
