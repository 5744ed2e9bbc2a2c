"""Factorisations against NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.numerics.factorisation import cholesky, inverse_from_factor


@pytest.mark.parametrize("size", [1, 2, 7, 160])
def test_the_inverse_by_halves(size):
    root = np.random.default_rng(size).normal(size=(size, size))
    matrix = root @ root.T + np.eye(size)
    inverse = inverse_from_factor(cholesky(jnp.asarray(matrix)))
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix), atol=1e-12)
    np.testing.assert_array_equal(inverse, inverse.T)
