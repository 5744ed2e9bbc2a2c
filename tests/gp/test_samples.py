"""Draws of whole functions: their law against the exact posterior, and that each is one function.

Monte-Carlo tests allow 4 standard errors (5 where many entries are compared), with fixed seeds.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import kernelmdp as km

from .dense import Dense

BOX = km.Box([0.0, 0.0], [1.0, 1.0])
PAIR = "se(0.5) @ coregional([[1.0, -0.7], [-0.7, 0.8]])"


def data(n=6):
    rng = np.random.default_rng(5)
    points = rng.random((n, 2))
    return points, rng.standard_normal(n), rng.random((5, 2))


def assert_moments(draws, mean, covariance, errors=5.0):
    """Mean and covariance of draws (count, n) within so many standard errors of the exact ones."""
    count = len(draws)
    spread = np.sqrt(np.diag(covariance))
    assert (np.abs(draws.mean(axis=0) - mean) < errors * spread / np.sqrt(count)).all()
    # Var of a product of centred Gaussians: s_i² s_j² + c_ij².
    entry = np.sqrt((np.outer(spread, spread) ** 2 + covariance**2) / count)
    assert (np.abs(np.cov(draws.T, bias=True) - covariance) < errors * entry).all()


def many(posterior, queries, count, **kwargs):
    keys = jax.random.split(jax.random.key(1), count)
    one = lambda key: posterior.sample(key=key, **kwargs)(jnp.asarray(queries))  # noqa: E731
    return np.asarray(jax.jit(lambda k: jax.lax.map(one, k, batch_size=500))(keys))


@pytest.mark.parametrize(
    ("text", "engine"), [("linear + constant(1.0)", "finite rank"), ("se(0.5)", "compiled")]
)
def test_weight_draws_have_the_posterior_law(text, engine):
    kernel = km.kernel(text)
    points, targets, queries = data()
    posterior = km.gp.posterior(kernel, noise_variance=0.1, domain=BOX, tolerance=1e-9)
    posterior = posterior.condition(points, targets)
    assert posterior.engine == engine
    oracle = Dense(kernel, points, targets, 0.1, queries)
    assert_moments(many(posterior, queries, 20_000), oracle.mean, oracle.covariance)


@pytest.mark.parametrize("text", ["se(0.5)", "se(0.5)[0] * linear[1] + linear"])
def test_matheron_on_a_finite_set_has_the_posterior_law(text):
    kernel = km.kernel(text)
    points, targets, queries = data()
    posterior = km.gp.posterior(kernel, noise_variance=0.1, domain=BOX, engine="exact")
    posterior = posterior.condition(points, targets)
    oracle = Dense(kernel, points, targets, 0.1, queries)
    draws = np.asarray(posterior.sample_at(queries, key=jax.random.key(0), draws=200_000))
    assert np.abs(draws.mean(axis=0) - oracle.mean).max() < 5e-3
    assert np.abs(np.cov(draws.T) - oracle.covariance).max() < 5e-3


@pytest.mark.parametrize(
    "text",
    [
        "matern(0.5, 0.6)",  # two coordinates share one mixing variable
        "0.5 * se(0.3)[0] * periodic(1.0, 0.7)[1] + quadratic",
    ],
)
def test_pathwise_draws_approximate_the_posterior_law(text):
    kernel = km.kernel(text)
    points, targets, queries = data()
    posterior = km.gp.posterior(kernel, noise_variance=0.1, domain=BOX, engine="exact")
    posterior = posterior.condition(points, targets)
    oracle = Dense(kernel, points, targets, 0.1, queries)
    count = 1_500
    draws = many(posterior, queries, count, frequencies=128)
    # Every draw has frequencies of its own, so over draws the prior covariance is unbiased.
    scale = float(np.max(kernel.diagonal(queries)))
    assert np.abs(draws.mean(axis=0) - oracle.mean).max() < 5 * np.sqrt(scale / count)
    assert np.abs(np.cov(draws.T) - oracle.covariance).max() < 6 * scale * np.sqrt(2 / count)
    assert not jax.eval_shape(lambda k: posterior.sample(key=k), jax.random.key(0)).exact


def test_random_features_converge_like_one_over_the_square_root():
    from kernelmdp.gp.basis import prior_basis

    kernel = km.kernels.SquaredExponential(0.5)
    z = jnp.asarray(np.random.default_rng(0).random((40, 2)))
    truth = kernel(z)
    counts, errors = [64, 512, 4096], []
    for count in counts:

        def worst(key, count=count):
            values = prior_basis(kernel, 2, count, key=key)(z)
            return jnp.abs(values @ values.T - truth).max()

        keys = jax.random.split(jax.random.key(count), 20)
        errors.append(np.mean(jax.jit(lambda keys, one=worst: jax.lax.map(one, keys))(keys)))
    assert errors[-1] < 0.05
    slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert abs(slope + 0.5) < 0.15


def test_lazy_draws_equal_joint_draws_in_any_order():
    kernel = km.kernel("se(0.4)")
    points, targets, queries = data()
    posterior = km.gp.posterior(kernel, noise_variance=0.1, domain=BOX, engine="exact")
    posterior = posterior.condition(points, targets)
    oracle = Dense(kernel, points, targets, 0.1, queries)
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(oracle.covariance)
    collected = []
    for seed in range(60):
        f = posterior.sample(key=jax.random.key(seed), method="lazy")
        order = rng.permutation(5)
        values = np.zeros(5)
        for piece in (order[:2], order[2:3], order[3:]):
            values[piece] = f(queries[piece])
        np.testing.assert_array_equal(f(queries), values)  # it never contradicts itself
        collected.append(values)
    white = np.linalg.solve(root, (np.array(collected) - oracle.mean).T)
    assert stats.kstest(white.ravel(), "norm").pvalue > 1e-3
    assert_moments(np.array(collected), oracle.mean, oracle.covariance)


@pytest.mark.parametrize("engine", ["exact", "compiled"])
def test_a_sample_is_one_function(engine):
    points, targets, queries = data()
    posterior = km.gp.posterior(
        km.kernel(PAIR), noise_variance=0.1, domain=BOX, engine=engine, tolerance=1e-9
    ).condition(points, np.c_[targets, targets])
    f = posterior.sample(key=jax.random.key(3))
    values = f(queries)
    assert values.shape == (5, 2)
    np.testing.assert_allclose(f(queries), values, rtol=0, atol=0)
    np.testing.assert_allclose(f(queries[::-1].copy()), values[::-1], atol=1e-12)
    np.testing.assert_allclose(f(queries[2]), values[2], atol=1e-12)
    np.testing.assert_allclose(jax.jit(f)(jnp.asarray(queries)), values, atol=1e-12)
    later = posterior.condition(points, np.c_[targets, targets])
    np.testing.assert_allclose(f(queries), values, rtol=0, atol=0)  # later data do not touch it
    assert later.count == 12


def test_many_functions_at_once_differ():
    points, targets, queries = data()
    posterior = km.gp.posterior(
        km.kernel("se(0.5)"), noise_variance=0.1, domain=BOX, tolerance=1e-9
    ).condition(points, targets)
    many_f = jax.vmap(lambda key: posterior.sample(key=key))(jax.random.split(jax.random.key(0), 7))
    batch = eqx.filter_vmap(lambda one: one(jnp.asarray(queries)))(many_f)
    assert batch.shape == (7, 5)
    assert np.unique(np.asarray(batch)[:, 0]).size == 7


def test_output_draws_have_the_posterior_law():
    kernel = km.kernel(PAIR)
    points, targets, queries = data()
    both = np.c_[targets, targets**2]
    oracle = Dense(kernel, points, both, 0.1, queries)
    posterior = km.gp.posterior(kernel, noise_variance=0.1, domain=BOX, tolerance=1e-9)
    draws = many(posterior.condition(points, both), queries, 20_000)
    assert_moments(draws.reshape(20_000, -1), oracle.mean.ravel(), oracle.covariance)


def test_methods_belong_to_engines():
    compiled = km.gp.posterior(km.kernel("se(0.5)"), noise_variance=0.1, domain=BOX)
    with pytest.raises(km.errors.ArgumentError, match="method"):
        compiled.sample(key=jax.random.key(0), method="lazy")
    own = km.kernels.Function(lambda x, y: jnp.exp(-jnp.sum(jnp.abs(x - y))), variance_bound=1.0)
    exact = km.gp.posterior(own, noise_variance=0.1, dimension=2)
    with pytest.raises(km.errors.UnknownPropertyError, match="lazy"):
        exact.sample(key=jax.random.key(0))
    assert exact.sample(key=jax.random.key(0), method="lazy")([[0.1, 0.2]]).shape == (1,)
