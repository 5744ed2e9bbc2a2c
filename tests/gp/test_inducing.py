"""Learned squared exponentials on data points as centres, against the dense posterior."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.errors import ArgumentError
from kernelmdp.gp.ard import ARDKernels
from kernelmdp.gp.inducing_points import select_inducing_points
from kernelmdp.gp.inducing_posterior import inducing_posterior
from kernelmdp.numerics.modules import replace_fields

from .dense import Projected, assert_matches

N, ROOM, BLOCK = 30, 40, 16
LOW, HIGH = np.array([-np.pi, -2.0, -1.0]), np.array([np.pi, 2.0, 1.0])


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    x = rng.uniform(LOW, HIGH, size=(N, 3))
    shape = ARDKernels(
        lengthscales=jnp.array([[1.0, 2.0, 3.0], [0.8, 5.0, 1.0]]),
        signal=jnp.array([1.5, 0.5]),
        noise=jnp.array([0.05, 0.1]),
        angular=jnp.ones(3),
        angles=(0,),
    )
    y = np.stack([np.sin(x[:, 0]) + x[:, 1], x[:, 2]], axis=1) + 0.05 * rng.normal(size=(N, 2))
    return shape, x, y, rng.uniform(LOW, HIGH, size=(9, 3))


def made(case, points=None, scalar=False):
    shape, x, y, _ = case
    centres = x if points is None else points
    used = np.arange(ROOM) < len(centres)
    padded = np.pad(centres, ((0, ROOM - len(centres)), (0, 0)))
    return inducing_posterior(shape, padded, used.astype(float), x, y, scalar=scalar, block=BLOCK)


def dense(case, z):
    """By the textbook, one output after another."""
    shape, x, y, _ = case
    means, variances = [], []
    for i, kernel in enumerate(shape.kernels()):
        inside = np.asarray(kernel(x)) + float(shape.noise[i]) ** 2 * np.eye(len(x))
        across = np.asarray(kernel(z, x))
        means.append(across @ np.linalg.solve(inside, y[:, i]))
        explained = np.einsum("ij,ji->i", across, np.linalg.solve(inside, across.T))
        variances.append(np.asarray(kernel.diagonal(z)) - explained)
    return np.stack(means, axis=1), np.stack(variances, axis=1)


def test_with_all_data_as_centres_it_is_the_exact_posterior(case):
    mean, std = made(case).predict(case[3])
    expected, variance = dense(case, case[3])
    np.testing.assert_allclose(mean, expected, atol=1e-5)
    np.testing.assert_allclose(std, np.sqrt(variance), atol=1e-4)


def test_the_gain_is_that_of_the_data(case):
    shape, x, _, _ = case
    wanted = 0.0
    for i, kernel in enumerate(shape.kernels()):
        matrix = np.asarray(kernel(x)) / float(shape.noise[i]) ** 2
        wanted += 0.5 * np.linalg.slogdet(np.eye(len(x)) + matrix)[1]
    assert made(case).information_gain == pytest.approx(wanted, rel=1e-5)


def test_the_joint_covariance_has_these_variances(case):
    posterior = made(case)
    covariance = posterior.covariance(case[3])
    std = posterior.predict(case[3])[1]
    np.testing.assert_allclose(np.diag(covariance), np.asarray(std).ravel() ** 2, atol=1e-9)


def test_far_from_all_centres_nothing_is_known(case):
    """What few centres cannot say is left to the prior, not taken to be zero."""
    shape, x, _, _ = case
    std = made(case, points=x[:1]).predict(case[3])[1]
    exact = np.sqrt(dense(case, case[3])[1])
    assert (np.asarray(std) >= exact - 1e-6).all()
    assert (np.asarray(std) <= np.asarray(shape.signal)[None, :] + 1e-9).all()


def test_draws_have_the_moments_of_the_posterior(case):
    posterior = made(case)
    z = case[3]
    draw = jax.jit(lambda key: posterior.sample(key=key)(jnp.asarray(z)))
    drawn = np.asarray(jax.lax.map(draw, jax.random.split(jax.random.key(0), 2000)))
    mean, std = (np.asarray(a) for a in posterior.predict(z))
    # Means within five standard errors; deviations within a tenth: waves are random features.
    assert (np.abs(drawn.mean(axis=0) - mean) <= 5 * std / np.sqrt(2000) + 1e-4).all()
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.1, atol=2e-3)


def test_a_draw_is_one_function(case):
    drawn = made(case).sample(key=jax.random.key(1))
    np.testing.assert_array_equal(drawn(case[3]), drawn(case[3]))


def test_angles_come_round(case):
    posterior = made(case)
    turned = case[3] + np.array([2 * np.pi, 0.0, 0.0])
    np.testing.assert_allclose(posterior.predict(turned)[0], posterior.predict(case[3])[0])


def test_the_kernel_can_be_read(case):
    import kernelmdp as km

    kernel = made(case).kernel
    again = km.kernel(str(kernel))
    np.testing.assert_allclose(again(case[3]), kernel(case[3]), rtol=1e-12)


def test_centres_are_spread_out():
    shape = ARDKernels(jnp.array([[0.3]]), jnp.ones(1), jnp.full(1, 0.1), jnp.ones(1), angles=())
    line = jnp.linspace(0, 1, 101)[:, None]
    chosen = np.sort(np.asarray(line)[np.asarray(select_inducing_points(shape, line, 4)), 0])
    assert len(set(chosen)) == 4
    assert np.diff(chosen).min() > 0.2


def projected(case, few, noises):
    shape, x, y, z = case
    jitters = 1e-8 * np.asarray(shape.signal) ** 2
    return Projected(shape.kernels(), x[:few], jitters, x, y, noises, z)


@pytest.mark.parametrize("few", [3, 10])
def test_on_few_centres_it_is_the_projected_process(case, few):
    """Means, variances, joint and output covariances, and the gain, by dense NumPy."""
    shape, x, _, z = case
    noises = np.tile(np.asarray(shape.noise) ** 2, (N, 1))
    assert_matches(made(case, points=x[:few]), projected(case, few, noises), z, 1e-6)


def test_conditioning_is_the_same_as_all_at_once(case):
    shape, x, y, z = case
    first = inducing_posterior(shape, x[:10], np.ones(10), x[:20], y[:20], scalar=False, block=16)
    noises = np.tile(np.asarray(shape.noise) ** 2, (N, 1))
    after = first.condition(x[20:], y[20:])
    assert after.count == N
    assert_matches(after, projected(case, 10, noises), z, 1e-6)


def test_conditioning_counts_the_noise_it_is_given(case):
    shape, x, y, z = case
    first = inducing_posterior(shape, x[:10], np.ones(10), x[:20], y[:20], scalar=False, block=16)
    noises = np.tile(np.asarray(shape.noise) ** 2, (N, 1))
    noises[20:] = [0.3, 0.7]
    noisier = replace_fields(first, noise_variance=jnp.array([0.3, 0.7]))
    assert_matches(noisier.condition(x[20:], y[20:]), projected(case, 10, noises), z, 1e-6)


def test_it_says_what_it_is(case):
    """No error bound is known, so none may be claimed; nothing compiles again as data grow."""
    for points in (None, case[1][:10]):
        posterior = made(case, points=points)
        assert (posterior.engine, posterior.error_kind) == ("inducing", "inducing")
        assert posterior.error == math.inf
        assert posterior.engines[0].complete == (points is None)
        assert not posterior.sample(key=jax.random.key(0)).exact
        assert "inducing" in repr(posterior)
    for method in ("weights", "lazy"):
        with pytest.raises(ArgumentError, match="inducing"):
            posterior.sample(key=jax.random.key(0), method=method)


def test_joint_draws_at_points_have_the_posterior_law(case):
    shape, x, _, z = case
    posterior = made(case, points=x[:10])
    drawn = np.asarray(posterior.sample_at(z, key=jax.random.key(2), draws=100_000))
    assert drawn.shape == (100_000, len(z), 2)
    mean, _ = posterior.predict(z)
    covariance = np.asarray(posterior.covariance(z)).reshape(len(z), 2, len(z), 2)
    # Five standard errors of a mean and of an entry of a covariance.
    std = np.asarray(posterior.predict(z)[1])
    assert (np.abs(drawn.mean(axis=0) - mean) <= 5 * std / np.sqrt(1e5)).all()
    for i in range(2):
        found, wanted = np.cov(drawn[:, :, i].T), covariance[:, i, :, i]
        entry = np.sqrt((np.outer(std[:, i], std[:, i]) ** 2 + wanted**2) / 1e5)
        assert (np.abs(found - wanted) <= 5 * entry + 1e-7).all()
    scalar = made((shape_of(shape, 0), x, case[2][:, :1], z), scalar=True)
    assert scalar.sample_at(z, key=jax.random.key(2), draws=3).shape == (3, len(z))


def shape_of(shape, output):
    """One output of a shape."""
    return ARDKernels(
        shape.lengthscales[output][None],
        shape.signal[output][None],
        shape.noise[output][None],
        shape.angular,
        shape.angles,
    )


def test_deviations_are_finite_where_the_noise_is_tiny():
    # I − A⁻¹ has eigenvalues near 0, and A⁻¹ is wrong by more than the slack.
    line = np.linspace(-1, 1, 400)[:, None]
    kernels = ARDKernels(
        lengthscales=jnp.array([[0.7]]),
        signal=jnp.array([1.0]),
        noise=jnp.array([1e-6]),
        angular=jnp.zeros(1),
        angles=(),
    )
    posterior = inducing_posterior(
        kernels, line[::4], np.ones(100), line, np.sin(line), scalar=True, block=100
    )
    deviations = np.asarray(posterior.predict(jnp.asarray(line))[1])
    assert np.isfinite(deviations).all()
    assert deviations.max() < 1e-2
    far = np.asarray(posterior.predict(jnp.array([[8.0]]))[1])
    np.testing.assert_allclose(far, 1.0, rtol=1e-6)
