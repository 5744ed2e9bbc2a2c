"""Steps that are no part of the model: collisions."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.learners import FittedKernels
from kernelmdp.mdp import Episode, Problem
from kernelmdp.mdp.prediction_errors import prediction_errors

KEY = jax.random.key(0)
STOP = 1.0


def episode(seed, start, steps=60, ends=False):
    """A cart on a rail, pushed at random, that an end stop at 1 throws back."""
    rng = np.random.default_rng(seed)
    states, actions = [np.array(start, float)], rng.uniform(-1, 1, (steps, 1))
    for (a,) in actions:
        x, v = states[-1]
        after = np.array([x + 0.1 * v, 0.98 * v + 0.1 * a])
        states.append(np.array([STOP, -v]) if after[0] > STOP else after)
    arrays = np.array(states), actions, np.ones(steps), np.array(states[1:])
    return Episode(*arrays, terminated=ends)


@pytest.fixture(scope="module")
def learned():
    problem = Problem.from_spaces(
        states=km.Box([-9.0, -9.0], [9.0, 9.0]), actions=km.Box([-1.0], [1.0]), horizon=60
    )
    learner = FittedKernels()
    state = learner.init(problem, key=KEY)
    for seed in range(3):
        state = learner.update(state, episode(seed, [-6.0, 0.0], ends=True), key=KEY)
    assert not state.data.excluded.any()
    return learner, state, learner.update(state, episode(7, [0.0, 1.0]), key=KEY)


def test_a_collision_is_left_out_and_avoided(learned):
    _, _, state = learned
    collision = episode(7, [0.0, 1.0])
    hit = np.flatnonzero(collision.outcomes[:, 0] == STOP)
    excluded = state.data.excluded[-60:]
    assert 1 <= len(hit) <= 3
    assert excluded[hit].all()
    assert excluded.sum() <= 6 * len(hit)  # and up to five steps after each
    points, residuals = state.data.motion_rows(state.trend, state.data.used)
    assert len(points) == len(residuals) == len(state.data) - excluded.sum()


def test_plans_stop_before_an_end_stop_that_episodes_survived(learned):
    """The stop is a limit although the other side of the axis has a limit of its own."""
    _, _, state = learned
    ended = np.zeros(len(state.data), bool)
    ended[np.argmin(state.data.outcomes[:, 0])] = True
    low, high = dataclasses.replace(state.data, ended=ended).survival_limits
    assert -np.inf < low[0] < 0.0
    assert 0.5 * STOP < high[0] <= STOP


def test_what_was_learned_before_a_collision_stays(learned):
    learner, before, after = learned
    other = episode(11, [-4.0, 0.5])
    errors = [prediction_errors(learner.mean(state), other).one_step for state in (before, after)]
    assert errors[1] <= max(1.5 * errors[0], 0.01)


def test_with_costs_nothing_is_left_out(learned):
    """Plans may go where a step was left out, unless they must last."""
    learner, before, _ = learned
    problem = before.data.problem
    state = learner.init(problem, key=KEY)
    for seed in range(3):
        state = learner.update(state, episode(seed, [-6.0, 0.0]), key=KEY)
    state = learner.update(state, episode(7, [0.0, 1.0]), key=KEY)
    assert not state.data.excluded.any()


def test_states_near_limits_are_worth_a_little_less(learned):
    learner, state, _ = learned
    mdp = learner.mean(state)
    low, high = (np.asarray(limit) for limit in mdp.termination.limits)
    axis = int(np.flatnonzero(np.isfinite(low) & np.isfinite(high))[0])
    points = np.zeros((2, 3))
    points[:, axis] = (low[axis] + high[axis]) / 2, high[axis]
    middle, edge = np.asarray(mdp.model(jnp.asarray(points)).reward)
    assert middle == 1.0
    assert edge == pytest.approx(1.0 - learner.settings.centring, rel=1e-4)
