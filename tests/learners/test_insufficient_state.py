"""Whether the observed state is enough: the warning that names an earlier change or action."""

import warnings

import jax
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ApproximationWarning
from kernelmdp.learners import FittedKernels
from kernelmdp.learners.left_out import LINEAR_VARIANCE, left_out_errors
from kernelmdp.mdp import Episode, Problem

STEPS = 60


def told(states, actions):
    return Episode(states, actions, np.zeros(len(actions)), states[1:])


def cart(seed, *, hidden):
    """A cart between two hills, pushed at random. Its velocity may be hidden."""
    rng = np.random.default_rng(seed)
    position, velocity, states = rng.uniform(-0.5, 0.5), 0.0, []
    actions = np.repeat(rng.uniform(-1, 1, (STEPS // 3, 1)), 3, axis=0)
    for action in [*actions[:, 0], 0.0]:
        states.append([position] if hidden else [position, velocity])
        velocity += 0.1 * action - 0.15 * np.sin(3 * position)
        position += 0.3 * velocity
    return told(np.array(states), actions)


def tank(seed, *, delay, noise=0.0):
    """A level that is filled by a pump. The pump may act later."""
    rng = np.random.default_rng(seed)
    actions, level, levels = rng.uniform(0, 1, (STEPS, 1)), 1.0, [1.0]
    for step in range(STEPS):
        pumped = actions[step - delay, 0] if step >= delay else 0.0
        level += 0.5 * pumped - 0.3 * np.sqrt(level) + noise * rng.standard_normal()
        level = max(level, 0.01)
        levels.append(level)
    return told(np.array(levels)[:, None], actions)


def messages(make, dimension, low=-3.0, episodes=4):
    """What is said while episodes are learned."""
    problem = Problem.from_spaces(
        states=km.Box([low] * dimension, [3.0] * dimension),
        actions=km.Box([-1.0], [1.0]),
        horizon=STEPS,
    )
    learner, key = FittedKernels(), jax.random.key(0)
    state = learner.init(problem, key=key)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed in range(episodes):
            state = learner.update(state, make(seed), key=key)
    kinds = [each for each in caught if issubclass(each.category, ApproximationWarning)]
    return [str(each.message) for each in kinds if "observed state" in str(each.message)]


def test_a_hidden_velocity_is_named_once():
    said = messages(lambda seed: cart(seed, hidden=True), 1)
    assert len(said) == 1
    assert said[0].endswith("try history=2")


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_a_delay_is_named_with_its_length(delay):
    said = messages(lambda seed: tank(seed, delay=delay), 1, low=0.0)
    assert len(said) == 1
    assert said[0].endswith(f"try delay={delay}")


def test_nothing_is_said_where_the_state_is_enough():
    assert messages(lambda seed: cart(seed, hidden=False), 2) == []
    assert messages(lambda seed: tank(seed, delay=0), 1, low=0.0) == []


def test_nothing_is_said_about_noise():
    assert messages(lambda seed: tank(seed, delay=0, noise=0.2), 1, low=0.0) == []


def test_rows_that_are_left_out_are_predicted_without_them():
    """The closed form, against regressions that are each made without one row."""
    rng = np.random.default_rng(0)
    inputs, linear = rng.standard_normal((12, 2)), rng.standard_normal((12, 1))
    targets = np.sin(inputs[:, :1]) + 0.1 * rng.standard_normal((12, 1))
    x, z, y = ((each - each.mean(0)) / each.std(0) for each in (inputs, linear, targets))
    columns = np.concatenate([np.ones((12, 1)), x, z], axis=1)
    squares = ((x[:, None] - x[None]) ** 2).sum(-1)
    found = []
    for lengthscale in (0.3, 1.0, 3.0):
        kernel = np.exp(-squares / (2 * lengthscale**2 * np.median(squares[squares > 0])))
        kernel += LINEAR_VARIANCE * columns @ columns.T / 4
        for noise in (1e-4, 1e-2, 1e-1, 1.0):
            errors = []
            for row in range(12):
                rest = np.arange(12) != row
                regularised = kernel[np.ix_(rest, rest)] + noise * np.eye(11)
                mean = kernel[row, rest] @ np.linalg.solve(regularised, y[rest, 0])
                errors.append(y[row, 0] - mean)
            found.append(np.mean(np.square(errors)))
    expected = min(found) * targets.std() ** 2
    np.testing.assert_allclose(left_out_errors(targets, inputs, linear)[0], expected, rtol=1e-8)
