"""Lemmas as checks: they hold on any data, and fail on numbers that are not what they claim."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelmdp as km
from kernelmdp import kernels
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.information import realised_gain
from kernelmdp.mdp import MDP, Gaussian, StateGrid, policy_values
from kernelmdp.mdp.policy import OpenLoopPolicy
from kernelmdp.theory import value_lemmas, variance_lemmas
from kernelmdp.theory.variance_history import variance_history

BOX = km.Box([0.0, 0.0], [1.0, 1.0])
E, H = 5, 3
SE = kernels.SquaredExponential(0.3)
MATRIX = np.array([[1.0, 0.5], [0.5, 0.8]])
OUTPUTS = {
    "scalar": SE,
    "identity": SE @ kernels.Index(2),
    "coregional": SE @ kernels.Coregional(MATRIX),
    "independent": kernels.Independent([SE, kernels.Linear()]),
    "sum": SE @ kernels.Coregional(MATRIX) + kernels.Linear() @ kernels.Index(2),
}


def episodes(seed, repeat=False):
    """Points of one shape for every test, so that kernels are compiled once."""
    rng = np.random.default_rng(seed)
    return np.full((E, H, 2), rng.random(2)) if repeat else rng.random((E, H, 2))


def claims(kernel, points, noise):
    """What the library's posterior says after each episode, and before it at its points."""
    posterior = km.gp.posterior(kernel, noise_variance=noise, domain=BOX, engine="exact")
    gains, stale = [], []
    for z in points:
        stale.append(np.asarray(posterior.predict(z)[1]) ** 2)
        zeros = np.zeros(H) if posterior.scalar else np.zeros((H, posterior.outputs))
        posterior = posterior.condition(z, zeros)
        gains.append(posterior.information_gain)
    return np.array(gains), np.array(stale), posterior


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_walk_is_what_posteriors_say(name):
    kernel, points, noise = OUTPUTS[name], episodes(0), 0.3
    gains, stale, _ = claims(kernel, points, noise)
    found = variance_history(kernel, points, noise_variance=noise)
    assert variance_lemmas.chain_rule(found, gains).holds
    np.testing.assert_allclose(found.gain_by_episode, gains, rtol=1e-9)
    whole = realised_gain(kernel, points.reshape(-1, 2), noise_variance=noise)
    assert found.gain == pytest.approx(whole, rel=1e-9)
    # Over outputs, variances add up to those of the parts in any rotation.
    total = found.copies @ np.sum(found.stale, axis=(1, 2))
    assert total == pytest.approx(stale.sum(), rel=1e-9)


@given(
    seed=st.integers(0, 10**6),
    log_noise=st.floats(-4, 3),
    repeat=st.booleans(),
    name=st.sampled_from(sorted(OUTPUTS)),
)
@settings(max_examples=25, deadline=None)
def test_lemmas_hold_on_any_data(seed, log_noise, repeat, name):
    found = variance_history(OUTPUTS[name], episodes(seed, repeat), noise_variance=10.0**log_noise)
    for check in variance_lemmas.variance_lemmas(found):
        assert check.holds is not False, check


@pytest.mark.parametrize("repeat", [False, True])
@pytest.mark.parametrize("name", ["scalar", "identity"])
def test_the_papers_sum_and_the_block_lemma(name, repeat):
    """G 21: with λ = mH both hold; the block lemma's right side is at most 0.54 of the paper's."""
    kernel = OUTPUTS[name]
    outputs = getattr(kernel, "outputs", 1)
    found = variance_history(kernel, episodes(1, repeat), noise_variance=float(outputs * H))
    paper, block = variance_lemmas.stale_sum(found), variance_lemmas.block_lemma(found)
    assert paper.holds
    assert block.holds
    assert block.right <= 0.54 * paper.right
    assert paper.left == pytest.approx(block.left)
    assert (
        variance_lemmas.stale_sum(variance_history(kernel, episodes(1), noise_variance=0.1)).holds
        is None
    )
    scaled = variance_history(2.0 * SE, episodes(1), noise_variance=float(H))
    assert "κ ≤ 1" in variance_lemmas.stale_sum(scaled).note


def test_every_variance_lemma_can_fail():
    points = episodes(2)
    found = variance_history(SE, points, noise_variance=0.1)

    def broken(**fields):
        return dataclasses.replace(found, **fields)

    jump = found.query_variances.copy()
    jump[:, 4:] *= 0.05  # more than one observation, or one episode, can say
    little = broken(gains=found.gains / 100)
    assert variance_lemmas.variance_drop(broken(query_variances=jump)).holds is False
    assert variance_lemmas.in_order_sum(little).holds is False
    assert variance_lemmas.block_lemma(little).holds is False
    assert variance_lemmas.rare_jumps(little).holds is False
    far = found.query_variances.copy()
    far[:, 2 * H :] *= 1e-9
    assert variance_lemmas.variance_ratio(broken(query_variances=far)).holds is False
    paper = variance_history(SE, points, noise_variance=float(H))
    wrong = dataclasses.replace(paper, gains=paper.gains / 10)
    assert variance_lemmas.stale_sum(wrong).holds is False


def test_the_chain_rule_sees_another_order():
    """The gain of all the data does not depend on the order; gains by episode do."""
    points = episodes(3)
    points[3:] = points[0]  # episodes that tell little, when they come last
    gains, _, _ = claims(SE, points, 0.1)
    shuffled = variance_history(SE, points[::-1].copy(), noise_variance=0.1)
    assert shuffled.gain == pytest.approx(gains[-1], rel=1e-9)
    check = variance_lemmas.chain_rule(shuffled, gains)
    assert check.holds is False
    assert check.slack == check.right - check.left
    assert variance_lemmas.chain_rule(shuffled, np.full(E, np.nan)).holds is False
    with pytest.raises(ShapeError, match="gains: expected shape"):
        variance_lemmas.chain_rule(shuffled, gains[:-1])


def test_smooth_deviations():
    points = episodes(4)
    _, _, posterior = claims(SE, points, 0.1)
    x, y = (np.random.default_rng(seed).random((H * E, 2)) for seed in (5, 6))
    assert variance_lemmas.deviation_smoothness(posterior, SE, x, y).holds
    # A kernel that is smoother than the posterior's own cannot explain its deviations.
    smoother = kernels.SquaredExponential(30.0)
    assert variance_lemmas.deviation_smoothness(posterior, smoother, x, y).holds is False


@given(seed=st.integers(0, 10**6), scale=st.floats(0.01, 100))
@settings(max_examples=20, deadline=None)
def test_determinants(seed, scale):
    rng = np.random.default_rng(seed)
    a, b = (scale * (root @ root.T) for root in rng.normal(size=(2, 4, 4)))
    assert variance_lemmas.determinant_of_a_sum(a, b).holds
    assert (
        variance_lemmas.determinant_of_a_sum(a, -0.5 * np.eye(4)).holds is False
    )  # not semi-definite


# Values.


class Swing(km.mdp.Model):
    """Some smooth mean reward and mean next state."""

    amount: float

    def __call__(self, points):
        s, a = points[:, 0], points[:, 1]
        mean = jnp.tanh(s + self.amount * a)
        return km.mdp.model.Prediction(jnp.cos(2 * s) + self.amount * a, 0.8 * mean[:, None])


def swing(amount):
    box = km.Box([-1.0], [1.0])
    return MDP(
        Swing(amount),
        states=box,
        actions=box,
        horizon=H,
        reward_noise=Gaussian(0.1),
        transition_noise=Gaussian(0.2),
    )


POLICY = OpenLoopPolicy(jnp.array([[0.5], [-0.3], [0.8]]))


def test_value_difference():
    truth, believed = swing(0.4), swing(0.9)
    grid = StateGrid(truth.states, (21,), truth.transition_noise)
    check = value_lemmas.value_difference(believed, truth, POLICY, grid, [0.13])
    assert check.holds
    assert abs(check.slack) < 1e-10
    assert abs(check.left) > 0.01  # the two are not the same


def test_martingale_differences():
    """G 30: 2000 episodes; the sum is within four standard deviations, and under Azuma."""
    truth = swing(0.4)
    grid = StateGrid(truth.states, (101,), truth.transition_noise)
    tables = policy_values(swing(0.9), POLICY, grid) - policy_values(truth, POLICY, grid)
    runs = 2000
    starts = jnp.full((runs, 1), 0.2)
    states, actions, _, _ = km.mdp.rollout(truth, POLICY, starts, key=jax.random.key(0))
    of_each = jax.vmap(
        lambda s, a: value_lemmas.martingale_differences(truth, tables, grid, s, a), in_axes=1
    )
    differences, ranges = map(np.asarray, of_each(states, actions))
    assert differences.shape == ranges.shape == (runs, H - 1)
    spread = differences.sum(axis=1).std() * math.sqrt(runs)
    assert abs(differences.sum()) < 4 * spread
    assert (np.abs(differences) <= ranges + 1e-9).all()
    assert value_lemmas.martingale(differences, ranges).holds
    drifting = differences + 0.3 * ranges
    assert value_lemmas.martingale(drifting, ranges).holds is False
    with pytest.raises(ShapeError, match="ranges: expected shape"):
        value_lemmas.martingale(differences, ranges[1:])


# Chance.


def test_coverage():
    inside, outside = [0.1, 0.9, 1.0], [0.1, 1.1, 0.2]
    assert value_lemmas.coverage([inside], miss_probability=0.03).holds
    assert value_lemmas.coverage([outside], miss_probability=0.03).holds is False
    assert value_lemmas.coverage([[0.1, math.nan]], miss_probability=0.03).holds is False
    # Of 200 runs 10 % may miss, and some more by chance; not half.
    some = [outside] * 22 + [inside] * 178
    assert value_lemmas.coverage(some, miss_probability=0.1).holds
    assert (
        value_lemmas.coverage([outside] * 100 + [inside] * 100, miss_probability=0.1).holds is False
    )
    with pytest.raises(ArgumentError, match="miss_probability: expected a probability"):
        value_lemmas.coverage([inside], miss_probability=1.5)


def test_ranks():
    rng = np.random.default_rng(0)
    assert value_lemmas.posterior_ranks(rng.integers(0, 100, 300), draws=99).holds
    narrow = np.clip(rng.normal(50, 10, 300), 0, 99).astype(int)
    assert value_lemmas.posterior_ranks(narrow, draws=99).holds is False
    with pytest.raises(ArgumentError, match="bins: expected a divisor"):
        value_lemmas.posterior_ranks([1, 2], draws=98)
    with pytest.raises(ArgumentError, match="ranks: expected ranks from 0 to 9"):
        value_lemmas.posterior_ranks([10], draws=9)


def test_bad_points():
    with pytest.raises(ShapeError, match="points: expected shape"):
        variance_history(SE, np.zeros((3, 2)), noise_variance=1.0)
    with pytest.raises(ArgumentError, match="one number for outputs that are correlated"):
        variance_history(OUTPUTS["coregional"], episodes(0), noise_variance=[1.0, 2.0])
