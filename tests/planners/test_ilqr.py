"""Polishing against closed forms: linear motion and quadratic rewards have one best sequence."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.domains import Box, FiniteSet
from kernelmdp.mdp import MDP, NO_NOISE, MeanModel
from kernelmdp.planners import MPCPlanner
from kernelmdp.planners.ilqr import TrackedPath, ilqr_refine

STEPS = 6
MOTION = np.array([[1.0, 0.2], [0.3, 1.1]])
PUSH = np.array([[0.0], [0.5]])
START = jnp.array([1.0, -0.5])
WIDE = 100.0


def linear_step(states, decisions):
    rewards = -jnp.sum(states**2, axis=1) - 0.3 * decisions[:, 0] ** 2 + decisions[:, 0]
    after = states @ MOTION.T + decisions @ PUSH.T
    return rewards, after, jnp.zeros(states.shape[0], bool)


@functools.partial(jax.jit, static_argnums=0)
def totals(step, start, sequences, live):
    """What each of several sequences earns, period by period."""
    state = jnp.broadcast_to(start[None], (len(sequences), len(start)))
    found, over = jnp.zeros(len(sequences)), jnp.zeros(len(sequences), bool)
    for period in range(sequences.shape[1]):
        reward, state, ends = step(state, sequences[:, period])
        found = found + jnp.where(live[period] & ~over, reward, 0.0)
        over = over | ends
    return found


def total(step, start, decisions, live=None):
    live = np.ones(len(decisions), bool) if live is None else live
    return float(totals(step, start, jnp.asarray(decisions)[None], live)[0])


def no_feedback(decisions):
    return TrackedPath.without_feedback(jnp.asarray(decisions), dimension=2, laws=4)


@functools.partial(jax.jit, static_argnums=0)
def polish_between(step, start, decisions, bound, live, iterations, previous):
    return ilqr_refine(
        step,
        start,
        decisions,
        low=-bound[None],
        high=bound[None],
        scale=jnp.ones(1),
        active=live,
        difference=lambda a, b: a - b,
        iterations=iterations,
        previous=previous,
    )


def ilqr_iterations(step, start, decisions, *, bound=WIDE, live=None, iterations=1):
    live = np.ones(len(decisions), bool) if live is None else live
    bound = jnp.asarray(bound)
    path, _ = polish_between(
        step, start, decisions, bound, live, iterations, no_feedback(decisions)
    )
    return np.asarray(path.decisions)


def best_linear():
    """The top of the quadratic, from its slope and curvature at zero by finite differences."""

    def value(u):
        return total(linear_step, START, u[:, None])

    zero, unit = np.zeros(STEPS), np.eye(STEPS)
    slope = np.array([(value(e) - value(-e)) / 2 for e in unit])
    bend = np.array(
        [[value(a + b) - value(a) - value(b) + value(zero) for b in unit] for a in unit]
    )
    return np.linalg.solve(-bend, slope)


def test_one_turn_finds_the_best_sequence_of_a_linear_quadratic_problem():
    found = ilqr_iterations(linear_step, START, np.zeros((STEPS, 1)))[:, 0]
    np.testing.assert_allclose(found, best_linear(), rtol=1e-4, atol=1e-5)


def test_bounds_hold_and_what_is_not_bound_is_best():
    free = best_linear()
    bound = 0.7 * np.abs(free).max()
    found = ilqr_iterations(linear_step, START, np.zeros((STEPS, 1)), bound=bound, iterations=15)
    assert np.abs(found).max() <= bound
    best = total(linear_step, START, found)
    # No other sequence within the bounds is better, as projected ascent would find.
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(20):
            other = np.clip(found + size * rng.normal(size=found.shape), -bound, bound)
            assert total(linear_step, START, other) <= best + 1e-6


def wild_step(states, decisions):
    """An upright pendulum that is hard to keep, with a reward that has hills and valleys."""
    angle, speed = states[:, 0], states[:, 1]
    speed = speed + 0.3 * (4 * jnp.sin(angle) + 2 * decisions[:, 0])
    angle = angle + 0.3 * speed
    rewards = jnp.exp(-(angle**2)) + 0.1 * jnp.sin(5 * speed)
    ends = jnp.abs(speed) > 6.0
    return rewards, jnp.stack([angle, speed], axis=1), ends


def test_never_worse_where_nothing_is_linear():
    rng = np.random.default_rng(1)
    live = np.arange(10) < 8
    start, gained = jnp.array([np.pi, 0.0]), []
    for _ in range(3):
        decisions = rng.uniform(-1, 1, (10, 1))
        found = ilqr_iterations(wild_step, start, decisions, bound=1.0, live=live, iterations=4)
        before = total(wild_step, start, decisions, live)
        gained.append(total(wild_step, start, found, live) - before)
    assert min(gained) >= -1e-12
    assert max(gained) > 0.05


def test_a_disturbed_path_is_followed_by_its_feedback():
    """A pole on its tip: the decisions of the last plan alone let it fall after a disturbance."""
    steps, rest, wide, live = 40, jnp.zeros(2), jnp.asarray(WIDE), np.ones(40, bool)
    nothing = jnp.zeros((steps, 1))
    path, planned = polish_between(falling_step, rest, nothing, wide, live, 2, no_feedback(nothing))
    disturbed = jnp.array([0.01, 0.0])
    fallen, fallen_total = polish_between(
        falling_step, disturbed, path.decisions, wide, live, 0, no_feedback(path.decisions)
    )
    kept, total_kept = polish_between(falling_step, disturbed, path.decisions, wide, live, 0, path)
    assert planned == pytest.approx(0.0, abs=1e-9)
    assert float(fallen_total) < -10.0 < -0.1 < float(total_kept)
    assert np.abs(np.asarray(kept.states[-1])).max() < 1e-3 < np.abs(fallen.states[-1]).max()


def falling_step(states, decisions):
    speed = states[:, 1] + 0.1 * (9.0 * jnp.sin(states[:, 0]) + decisions[:, 0])
    after = jnp.stack([states[:, 0] + 0.1 * speed, speed], axis=1)
    rewards = -(states[:, 0] ** 2) - 1e-3 * decisions[:, 0] ** 2
    return rewards, after, jnp.zeros(states.shape[0], bool)


def test_the_next_period_drops_the_first_decision():
    decisions = np.arange(3.0)[:, None]
    path = no_feedback(decisions)._replace(gain=jnp.ones((3, 4, 1, 2)))
    after = path.next_period()
    np.testing.assert_array_equal(after.decisions[:, 0], [1.0, 2.0, 2.0])
    np.testing.assert_array_equal(after.gain[:, 0, 0, 0], [1.0, 1.0, 0.0])


def test_differences_go_the_shorter_way_round():
    box = Box([-np.pi, -1.0], [np.pi, 1.0], periodic=[0])
    a, b = jnp.array([[3.0, 0.5]]), jnp.array([[-3.0, -0.5]])
    np.testing.assert_allclose(box.difference(a, b), [[6.0 - 2 * np.pi, 1.0]], atol=1e-12)
    np.testing.assert_allclose(Box([0.0], [9.0]).difference(a[:, :1], b[:, :1]), [[6.0]])


@pytest.mark.parametrize("finite", [False, True])
def test_a_polished_plan_is_at_least_as_good(finite):
    box = Box([-1.0], [1.0])
    mdp = MDP(
        MeanModel(
            lambda z: -jnp.sum(z[:, :2] ** 2, axis=1),
            lambda z: z[:, :2] @ jnp.asarray(MOTION.T) + z[:, 2:] @ jnp.asarray(PUSH.T),
        ),
        states=Box([-5.0, -5.0], [5.0, 5.0]),
        actions=FiniteSet([[-1.0], [0.0], [1.0]]) if finite else box,
        horizon=STEPS,
        reward_noise=NO_NOISE,
        transition_noise=NO_NOISE,
    )
    values = [
        MPCPlanner(horizon=STEPS, samples=16, elites=4, first_rounds=1, ilqr_iterations=turns)
        .plan(mdp, key=jax.random.key(0))
        .value(START)
        for turns in (0, 3)
    ]
    if finite:
        assert values[1] == values[0]  # no slope along options
    else:
        assert values[1] > values[0] + 1e-3
