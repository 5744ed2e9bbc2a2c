"""Remembered points: the same answers, faster."""

import jax
import numpy as np
import pytest

import kernelmdp as km

BOX = km.Box([0.0, 0.0], [1.0, 1.0])
KERNELS = {
    "scalar": km.kernel("se(0.5)"),
    "shared": km.kernel("se(0.5) @ index(2)"),
    "rotated": km.kernel("se(0.5)") @ km.kernels.Coregional([[1.0, 0.4], [0.4, 0.5]]),
}


def learned(rng, posterior, episodes, rows=7):
    for _ in range(episodes):
        x = rng.random((rows, 2))
        y = np.sin(3 * x[:, 0]) * x[:, 1] + 0.1 * rng.normal(size=rows)
        posterior = posterior.condition(x, y if posterior.scalar else np.stack([y, -y], axis=1))
    return posterior


@pytest.mark.parametrize(
    ("name", "moments"), [("scalar", False), ("shared", True), ("rotated", True)]
)
def test_answers_are_the_same(name, moments):
    prior = km.gp.posterior(KERNELS[name], noise_variance=0.01, domain=BOX)
    grid = np.random.default_rng(1).random((200, 2))
    other = np.random.default_rng(2).random((200, 2))  # as many points, but not the remembered
    plain = learned(np.random.default_rng(0), prior, 20)
    quick = learned(np.random.default_rng(0), prior.cache_at(grid, moments=moments), 20)
    for points in (grid, other, grid[:50]):
        for got, expected in zip(quick.predict(points), plain.predict(points), strict=True):
            np.testing.assert_allclose(got, expected, atol=1e-9)
    assert quick.information_gain == pytest.approx(plain.information_gain, abs=1e-9)


def test_means_and_draws_remember_too():
    prior = km.gp.posterior(KERNELS["shared"], noise_variance=0.01, domain=BOX)
    grid = np.random.default_rng(1).random((100, 2))
    plain = learned(np.random.default_rng(0), prior, 3)
    engines = plain.cache_at(grid).engines
    for function in (plain.mean_function(), plain.sample(key=jax.random.key(0))):
        quick = function.with_cache_of(engines)
        np.testing.assert_allclose(quick(grid), function(grid), atol=1e-10)
        np.testing.assert_allclose(quick(grid[:9]), function(grid[:9]), atol=1e-10)
    np.testing.assert_allclose(plain.mean_function()(grid), plain.predict(grid)[0], atol=1e-10)


def test_many_rows_at_once_keep_moments_true(rng):
    prior = km.gp.posterior(KERNELS["scalar"], noise_variance=0.01, domain=BOX)
    grid = rng.random((30, 2))
    x = rng.random((500, 2))
    quick = prior.cache_at(grid, moments=True).condition(x, np.sin(x[:, 0]))
    plain = prior.condition(x, np.sin(x[:, 0]))
    for got, expected in zip(quick.predict(grid), plain.predict(grid), strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-9)


def test_the_exact_engine_has_nothing_to_remember(rng):
    prior = km.gp.posterior(KERNELS["scalar"], noise_variance=0.01, domain=BOX, engine="exact")
    grid = rng.random((30, 2))
    quick = learned(rng, prior.cache_at(grid, moments=True), 2)
    assert np.isfinite(np.asarray(quick.predict(grid)[1])).all()
    np.testing.assert_allclose(quick.mean_function()(grid), quick.predict(grid)[0], atol=1e-9)
