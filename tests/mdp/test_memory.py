"""States that remember: coordinates, motion, episodes and policies."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.mdp import Episode
from kernelmdp.mdp.memory import Memory, RememberedMotion
from kernelmdp.mdp.policy import Policy, PolicyPlayer
from kernelmdp.mdp.remembering_policy import RememberingPolicy

BOX = km.Box([-np.pi, -5.0], [np.pi, 5.0], periodic=[0])
ACTIONS = km.Box([-1.0], [2.0])
H = 9


class Echo(Policy):
    """Shows its state: the action is a number that is different for every state."""

    weights: jnp.ndarray

    def actions(self, states, period):
        return (states @ self.weights)[:, None]


def memory(**options):
    return Memory(BOX, ACTIONS, H, **options)


def told_episode(seed=0):
    """Observations that turn, as they are told: angles wrapped, outcomes not."""
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.normal(size=(H + 1, 2)), axis=0)
    states = walk.copy()
    states[:, 0] = (walk[:, 0] + np.pi) % (2 * np.pi) - np.pi
    outcomes = states[:-1] + np.diff(walk, axis=0)
    actions = rng.uniform(-1, 2, (H, 1))
    return Episode(states, actions, rng.normal(size=H), outcomes), walk


def dense_states(walk, states, actions, history, delay, clock):
    """The coordinates, by their definition."""
    rows = []
    for t in range(len(states)):
        row = list(states[t])
        for lag in range(history - 1):
            before = t - lag - 1
            row += list(walk[t - lag] - walk[before]) if before >= 0 else [0.0, 0.0]
        for lag in range(1, history + delay):
            row += list(actions[t - lag]) if t >= lag else [0.0]
        rows.append(row + ([float(t)] if clock else []))
    return np.array(rows)


@pytest.mark.parametrize(
    ("history", "delay", "clock"), [(2, 0, False), (4, 0, True), (1, 2, False), (3, 1, True)]
)
def test_states_tell_the_past(history, delay, clock):
    form = memory(history=history, delay=delay, clock=clock)
    episode, walk = told_episode()
    complete = form.episode(episode)
    expected = dense_states(
        walk, np.asarray(episode.states), np.asarray(episode.actions), history, delay, clock
    )
    np.testing.assert_allclose(complete.states, expected, atol=1e-12)
    np.testing.assert_allclose(complete.outcomes[:, :2], episode.outcomes)
    np.testing.assert_allclose(complete.outcomes[:, 2:], expected[1:, 2:], atol=1e-12)
    assert len(form.names(("a", "b"))) == form.dimension == form.space.dimension
    assert form.episode(complete) is complete  # complete states stay


@pytest.mark.parametrize(("history", "delay", "clock"), [(2, 0, False), (3, 2, True)])
def test_what_is_not_learned_moves_as_the_past_does(history, delay, clock):
    """Known coordinates of outcomes are those of an episode, given the next observation."""
    form = memory(history=history, delay=delay, clock=clock)
    episode, _ = told_episode(3)
    complete = form.episode(episode)
    problem = km.Problem.from_spaces(states=BOX, actions=ACTIONS, horizon=H)
    motion = km.mdp.remembered_problem.with_memory(problem, form).motion
    points = jnp.asarray(complete.points)
    known, outcomes = np.asarray(motion(points)), np.asarray(complete.outcomes)
    learned = (outcomes - known)[:, list(motion.learned)]
    np.testing.assert_allclose(known + motion.spread(learned), outcomes, atol=1e-12)
    if history > 1:  # without a force, velocities stay
        np.testing.assert_allclose(
            known[:, :2], complete.states[:-1, :2] + complete.states[:-1, 2:4]
        )


def test_with_a_delay_only_the_action_that_acts_is_an_input():
    problem = km.Problem.from_spaces(states=BOX, actions=ACTIONS, horizon=H)
    for options, inputs in (
        ({"delay": 2}, (0, 1, 3)),
        ({"history": 2}, (0, 1, 2, 3, 4, 5)),
        ({"history": 2, "delay": 1, "clock": True}, (0, 1, 2, 3, 4, 5)),
    ):
        wide = km.mdp.remembered_problem.with_memory(problem, memory(**options))
        assert wide.motion_inputs == inputs, options


def test_a_prior_model_gets_the_action_that_acts():
    form = memory(delay=1)
    motion = RememberedMotion(form, lambda points, unchanged, time: points[:, :2] + points[:, 2:])
    point = jnp.array([[0.1, 0.2, 7.0, 9.0]])  # the last action is 7, the new one 9
    np.testing.assert_allclose(motion(point), [[7.1, 7.2, 9.0]])


@pytest.mark.parametrize(("history", "delay", "clock"), [(3, 0, False), (1, 2, True), (2, 1, True)])
def test_policies_remember_what_episodes_tell(history, delay, clock):
    """A policy played on observations decides as on the complete states of the same episode."""
    form = memory(history=history, delay=delay, clock=clock)
    inner = Echo(jnp.asarray(0.1 * np.random.default_rng(1).normal(size=form.dimension)))
    player = PolicyPlayer(RememberingPolicy(inner, form))
    episode, _ = told_episode(5)
    states, actions = np.asarray(episode.states), []
    for period in range(H):
        actions.append(player(states[period], period))
    played = Episode(states, np.stack(actions), episode.rewards, episode.outcomes)
    complete = form.episode(played)
    expected = inner.actions(jnp.asarray(complete.states[:-1]), 0)
    np.testing.assert_allclose(played.actions, expected, atol=1e-9)
    # The player forgets at the start of the next episode.
    again = [player(states[period], period) for period in range(H)]
    np.testing.assert_allclose(again, actions, atol=1e-9)
    # Complete states are taken as they are.
    full = PolicyPlayer(RememberingPolicy(inner, form))
    np.testing.assert_allclose(
        [full(row, t) for t, row in enumerate(complete.states[:-1])], actions, atol=1e-9
    )


def test_a_single_observation_says_nothing_of_the_past():
    form = memory(history=2)
    policy = RememberingPolicy(Echo(jnp.ones(form.dimension)), form)
    with pytest.raises(km.errors.ArgumentError, match="player"):
        policy([0.0, 1.0], 0)
    np.testing.assert_allclose(form.first(np.array([0.5, 1.0])), [0.5, 1.0, 0, 0, 0])


@pytest.mark.parametrize("options", [{"history": 0}, {"delay": -1}])
def test_bad_memories_are_refused(options):
    with pytest.raises(km.errors.ArgumentError):
        memory(**options)
    with pytest.raises(km.errors.ArgumentError, match="table"):
        Memory(km.FiniteSet.range(3), ACTIONS, H, history=2)


def test_memories_can_be_compiled():
    form = memory(delay=1)
    policy = RememberingPolicy(Echo(0.1 * jnp.ones(form.dimension)), form)
    state, memory_of = policy.reset(4), []
    states = jnp.ones((4, 2))
    for period in range(3):
        actions, state = jax.jit(policy.decide)(state, states, period)
        memory_of.append(np.asarray(actions)[0, 0])
    # a_0 = 0.1 (1 + 1 + 0), a_1 = 0.1 (2 + a_0), ...
    assert np.allclose(memory_of, [0.2, 0.22, 0.222])
