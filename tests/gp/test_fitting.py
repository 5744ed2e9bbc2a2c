"""Lengthscales, signal and noise from data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.errors import ArgumentError
from kernelmdp.gp.ard import ARDKernels
from kernelmdp.gp.fit_config import InducingConfig, SearchConfig, TrendConfig
from kernelmdp.gp.fitting import (
    DYNAMICS,
    REWARD,
    ARDFamily,
    fit,
    fitting_blocks,
    linear_trend,
    log_likelihood,
    minimise,
    objective,
    prior_median,
)
from kernelmdp.gp.laplace import parameter_law
from kernelmdp.gp.row_selection import spread_rows

N = 60


def family(*sizes):
    return ARDFamily(jnp.array([1.0, 2.0]), jnp.array(sizes), jnp.ones(2), ())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.uniform([0.0, 0.0], [1.0, 2.0], size=(N, 2))
    wavy = np.sin(8 * x[:, 0])  # the second coordinate does not matter
    noisy = 0.5 * x[:, 1] + 0.2 * rng.normal(size=N)
    return jnp.asarray(x), jnp.asarray(np.stack([wavy, noisy], axis=1)), jnp.ones(N)


@pytest.fixture(scope="module")
def fitted(data):
    x, y, counted = data
    size = np.sqrt(np.mean(np.asarray(y) ** 2, axis=0))
    own = family(*size)
    return own, np.exp(
        fit(own, DYNAMICS, x[None], y[None], counted[None], prior_median(own, DYNAMICS))
    )


def test_coordinates_that_do_not_matter_get_long_lengthscales(fitted):
    _, found = fitted
    assert found[0, 1] > 10 * found[0, 0]
    assert 0.1 < found[0, 0] < 0.6


def test_noise_is_found(fitted):
    own, found = fitted
    noise = found[:, -1] * np.asarray(own.sizes)
    assert noise[1] == pytest.approx(0.2, rel=0.25)
    assert noise[0] < 0.01


def test_nothing_within_the_bounds_nearby_is_better(data, fitted):
    """A minimum, up to the flatness of the last steps."""
    x, y, counted = data
    own, found = fitted
    rows = DYNAMICS.rows(2)

    def loss(logs):
        penalty = 0.5 * jnp.sum(((logs - jnp.log(rows[:, 0])) / rows[:, 1]) ** 2)
        one = ARDFamily(own.widths, own.sizes[1][None], own.angular, ())
        return penalty - log_likelihood(one.kernels_at(logs[None, :]), x, y[:, 1], counted)

    here = jnp.log(jnp.asarray(found[1]))
    rng = np.random.default_rng(1)
    low, high = np.log(rows[:, 2]), np.log(rows[:, 3])
    for _ in range(20):
        near = np.clip(np.asarray(here) + 0.2 * rng.normal(size=4), low, high)
        assert float(loss(jnp.asarray(near))) >= float(loss(here)) - 1e-3


def test_likelihood_is_that_of_the_normal_law(data):
    x, y, _ = data
    shape = ARDKernels(
        jnp.array([[0.3, 1.0]]), jnp.array([1.2]), jnp.array([0.3]), jnp.ones(2), angles=()
    )
    counted = jnp.asarray((np.arange(N) < 40).astype(float))
    kernel = shape.kernels()[0]
    inside = np.asarray(kernel(x[:40])) + (0.3**2 + 1e-9 * 1.44) * np.eye(40)
    from scipy import stats

    wanted = stats.multivariate_normal(np.zeros(40), inside).logpdf(np.asarray(y[:40, 0]))
    assert float(log_likelihood(shape, x, y[:, 0], counted)) == pytest.approx(wanted, rel=1e-9)


def test_the_slope_is_the_slope(data):
    x, y, counted = data

    def value(logs):
        shape = family(1.0).kernels_at(logs[None, :])
        return log_likelihood(shape, x, y[:, 0], counted)

    here = jnp.log(jnp.array([0.4, 0.7, 1.1, 0.1]))
    slope = np.asarray(jax.grad(value)(here))
    for j in range(4):
        step = 1e-5 * np.eye(4)[j]
        change = (float(value(here + step)) - float(value(here - step))) / 2e-5
        assert slope[j] == pytest.approx(change, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("hyper_prior", [DYNAMICS, REWARD])
def test_flat_and_repeated_data_stay_within_bounds(hyper_prior):
    """One state over and over, nothing ever happening: no certainty, no NaN."""
    x, y, counted = jnp.zeros((1, N, 2)), jnp.zeros((1, N, 2)), jnp.ones((1, N))
    own = family(1.0, 1.0)
    found = np.exp(fit(own, hyper_prior, x, y, counted, prior_median(own, hyper_prior)))
    rows = hyper_prior.rows(2)
    assert np.isfinite(found).all()
    assert (found >= rows[:, 2] * (1 - 1e-9)).all()
    assert (found <= rows[:, 3] * (1 + 1e-9)).all()


@pytest.mark.parametrize("method", ["bfgs", "lbfgs"])
def test_descent_of_a_curved_valley(method):
    def rosenbrock(x):
        return (1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2

    found, value = minimise(rosenbrock, jnp.array([-1.0, 1.0]), SearchConfig(method=method))
    np.testing.assert_allclose(found, [1.0, 1.0], atol=1e-2)
    assert float(value) < 1e-4


def test_a_known_curvature_saves_steps():
    """With the inverse Hessian one step reaches the minimum of a quadratic function."""
    hessian = jnp.array([[40.0, 3.0], [3.0, 0.5]])
    best = jnp.array([0.3, -0.2])

    def quadratic(x):
        return 0.5 * (x - best) @ hessian @ (x - best)

    found = {
        known: minimise(quadratic, jnp.zeros(2), steps=1, inverse_hessian=estimate)[0]
        for known, estimate in ((True, jnp.linalg.inv(hessian)), (False, None))
    }
    np.testing.assert_allclose(found[True], best, atol=1e-12)
    assert float(jnp.linalg.norm(found[False] - best)) > 0.1


def test_precisions_of_the_start_find_the_same_fit(data, fitted):
    x, y, counted = (each[None] for each in data)
    own, found = fitted
    start = np.log(found) + 0.1
    law = parameter_law(own, DYNAMICS, x, counted, start)
    fits = [
        fit(own, DYNAMICS, x, y, counted, start, precisions=each, thorough=False)
        for each in (None, law.precisions)
    ]
    np.testing.assert_allclose(*fits, atol=0.1)


def test_the_search_is_as_long_as_it_is_told(data, fitted):
    """One step cannot reach what twenty-five do, and more change little."""
    x, y, counted = (each[None] for each in data)
    own, found = fitted
    start = prior_median(own, DYNAMICS)

    def loss(logs):
        rows = DYNAMICS.rows(2)
        penalty = 0.5 * np.sum(((logs - np.log(rows[:, 0])) / rows[:, 1]) ** 2)
        shape = ARDFamily(own.widths, own.sizes[:1], own.angular, ()).kernels_at(
            jnp.asarray(logs)[None]
        )
        return penalty - float(log_likelihood(shape, x[0], y[0, :, 0], counted[0]))

    reached = {
        steps: loss(fit(own, DYNAMICS, x, y, counted, start, config=SearchConfig(steps=steps))[0])
        for steps in (1, 100)
    }
    default = loss(np.log(found[0]))
    assert reached[1] > default + 10
    assert reached[100] >= default - 0.5
    other = SearchConfig(method="lbfgs")
    assert loss(fit(own, DYNAMICS, x, y, counted, start, config=other)[0]) <= default + 0.5
    once = fit(own, DYNAMICS, x, y, counted, start, config=SearchConfig(from_medians=False))
    # Both starts are the medians here, so the searches differ in where they end only.
    np.testing.assert_allclose(np.exp(once), found, rtol=0.05)


def test_a_fit_that_goes_on_stays_near_the_best(data, fitted):
    """A search from the last fit ends early, and loses at most a fifth of a nat."""
    x, y, counted = (each[None] for each in data)
    own, found = fitted
    rows = own.parameter_priors(DYNAMICS)

    def losses(logs):
        pairs = zip(logs, rows, strict=True)
        return np.array(
            [
                float(
                    objective(own.output(i), x, y[:, :, i], counted, jnp.asarray(row))(
                        log_odds(each, row)
                    )
                )
                for i, (each, row) in enumerate(pairs)
            ]
        )

    def log_odds(logs, row):
        low, high = np.log(row[:, 2]), np.log(row[:, 3])
        share = np.clip((logs - low) / (high - low), 1e-9, 1 - 1e-9)
        return jnp.asarray(np.log(share) - np.log1p(-share))

    moved = np.log(found) + 0.1
    rows_low, rows_high = np.log(rows[:, :, 2]), np.log(rows[:, :, 3])
    start = np.clip(moved, rows_low, rows_high)
    again = fit(own, DYNAMICS, x, y, counted, start, thorough=False)
    assert (losses(again) <= losses(np.log(found)) + 0.2).all()
    assert (losses(start) > losses(again)).all()


@pytest.mark.parametrize(
    ("make", "words", "named"),
    [
        (SearchConfig, {"steps": 0}, "steps"),
        (SearchConfig, {"margin": 0.6}, "margin"),
        (SearchConfig, {"method": "newton"}, "method"),
        (SearchConfig, {"shrink": 1.5}, "shrink"),
        (TrendConfig, {"steep": -1.0}, "steep"),
        (InducingConfig, {"fourier_features": 0}, "fourier_features"),
        (InducingConfig, {"jitter": 0.0}, "jitter"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, words, named):
    with pytest.raises(ArgumentError, match=named):
        make(**words)


def test_rows_are_few_and_hold_the_last():
    points = np.random.default_rng(0).normal(size=(1000, 3))
    chosen = spread_rows(points, 50, key=jax.random.key(0))
    assert len(set(chosen)) == 50
    assert chosen[-1] == 999
    assert spread_rows(points[:7], 50, key=jax.random.key(0)).tolist() == list(range(7))


def test_rows_of_a_dense_region_do_not_displace_the_others():
    """Every occupied cell is equally likely, within four standard errors."""
    points = np.concatenate([np.zeros(900), np.ones(50), np.full(51, 0.5)])[:, None]
    keys = jax.random.split(jax.random.key(0), 300)
    first = [spread_rows(points, 2, key=key)[0] for key in keys]  # the other one is the last row
    share = np.mean(np.array(first) < 900)
    assert abs(share - 1 / 3) < 4 * np.sqrt(2 / 9 / 300)


def test_empty_blocks_change_nothing(data, fitted):
    """Data that are few fill one of several blocks."""
    own, found = fitted
    x, y, _ = data
    blocks = fitting_blocks(np.asarray(x), np.asarray(y), most=N, blocks=3, key=jax.random.key(0))
    assert [float(jnp.sum(each)) for each in blocks[2]] == [N, 0, 0]
    again = fit(own, DYNAMICS, *blocks, prior_median(own, DYNAMICS))
    np.testing.assert_allclose(np.exp(again), found, rtol=1e-6)


@pytest.mark.parametrize(("count", "full"), [(10, 1), (21, 2), (60, 3), (500, 3)])
def test_blocks_hold_rows_from_all_over_the_data(count, full):
    x = np.arange(count, dtype=float)[:, None]
    points, targets, counted = (
        np.asarray(each)
        for each in fitting_blocks(x, 2 * x, most=20, blocks=3, key=jax.random.key(1))
    )
    assert points.shape == (3, 20, 1)
    seen = points[counted > 0, 0]
    assert len(set(seen)) == len(seen) == min(count, 60)
    assert count - 1 in seen
    np.testing.assert_array_equal(targets, 2 * points)
    for block, own in zip(points[:full], counted[:full], strict=True):
        assert np.ptp(block[own > 0]) > 0.6 * count
    assert not counted[full:].any()


def test_a_trend_is_found_beneath_noise():
    rng = np.random.default_rng(2)
    x = rng.uniform(-0.5, 0.5, size=(400, 3))
    line = 0.3 + x @ np.array([2.0, 0.0, -1.0])
    found = linear_trend(x, np.stack([line + 0.5 * rng.normal(size=400), np.zeros(400)], axis=1))
    # Deviations of the estimates: 0.5 / sqrt(400 / 12) = 0.087 for a slope, 0.025 for the level.
    np.testing.assert_allclose(found[:, 0], [0.3, 2.0, 0.0, -1.0], atol=0.3)
    np.testing.assert_allclose(found[:, 1], 0.0, atol=1e-9)


def test_where_there_is_one_point_there_is_no_slope():
    found = linear_trend(np.full((50, 2), 0.25), np.ones((50, 1)))
    assert np.isfinite(found).all()
    assert abs(found[1:]).max() < 1
