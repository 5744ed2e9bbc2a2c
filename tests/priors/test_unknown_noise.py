"""Unknown noise variance: against closed forms and quadrature, and calibrated.

Simulation-based calibration): truths drawn from the prior, ranked among draws
from the posterior that their data give, must have uniform ranks.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from kernelmdp.numerics.modules import jit
from kernelmdp.priors import UnknownNoise
from kernelmdp.priors.unknown_noise import draw_weights_and_variances
from tests.priors import toy

DRAWS = 4000


@jit
def draws_of(learned, keys):
    """Weights and noise variances, one draw for each key."""
    return jax.vmap(lambda k: draw_weights_and_variances(learned, k))(keys)


def test_noise_variance_without_functions_is_inverse_gamma():
    columns = toy.columns()
    prior = UnknownNoise(shape=3.0, guess=0.5)
    start, _ = prior.start(columns, toy.setting(), "reward", key=jax.random.key(0))
    targets = np.random.default_rng(0).normal(size=(12, 1)) * 0.2
    nothing = jnp.zeros((12, columns.rank))
    learned, _ = prior.update(start, nothing, jnp.asarray(targets), key=jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), DRAWS)
    variances = np.asarray(draws_of(learned, keys)[1][:, 0])
    law = stats.invgamma(3.0 + 6.0, scale=3.0 * 0.25 + 0.5 * np.sum(targets**2))
    assert stats.kstest(variances, law.cdf).pvalue > 1e-3


def test_noise_variance_and_weights_match_dense_quadrature():
    columns = toy.columns()
    prior = UnknownNoise()
    features = np.asarray(columns.features(toy.POINTS))
    targets = np.sin(6 * np.asarray(toy.POINTS))
    start, _ = prior.start(columns, toy.setting(), "reward", key=jax.random.key(0))
    learned, _ = prior.update(
        start, jnp.asarray(features), jnp.asarray(targets), key=jax.random.key(0)
    )
    logs = np.linspace(-12, 4, 4001)
    covariance = features @ features.T
    density, means = [], []
    for v in np.exp(logs):
        total = covariance + v * np.eye(toy.N)
        solved = np.linalg.solve(total, targets[:, 0])
        value = -0.5 * np.linalg.slogdet(total)[1] - 0.5 * targets[:, 0] @ solved
        density.append(value - 2.0 * np.log(v) - 2.0 * toy.SIZE**2 / v)
        means.append(features.T @ solved)
    mass = np.exp(np.array(density) - np.max(density))
    mass /= mass.sum()
    keys = jax.random.split(jax.random.key(1), DRAWS)
    weights, variances = draws_of(learned, keys)
    logged = np.log(np.asarray(variances[:, 0]))
    centre = mass @ logs
    spread = np.sqrt(mass @ (logs - centre) ** 2)
    assert abs(logged.mean() - centre) < 4 * spread / np.sqrt(DRAWS)
    np.testing.assert_allclose(logged.std(), spread, rtol=0.05)
    drawn = np.asarray(weights[:, :, 0])
    error = drawn.std(axis=0) / np.sqrt(DRAWS)
    assert (np.abs(drawn.mean(axis=0) - mass @ np.array(means)) < 4.5 * error).all()


def test_many_data_make_the_noise_sharp():
    columns = toy.columns()
    prior = UnknownNoise(guess=10.0)
    rng = np.random.default_rng(0)
    points = jnp.asarray(rng.uniform(size=(20_000, 1)))
    features = columns.features(points)
    targets = features @ jnp.ones((columns.rank, 1)) + 0.05 * jnp.asarray(
        rng.normal(size=(20_000, 1))
    )
    start, _ = prior.start(columns, toy.setting(), "reward", key=jax.random.key(0))
    learned, _ = prior.update(start, features, targets, key=jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), DRAWS)
    sizes = np.sqrt(np.asarray(draws_of(learned, keys)[1][:, 0]))
    # A guess 200 times too large counts as four observations of it.
    expected = np.sqrt(0.05**2 + 2 * 2.0 * 100 / 20_000)
    assert abs(sizes.mean() / expected - 1) < 0.02
    assert sizes.std() / sizes.mean() == pytest.approx(1 / np.sqrt(2 * 20_000), rel=0.15)


def test_calibration():
    replications, draws = 200, 9
    columns = toy.columns(replications)
    prior = UnknownNoise()
    weight_key, variance_key, noise_key, key = jax.random.split(jax.random.key(1), 4)
    truth = jax.random.normal(weight_key, (columns.rank, replications))
    rate = prior.shape * toy.SIZE**2
    variances = rate / jax.random.gamma(variance_key, prior.shape, (replications,))
    features = columns.features(toy.POINTS)
    noise = jnp.sqrt(variances)[None, :] * jax.random.normal(noise_key, (toy.N, replications))
    start, _ = prior.start(columns, toy.setting(), "reward", key=key)
    learned, found = prior.update(start, features, features @ truth + noise, key=key)
    assert found.mixed
    drawn, levels = draws_of(learned, jax.random.split(key, draws))
    for true, values in zip(toy.watched(columns, truth), toy.watched(columns, drawn), strict=True):
        assert toy.uniform_p(toy.ranks(true, values), draws) > toy.LEAST
    assert toy.uniform_p(toy.ranks(variances, levels), draws) > toy.LEAST
