"""Variances from few directions: never smaller, and at the data hardly larger."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.gp.ard import ARDKernels
from kernelmdp.gp.inducing_posterior import inducing_posterior, with_truncated_variances
from kernelmdp.gp.truncated_root import SHARES

N, R = 150, 60


@pytest.fixture(scope="module")
def posterior():
    """A smooth output, which needs few directions, and a rough one, which needs all."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(N, 2))
    kernels = ARDKernels(
        lengthscales=jnp.array([[3.0, 20.0], [0.15, 0.15]]),
        signal=jnp.array([2.0, 0.5]),
        noise=jnp.array([0.05, 0.02]),
        angular=jnp.ones(2),
        angles=(),
    )
    y = np.stack([x[:, 0], np.sin(9 * x[:, 1])], axis=1)
    return inducing_posterior(kernels, x[:R], np.ones(R), x, y, scalar=False, block=64), x


def ranks(posterior):
    return np.asarray(posterior.engines[0].truncated.ranks)


def test_a_smooth_output_needs_fewer_directions(posterior):
    smooth, rough = ranks(with_truncated_variances(posterior[0], 1e-3))
    assert smooth <= 1
    assert rough == len(SHARES) - 1


@pytest.mark.parametrize("tolerance", [1e-4, 1e-2, 0.1])
def test_variances_grow_by_no_more_than_the_tolerance(posterior, tolerance):
    exact, x = posterior
    truncated = with_truncated_variances(exact, tolerance)
    points = np.random.default_rng(1).uniform(-1.5, 1.5, size=(40, 2))
    for z, is_data in ((points, False), (x, True)):
        (mean, std), (exact_mean, exact_std) = truncated.predict(z), exact.predict(z)
        np.testing.assert_array_equal(mean, exact_mean)
        added = np.asarray(std) ** 2 - np.asarray(exact_std) ** 2
        signal = np.asarray(exact.engines[0].kernels.signal)
        assert (added >= -1e-7 * signal**2).all()  # the roots differ by slack and jitter
        if is_data:
            assert (added.mean(axis=0) <= tolerance**2 * signal**2 + 1e-7).all()


def test_a_large_tolerance_leaves_directions_out(posterior):
    exact, x = posterior
    rough = with_truncated_variances(exact, 0.5)
    assert ranks(rough)[1] < len(SHARES) - 1
    assert (np.asarray(rough.predict(x)[1])[:, 1] > np.asarray(exact.predict(x)[1])[:, 1]).any()


def test_slopes_are_those_of_the_truncated_variance(posterior):
    engine = with_truncated_variances(posterior[0], 0.3).engines[0]
    z, step = jnp.array([[0.3, -0.2]]), 1e-5

    def variance(z):
        return engine.moments(z)[1][0, 1]

    ahead, behind = (variance(z + sign * jnp.array([[step, 0.0]])) for sign in (1, -1))
    slope = jax.grad(variance)(z)[0, 0]
    assert float(slope) == pytest.approx(float(ahead - behind) / (2 * step), rel=1e-4)
