"""Values of policies: dynamic programming against chains written out by hand, and by sampling."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from kernelmdp import Box, FiniteSet
from kernelmdp.mdp import (
    MDP,
    NO_NOISE,
    Categorical,
    Gaussian,
    MeanModel,
    StateGrid,
    StudentT,
    Uniform,
    grid_value,
    monte_carlo_value,
    optimal_value,
    optimal_values,
    play,
    policy_values,
    rollout,
)
from kernelmdp.mdp.noise import gaussian_slope, smallest_deviation
from kernelmdp.mdp.policy import OpenLoopPolicy, Policy

STATES, ACTIONS, H = 5, 3, 4


class LookupTable(Policy):
    """Actions from a table of nodes."""

    table: jax.Array  # (H, N) of action values
    nodes: jax.Array

    def actions(self, states, period):
        near = jnp.argmin(jnp.abs(states[:, :1] - self.nodes[None, :, 0]), axis=1)
        return self.table[period][near][:, None]


def chain(rng, noise=0.3):
    """A random MDP on a finite set of numbers, and its matrices written out independently."""
    states = FiniteSet(np.arange(STATES, dtype=float)[:, None])
    actions = FiniteSet(np.arange(ACTIONS, dtype=float)[:, None])
    rewards = rng.normal(size=(STATES, ACTIONS))
    means = rng.uniform(0, STATES - 1, size=(STATES, ACTIONS))

    def read(table):
        array = jnp.asarray(table)
        return lambda z: array[z[:, 0].astype(int), z[:, 1].astype(int)]

    model = MeanModel(read(rewards), lambda z: read(means)(z)[:, None])
    mdp = MDP(
        model,
        states=states,
        actions=actions,
        horizon=H,
        reward_noise=NO_NOISE,
        transition_noise=Gaussian(noise),
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    P = np.zeros((STATES, ACTIONS, STATES))
    for s, a in itertools.product(range(STATES), range(ACTIONS)):
        for x, w in zip(nodes, weights / weights.sum(), strict=True):
            P[s, a, int(np.argmin(np.abs(means[s, a] + noise * x - np.arange(STATES))))] += w
    return mdp, rewards, P


def by_hand(rewards, P, policy):
    V = np.zeros((H + 1, STATES))
    for h in reversed(range(H)):
        for s in range(STATES):
            a = policy[h, s]
            V[h, s] = rewards[s, a] + P[s, a] @ V[h + 1]
    return V


def test_policy_and_optimal_values_of_a_chain(rng):
    mdp, rewards, P = chain(rng)
    grid = StateGrid(mdp.states, (), mdp.transition_noise)
    table = rng.integers(ACTIONS, size=(H, STATES))
    policy = LookupTable(jnp.asarray(table, float), jnp.asarray(grid.nodes))
    np.testing.assert_allclose(
        policy_values(mdp, policy, grid), by_hand(rewards, P, table), atol=1e-10
    )
    best = np.zeros((H + 1, STATES))
    for h in reversed(range(H)):
        best[h] = np.max(rewards + P @ best[h + 1], axis=1)
    found = optimal_values(mdp, grid, jnp.arange(ACTIONS, dtype=float)[:, None])
    np.testing.assert_allclose(found, best, atol=1e-10)


def test_value_difference_identity(rng):
    """G 29: the value difference of two MDPs is the expected sum of one-step differences."""
    (_, r_model, p_model), (mdp, r_true, p_true) = chain(rng), chain(rng)
    table = rng.integers(ACTIONS, size=(H, STATES))
    grid = StateGrid(mdp.states, (), mdp.transition_noise)
    policy = LookupTable(jnp.asarray(table, float), jnp.asarray(grid.nodes))
    true_values = np.asarray(policy_values(mdp, policy, grid))
    model_values = by_hand(r_model, p_model, table)
    visits, total = np.eye(STATES)[2], 0.0
    for h in range(H):
        a = table[h]
        s = np.arange(STATES)
        step = r_model[s, a] - r_true[s, a] + (p_model[s, a] - p_true[s, a]) @ model_values[h + 1]
        total += visits @ step
        visits = visits @ p_true[s, a]
    assert model_values[0, 2] - true_values[0, 2] == pytest.approx(total, abs=1e-10)


def smooth(noise=0.1, periodic=()):
    box = Box([-1.0], [1.0], periodic)
    model = MeanModel(
        lambda z: jnp.sin(3 * z[:, 0]) - 0.2 * z[:, 1] ** 2,
        lambda z: (0.6 * z[:, 0] + 0.5 * z[:, 1] + 0.3 * jnp.cos(4 * z[:, 0]))[:, None],
    )
    return MDP(
        model,
        states=box,
        actions=Box([-1.0], [1.0]),
        horizon=6,
        reward_noise=Gaussian(0.2),
        transition_noise=Gaussian(noise),
    )


class Feedback(Policy):
    gain: jax.Array

    def actions(self, states, period):
        return jnp.clip(self.gain * states, -1.0, 1.0)


@pytest.mark.parametrize(("noise", "periodic"), [(0.1, ()), (0.5, (0,))])
def test_grid_value_agrees_with_sampling(noise, periodic):
    mdp, policy = smooth(noise, periodic), Feedback(jnp.asarray(-0.7))
    grid = StateGrid(mdp.states, (201,), mdp.transition_noise)
    sampled = monte_carlo_value(mdp, policy, [0.4], episodes=40_000, key=jax.random.key(0))
    assert abs(grid_value(mdp, policy, grid, [0.4]) - sampled.value) < 1.3 * sampled.error
    assert sampled.kind == "interval"


def test_optimal_value_states_its_error():
    mdp = smooth()
    coarse = optimal_value(mdp, [0.4], state_points=(41,), action_points=(21,))
    fine = optimal_value(mdp, [0.4], state_points=(321,), action_points=(161,))
    assert abs(coarse.value - fine.value) <= coarse.error + fine.error
    assert fine.error < coarse.error < 0.1
    assert "estimate" in str(fine)


def test_martingale_of_an_episode():
    """G 30: Σ Δ has mean 0, and stays under Azuma's bound."""
    mdp, policy = smooth(), Feedback(jnp.asarray(-0.7))
    grid = StateGrid(mdp.states, (201,), mdp.transition_noise)
    values = policy_values(mdp, policy, grid)
    episodes = 2000
    states, actions, _, _ = rollout(
        mdp, policy, jnp.full((episodes, 1), 0.4), key=jax.random.key(1)
    )
    total = np.zeros(episodes)
    for h in range(mdp.horizon - 1):
        z = jnp.concatenate([states[h], actions[h]], axis=1)
        expected = grid.stencil(mdp.model(z).state).read(grid.expectation(values[h + 1]))
        total += np.asarray(expected - grid.value_at(values[h + 1], states[h + 1]))
    error = total.std() / np.sqrt(episodes)
    assert abs(total.mean()) < 4 * error
    widths = [float(jnp.ptp(values[h + 1])) for h in range(mdp.horizon - 1)]
    azuma = np.sqrt(0.5 * episodes * np.sum(np.square(widths)) * np.log(2 / 1e-3))
    assert 0 < abs(total.sum()) < azuma


def test_raw_outcome_and_projected_state():
    box = Box([-1.0, -1.0], [1.0, 1.0], periodic=[0])
    model = MeanModel(lambda z: z[:, 0], lambda z: z[:, :2] + jnp.array([[0.7, 0.7]]))
    mdp = MDP(
        model,
        states=box,
        actions=Box([-1.0], [1.0]),
        horizon=2,
        reward_noise=NO_NOISE,
        transition_noise=NO_NOISE,
    )
    episode = play(
        mdp, OpenLoopPolicy(jnp.zeros((2, 1))), jnp.array([0.5, 0.5]), key=jax.random.key(0)
    )
    np.testing.assert_allclose(episode.outcomes, [[1.2, 1.2], [-0.1, 1.7]], atol=1e-12)
    np.testing.assert_allclose(episode.states, [[0.5, 0.5], [-0.8, 1.0], [-0.1, 1.0]], atol=1e-12)
    assert episode.total == pytest.approx(0.5 - 0.8)


@pytest.mark.parametrize("law", [Gaussian, Uniform])
def test_noise_laws(law):
    noise = law(0.5)
    nodes, weights = noise.quadrature(9)
    sd = noise.standard_deviations(1)[0]
    assert weights.sum() == pytest.approx(1)
    assert (weights * (0.5 * nodes) ** 2).sum() == pytest.approx(sd**2)
    drawn = np.asarray(noise.draw((200_000, 1), key=jax.random.key(0)))
    assert drawn.std() == pytest.approx(sd, rel=0.01)
    assert abs(drawn.mean()) < 4 * sd / np.sqrt(len(drawn))
    values, distance = noise.quantiser(16)
    unit = np.sort(drawn[:, 0]) / 0.5
    measured = np.abs(unit - np.repeat(values, len(unit) // 16)).mean()
    assert distance == pytest.approx(measured, rel=0.03)
    assert noise.quantiser(32)[1] < 0.6 * distance


def test_the_free_slope_bounds_every_slope_of_an_expectation():
    """E V(p + ε) for a step V has the slope span/√(2πv) at the step, and no function is steeper."""
    deviation, p = 0.3, np.linspace(-1, 1, 2001)
    expected = stats.norm.cdf(p / deviation)
    slope = np.abs(np.diff(expected)).max() / (p[1] - p[0])
    assert slope <= gaussian_slope(1.0, deviation) <= slope * (1 + 1e-5)


def test_what_noise_answers_without_a_test_of_its_type():
    laws = [Gaussian(0.1), Uniform(0.1), StudentT(0.1), Categorical(FiniteSet([[0.0], [1.0]]))]
    assert [law.gaussian for law in laws] == [True, False, False, False]
    assert [law.categorical for law in laws] == [False, False, False, True]
    assert [law.degrees for law in laws] == [np.inf, np.inf, 3.0, np.inf]
    assert smallest_deviation(Gaussian([0.1, 0.4]), (1.0, 8.0)) == 0.05
    assert smallest_deviation(laws[1], (1.0,)) == 0.0
