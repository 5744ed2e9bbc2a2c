"""Caches of basis values: products on grids, against dense NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.gp import basis_cache
from kernelmdp.gp.basis_cache import BasisCache, GridCache, compressed, grid_shape

AXES = [np.linspace(0, 1, 17), np.linspace(-1, 1, 14) ** 3, np.array([0.0, 0.2, 0.3, 0.9, 1.0])]


def grid_of(axes):
    return np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)


def smooth_values(points, rng, rank=12):
    """Values of wide bumps at random centres."""
    centres = rng.uniform(-1, 1, size=(rank, points.shape[1]))
    return np.exp(-((points[:, None, :] - centres[None]) ** 2).sum(axis=2) / 8)


@pytest.fixture
def every_grid(monkeypatch):
    """Grids of any size are compressed."""
    monkeypatch.setattr(basis_cache, "MANY_VALUES", 0)
    monkeypatch.setattr(basis_cache, "WORTHWHILE", 1.0)


@pytest.mark.parametrize("axes", [AXES[:2], AXES, [*AXES, AXES[2][:3]]])
def test_products_on_a_grid(axes, rng, every_grid):
    points = grid_of(axes)
    values = smooth_values(points, rng)
    cache = compressed(BasisCache(jnp.asarray(points), jnp.asarray(values)))
    assert isinstance(cache, GridCache)
    assert cache.core.shape[0] < len(axes[0])
    gain, residual, root = (rng.normal(size=s) for s in ((12, 6), (6, 2), (12, 12)))
    np.testing.assert_allclose(
        cache.product(jnp.asarray(gain)), values @ gain, rtol=1e-12, atol=1e-12
    )
    rise, decrease = cache.changes(jnp.asarray(gain), jnp.asarray(residual))
    np.testing.assert_allclose(rise, values @ gain @ residual, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(decrease, ((values @ gain) ** 2).sum(axis=1), rtol=1e-12, atol=1e-12)
    mean, variance = cache.moments(jnp.asarray(gain[:, :2]), jnp.asarray(root), 1)
    np.testing.assert_allclose(mean, values @ gain[:, :2], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(variance, ((values @ root) ** 2).sum(axis=1), rtol=1e-12, atol=1e-12)


def test_what_is_not_compressed(rng, every_grid, monkeypatch):
    points = grid_of(AXES)
    values = smooth_values(points, rng)

    def kept(points, values):
        cache = BasisCache(jnp.asarray(points), jnp.asarray(values))
        return compressed(cache) is cache

    assert not kept(points, values)
    assert kept(points[:, :1], values)
    assert kept(points[::-1][1:], values[1:])
    assert kept(rng.permutation(points), values)
    assert kept(points, values.astype(np.float32))
    assert compressed(None) is None
    monkeypatch.setattr(basis_cache, "WORTHWHILE", 0.25)
    assert kept(points, rng.normal(size=values.shape))  # rough: every direction is needed
    monkeypatch.setattr(basis_cache, "MANY_VALUES", values.size + 1)
    assert kept(points, values)


def test_a_span_that_misses_something_is_noticed(rng, every_grid, monkeypatch):
    points = grid_of(AXES)
    cache = BasisCache(jnp.asarray(points), jnp.asarray(smooth_values(points, rng)))
    span = basis_cache._span
    monkeypatch.setattr(basis_cache, "SPANNING_COLUMNS", 400)  # some of the columns are enough
    assert isinstance(compressed(cache), GridCache)
    monkeypatch.setattr(basis_cache, "_span", lambda *words: span(*words)[:, :3])
    assert compressed(cache) is cache


def test_grids_are_recognised():
    assert grid_shape(grid_of(AXES)) == (17, 14, 5)
    assert grid_shape(grid_of([AXES[0][::-1], AXES[1]])) == (17, 14)  # nodes in any order
    assert grid_shape(grid_of(AXES)[:, ::-1]) is None  # the first coordinate varies fastest
    assert grid_shape(AXES[0][:, None]) is None
    assert grid_shape(np.repeat(grid_of(AXES[:2]), 2, axis=0)) is None


@pytest.mark.parametrize("text", ["se(0.5)", "se(0.5) @ index(2)"])
def test_posteriors_on_a_grid(text, rng, every_grid):
    box = km.Box([0.0, 0.0], [1.0, 1.0])
    prior = km.gp.posterior(km.kernel(text), noise_variance=0.01, domain=box)
    grid = grid_of([np.linspace(0, 1, 23), np.linspace(0, 1, 19)])
    quick = prior.cache_at(grid, moments=True)
    assert isinstance(quick.engines[0].cached, GridCache)
    plain = prior
    for rows in (7, 7, 300, 7):
        x = rng.random((rows, 2))
        y = np.sin(3 * x[:, 0]) * x[:, 1] + 0.1 * rng.normal(size=rows)
        y = y if prior.scalar else np.stack([y, -y], axis=1)
        quick, plain = (each.condition(x, y) for each in (quick, plain))
        for points in (grid, grid[::-1], grid[:50]):
            for got, expected in zip(quick.predict(points), plain.predict(points), strict=True):
                np.testing.assert_allclose(got, expected, atol=1e-9)
    draw = plain.mean_function()
    np.testing.assert_allclose(draw.with_cache_of(quick.engines)(grid), draw(grid), atol=1e-10)
