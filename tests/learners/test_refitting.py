"""New parameters are compared with the old ones before they replace them."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.learners import FittedKernels
from kernelmdp.learners.refitting import better_predictor, fitted_state
from kernelmdp.mdp import Episode, Problem
from kernelmdp.numerics.modules import replace_fields

KEY = jax.random.key(0)
PROBLEM = Problem.from_spaces(
    states=km.Box([-2.0, -2.0], [2.0, 2.0]), actions=km.Box([-1.0], [1.0]), horizon=40
)


def episode(rng, steps=40, ends=False):
    """A damped pendulum with a cost, and another reward in the last step if it ends."""
    states, actions, rewards = [rng.uniform(-1, 1, 2)], [], []
    for _ in range(steps):
        x, v = states[-1]
        a = rng.uniform(-1, 1)
        states.append(np.array([x + 0.1 * v, v - 0.1 * np.sin(2 * x) - 0.02 * v + 0.1 * a]))
        actions.append([a])
        rewards.append(1.0)
    if ends:
        rewards[-1] = 0.0
    arrays = (np.array(states), np.array(actions), np.array(rewards), np.array(states[1:]))
    return Episode(*arrays, terminated=ends)


def with_logs(state, logs):
    """The state with other parameters of the dynamics."""
    return dataclasses.replace(state, dynamics_law=replace_fields(state.dynamics_law, logs=logs))


@pytest.fixture(scope="module")
def states():
    """The learner's state after four episodes."""
    learner, rng = FittedKernels(), np.random.default_rng(0)
    state = learner.init(PROBLEM, key=KEY)
    for _ in range(4):
        state = learner.update(state, episode(rng), key=KEY)
    return state


def test_parameters_that_predict_worse_are_discarded_for_their_output_only(states):
    bad = states.dynamics_logs.copy()
    bad[1, :3] = np.log(0.02)  # lengthscales far too short
    new = better_predictor(with_logs(states, bad), states, rows=40)
    np.testing.assert_array_equal(new.dynamics_logs[1], states.dynamics_logs[1])
    slightly = states.dynamics_logs.copy()
    slightly[0, 0] += 1e-6
    new = better_predictor(with_logs(states, slightly), states, rows=40)
    np.testing.assert_array_equal(new.dynamics_logs, slightly)


def test_a_trend_that_predicts_worse_is_discarded(states):
    trend = states.trend.copy()
    trend[1, 0] += 5.0
    new = better_predictor(dataclasses.replace(states, trend=trend), states, rows=40)
    np.testing.assert_array_equal(new.trend, states.trend)


def test_good_parameters_replace_bad_ones(states):
    bad = states.dynamics_logs.copy()
    bad[:, :3] = np.log(0.02)
    old = with_logs(states, bad)
    new = better_predictor(fitted_state(old), old, rows=40)
    assert (np.abs(new.dynamics_logs - bad).max(axis=1) > 1).all()


def test_the_reward_of_a_terminal_step_is_left_out_of_the_regression():
    learner, rng = FittedKernels(), np.random.default_rng(1)
    state = learner.init(PROBLEM, key=KEY)
    for _ in range(2):
        state = learner.update(state, episode(rng, steps=20, ends=True), key=KEY)
    assert set(state.data.reward_rows[1]) == {1.0}
    # All rewards that count are equal, so no other reward is hoped for or feared.
    assert state.reward_range == (1.0, 1.0)
    points = jnp.array([[0.0, 0.0, 0.0], [1.9, 1.9, 1.0]])
    # Of two plans that last, the one far from the limits is a little better.
    rewards = np.asarray(learner.mean(state).model(points).reward)
    np.testing.assert_allclose(rewards, 1.0, atol=0.01)
    # There is nothing to fear from one reward, so the careful plan is the same.
    careful = learner.pessimistic(state, deviations=1.0).model(points).reward
    np.testing.assert_array_equal(careful, rewards)


def test_draws_have_kernel_parameters_of_their_own(states):
    keys = jax.random.split(KEY, 40)
    drawn = [states.with_drawn_parameters(key=key) for key in keys]
    logs = np.stack([each.dynamics_logs for each in drawn])
    # The fitted parameters are in the middle: 40 draws, a standard error of 0.16 deviations.
    deviations = logs.std(axis=0)
    law = states.dynamics_law
    at_bound = np.minimum(law.logs - law.low, law.high - law.logs) <= 0.02 * (law.high - law.low)
    assert (np.abs(logs.mean(axis=0) - law.logs) <= 0.8 * deviations)[~at_bound].mean() > 0.8
    assert (deviations[~at_bound] > 0.01).all()
    np.testing.assert_allclose(deviations[at_bound], 0.0, atol=1e-9)
    assert not at_bound.all()
    np.testing.assert_array_equal(drawn[0].trend, states.trend)


def test_without_drawn_parameters_a_draw_is_one_of_the_fitted_posterior(states):
    points = jnp.asarray(np.random.default_rng(1).uniform(-1, 1, size=(50, 3)))
    expected = PROBLEM.mdp(states.beliefs.sample(key=KEY)).model(points).state
    without = FittedKernels().with_settings({"draws_parameters": False})
    np.testing.assert_allclose(without.sample(states, key=KEY).model(points).state, expected)
    drawn = FittedKernels().sample(states, key=KEY).model(points).state
    assert not np.allclose(drawn, expected, rtol=1e-9)


def test_rows_of_a_posterior_are_bounded():
    """Of many data a posterior has so many rows, spread, and predicts as with all of them."""
    rng = np.random.default_rng(0)
    history = [episode(rng) for _ in range(10)]
    means, counts = [], []
    points = np.concatenate([np.asarray(each.points) for each in history])[::7]
    for rows in (4096, 150):
        learner = FittedKernels().with_settings({"posterior_rows": rows, "inducing_points": 64})
        state = learner.init(PROBLEM, key=KEY)
        state = dataclasses.replace(state, data=state.data.with_history(history))
        state = fitted_state(state)
        posterior = state.beliefs.transition
        means.append(np.asarray(posterior.predict(points)[0]))
        counts.append(posterior.count)
    assert counts == [400, 150]
    spread = np.sqrt(np.mean(means[0] ** 2, axis=0))
    assert (np.sqrt(np.mean((means[1] - means[0]) ** 2, axis=0)) <= 0.02 * spread).all()
