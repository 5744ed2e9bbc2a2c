"""Sums of kernels and of random features: values, slopes and curvatures against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.gp.ard import ARDKernels
from kernelmdp.gp.fit_config import INDUCING
from kernelmdp.gp.inducing_posterior import inducing_posterior
from kernelmdp.gp.kernel_families import BatchedKernels
from kernelmdp.numerics.jacobians import call_with_jacobian

OUTPUTS, CENTRES, COORDINATES = 3, 7, 2


@pytest.fixture
def kernels():
    rng = np.random.default_rng(0)
    return ARDKernels(
        lengthscales=jnp.asarray(rng.uniform(0.5, 2.0, (OUTPUTS, COORDINATES))),
        signal=jnp.asarray(rng.uniform(0.5, 2.0, OUTPUTS)),
        noise=jnp.ones(OUTPUTS),
        angular=jnp.ones(COORDINATES),
        angles=(),
    )


@pytest.fixture
def weighted_sum(kernels):
    """A sum as the library evaluates it, and as NumPy does."""
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(CENTRES, COORDINATES))
    coefficients = rng.normal(size=(OUTPUTS, CENTRES))
    lengthscales, signal = np.asarray(kernels.lengthscales), np.asarray(kernels.signal)

    def dense(x):
        scaled = (x[:, None, None] - centres[None, None]) / lengthscales[None, :, None]
        values = np.exp(-0.5 * np.sum(scaled**2, axis=3)) * signal[None, :, None] ** 2
        return np.sum(values * coefficients[None], axis=2)

    return kernels.weighted_sum(jnp.asarray(centres), jnp.asarray(coefficients)), dense


@pytest.fixture
def prior_draw(kernels):
    keys = tuple(jax.random.split(jax.random.key(0), 3))
    draw = kernels.prior_draw(INDUCING, keys=keys)
    frequencies, phases, weights = map(np.asarray, (draw.frequencies, draw.phases, draw.weights))

    def dense(x):
        turns = np.einsum("np,mwp->nmw", x, frequencies) + phases[None]
        return np.sum(weights[None] * np.cos(2 * np.pi * turns), axis=2)

    return draw, dense


@pytest.mark.parametrize("name", ["weighted_sum", "prior_draw"])
def test_values_slopes_and_curvatures(name, request):
    function, dense = request.getfixturevalue(name)
    x = np.random.default_rng(2).normal(size=(4, COORDINATES))
    np.testing.assert_allclose(function(jnp.asarray(x)), dense(x), atol=1e-8)

    def row(z):
        return function(z[None])[0]

    step = 1e-5
    for forward_or_reverse in (jax.jacfwd, jax.jacrev):
        slopes = jax.vmap(forward_or_reverse(row))(jnp.asarray(x))
        curvatures = jax.vmap(jax.jacfwd(forward_or_reverse(row)))(jnp.asarray(x))
        for j in range(COORDINATES):
            change = step * np.eye(COORDINATES)[j]
            expected = (dense(x + change) - dense(x - change)) / (2 * step)
            np.testing.assert_allclose(slopes[:, :, j], expected, atol=1e-6)
            above, below = (
                jax.vmap(jax.jacfwd(row))(jnp.asarray(x + sign * change)) for sign in (1, -1)
            )
            expected = (np.asarray(above) - np.asarray(below)) / (2 * step)
            np.testing.assert_allclose(curvatures[:, :, :, j], expected, atol=1e-4)


def test_slopes_by_the_weights_are_the_kernels(weighted_sum):
    function, _ = weighted_sum
    x = jnp.asarray(np.random.default_rng(3).normal(size=(1, COORDINATES)))

    def value(weights):
        return type(function)(function.linear, function.squares, weights)(x)[0, 0]

    slopes = jax.grad(value)(function.weights)
    total = jnp.sum(slopes * function.weights)
    np.testing.assert_allclose(total, function(x)[0, 0], rtol=1e-12)  # the sum is linear in them
    assert not np.asarray(slopes[1:]).any()


def test_both_kinds_of_slopes_add_up():
    def square(factor, rows):
        return factor * rows**2

    def slope(factor, rows):
        return 2 * factor * rows[:, :, None]

    def cube(t):
        return call_with_jacobian(square, slope, t, jnp.full((1, 1), t))[0, 0]

    np.testing.assert_allclose(jax.grad(cube)(2.0), 12.0)
    np.testing.assert_allclose(jax.grad(jax.grad(cube))(2.0), 12.0)


def test_slopes_of_kernels_have_a_general_form(kernels):
    """The formula of a class and the rule for all classes agree."""
    rng = np.random.default_rng(4)
    x, centres = (jnp.asarray(rng.normal(size=(n, COORDINATES))) for n in (5, CENTRES))
    weights = jnp.asarray(rng.normal(size=(OUTPUTS, 5, CENTRES)))
    slopes = kernels.slopes(x, centres, weights)
    np.testing.assert_allclose(
        slopes, BatchedKernels.slopes(kernels, x, centres, weights), atol=1e-12
    )


def test_slopes_of_posterior_moments(kernels):
    rng = np.random.default_rng(5)
    data, y = rng.uniform(-1, 1, (20, COORDINATES)), rng.normal(size=(20, OUTPUTS))
    posterior = inducing_posterior(
        kernels, data[:9], np.ones(9), data, y, scalar=False, block=16, config=INDUCING
    )
    z, step = rng.uniform(-1, 1, (3, COORDINATES)), 1e-5

    def moments(points):
        return jnp.concatenate(posterior.predict(points), axis=1)

    slopes = jax.vmap(jax.jacrev(lambda row: moments(row[None])[0]))(jnp.asarray(z))
    for j in range(COORDINATES):
        change = step * np.eye(COORDINATES)[j]
        expected = (np.asarray(moments(z + change)) - np.asarray(moments(z - change))) / (2 * step)
        np.testing.assert_allclose(slopes[:, :, j], expected, atol=1e-6)
