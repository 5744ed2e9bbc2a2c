"""Squared exponential, Matern and periodic kernels: values, derivatives and spectral laws."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from scipy import special
from sklearn.gaussian_process import kernels as sklearn

from kernelmdp.kernels import Matern, Periodic, SquaredExponential
from kernelmdp.kernels.stationary import UNROLL, _tabulated

from . import expressions as oracles


def values_at(kernel, distances):
    """k as a function of distance, in one dimension."""
    return np.asarray(kernel(np.zeros((1, 1)), np.asarray(distances)[:, None]))[0]


# Values.


@pytest.mark.parametrize(
    ("kernel", "oracle", "dimension"),
    [
        (SquaredExponential(0.7), sklearn.RBF(0.7), 1),
        (SquaredExponential(0.7), sklearn.RBF(0.7), 3),
        (Matern(0.5, 0.7), sklearn.Matern(0.7, nu=0.5), 1),
        (Matern(0.5, 0.7), sklearn.Matern(0.7, nu=0.5), 3),
        (Matern(1.5, 0.7), sklearn.Matern(0.7, nu=1.5), 1),
        (Matern(1.5, 0.7), sklearn.Matern(0.7, nu=1.5), 3),
        (Matern(2.5, 0.7), sklearn.Matern(0.7, nu=2.5), 1),
        (Matern(2.5, 0.7), sklearn.Matern(0.7, nu=2.5), 3),
        (Matern(0.9, 0.7), sklearn.Matern(0.7, nu=0.9), 3),
    ],
)
def test_matches_scikit_learn(kernel, oracle, dimension):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(8, dimension))
    y = np.concatenate([x[:2], rng.normal(size=(3, dimension))])  # with coincident pairs
    np.testing.assert_allclose(kernel(x, y), oracle(x, y), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(
    ("kernel", "oracle"),
    [
        (SquaredExponential([0.3, 1.0, 4.0]), sklearn.RBF([0.3, 1.0, 4.0])),
        (Matern(0.5, [0.3, 1.0, 4.0]), sklearn.Matern([0.3, 1.0, 4.0], nu=0.5)),
        (Matern(2.5, [0.3, 1.0, 4.0]), sklearn.Matern([0.3, 1.0, 4.0], nu=2.5)),
    ],
)
def test_lengthscale_per_coordinate(kernel, oracle):
    x = np.random.default_rng(1).normal(size=(9, 3))
    np.testing.assert_allclose(kernel(x), oracle(x), rtol=1e-10)


@pytest.mark.parametrize(
    ("nu", "closed_form"),
    [
        (0.5, lambda t: np.exp(-t)),
        (1.5, lambda t: (1 + t) * np.exp(-t)),
        (2.5, lambda t: (1 + t + t**2 / 3) * np.exp(-t)),
    ],
)
def test_matern_half(nu, closed_form):
    t = np.geomspace(1e-12, 600.0, 4001)
    general = jax.jit(jax.vmap(lambda s: _tabulated(nu, s)))(jnp.asarray(t))
    np.testing.assert_allclose(general, closed_form(t), rtol=1e-10, atol=0)


def bessel_matern(nu, r):
    if r == 0:
        return 1.0
    with mpmath.workdps(40):
        t = mpmath.sqrt(2 * mpmath.mpf(nu)) * mpmath.mpf(r)
        return float(2 ** (1 - mpmath.mpf(nu)) / mpmath.gamma(nu) * t**nu * mpmath.besselk(nu, t))


# Above ν = 54 the Bessel function itself overflows in double precision.
@pytest.mark.parametrize("nu", [0.1, 0.3, 0.7, 1.0, 2.0, 3.3, 7.0, 60.0, 300.0])
def test_matern_of_any_smoothness(nu):
    r = np.array([0, 1e-100, 1e-12, 1e-8, 1e-5, 1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 12.0])
    expected = [bessel_matern(nu, distance) for distance in r]
    np.testing.assert_allclose(values_at(Matern(nu), r), expected, rtol=1e-10, atol=0)


def test_matern_limit():
    r = np.linspace(0.05, 3, 300)
    difference = values_at(Matern(50.0, 0.5), 0.5 * r) - values_at(SquaredExponential(0.5), 0.5 * r)
    assert np.max(np.abs(difference)) <= 5e-3
    assert np.max(np.abs(difference)) >= 1e-3  # and it is not the squared exponential itself


@pytest.mark.parametrize("nu", [0.1, 2.5, 50.0])
def test_matern_is_finite_and_decreasing_everywhere(nu):
    r = np.concatenate([[0.0], np.geomspace(1e-160, 1e160, 2000)])
    values = values_at(Matern(nu), r)
    assert values[0] == 1.0
    assert np.isfinite(values).all()
    assert values[-1] == 0.0
    assert np.all(np.diff(values) <= 1e-13)


@pytest.mark.parametrize(("lengthscale", "period"), [(0.6, 2.0), ([0.6, 1.5], [2.0, 0.7])])
def test_periodic_is_squared_exponential_on_the_circle(lengthscale, period):
    x = np.random.default_rng(2).normal(size=(7, 2))
    scales = np.broadcast_to(lengthscale, 2)
    angles = 2 * np.pi * x / period
    circle = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    oracle = sklearn.RBF(np.concatenate([scales, scales]))
    kernel = Periodic(lengthscale, period)
    np.testing.assert_allclose(kernel(x), oracle(circle), rtol=1e-12)
    turns = np.array([[3.0, -2.0]]) * period
    np.testing.assert_allclose(kernel(x, x + turns), kernel(x), rtol=1e-12)
    assert not np.allclose(kernel(x, x + turns / 4), kernel(x), rtol=1e-2)


@pytest.mark.parametrize("dimension", [2, UNROLL + 4])
@pytest.mark.parametrize(
    ("kernel", "profile"),
    [
        (SquaredExponential(), lambda r: np.exp(-0.5 * r**2)),
        (Matern(0.5), lambda r: np.exp(-r)),
        (Matern(3.3), lambda r: bessel_matern(3.3, r)),
    ],
)
def test_metric_is_euclidean(kernel, profile, dimension):
    y = np.zeros((1, dimension))
    y[0, 0], y[0, -1] = 0.6, 0.8  # an L1 distance of 1.4
    np.testing.assert_allclose(kernel(np.zeros((1, dimension)), y)[0, 0], profile(1.0), rtol=1e-11)


@pytest.mark.parametrize(
    ("kernel", "oracle"),
    [
        (SquaredExponential([0.5, 2.0]), oracles.squared_exponential([0.5, 2.0])),
        (Matern(2.5, 0.8), oracles.matern(2.5, 0.8)),
        (Matern(0.3, 0.8), oracles.matern(0.3, 0.8)),
        (Matern(7.0), oracles.matern(7.0, 1.0)),
        (Periodic(0.7, 2.0), oracles.periodic(0.7, 2.0)),
    ],
)
def test_single_precision_stays_single(kernel, oracle):
    x = np.random.default_rng(3).normal(size=(6, 2))
    single = kernel(x.astype(np.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, oracle(x, x), atol=2e-5)


def test_precision_follows_the_points():
    kernel = 2.0 * SquaredExponential(0.5) + Matern(2.5)
    for dtype in (np.float32, np.float64):
        x = np.ones((3, 2), dtype)
        assert kernel.diagonal(x).dtype == dtype
        assert kernel(x, np.ones((2, 2), np.float64)).dtype == dtype


# Derivatives.


@pytest.mark.parametrize(
    ("kernel", "second"),
    [
        (SquaredExponential(0.5), 4.0),
        (Matern(2.5, 0.5), 4 * 5 / 3),
        (Matern(3.3, 0.5), 4 * 3.3 / 2.3),
    ],
)
def test_derivatives_at_coincident_points(kernel, second):
    x = np.array([0.3, -0.4])
    near = jnp.asarray([x, x + 1e-12, x + 1e-8])
    first = jax.vmap(jax.grad(kernel.pair), in_axes=(None, 0))
    mixed = jax.jacfwd(jax.jacfwd(kernel.pair, argnums=0), argnums=1)
    gradient, hessian = jax.jit(lambda a, b: (first(a, b), mixed(a, a)))(jnp.asarray(x), near)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)
    np.testing.assert_allclose(hessian, second * np.eye(2), rtol=1e-9)  # ∂²k/∂x_i∂y_j


@pytest.mark.parametrize(
    "kernel", [SquaredExponential([0.5, 2.0]), *(Matern(nu, 0.8) for nu in (2.5, 7.0))]
)
def test_gradient_is_the_limit_of_differences(kernel):
    x, y, step = np.array([0.3, -0.4]), np.array([-0.2, 0.5]), 1e-5
    steps = step * np.eye(2)
    differences = (kernel(x + steps, y[None]) - kernel(x - steps, y[None]))[:, 0] / (2 * step)
    gradient = jax.jit(jax.grad(kernel.pair))(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)


@pytest.mark.parametrize("kernel", [SquaredExponential(0.5), Matern(0.7, 0.5)])
def test_gradient_in_the_lengthscale(kernel):
    x, y = jnp.array([0.3, -0.4]), jnp.array([-0.2, 0.5])
    gradient = jax.jit(jax.grad(lambda k: k.pair(x, y)))(kernel).lengthscale
    r = float(jnp.linalg.norm(x - y))  # k depends on r/ℓ only: ℓ ∂k/∂ℓ = −r ∂k/∂r
    step = 1e-6
    difference = (values_at(kernel, [r + step]) - values_at(kernel, [r - step]))[0] / (2 * step)
    assert float(gradient) == pytest.approx(-r * difference / 0.5, rel=1e-6)


# Spectral laws.

SPECTRAL = [SquaredExponential(0.6), *(Matern(nu, 0.6) for nu in (0.5, 3.3))]
DISTANCES = np.array([0.3, 0.7, 1.5])


def frequency_nodes():
    """Gauss-Legendre panels, fine enough for the oscillation at the largest distance."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    edges = np.concatenate([np.linspace(0, 40, 81), np.linspace(40, 6000, 4001)[1:]])
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()


@pytest.mark.parametrize("kernel", SPECTRAL)
def test_spectral_density_gives_the_kernel_back(kernel):
    frequency, weight = frequency_nodes()
    expected = values_at(kernel, DISTANCES)
    line = weight * np.asarray(kernel.spectral_density(jnp.asarray(frequency[:, None])))
    integral = np.cos(np.outer(DISTANCES, frequency)) @ line / np.pi
    np.testing.assert_allclose(integral, expected, atol=1e-6)
    # In the plane a radial density goes through J₀.
    radial = jnp.asarray(np.stack([0.6 * frequency, 0.8 * frequency], axis=1))
    plane = weight * frequency * np.asarray(kernel.spectral_density(radial))
    integral = special.j0(np.outer(DISTANCES, frequency)) @ plane / (2 * np.pi)
    np.testing.assert_allclose(integral, expected, atol=1e-6)


@pytest.mark.parametrize("make", [SquaredExponential, lambda scale: Matern(1.5, scale)])
def test_spectral_density_with_a_lengthscale_per_coordinate(make):
    frequency = np.random.default_rng(4).normal(size=(5, 2))
    scales = np.array([0.4, 2.5])
    expected = 0.4 * 2.5 * make(1.0).spectral_density(jnp.asarray(scales * frequency))
    density = make(scales).spectral_density(jnp.asarray(frequency))
    np.testing.assert_allclose(density, expected, rtol=1e-12)


SAMPLED = {
    "se": SquaredExponential([0.5, 2.0]),
    "matern": Matern(0.5, [0.6, 1.2]),
    "periodic": Periodic([0.7, 1.1], [1.0, 3.0]),
    "product": SquaredExponential([0.9, 3.0]) * SquaredExponential(1.5),
    "nested": (SquaredExponential(0.5).on([0]) + 3.0 * Matern(0.5).on([1])) * Matern(2.5, 2.0),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_frequencies_follow_the_spectral_law(name):
    # Of Matern it asks, in two dimensions, that all coordinates share one mixing variable.
    kernel, count = SAMPLED[name], 200_000
    offsets = np.array([[0.6, 0.0], [0.0, 0.6], [0.5, 0.5], [1.1, -0.7], [-0.2, 2.0]])
    draws = np.asarray(kernel.frequencies(count, 2, key=jax.random.key(0)))
    waves = np.cos(draws @ offsets.T)
    expected = np.asarray(kernel(np.zeros((1, 2)), offsets))[0] / kernel.diagonal(offsets[:1])[0]
    error = 4 * waves.std(axis=0) / np.sqrt(count)  # four standard errors
    assert np.all(np.abs(waves.mean(axis=0) - expected) <= error + 1e-12)


def test_frequencies_in_single_precision():
    kernel = (2.0 * SAMPLED["nested"] + SAMPLED["periodic"].on([1, 0])).astype(jnp.float32)
    draws = jax.eval_shape(lambda: kernel.frequencies(5, 2, key=jax.random.key(0)))
    assert draws.dtype == jnp.float32
    assert draws.shape == (5, 2)
