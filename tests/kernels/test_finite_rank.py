"""Kernels with finitely many features: the features, their number and their norms."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp import Box, FiniteSet
from kernelmdp.errors import UnknownPropertyError
from kernelmdp.kernels import (
    Constant,
    Coregional,
    Index,
    Linear,
    Matern,
    OneHot,
    Polynomial,
    Quadratic,
    SquaredExponential,
)

FULL = np.array([[2.0, 1.0, 0.5], [1.0, 2.0, -1.0], [0.5, -1.0, 1.5]])
SINGULAR = np.outer([1.0, -2.0, 0.5], [1.0, -2.0, 0.5])


def features(kernel, x):
    return np.asarray(jax.vmap(kernel.features)(jnp.asarray(x)))


def mixed_points(count):
    """Two real coordinates and one that is 0, 1 or 2."""
    rng = np.random.default_rng(0)
    return np.column_stack([rng.normal(size=(count, 2)), rng.integers(3, size=count)])


def monomials(variables, degree):
    """Number of monomials of this degree, counted."""
    powers = itertools.product(range(degree + 1), repeat=variables)
    return sum(sum(power) == degree for power in powers)


POLYNOMIALS = [
    (kernel, degree, offset, dimension, count)
    for dimension in (1, 3)
    for kernel, degree, offset, count in [
        (Linear(), 1, 0.0, dimension),
        (Quadratic(), 2, 0.0, dimension * (dimension + 1) // 2),
        # An offset is one variable more.
        *((Polynomial(p, 0.0), p, 0.0, monomials(dimension, p)) for p in (1, 2, 3, 4)),
        *((Polynomial(p, 0.6), p, 0.6, monomials(dimension + 1, p)) for p in (1, 2, 3, 4)),
    ]
]


@pytest.mark.parametrize(("kernel", "degree", "offset", "dimension", "count"), POLYNOMIALS)
def test_polynomial_features(kernel, degree, offset, dimension, count):
    x = np.random.default_rng(1).uniform(-1, 1, size=(50, dimension))
    phi = features(kernel, x)
    expected = (offset + x @ x.T) ** degree
    scale = np.max(np.abs(expected))
    np.testing.assert_allclose(phi @ phi.T, expected, rtol=0, atol=1e-12 * scale)
    assert phi.shape[1] == kernel.feature_count(dimension) == count
    assert np.linalg.matrix_rank(phi, tol=1e-8) == count
    assert kernel.rank(Box([-1.0] * dimension, [1.0] * dimension)) == count


@pytest.mark.parametrize(
    ("kernel", "matrix", "rank"),
    [
        (Index(3), np.eye(3), 3),
        (Coregional(FULL), FULL, 3),
        (Coregional(SINGULAR), SINGULAR, 1),
        (Coregional(np.diag([1.0, 0.0, 2.0])), np.diag([1.0, 0.0, 2.0]), 2),
    ],
)
def test_discrete_features(kernel, matrix, rank):
    members = np.array([[0.0], [1.0], [2.0], [1.0]])
    order = [0, 1, 2, 1]
    expected = matrix[np.ix_(order, order)]
    np.testing.assert_allclose(kernel(members), expected, atol=1e-15)
    phi = features(kernel, members)
    np.testing.assert_allclose(phi @ phi.T, expected, atol=1e-12)
    assert phi.shape[1] == kernel.feature_count(1) == rank == np.linalg.matrix_rank(matrix)


def test_one_hot_is_the_identity_on_tuples():
    table = FiniteSet.range(4, 3)
    x, _ = table.net(12)
    kernel = OneHot(4, 3)
    np.testing.assert_array_equal(kernel(x), np.eye(12))
    phi = features(kernel, x)
    np.testing.assert_array_equal(phi @ phi.T, np.eye(12))
    assert kernel.rank(table) == 12


# Kernel, features, rank on generic points. They differ where two parts share a monomial.
COMPOSITES = {
    "sum": (Linear().on([0]) + Quadratic().on([1]), 2, 2),
    "product": (Linear().on([0, 1]) * Index(3).on([2]), 6, 6),
    "coregional": (Polynomial(1, 1.0).on([1, 0]) * Coregional(SINGULAR).on(2), 3, 3),
    "nested": (2.0 * (Linear().on([0, 1]) + Constant(0.5)) * Quadratic().on([1]) + Linear(), 6, 6),
    "restricted": ((Linear().on([0]) * Quadratic().on([1]) + Constant()).on([1, 0]), 2, 2),
    "repeated": (Linear().on([0, 1]) * Linear().on([0, 1]), 4, 3),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_composite_features(name):
    kernel, count, rank = COMPOSITES[name]
    x = mixed_points(40)
    gram = np.asarray(kernel(x))
    phi = features(kernel, x)
    np.testing.assert_allclose(phi @ phi.T, gram, rtol=0, atol=1e-12 * np.max(np.abs(gram)))
    assert phi.shape[1] == kernel.feature_count(3) == count
    assert np.linalg.matrix_rank(gram, tol=1e-9 * np.max(np.abs(gram))) == rank


@pytest.mark.parametrize(
    "kernel", [SquaredExponential(), Linear() * Matern(1.5), Linear() + Matern(1.5)]
)
def test_infinite_rank_has_no_features(kernel):
    assert kernel.feature_count(2) == float("inf")
    with pytest.raises(UnknownPropertyError, match="no finite feature map"):
        kernel.features(jnp.zeros(2))


def norm_of(kernel, function, x):
    """RKHS norm of a function in the span of the features: that of its smallest weights."""
    weights, *_ = np.linalg.lstsq(features(kernel, x), function, rcond=1e-12)
    return np.linalg.norm(weights)


@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_norm_of_a_quadratic_form_is_frobenius(dimension):
    rng = np.random.default_rng(2)
    P, s = rng.normal(size=(dimension, dimension)), rng.normal(size=(60, dimension))
    expected = np.linalg.norm((P + P.T) / 2)
    form = np.einsum("ni,ij,nj->n", s, P, s)
    assert norm_of(Quadratic(), form, s) == pytest.approx(expected, rel=1e-10)


def test_norms_of_a_linear_quadratic_regulator():
    rng = np.random.default_rng(3)
    z, P, Q = rng.normal(size=(60, 3)), np.array([[2.0, 1.0], [0.0, 3.0]]), 0.7
    reward = np.einsum("ni,ij,nj->n", z[:, :2], P, z[:, :2]) + Q * z[:, 2] ** 2
    kernel = Quadratic().on([0, 1]) + Quadratic().on([2])
    expected = np.sqrt(np.linalg.norm((P + P.T) / 2) ** 2 + Q**2)
    assert norm_of(kernel, reward, z) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("noise_variance", [0.1, 1.0, 10.0])
def test_product_rank(noise_variance):
    """ln|I + K₁∘K₂/λ| ≤ D ln|I + K₁/(Dλ)| for k₂ of rank D with variance at most 1."""
    x = mixed_points(30)
    first, second = SquaredExponential(0.5).on([0, 1]), Index(3).on(2)
    rank = second.feature_count(3)

    def log_determinant(matrix, noise):
        return np.linalg.slogdet(np.eye(30) + np.asarray(matrix) / noise)[1]

    left = log_determinant((first * second)(x), noise_variance)
    assert left <= rank * log_determinant(first(x), rank * noise_variance) + 1e-9
