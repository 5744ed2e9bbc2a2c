"""Errors of predictions before an episode is learned, and warnings where they are a surprise."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ApproximationWarning
from kernelmdp.learners import FittedKernels
from kernelmdp.mdp import MDP, NO_NOISE, Episode, MeanModel, Problem
from kernelmdp.mdp.prediction_errors import ROLLOUT_STEPS, prediction_errors

BOX, ACTIONS = km.Box([-9.0, -9.0], [9.0, 9.0]), km.Box([-1.0], [1.0])
KEY = jax.random.key(0)


def linear(gain):
    """x' = 0.9 x + gain a, for two coordinates."""
    return MDP(
        MeanModel(lambda z: z[:, 0], lambda z: 0.9 * z[:, :2] + gain * z[:, 2:]),
        states=BOX,
        actions=ACTIONS,
        horizon=40,
        reward_noise=NO_NOISE,
        transition_noise=NO_NOISE,
    )


def episode(gain, steps=40, seed=0):
    rng = np.random.default_rng(seed)
    states, actions = [rng.uniform(-1, 1, 2)], rng.uniform(-1, 1, (steps, 1))
    for action in actions:
        states.append(0.9 * states[-1] + gain * action)
    states = np.array(states)
    return Episode(states, actions, states[:-1, 0], states[1:])


def test_errors_against_plain_loops():
    played, mdp = episode(1.0), linear(0.7)
    errors = []
    for steps in (1, ROLLOUT_STEPS):
        squares = np.zeros((2, 2))
        for t in range(40 - steps + 1):
            state = played.states[t]
            for action in played.actions[t : t + steps]:
                state = 0.9 * state + 0.7 * action
            squares[0] += (played.states[t + steps] - state) ** 2
            squares[1] += (played.states[t + steps] - played.states[t]) ** 2
        errors.append(np.sqrt(np.mean(squares[0] / squares[1])))
    measured = prediction_errors(mdp, played)
    np.testing.assert_allclose(measured[:2], errors, rtol=1e-6)
    changes = np.diff(played.states, axis=0)
    wrong = 0.3 * np.abs(played.actions) / np.sqrt(np.mean(changes**2, axis=0))
    np.testing.assert_allclose(measured.steps, wrong.max(axis=1), rtol=1e-6)


def test_short_episodes_have_no_long_rollouts():
    errors = prediction_errors(linear(0.5), episode(1.0, steps=ROLLOUT_STEPS - 1))
    assert errors.one_step > 0.1
    assert np.isnan(errors.rollout)


@pytest.fixture(scope="module")
def learned():
    problem = Problem.from_spaces(states=BOX, actions=ACTIONS, horizon=40)
    learner = FittedKernels()
    state = learner.init(problem, key=KEY)
    for seed in range(4):
        state = learner.update(state, episode(1.0, seed=seed), key=KEY)
    return learner, state


def test_the_learner_reports_them_before_it_learns(learned):
    learner, state = learned
    assert state.errors.shape == (3, 4)  # the first episode was not predicted
    info = learner.info(state)
    names = ("one_step_error", "rollout_error", "deviations")
    assert [info[name] for name in names] == state.errors[-1, :3].tolist()
    assert np.isnan(info["prior_model_error"])  # there is no such model
    assert info["one_step_error"] < 0.05


@pytest.mark.filterwarnings("ignore:the plant seems to have changed")
def test_a_system_that_changed_is_a_surprise(learned):
    learner, state = learned
    with pytest.warns(ApproximationWarning, match="predicted an episode badly"):
        learner.update(state, episode(-1.0, seed=9), key=KEY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.update(state, episode(1.0, seed=9), key=KEY)


def test_columns_of_a_run():
    result = km.Greedy("Pendulum-v1", seed=0, horizon=12).learn(3, progress=False)
    errors = result.episodes["one_step_error"]
    assert np.isnan(errors[0])  # nothing was known before the first episode
    assert np.isfinite(errors[1:]).all()
    assert jnp.all(errors[1:] > 0)
