"""Every sampler against a closed form, dense linear algebra or quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import kernelmdp as km
from kernelmdp.mdp import Gaussian, StudentT
from kernelmdp.numerics.modules import changed
from kernelmdp.priors import HeavyTails, Hyperparameters, NormBall, UnknownNoise
from kernelmdp.priors.heavy_tails import ROOM, StudentPosterior
from kernelmdp.priors.hyperparameters import (
    SHORTER,
    _chains,
    draw_given,
    factors_of,
    log_density,
    prior_root,
    stretched,
)
from kernelmdp.priors.norm_ball import _slices, rejection
from kernelmdp.priors.unknown import unknown
from kernelmdp.priors.unknown_noise import draw_weights
from tests.priors import toy

FEATURES = np.array([[1.0, 0.2], [0.3, -1.0], [0.8, 0.8], [-0.5, 0.4]])
TARGETS = np.array([0.9, -0.4, 3.0, -0.2])  # the third does not fit: an outlier


def plane(log_density, half=5.0, count=801):
    """Mean and variances of two numbers with this log-density, by quadrature on a square."""
    axis = np.linspace(-half, half, count)
    x = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=2).reshape(-1, 2)
    logs = log_density(x)
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    mean = mass @ x
    return mean, mass @ (x - mean) ** 2


def test_heavy_tails_match_quadrature():
    size, degrees = 0.2, 3.0

    def exact(x):
        residuals = (TARGETS[None] - x @ FEATURES.T) / size
        return stats.t(degrees).logpdf(residuals).sum(axis=1) - 0.5 * np.sum(x**2, axis=1)

    mean, variance = plane(exact)
    law = StudentPosterior(
        jnp.asarray(FEATURES), jnp.asarray(TARGETS), jnp.ones(4), jnp.asarray(size), degrees
    )
    starts = jax.random.normal(jax.random.key(0), (40, 2))
    run = jax.jit(lambda key: law.chains(jnp.zeros(2), starts, 60, 4, key=key))
    _, drawn, _, tried, sound = run(jax.random.key(1))
    kept = np.asarray(drawn)[:, 40:]
    error = kept.mean(axis=1).std(axis=0) / np.sqrt(40)  # chains are independent
    assert sound
    assert (np.abs(kept.mean(axis=(0, 1)) - mean) < 4 * error + 1e-3).all()
    np.testing.assert_allclose(kept.var(axis=(0, 1)), variance, rtol=0.15)
    assert int(tried) >= 40 * 60 * 4


def test_sweep_alone_and_slices_alone_are_invariant():
    """Started from the posterior by quadrature, either half of a move leaves it as it is."""
    size, degrees = 0.3, 4.0  # a Gamma shape that is no whole number
    law = StudentPosterior(
        jnp.asarray(FEATURES), jnp.asarray(TARGETS), jnp.ones(4), jnp.asarray(size), degrees
    )
    axis = np.linspace(-5, 5, 801)
    x = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=2).reshape(-1, 2)
    logs = stats.t(degrees).logpdf((TARGETS[None] - x @ FEATURES.T) / size).sum(axis=1)
    mass = np.exp(logs - 0.5 * np.sum(x**2, axis=1))
    chosen = np.random.default_rng(0).choice(len(x), size=5_000, p=mass / mass.sum())
    keys = jax.random.split(jax.random.key(0), 5_000)
    after = jax.jit(jax.vmap(lambda w, k: law.sweep(w, key=k)))(jnp.asarray(x[chosen]), keys)
    for i in range(2):
        assert stats.ks_2samp(np.asarray(after[:, i]), x[chosen, i]).pvalue > 1e-3


def test_heavy_tails_ignore_padding_and_grow():
    columns = toy.columns(2)
    prior = HeavyTails(moves=40)
    rng = np.random.default_rng(0)
    learned, _ = prior.start(columns, toy.setting(StudentT(0.1)), "reward", key=jax.random.key(0))
    weights = jnp.asarray(rng.normal(size=(columns.rank, 2)))
    for episode in range(3):
        points = jnp.asarray(rng.uniform(size=(150, 1)))
        features = columns.features(points)
        targets = features @ weights + toy.SIZE * jnp.asarray(rng.standard_t(3, size=(150, 2)))
        before = learned
        learned, found = prior.update(learned, features, targets, key=jax.random.key(episode))
        assert found.mixed, found
    seen, _ = learned
    assert int(seen.count) == 450
    assert seen.features.shape[0] == 2 * ROOM
    assert int(before[0].count) == 300  # nothing was changed in place
    values = toy.POINTS
    drawn = np.asarray(columns.features(values) @ seen.average)
    assert np.abs(drawn - np.asarray(columns.features(values) @ weights)).max() < 0.15


def test_chains_are_warm_started():
    """With the same key, where a segment ends depends on where it starts, and on nothing else."""
    columns = toy.columns()
    prior = HeavyTails(moves=2, slices=2)
    features = columns.features(toy.POINTS)
    key = jax.random.key(0)
    start, _ = prior.start(columns, toy.setting(), "reward", key=key)
    first, _ = prior.update(start, features, jnp.zeros((toy.N, 1)), key=key)
    again, _ = prior.update(start, features, jnp.zeros((toy.N, 1)), key=key)
    moved = (changed(start[0], positions=start[0].positions + 1.0), start[1])
    other, _ = prior.update(moved, features, jnp.zeros((toy.N, 1)), key=key)
    assert np.array_equal(first[0].positions, again[0].positions)
    assert not np.array_equal(first[0].positions, other[0].positions)


def test_noise_variance_without_functions_is_inverse_gamma():
    columns = toy.columns()
    prior = UnknownNoise(shape=3.0, guess=0.5)
    start, _ = prior.start(columns, toy.setting(), "reward", key=jax.random.key(0))
    targets = np.random.default_rng(0).normal(size=(12, 1)) * 0.2
    nothing = jnp.zeros((12, columns.rank))
    learned, _ = prior.update(start, nothing, jnp.asarray(targets), key=jax.random.key(0))
    keys = jax.random.split(jax.random.key(1), 4000)
    variances = np.asarray(jax.vmap(lambda k: draw_weights(learned, k)[1][0])(keys))
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
    keys = jax.random.split(jax.random.key(1), 8000)
    weights, variances = jax.vmap(lambda k: draw_weights(learned, k))(keys)
    logged = np.log(np.asarray(variances[:, 0]))
    centre = mass @ logs
    spread = np.sqrt(mass @ (logs - centre) ** 2)
    assert abs(logged.mean() - centre) < 4 * spread / np.sqrt(8000)
    np.testing.assert_allclose(logged.std(), spread, rtol=0.05)
    drawn = np.asarray(weights[:, :, 0])
    error = drawn.std(axis=0) / np.sqrt(8000)
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
    keys = jax.random.split(jax.random.key(1), 500)
    sizes = np.sqrt(np.asarray(jax.vmap(lambda k: draw_weights(learned, k)[1][0])(keys)))
    # A guess 200 times too large counts as four observations of it.
    expected = np.sqrt(0.05**2 + 2 * 2.0 * 100 / 20_000)
    assert abs(sizes.mean() / expected - 1) < 0.02
    assert sizes.std() / sizes.mean() == pytest.approx(1 / np.sqrt(2 * 20_000), rel=0.15)


@pytest.mark.parametrize("method", ["rejection", "elliptical"])
def test_norm_ball_matches_quadrature(method):
    bound, size = 1.2, 0.7

    def exact(x):
        residuals = (TARGETS[None] - x @ FEATURES.T) / size
        inside = np.sum(x**2, axis=1) <= bound**2
        return np.where(
            inside, -0.5 * np.sum(residuals**2, axis=1) - 0.5 * np.sum(x**2, axis=1), -np.inf
        )

    mean, variance = plane(exact, half=1.25)
    kernel = km.kernels.Linear()
    prior = km.gp.posterior(kernel, noise_variance=size**2, domain=km.Box([-1.0] * 2, [1.0] * 2))
    (columns,) = unknown(prior, [size]).groups
    ball = NormBall(norm_reward=bound, method=method, chains=100, steps=20)
    start, _ = ball.start(columns, toy.setting(), "reward", key=jax.random.key(0))
    learned, found = ball.update(
        start, jnp.asarray(FEATURES), jnp.asarray(TARGETS)[:, None], key=jax.random.key(1)
    )
    assert found.mixed
    assert 0 < found.acceptance < 1
    if method == "rejection":
        keys = jax.random.split(jax.random.key(2), 1000)
        drawn = np.stack([np.asarray(rejection(learned, k)[0])[:, 0] for k in keys])
    else:
        keys = jax.random.split(jax.random.key(2), 10)  # of 100 chains each
        drawn = np.concatenate([np.asarray(_slices(learned, 20, key)[0])[:, :, 0] for key in keys])
    assert (np.linalg.norm(drawn, axis=1) <= bound).all()
    error = drawn.std(axis=0) / np.sqrt(1000)
    assert (np.abs(drawn.mean(axis=0) - mean) < 4 * error).all()
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.2)


def tuned(**words):
    prior = Hyperparameters(**({"lengthscale": 0.3, "signal": 0.5, "noise": 0.4} | words))
    columns = toy.columns()
    start, _ = prior.start(columns, toy.setting(), "reward", key=jax.random.key(0))
    features = columns.features(toy.POINTS)
    targets = jnp.sin(4 * toy.POINTS)
    return prior, changed(start, statistics=start.statistics.after(features, targets))


def test_marginal_likelihood_matches_dense_algebra():
    prior, own = tuned()
    features = np.asarray(own.columns.features(toy.POINTS))
    targets = np.sin(4 * np.asarray(toy.POINTS))[:, 0]

    def dense(theta):
        root = np.asarray(prior_root(prior, own.columns, factors_of(prior, jnp.asarray(theta))))
        variance = toy.SIZE**2 * np.exp(theta[2])
        total = features @ root @ root.T @ features.T + variance * np.eye(toy.N)
        law = stats.multivariate_normal(np.zeros(toy.N), total)
        return law.logpdf(targets) - 0.5 * np.sum((np.array(theta) / [0.3, 0.5, 0.4]) ** 2)

    places = [(0.0, 0.0, 0.0), (0.4, -0.3, 0.2), (-0.5, 0.8, -0.6)]
    ours = [float(log_density(prior, own, jnp.array(place))) for place in places]
    theirs = [dense(place) for place in places]
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), atol=1e-8)


def test_fixed_basis_serves_all_lengthscales():
    """φᵀS(θ)φ against the kernel itself, for lengthscales of the prior's bulk."""
    spread, middle = 0.3, 0.6
    prior = Hyperparameters(lengthscale=spread, signal=0.0)
    kernel = km.kernels.SquaredExponential(middle)
    short = stretched(kernel, jnp.exp(jnp.asarray(-SHORTER * spread)))
    own = km.gp.posterior(short, noise_variance=0.01, domain=km.Box([0.0], [1.0]), tolerance=1e-4)
    (columns,) = unknown(own, [0.1]).groups
    points = jnp.linspace(0, 1, 41)[:, None]
    features = columns.features(points)
    for theta in (-0.6, -0.3, 0.0, 0.3, 0.6):
        root = prior_root(prior, columns, factors_of(prior, jnp.array([theta])))
        exact = stretched(kernel, jnp.exp(jnp.asarray(theta)))(points)
        found = features @ root @ root.T @ features.T
        assert float(jnp.abs(found - exact).max()) < 2e-3


def test_nuts_matches_quadrature_and_draws_match_dense_algebra():
    prior, own = tuned(noise=0.0, chains=10)

    def exact(x):
        return np.asarray(jax.jit(jax.vmap(lambda t: log_density(prior, own, t)))(jnp.asarray(x)))

    mean, variance = plane(exact, half=2.0, count=61)
    _, _, average, found, accepted, diverged = _chains(prior, own, 100, jax.random.key(1))
    assert found[0] < 1.05
    assert found[1] > 200
    assert 0.6 < accepted <= 1.0
    assert diverged == 0
    error = np.sqrt(variance / float(found[1]))
    assert (np.abs(np.asarray(average) - mean) < 4 * error).all()
    theta = jnp.array([0.2, -0.1])
    keys = jax.random.split(jax.random.key(2), 5000)
    drawn = jax.vmap(lambda k: draw_given(prior, own, theta, key=k)[:, 0])(keys)
    features = np.asarray(own.columns.features(toy.POINTS))
    root = np.asarray(prior_root(prior, own.columns, factors_of(prior, theta)))
    covariance = root @ root.T
    total = features @ covariance @ features.T + toy.SIZE**2 * np.eye(toy.N)
    gain = covariance @ features.T @ np.linalg.inv(total)
    expected = gain @ np.sin(4 * np.asarray(toy.POINTS))[:, 0]
    left = covariance - gain @ features @ covariance
    deviation = np.sqrt(np.diag(left))
    standardised = (np.asarray(drawn) - expected[None]) / deviation[None]
    assert np.abs(standardised.mean(axis=0)).max() < 4.5 / np.sqrt(5000)
    np.testing.assert_allclose(standardised.var(axis=0), 1.0, atol=0.1)


def test_gaussian_noise_gives_heavy_tails_of_the_same_deviation():
    prior = HeavyTails()
    np.testing.assert_allclose(prior.sizes(Gaussian(0.3), 1), 0.3 / np.sqrt(3))
    np.testing.assert_allclose(prior.sizes(StudentT(0.3, degrees=5.0), 2), [0.3, 0.3])
    assert prior.degrees_of(StudentT(0.3, degrees=5.0)) == 5.0
