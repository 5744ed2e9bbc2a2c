"""The pendulum: motion against an independent integrator, rewards by hand, optima."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from kernelmdp.envs import base_return, make
from kernelmdp.envs.pendulum import (
    DAMPING_RATE,
    GRAVITY_RATE,
    TORQUE_RATE,
    PendulumDynamics,
    SmoothReward,
    SparseReward,
    acceleration,
    energy,
    tolerance,
)
from kernelmdp.envs.pendulum_swingup import OPTIMA, TORQUES, solve
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp import play
from kernelmdp.mdp.policy import OpenLoopPolicy
from tests.envs.instances import instance

POINTS = np.array([[3.0, 0.5, 1.0], [-math.pi, 0.0, -0.5], [0.1, -11.0, 0.1], [6.0, 9.0, 0.0]])


def test_constants():
    assert pytest.approx(9.81 / 0.5) == GRAVITY_RATE
    assert pytest.approx(1 / (0.3 * 0.25)) == TORQUE_RATE
    assert pytest.approx(0.005 / (0.3 * 0.25)) == DAMPING_RATE


@pytest.mark.parametrize(
    "name_options", [("pendulum-swingup", {"macro": 1}), ("pendulum-swingup", {"macro": 4}), None]
)
def test_motion_matches_an_independent_integrator(name_options):
    env = (
        instance("pendulum-coarse")
        if name_options is None
        else make(name_options[0], **name_options[1])
    )
    motion = env.mdp.model.transition

    def slope(_, x, u):
        return [x[1], 9.81 / 0.5 * math.sin(x[0]) + (u - 0.005 * x[1]) / (0.3 * 0.5**2)]

    ours = np.asarray(motion(jnp.asarray(POINTS)))
    for row, point in zip(ours, POINTS, strict=True):
        there = solve_ivp(
            slope, (0, motion.seconds), point[:2], args=(point[2],), rtol=1e-11, atol=1e-12
        )
        np.testing.assert_allclose(row, there.y[:, -1], atol=2e-6)
    assert motion.seconds == pytest.approx({100: 4 / 80, 400: 1 / 80, 30: 0.1}[env.mdp.horizon])


def test_energy_changes_by_the_work_of_torque_and_friction():
    points = jnp.asarray(POINTS)
    angle, speed, torque = points.T
    h = 1e-5
    after = PendulumDynamics(h, 1)(points)
    rate = (energy(after[:, 0], after[:, 1]) - energy(angle, speed)) / h
    power = speed * (TORQUE_RATE * torque - DAMPING_RATE * speed)
    np.testing.assert_allclose(rate, power, atol=0.05)
    np.testing.assert_allclose(acceleration(jnp.zeros(1), jnp.zeros(1), jnp.ones(1)), TORQUE_RATE)
    # A second of free swinging loses a little to friction and nothing to the integrator.
    swung = PendulumDynamics(1.0, 160)(jnp.array([[2.0, 0.0, 0.0]]))
    lost = energy(jnp.array(2.0), jnp.array(0.0)) - energy(swung[0, 0], swung[0, 1])
    assert 0 < float(lost) < 1.5


def test_tolerance():
    values = jnp.array([0.95, 1.0, 0.97, 0.85, 0.90, 1.1])
    expected = [1.0, 1.0, 1.0, 0.1, 0.1**0.25, 0.1]
    np.testing.assert_allclose(tolerance(values, 0.95, 1.0, 0.1), expected, rtol=1e-9)


def test_sparse_reward_by_hand():
    points = jnp.array(
        [[0.0, 0.0, 0.0], [0.0, 0.0, 0.1], [0.0, 0.0, 0.2], [0.0, 1.0, 0.0], [-math.pi, 0.0, 1.0]]
    )
    expected = np.array([1.0, 1.0, 1.0 + 0.2 * (0.1 - 1), 0.1, -0.2])
    for hold in (1, 4):
        reward = SparseReward(jnp.asarray(0.2), hold)
        np.testing.assert_allclose(reward(points), hold * expected, atol=1e-9)


def test_smooth_reward_is_a_kernel_function():
    env = instance("pendulum-coarse")
    points = jnp.asarray(POINTS)
    kernel = env.problem.reward_kernel.left
    bump = np.asarray(kernel(points, jnp.zeros((1, 3))))[:, 0]
    np.testing.assert_allclose(env.known_reward(points), bump - 0.05 * POINTS[:, 2] ** 2, rtol=1e-9)
    assert isinstance(env.known_reward, SmoothReward)
    assert env.problem.norm_reward == pytest.approx(math.hypot(1, 0.05))
    low, high = env.mdp.reward_range
    net = env.known_reward(jnp.asarray(env.mdp.points.net(5000)[0]))
    assert low <= net.min() <= net.max() <= high


def test_suggested_kernel_is_smooth_in_cosine_and_sine():
    for short, part in ((False, 1.0), (True, 0.5)):
        kernel = make("pendulum-swingup", short=short).problem.transition_kernel.kernel
        scales = part * np.array([1, 1, 10, 2])
        features = np.stack(
            [np.cos(POINTS[:, 0]), np.sin(POINTS[:, 0]), POINTS[:, 1], POINTS[:, 2]], axis=1
        )
        gaps = (((features[:, None] - features[None]) / scales) ** 2).sum(axis=2)
        np.testing.assert_allclose(kernel(POINTS), np.exp(-gaps / 2), rtol=1e-8)


def test_macro_steps_are_held_base_steps():
    base, macro = make("pendulum-swingup", macro=1), instance("pendulum-swingup")
    assert (base.mdp.horizon, macro.mdp.horizon) == (400, 100)
    choices = np.random.default_rng(0).integers(TORQUES.count, size=100)
    plan = jnp.asarray(np.array(TORQUES.points)[choices])
    slow = play(
        macro.mdp, OpenLoopPolicy(plan), macro.draw_start(jax.random.key(0)), key=jax.random.key(0)
    )
    held = jnp.repeat(plan, 4, axis=0)
    fast = play(
        base.mdp, OpenLoopPolicy(held), base.draw_start(jax.random.key(0)), key=jax.random.key(0)
    )
    around = np.abs(
        np.exp(1j * np.asarray(slow.states)[:, 0]) - np.exp(1j * np.asarray(fast.states)[::4, 0])
    )
    assert around.max() < 1e-6
    np.testing.assert_allclose(slow.states[:, 1], fast.states[::4, 1], atol=1e-6)
    np.testing.assert_allclose(slow.rewards, 4 * fast.rewards[::4], atol=1e-6)
    for env, episode in ((macro, slow), (base, fast)):
        assert base_return(env, env.start, episode.actions) == pytest.approx(fast.total, abs=1e-6)
    # The angle of a raw outcome goes on where the state's comes round.
    np.testing.assert_allclose(slow.states[1:], macro.mdp.states.nearest(slow.outcomes))
    assert float(jnp.abs(slow.outcomes[:, 0] - slow.states[:-1, 0]).max()) < 12 * 0.05 + 0.1


def test_stored_optima_are_near_what_a_coarse_grid_finds():
    env = instance("pendulum-swingup")
    value, actions = solve(env, env.problem.state_points)
    known, base = env.optimal_value(), OPTIMA[1, 0.2]
    assert known is OPTIMA[4, 0.2]
    assert value == pytest.approx(known.value, abs=5.0)
    episode = play(
        env.mdp, OpenLoopPolicy(jnp.asarray(actions)), jnp.asarray(env.start), key=jax.random.key(0)
    )
    assert 0.98 * known.value < episode.total < known.value + known.error
    earned = base_return(env, env.start, actions)
    assert 0.98 * base.value < earned < base.value + base.error


@pytest.mark.parametrize(
    "options", [{"macro": 3}, {"macro": 0}, {"penalty": -0.1}, {"penalty": float("nan")}]
)
def test_bad_options(options):
    with pytest.raises(ArgumentError):
        make("pendulum-swingup", **options)


def test_bad_replays():
    env = instance("pendulum-swingup")
    with pytest.raises(ShapeError, match=r"\(100, 1\)"):
        base_return(env, env.start, np.zeros((400, 1)))
    with pytest.raises(ArgumentError, match="pendulum-swingup"):
        base_return(instance("rkhs"), [0.0], np.zeros((10, 1)))


@pytest.mark.parametrize("short", [False, True])
def test_the_additive_kernel_makes_the_norm_of_motion_small(short):
    """The norm of the least interpolant at random points, within 1e-4 of an increment, by NumPy."""
    env = make("pendulum-swingup", short=short, additive=True)
    rng = np.random.default_rng(0)
    low, high = env.mdp.states.bounds
    states = rng.uniform(low, high, size=(400, 2))
    points = np.concatenate([states, rng.choice(np.ravel(TORQUES.points), size=(400, 1))], axis=1)
    after = np.asarray(env.mdp.model.transition(jnp.asarray(points)))
    increments = (after - states) / np.array(env.problem.scale)
    gram = np.asarray(env.problem.transition_kernel.kernel(points))
    weights = np.linalg.solve(gram + 1e-8 * np.eye(400), increments)
    assert np.abs(gram @ weights - increments).max() < 1e-4
    norm = math.sqrt(np.sum(weights * (gram @ weights)))
    assert 0.5 < norm / env.problem.assumed_norms[1] < 1
