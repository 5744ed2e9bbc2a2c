"""Unknown hyper-parameters: against dense algebra and quadrature, and calibrated.

Simulation-based calibration): truths drawn from the prior, ranked among draws
from the posterior that their data give, must have uniform ranks.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

import kernelmdp as km
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.priors import Hyperparameters
from kernelmdp.priors.hyperparameters import (
    SHORTER,
    _chains,
    draw_given,
    factors_of,
    log_density,
    prior_root,
    stretched,
)
from kernelmdp.priors.sufficient_statistics import Statistics
from kernelmdp.priors.weight_space import weight_space_function
from tests.priors import toy

REPLICATIONS, DRAWS, STEPS = 150, 4, 10
PRIOR = Hyperparameters(lengthscale=0.3, signal=0.5, noise=0.4, chains=DRAWS)


@functools.cache
def started():
    """Nothing seen yet."""
    return PRIOR.start(toy.columns(), toy.setting(), "reward", key=jax.random.key(0))[0]


def told(targets):
    """After seeing these targets (n,)."""
    columns = started().columns
    features = columns.features(toy.POINTS)
    return replace_fields(
        started(), statistics=Statistics.none(columns).after(features, targets[:, None])
    )


@functools.cache
def program():
    """Chains for many data sets at once: θ and weights at their ends, acceptance, divergences."""

    def one(targets, key):
        chain_key, draw_key, start_key = jax.random.split(key, 3)
        own = told(targets)
        starts = own.spreads[None, :] * jax.random.normal(start_key, (DRAWS, 3))
        own = replace_fields(own, positions=starts)
        _, positions, found = _chains(PRIOR, own, STEPS, chain_key)
        keys = jax.random.split(draw_key, DRAWS)
        drawn = jax.vmap(lambda t, k: draw_given(PRIOR, own, t, key=k)[:, 0])(positions, keys)
        return positions, drawn, found.acceptance, found.divergences

    return jax.jit(jax.vmap(one))


def test_calibration():
    columns, spreads = started().columns, started().spreads
    features = columns.features(toy.POINTS)
    theta_key, weight_key, noise_key, key = jax.random.split(jax.random.key(3), 4)
    thetas = spreads[None, :] * jax.random.normal(theta_key, (REPLICATIONS, 3))

    def simulate(theta, weight_key, noise_key):
        factors = factors_of(PRIOR, theta)
        root = prior_root(PRIOR, columns, factors)
        weights = root @ jax.random.normal(weight_key, (columns.rank,))
        sizes = toy.SIZE * jnp.exp(0.5 * factors[2])
        return weights, features @ weights + sizes * jax.random.normal(noise_key, (toy.N,))

    keys = [jax.random.split(k, REPLICATIONS) for k in (weight_key, noise_key, key)]
    truth, targets = jax.jit(jax.vmap(simulate))(thetas, keys[0], keys[1])
    positions, drawn, _, _ = program()(targets, keys[2])
    for i in range(3):
        found = toy.ranks(thetas[:, i], positions[:, :, i].T)
        assert toy.uniform_p(found, DRAWS) > toy.LEAST
    weights = jnp.transpose(drawn, (1, 2, 0))
    pairs = zip(toy.watched(columns, truth.T), toy.watched(columns, weights), strict=True)
    for true, values in pairs:
        assert toy.uniform_p(toy.ranks(true, values), DRAWS) > toy.LEAST


def test_chains_match_quadrature():
    targets = jnp.sin(4 * toy.POINTS)[:, 0]
    own = told(targets)
    keys = jax.random.split(jax.random.key(1), REPLICATIONS)
    positions, _, accepted, diverged = program()(jnp.tile(targets, (REPLICATIONS, 1)), keys)
    assert 0.6 < np.mean(accepted) <= 1.0
    assert int(np.sum(diverged)) == 0
    axes = [np.linspace(-5 * spread, 5 * spread, 31) for spread in (0.3, 0.5, 0.4)]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=3).reshape(-1, 3)
    logs = jax.jit(jax.vmap(lambda t: log_density(PRIOR, own, t)))(jnp.asarray(places))
    toy.assert_drawn_from(np.asarray(positions).reshape(-1, 3), places, np.asarray(logs))


def test_draws_given_hyperparameters_match_dense_algebra():
    targets = np.sin(4 * np.asarray(toy.POINTS))[:, 0]
    own, theta = told(jnp.asarray(targets)), jnp.array([0.2, -0.1, 0.0])
    keys = jax.random.split(jax.random.key(2), 5000)
    drawn = jax.jit(jax.vmap(lambda k: draw_given(PRIOR, own, theta, key=k)[:, 0]))(keys)
    features = np.asarray(own.columns.features(toy.POINTS))
    root = np.asarray(prior_root(PRIOR, own.columns, factors_of(PRIOR, theta)))
    covariance = root @ root.T
    total = features @ covariance @ features.T + toy.SIZE**2 * np.eye(toy.N)
    gain = covariance @ features.T @ np.linalg.inv(total)
    expected = gain @ targets
    left = covariance - gain @ features @ covariance
    deviation = np.sqrt(np.diag(left))
    standardised = (np.asarray(drawn) - expected[None]) / deviation[None]
    assert np.abs(standardised.mean(axis=0)).max() < 4.5 / np.sqrt(5000)
    np.testing.assert_allclose(standardised.var(axis=0), 1.0, atol=0.1)


def test_marginal_likelihood_matches_dense_algebra():
    targets = np.sin(4 * np.asarray(toy.POINTS))[:, 0]
    own = told(jnp.asarray(targets))
    features = np.asarray(own.columns.features(toy.POINTS))

    def dense(theta):
        root = np.asarray(prior_root(PRIOR, own.columns, factors_of(PRIOR, jnp.asarray(theta))))
        variance = toy.SIZE**2 * np.exp(theta[2])
        total = features @ root @ root.T @ features.T + variance * np.eye(toy.N)
        law = stats.multivariate_normal(np.zeros(toy.N), total)
        return law.logpdf(targets) - 0.5 * np.sum((np.array(theta) / [0.3, 0.5, 0.4]) ** 2)

    places = [(0.0, 0.0, 0.0), (0.4, -0.3, 0.2), (-0.5, 0.8, -0.6)]
    ours = jax.jit(jax.vmap(lambda t: log_density(PRIOR, own, t)))(jnp.array(places))
    theirs = [dense(place) for place in places]
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), atol=1e-8)


def test_fixed_basis_serves_all_lengthscales():
    """φᵀS(θ)φ against the kernel itself, for lengthscales of the prior's bulk."""
    spread, middle = 0.3, 0.6
    prior = Hyperparameters(lengthscale=spread, signal=0.0)
    kernel = km.kernels.SquaredExponential(middle)
    short = stretched(kernel, jnp.exp(jnp.asarray(-SHORTER * spread)))
    own = km.gp.posterior(short, noise_variance=0.01, domain=km.Box([0.0], [1.0]), tolerance=1e-4)
    (columns,) = weight_space_function(own, [0.1]).groups
    points = jnp.linspace(0, 1, 41)[:, None]
    features = columns.features(points)
    for theta in (-0.6, -0.3, 0.0, 0.3, 0.6):
        root = prior_root(prior, columns, factors_of(prior, jnp.array([theta])))
        exact = stretched(kernel, jnp.exp(jnp.asarray(theta)))(points)
        found = features @ root @ root.T @ features.T
        assert float(jnp.abs(found - exact).max()) < 2e-3
