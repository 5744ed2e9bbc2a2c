"""Standard deviations from 32 bits: within the stated tolerance, or computed in 64 bits."""

import jax
import numpy as np
import pytest

import kernelmdp as km

from .dense import Dense

TOLERANCE = 0.005
ROWS, QUERIES, DIMENSION = 600, 1100, 3
BOX = km.Box([0.0] * DIMENSION, [1.0] * DIMENSION)


def data(seed=0):
    rng = np.random.default_rng(seed)
    points, queries = rng.random((ROWS, DIMENSION)), rng.random((QUERIES, DIMENSION))
    return points, np.sin(5 * points[:, 0]) + 0.1 * rng.standard_normal(ROWS), queries


def posterior(kernel, noise, points, targets, engine="auto"):
    # No kernel compiles with one centre, so "auto" means the exact engine.
    prior = km.gp.posterior(kernel, noise_variance=noise, domain=BOX, engine=engine, rank_limit=1)
    assert prior.engine == "exact"
    return prior.condition(points, targets)


def differs(rounded, exact):
    """Whether 32 bits were used anywhere."""
    return bool(np.any(np.abs(np.asarray(rounded) / np.asarray(exact) - 1) > 1e-9))


@pytest.mark.parametrize(("lengthscale", "used"), [(0.2, True), (0.3, True), (5.0, False)])
def test_agrees_with_the_dense_solution(lengthscale, used):
    kernel = km.kernels.SquaredExponential(lengthscale)
    points, targets, queries = data()
    oracle = Dense(kernel, points, targets, 0.01, queries)
    mean, std = posterior(kernel, 0.01, points, targets).predict(queries)
    exact = np.sqrt(oracle.variance)
    np.testing.assert_allclose(mean, oracle.mean, atol=1e-8)
    np.testing.assert_allclose(std, exact, rtol=TOLERANCE)
    # The bound is far above the error.
    np.testing.assert_allclose(std, exact, rtol=0.1 * TOLERANCE)
    assert differs(std, exact) == used


@pytest.mark.parametrize("noise", [1e-3, 1e-5, 1e-7])
@pytest.mark.parametrize("lengthscale", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("distance", [0.0, 1e-9, 1e-4])
def test_hard_data_stay_within_the_tolerance(noise, lengthscale, distance):
    # Points come in groups that almost coincide, and queries lie next to them.
    points, targets, queries = data(1)
    rng = np.random.default_rng(2)
    few = points[: ROWS // 20]
    points = np.tile(few, (20, 1)) + distance * rng.random((ROWS, DIMENSION))
    points = np.clip(points, 0.0, 1.0)
    queries = np.concatenate([points[:500], queries[: QUERIES - 500]])
    kernel = km.kernels.SquaredExponential(lengthscale)
    rounded = posterior(kernel, noise, points, targets)
    exact = posterior(kernel, noise, points, targets, engine="exact")
    mean, std = exact.predict(queries)
    np.testing.assert_allclose(rounded.predict(queries)[1], std, rtol=TOLERANCE, atol=1e-9)
    # Both means are k(z, X)α in 64 bits, summed in an order that depends on the processor. With
    # k ≤ 1 two orders differ by a few ε‖α‖₁, and α = (y − mean(X))/λ is large where λ is small.
    weights = (targets - np.asarray(exact.predict(points)[0])) / noise
    round_off = 4 * np.finfo(float).eps * np.abs(weights).sum()
    np.testing.assert_allclose(rounded.predict(queries)[0], mean, rtol=1e-6, atol=round_off)


def test_points_of_one_call_are_judged_in_turn():
    # A query far from the data is easy. One among many repeated points is not.
    points, targets, queries = data(3)
    points[:] = 0.2 + 1e-3 * points
    kernel, noise = km.kernels.SquaredExponential(0.3), 1e-4
    hard = np.concatenate([np.full((512, DIMENSION), 0.5), points, queries])
    rounded = posterior(kernel, noise, points, targets).predict(hard)[1]
    exact = posterior(kernel, noise, points, targets, engine="exact").predict(hard)[1]
    np.testing.assert_allclose(rounded, exact, rtol=TOLERANCE)
    assert differs(rounded[:512], exact[:512])
    assert not differs(rounded[512:], exact[512:])


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_numbers_outside_32_bits_are_computed_in_64(scale):
    points, targets, queries = data()
    kernel = scale * km.kernels.SquaredExponential(0.3)
    rounded = posterior(kernel, 0.01 * scale, points, targets)
    exact = posterior(kernel, 0.01 * scale, points, targets, engine="exact")
    np.testing.assert_allclose(rounded.predict(queries)[1], exact.predict(queries)[1], rtol=1e-9)


def test_several_outputs():
    points, targets, queries = data()
    kernel = km.kernel("se(0.3)") @ km.kernels.Coregional([[1.0, 0.4], [0.4, 0.5]])
    both = np.stack([targets, -targets], axis=1)
    rounded = posterior(kernel, 0.01, points, both).predict(queries)
    exact = posterior(kernel, 0.01, points, both, engine="exact").predict(queries)
    np.testing.assert_allclose(rounded[0], exact[0], atol=1e-9)
    np.testing.assert_allclose(rounded[1], exact[1], rtol=TOLERANCE)
    assert differs(rounded[1], exact[1])


def test_by_name_and_inside_jit_all_is_in_64_bits():
    points, targets, queries = data()
    kernel = km.kernels.SquaredExponential(0.3)
    oracle = np.sqrt(Dense(kernel, points, targets, 0.01, queries).variance)
    chosen = posterior(kernel, 0.01, points, targets, engine="exact")
    assert chosen.std_tolerance == 0
    np.testing.assert_allclose(chosen.predict(queries)[1], oracle, rtol=1e-9)
    automatic = posterior(kernel, 0.01, points, targets)
    traced = jax.jit(lambda z: automatic.predict(z)[1])(queries)
    np.testing.assert_allclose(traced, oracle, rtol=1e-9)


def test_agents_and_careful_users_have_no_such_error():
    """Claims about confidence sets allow no error of a std that is not accounted for."""
    learned = km.PSRL("rkhs", seed=0).learner.beliefs(km.PSRL("rkhs", seed=0).state)
    assert learned.reward.std_tolerance == learned.transition.std_tolerance == 0
    with pytest.raises(km.errors.ArgumentError, match="std_tolerance: expected at least 0"):
        km.gp.posterior(km.kernel("se"), noise_variance=0.1, domain=BOX, std_tolerance=-0.1)
