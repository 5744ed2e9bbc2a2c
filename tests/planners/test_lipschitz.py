"""The constant L: bounds against brute force and closed forms."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from kernelmdp.domains import Box, FiniteSet
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp import MDP, NO_NOISE, Gaussian, MeanModel, StateGrid, Uniform, optimal_values
from kernelmdp.planners.lipschitz_bounds import (
    LipschitzBound,
    LipschitzConstants,
    gaussian_noise_bound,
    rkhs_bound,
    smoothness_bound,
    tightest,
)
from kernelmdp.planners.value_slopes import _smoothing, certified_slope, measured_slope

SIGMA = 0.2


def mdp_with(noise, *, horizon=3, reward_range=(-1.0, 1.0), dimension=1, metric=None):
    return MDP(
        MeanModel(lambda z: z[:, 0], lambda z: z[:, :dimension]),
        states=Box([-1.0] * dimension, [1.0] * dimension),
        actions=FiniteSet([[0.0]]),
        horizon=horizon,
        reward_noise=NO_NOISE,
        transition_noise=noise,
        reward_range=reward_range,
        metric=metric,
    )


def brute_slope(value, means, noise):
    """Steepest slope of E V(p + ε) between neighbouring means, by a Riemann sum over outcomes."""
    outcomes = np.linspace(-4, 4, 8_001)
    step = outcomes[1] - outcomes[0]
    density = stats.norm.pdf(outcomes[None, :], means[:, None], noise)
    smooth = (density * value(outcomes)[None, :]).sum(axis=1) * step
    return np.max(np.abs(np.diff(smooth)) / np.diff(means))


def test_gaussian_bound_is_attained_by_a_sign():
    bound = gaussian_noise_bound(mdp_with(Gaussian(SIGMA)), span=2.0)
    measured = brute_slope(np.sign, np.linspace(-0.02, 0.02, 21), SIGMA)
    assert bound.value == pytest.approx(2 / (math.sqrt(2 * math.pi) * SIGMA))
    assert 0.999 * bound.value <= measured <= bound.value
    assert (bound.rule, bound.certified) == ("Gaussian noise", True)


@pytest.mark.parametrize("edge", [0.05, 0.3, 1.0])
def test_projection_does_not_break_the_bound(edge, rng):
    bound = gaussian_noise_bound(mdp_with(Gaussian(SIGMA)), span=2.0).value
    means = np.linspace(-0.5, 0.5, 52)
    sign = brute_slope(lambda y: np.sign(np.clip(y, -edge, edge)), means, SIGMA)
    assert 0.999 * bound <= sign <= bound
    steps = rng.choice([-1.0, 1.0], 40)

    def jumps(y):
        return steps[np.floor((np.clip(y, -edge, edge) + edge) / (2 * edge) * 39.99).astype(int)]

    assert 0.01 * bound < brute_slope(jumps, means, SIGMA) <= bound


def test_gaussian_bound_from_the_range_of_rewards():
    mdp = mdp_with(Gaussian([0.4, 0.1]), horizon=4, dimension=2, metric=(1.0, 0.2))
    # In metric units the deviations are 0.4 and 0.5: the first axis is the worse one.
    assert gaussian_noise_bound(mdp).value == pytest.approx(6 / (math.sqrt(2 * math.pi) * 0.4))
    assert gaussian_noise_bound(mdp_with(Gaussian([0.4, 0.0]), dimension=2)).value == math.inf
    assert gaussian_noise_bound(mdp_with(Uniform(0.4))).value == math.inf
    assert gaussian_noise_bound(mdp_with(NO_NOISE, horizon=1)).value == 0.0
    assert not gaussian_noise_bound(mdp_with(Gaussian(0.4, estimated=True))).certified
    unbounded = mdp_with(Gaussian(0.4), reward_range=(-math.inf, math.inf))
    assert gaussian_noise_bound(unbounded).value == math.inf
    with pytest.raises(ArgumentError, match="span"):
        gaussian_noise_bound(mdp, span=-1.0)


def kernel(x, y, length):
    """Squared exponential: Λ = 1/length."""
    return np.exp(-((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=2) / (2 * length**2))


@pytest.mark.parametrize("seed", range(5))
def test_rkhs_bound_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    length, horizon = 0.7, 3
    centres = rng.uniform(-1, 1, (6, 2))
    gram = kernel(centres, centres, length)
    weights = rng.normal(size=(2, 6))
    norms = [math.sqrt(w @ gram @ w) for w in weights]
    states, acts = np.linspace(-1, 1, 401), np.linspace(-1, 1, 21)
    points = np.stack([g.ravel() for g in np.meshgrid(states, acts, indexing="ij")], axis=1)
    reward, mean = (w @ kernel(centres, points, length) for w in weights)
    # Without noise U_h = V_{h+1} after clipping: its slope on the grid is a lower bound of L.
    values, steepest = np.zeros(401), 0.0
    for h in reversed(range(horizon)):
        after = np.interp(np.clip(mean, -1, 1), states, values)
        values = (reward + after).reshape(401, 21).max(axis=1)
        if h > 0:
            steepest = max(steepest, np.max(abs(np.diff(values)) / np.diff(states)))
    bound = rkhs_bound(norms[0], 1 / length, norms[1], 1 / length, horizon=horizon)
    assert 0.05 * bound.value < steepest <= bound.value
    assert (bound.rule, bound.certified) == ("RKHS norms", True)


def test_rkhs_bound_by_hand():
    assert rkhs_bound(2.0, 1.5, 4.0, 0.5, horizon=4).value == pytest.approx(3 * (1 + 2 + 4))
    assert rkhs_bound(2.0, 1.5, 4.0, 0.5, horizon=2).value == pytest.approx(3.0)
    assert rkhs_bound(2.0, 1.5, 4.0, 0.5, horizon=1).value == 0.0
    assert rkhs_bound(2.0, 1.5, 4.0, 0.5, horizon=3, offset_slope=1.0).value == 3 * (1 + 3)
    assert rkhs_bound(2.0, 1.5, 4.0, 0.5, horizon=2, metric=(1.0, 3.0)).value == 9.0
    assert rkhs_bound(2.0, 1.5, 1e9, 1e9, horizon=500).value == math.inf
    assert rkhs_bound(2.0, 1.5, 4.0, math.inf, horizon=3).value == math.inf
    with pytest.raises(ArgumentError, match="at least 0"):
        rkhs_bound(-2.0, 1.5, 4.0, 0.5, horizon=3)


def test_slopes_of_values():
    constants = LipschitzConstants(2.0, 0.0, 3.0, 0.0)
    np.testing.assert_array_equal(constants.slopes(3), [26.0, 8.0, 2.0, 0.0])
    assert smoothness_bound(constants, 3).value == 8.0
    delta = LipschitzConstants.from_norms(2.0, 3.0, 5.0, 0.5, offset_slope=1.0)
    assert dataclasses.astuple(delta) == (6.0, 6.0, 3.5, 2.5)


def test_tightest_keeps_its_name():
    first, second = LipschitzBound(3.0, "one", True), LipschitzBound(2.0, "two", False)
    assert tightest(first, second) is second
    assert tightest(LipschitzBound(math.inf, "none", True), first).rule == "one"
    with pytest.raises(ArgumentError, match="candidates"):
        tightest()


@pytest.mark.parametrize("periodic", [(), (0,)])
@pytest.mark.parametrize("size", [0.02, 0.3])
def test_smoothing_is_the_expectation_of_the_interpolation(periodic, size, rng):
    grid = StateGrid(Box([-1.0], [1.0], periodic=periodic), (12,), Gaussian(size))
    values = rng.normal(size=12)
    level, slope = _smoothing(grid)[0]
    quantiles = size * stats.norm.ppf((np.arange(50_000) + 0.5) / 50_000)
    nodes, table = grid.nodes[:, 0], values
    if periodic:
        nodes, table = np.append(nodes, 1.0), np.append(values, values[0])

    def smooth(p):
        y = p + quantiles
        y = (y + 1) % 2 - 1 if periodic else np.clip(y, -1, 1)
        return np.interp(y, nodes, table).mean()

    places = grid.lattice[:, 0]
    np.testing.assert_allclose(level @ values, [smooth(p) for p in places], atol=1e-4)
    rise = [(smooth(p + 1e-3) - smooth(p - 1e-3)) / 2e-3 for p in places]
    np.testing.assert_allclose(slope @ values, rise, atol=0.05 * np.abs(rise).max())


@pytest.mark.parametrize("dimension", [1, 2])
def test_certificate_dominates_fine_differences(dimension, rng):
    counts, size = ((41,), 0.1) if dimension == 1 else ((17, 21), 0.3)
    metric = (1.0,) if dimension == 1 else (1.0, 0.5)
    grid = StateGrid(Box([-1.0] * dimension, [1.0] * dimension), counts, Gaussian(size))
    values = np.stack([rng.choice([0.0, 1.0], len(grid.nodes)) for _ in range(3)])
    bound = certified_slope(values, grid, metric=metric)
    coarse = measured_slope(values, grid, metric=metric)
    # The same V on a grid of a quarter of the spacing.
    fine = dataclasses.replace(grid, counts=tuple(4 * n - 3 for n in counts))
    resampled = np.stack(
        [np.asarray(grid.value_at(jnp.asarray(v), jnp.asarray(fine.nodes))) for v in values]
    )
    finer = measured_slope(resampled, fine, metric=metric)
    assert coarse.value <= finer.value * (1 + 1e-9)
    assert finer.value <= bound.value
    assert bound.value <= 3 * finer.value  # the certificate is of use
    tighter = certified_slope(resampled, fine, metric=metric)
    assert finer.value <= tighter.value < bound.value
    assert bound.certified
    assert not coarse.certified
    # V within an error of the table adds its own slope.
    added = certified_slope(values, grid, metric=metric, error=0.1).value - bound.value
    assert added == pytest.approx(0.2 / (math.sqrt(2 * math.pi) * size / max(metric)))


def test_certificate_of_a_sign_is_the_closed_form():
    grid = StateGrid(Box([-1.0], [1.0]), (602,), Gaussian(SIGMA))
    values = np.stack([np.zeros(602), np.sign(grid.nodes[:, 0]), np.zeros(602)])
    true = 2 / (math.sqrt(2 * math.pi) * SIGMA)
    assert measured_slope(values, grid, metric=(1.0,)).value == pytest.approx(true, rel=1e-3)
    slack = 0.484 * 2 * (grid.spacing[0] / 2) / SIGMA**2
    certified = certified_slope(values, grid, metric=(1.0,)).value
    assert certified == pytest.approx(true + slack, rel=1e-4)
    # The first table is V_1, which no U_h looks at.
    assert certified_slope(values[[1, 0, 2]], grid, metric=(1.0,)).value == 0.0


def test_measured_slope_sees_the_seam_of_a_circle():
    grid = StateGrid(Box([0.0], [1.0], periodic=[0]), (10,), NO_NOISE)
    values = np.stack([np.zeros(10), np.arange(10.0)])
    assert measured_slope(values, grid, metric=(1.0,)).value == pytest.approx(90.0)
    assert measured_slope(values, grid, metric=(2.0,)).value == pytest.approx(180.0)


def test_measured_slope_in_a_finite_set_and_with_other_noise():
    grid = StateGrid(FiniteSet([[0.0], [1.0], [3.0]]), (), NO_NOISE)
    values = np.array([[0.0, 9.0, 0.0], [0.0, 1.0, 5.0]])
    assert measured_slope(values, grid, metric=(1.0,)).value == pytest.approx(2.0)
    assert certified_slope(values, grid, metric=(1.0,)).value == math.inf
    flat = StateGrid(Box([0.0], [1.0]), (21,), Uniform(0.1))
    line = np.stack([np.zeros(21), 3 * flat.nodes[:, 0]])
    assert measured_slope(line, flat, metric=(1.0,)).value == pytest.approx(3.0)
    assert certified_slope(line, flat, metric=(1.0,)).value == math.inf


def test_values_must_fit_the_grid():
    grid = StateGrid(Box([0.0], [1.0]), (21,), Gaussian(0.1))
    with pytest.raises(ShapeError, match="values"):
        certified_slope(np.zeros((3, 20)), grid, metric=(1.0,))
    with pytest.raises(ShapeError, match="values"):
        measured_slope(np.zeros(21), grid, metric=(1.0,))


def test_all_rules_hold_for_a_solved_mdp():
    """A toy solved on a fine grid: the measured slope is below every certified L."""
    mdp = MDP(
        MeanModel(lambda z: jnp.sin(2 * z[:, 0]), lambda z: 0.9 * z[:, :1] + 0.3 * z[:, 1:]),
        states=Box([-1.0], [1.0]),
        actions=FiniteSet([[-1.0], [0.0], [1.0]]),
        horizon=4,
        reward_noise=NO_NOISE,
        transition_noise=Gaussian(0.15),
        reward_range=(-1.0, 1.0),
    )
    grid = StateGrid(mdp.states, (201,), mdp.transition_noise)
    values = optimal_values(mdp, grid, jnp.asarray([[-1.0], [0.0], [1.0]]))
    measured = measured_slope(values, grid, metric=mdp.metric).value
    rules = [
        gaussian_noise_bound(mdp),
        smoothness_bound(LipschitzConstants(2.0, 0.0, 0.9, 0.3), mdp.horizon),
        certified_slope(values, grid, metric=mdp.metric),
    ]
    assert all(0 < measured <= rule.value for rule in rules)
    assert tightest(*rules).rule == "gradients on the lattice"
