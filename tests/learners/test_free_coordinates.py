"""A cart whose pole falls at a tilt of 0.5. Nothing depends on where the cart is."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.learners import FittedKernels
from kernelmdp.mdp import Episode, Problem

KEY = jax.random.key(0)
FALLS = 0.5


def episode(seed, *, spring=0.0, bonus=0.0):
    """Random forces until the pole falls. ``spring`` pulls the cart to 0."""
    rng = np.random.default_rng(seed)
    states, actions = [rng.uniform(-0.05, 0.05, 2)], []
    while abs(states[-1][1]) < FALLS and len(actions) < 40:
        (place, tilt), action = states[-1], rng.uniform(-1.0, 1.0)
        place = place + 0.2 * action - spring * place
        states.append(np.array([place, 1.1 * tilt + 0.1 * action]))
        actions.append([action])
    rows = np.array(states)
    rewards = 1.0 + bonus * rows[:-1, 1]
    return Episode(rows, np.array(actions), rewards, rows[1:], terminated=True)


def learned(unbounded=(0, 1), **options):
    problem = Problem.from_spaces(
        states=km.Box([-10.0, -10.0], [10.0, 10.0]), actions=km.Box([-1.0], [1.0]), horizon=40
    )
    problem = dataclasses.replace(problem, unbounded=unbounded)
    learner = FittedKernels()
    state = learner.init(problem, key=KEY)
    for seed in range(4):
        state = learner.update(state, episode(seed, **options), key=KEY)
    return learner, state


@pytest.fixture(scope="module")
def cart():
    return learned()


def visited_places(state):
    places = np.concatenate([state.data.points[:, 0], state.data.outcomes[:, 0]])
    return places.min(), places.max()


def test_what_was_visited_stands_for_the_end_of_the_track(cart):
    _, state = cart
    (low, high), (least, most) = state.preferred_limits, visited_places(state)
    assert least - (most - least) < float(low[0]) < least
    assert most < float(high[0]) < most + (most - least)
    # The tilt has the limits at which episodes ended.
    assert float(high[1]) == state.data.survival_limits[1][1]


def test_rewards_are_lower_beyond_it_and_episodes_do_not_end(cart):
    learner, state = cart
    mdp, (_, most) = learner.mean(state), visited_places(state)
    points = jnp.array([[0.0, 0.0, 0.0], [3 * most, 0.0, 0.0]])
    inside, outside = np.asarray(mdp.model(points).reward)
    assert 0.9 < outside / inside < 1.0
    assert np.isinf(state.termination.limits[1][0])


@pytest.mark.parametrize("options", [{"unbounded": (1,)}, {"spring": 0.5}, {"bonus": 1.0}])
def test_other_coordinates_have_no_such_limit(options):
    """It has bounds, the motion depends on it, or there are other things than to last."""
    low, high = learned(**options)[1].preferred_limits
    assert np.isinf([low[0], high[0]]).all()
