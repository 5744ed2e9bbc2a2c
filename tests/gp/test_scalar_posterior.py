"""Scalar posteriors of every engine against dense NumPy, closed forms and scikit-learn."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import kernelmdp as km

from .dense import Dense, assert_matches

BOX = km.Box([-1.0, 0.0], [1.0, 2.0])
NESTED = "(se(0.5)[0] + matern(2.5, 1.0)[1]) * (linear + constant(0.5))"
KERNELS = {
    "exact": [NESTED],
    "finite rank": ["polynomial(3, 0.5)", "(linear + quadratic) * linear[0]"],
    "compiled": ["matern(3.5, 2.0)", "se(1.0)[0] * linear[1]"],
}
CASES = [(engine, text) for engine, texts in KERNELS.items() for text in texts]


def data(n=30, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.uniform([-1, 0], [1, 2], size=(n, 2))
    targets = np.sin(2 * points[:, 0]) * points[:, 1] + 0.1 * rng.standard_normal(n)
    queries = rng.uniform([-1, 0], [1, 2], size=(17, 2))
    return points, targets, queries


def compiled_kernel(kernel, tolerance):
    """k_r itself, from the centres alone: what the compiled engine is to be exact for."""
    centres = km.gp.compile_kernel(kernel, BOX, tolerance=tolerance).centres
    K = np.asarray(kernel(centres))

    def gram(a, b):
        across = np.asarray(kernel(centres, b))
        return np.asarray(kernel(a, centres)) @ np.linalg.solve(K, across)

    return gram


@pytest.mark.parametrize(("engine", "text"), CASES)
def test_matches_the_dense_solution_however_rows_arrive(engine, text):
    kernel = km.kernel(text)
    points, targets, queries = data()
    prior = km.gp.posterior(kernel, noise_variance=0.04, domain=BOX, engine=engine, tolerance=1e-6)
    assert prior.engine == engine
    truth = compiled_kernel(kernel, 1e-6) if engine == "compiled" else kernel
    oracle = Dense(truth, points, targets, 0.04, queries)
    together = prior.condition(points, targets)
    by_episode, by_step = prior, prior
    for start in range(0, 30, 10):
        by_episode = by_episode.condition(points[start : start + 10], targets[start : start + 10])
    for t in range(30):
        by_step = by_step.condition(points[t : t + 1], targets[t : t + 1])
    for posterior in (together, by_episode, by_step):
        assert posterior.count == 30
        assert_matches(posterior, oracle, queries, 1e-8)
    assert prior.count == 0  # conditioning left it as it was
    np.testing.assert_allclose(prior.predict(queries)[0], 0)


def test_compiled_posterior_is_close_to_the_exact_one():
    kernel = km.kernel("se(0.5)")
    points, targets, queries = data()
    oracle = Dense(kernel, points, targets, 0.01, queries)
    posterior = km.gp.posterior(kernel, noise_variance=0.01, domain=BOX, tolerance=1e-9)
    posterior = posterior.condition(points, targets)
    assert posterior.error < 1e-8
    assert_matches(posterior, oracle, queries, 1e-6)


def test_matches_scikit_learn():
    points, targets, queries = data(50)
    peer = GaussianProcessRegressor(RBF(0.4), alpha=0.01, optimizer=None).fit(points, targets)
    mean, std = peer.predict(queries, return_std=True)
    ours = km.gp.posterior(
        km.kernels.SquaredExponential(0.4), noise_variance=0.01, dimension=2
    ).condition(points, targets)
    np.testing.assert_allclose(ours.predict(queries)[0], mean, atol=1e-8)
    np.testing.assert_allclose(ours.predict(queries)[1], std, atol=1e-7)


@pytest.mark.parametrize("engine", ["exact", "finite rank", "compiled"])
def test_one_point_seen_n_times(engine):
    # k = 1: σ² = λ/(n + λ) and gain ½ ln(1 + n/λ), whatever λ.
    for noise, n in ((0.5, 1), (1e-3, 400)):
        posterior = km.gp.posterior(
            km.kernels.Constant(1.0),
            noise_variance=noise,
            domain=km.Box([0.0], [1.0]),
            engine=engine,
        ).condition(np.full((n, 1), 0.3), np.ones(n))
        mean, std = posterior.predict([[0.8]])
        assert abs(float(std[0]) ** 2 - noise / (n + noise)) < 1e-12
        assert abs(float(mean[0]) - n / (n + noise)) < 1e-12
        assert abs(posterior.information_gain - 0.5 * np.log1p(n / noise)) < 1e-10


def test_factor_reads_off_variances_in_order_and_the_gain():
    kernel = km.kernel("se(0.5) + 0.3 * linear")
    points, targets, _ = data(25)
    noise = 0.05
    posterior = km.gp.posterior(kernel, noise_variance=noise, dimension=2, engine="exact")
    after = posterior.condition(points[:12], targets[:12]).condition(points[12:], targets[12:])
    oracle = []
    for t in range(25):
        if t == 0:
            oracle.append(float(kernel.diagonal(points[:1])[0]))
        else:
            oracle.append(
                Dense(kernel, points[:t], targets[:t], noise, points[t : t + 1]).variance[0]
            )
    np.testing.assert_allclose(after.in_order_variances[:, 0], oracle, atol=1e-10)
    chain = 0.5 * np.sum(np.log1p(np.array(oracle) / noise))
    assert abs(after.information_gain - chain) < 1e-10


@pytest.mark.parametrize("engine", ["exact", "compiled"])
def test_gain_does_not_depend_on_the_order(engine):
    points, targets, _ = data()
    order = np.random.default_rng(1).permutation(30)
    gains = [
        km.gp.posterior(
            km.kernel("se(0.5)"), noise_variance=0.1, domain=BOX, engine=engine, tolerance=1e-9
        )
        .condition(points[index], targets[index])
        .information_gain
        for index in (np.arange(30), order)
    ]
    assert abs(gains[0] - gains[1]) < 1e-9


def test_normalisation_changes_nothing_that_matters():
    # (k, λ) and (k/κ, λ/κ): same mean and gain, std smaller by √κ, norm bound larger by √κ.
    kernel = km.kernel("quadratic + linear")
    unit, factor = km.kernels.normalise(kernel, BOX)
    points, targets, queries = data()
    plain = km.gp.posterior(kernel, noise_variance=0.2, domain=BOX).condition(points, targets)
    scaled = km.gp.posterior(unit, noise_variance=0.2 / factor**2, domain=BOX)
    scaled = scaled.condition(points, targets)
    assert unit.variance_bound(BOX) == pytest.approx(1.0)
    np.testing.assert_allclose(plain.predict(queries)[0], scaled.predict(queries)[0], atol=1e-9)
    np.testing.assert_allclose(
        plain.predict(queries)[1], factor * scaled.predict(queries)[1], atol=1e-9
    )
    assert abs(plain.information_gain - scaled.information_gain) < 1e-9


def test_prior_means():
    points, targets, queries = data()
    kernel = km.kernel("se(0.5)")
    line = lambda z: 3.0 * z[0] - z[1] + 1.0  # noqa: E731
    dense = lambda z: (3.0 * z[:, 0] - z[:, 1] + 1.0)[:, None]  # noqa: E731
    posterior = km.gp.posterior(kernel, noise_variance=0.1, domain=BOX, mean=line, engine="exact")
    oracle = Dense(kernel, points, targets, 0.1, queries, mean=dense)
    assert_matches(posterior.condition(points, targets), oracle, queries, 1e-8)
    identity = km.gp.posterior(kernel, noise_variance=0.1, domain=BOX, mean="identity")
    np.testing.assert_allclose(identity.predict(queries)[0], queries[:, 0])
    draw = identity.sample(key=jax.random.key(0))
    assert abs(float(jnp.mean(draw(queries) - queries[:, 0]))) > 1e-6  # a draw around the mean


def test_the_posterior_can_be_traced():
    points, targets, queries = data()
    prior = km.gp.posterior(km.kernel("quadratic"), noise_variance=0.1, domain=BOX)

    @jax.jit
    def learn(posterior, x, y, z):
        return posterior.condition(x, y).predict(z)

    mean, std = learn(prior, jnp.asarray(points), jnp.asarray(targets), jnp.asarray(queries))
    expected = prior.condition(points, targets).predict(queries)
    np.testing.assert_allclose(mean, expected[0], atol=1e-12)
    np.testing.assert_allclose(std, expected[1], atol=1e-12)


def test_gradients_of_predictions_exist():
    points, targets, _ = data()
    for engine in ("exact", "compiled"):
        posterior = km.gp.posterior(
            km.kernel("se(0.5)"), noise_variance=0.1, domain=BOX, engine=engine, tolerance=1e-9
        ).condition(points, targets)
        value = lambda z, p=posterior: p.predict(z[None, :])[0][0]  # noqa: E731
        z = jnp.array([0.2, 1.0])
        slope = jax.grad(value)(z)
        step = 1e-5
        for j in range(2):
            move = step * np.eye(2)[j]
            numeric = (value(z + move) - value(z - move)) / (2 * step)
            assert abs(float(slope[j] - numeric)) < 1e-6
