"""Factorisations against NumPy."""

import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp.numerics.factorisation import (
    cholesky,
    inverse_from_factor,
    solve_lower,
    solve_lower_transposed,
)


@pytest.mark.parametrize("size", [1, 2, 7, 160])
def test_the_inverse_by_halves(size):
    root = np.random.default_rng(size).normal(size=(size, size))
    matrix = root @ root.T + np.eye(size)
    inverse = inverse_from_factor(cholesky(jnp.asarray(matrix)))
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix), atol=1e-12)
    np.testing.assert_array_equal(inverse, inverse.T)


BATCHES = """
import jax, jax.numpy as jnp
from kernelmdp.numerics.factorisation import cholesky, solve_lower

@jax.jit
def solve_batches(factors, right):
    return [jax.vmap(solve_lower)(each, right) for each in factors]

@jax.jit
def factorise_batches(matrices):
    return [jax.vmap(cholesky)(each) for each in matrices]

factors = [jnp.tile(k * jnp.eye(64), (6, 1, 1)) for k in (1.0, 2.0, 4.0)]
for _ in range(100):
    solved = solve_batches(factors, jnp.ones((6, 64, 64)))
    roots = factorise_batches([factor**2 for factor in factors])
print([float(each.sum()) for each in solved + roots])
"""


def test_batches_do_not_wait_for_each_other():
    """On two cores, two batches of solves or factorisations at once never end in jaxlib 0.10.2."""
    command = [sys.executable, "-c", BATCHES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == str([24576.0, 12288.0, 6144.0, 384.0, 768.0, 1536.0])


def test_factors_are_batched_and_differentiated():
    rng = np.random.default_rng(6)
    roots = rng.normal(size=(3, 5, 5))
    matrices = jnp.asarray(roots @ roots.swapaxes(1, 2) + np.eye(5))
    factors = jax.vmap(cholesky)(matrices)
    np.testing.assert_allclose(factors, np.linalg.cholesky(matrices), atol=1e-12)
    assert np.isnan(cholesky(-jnp.eye(2))).any()

    def cost(factorise, matrix):
        return jnp.sum(jnp.sin(factorise((matrix + matrix.T) / 2)))

    for derivative in (jax.grad, jax.jacfwd, jax.hessian):
        slopes, plain = (
            jax.vmap(derivative(functools.partial(cost, each)))(matrices)
            for each in (cholesky, jnp.linalg.cholesky)
        )
        np.testing.assert_allclose(slopes, plain, atol=1e-12)


@pytest.mark.parametrize("solve", [solve_lower, solve_lower_transposed])
def test_solves_are_batched_and_differentiated(solve):
    rng = np.random.default_rng(5)
    factors = jnp.asarray(np.tril(rng.normal(size=(3, 4, 4))) + 3 * np.eye(4))
    rights = jnp.asarray(rng.normal(size=(3, 4, 2)))
    matrices = factors if solve is solve_lower else factors.swapaxes(1, 2)
    together = jax.vmap(solve)(factors, rights)
    np.testing.assert_allclose(matrices @ together, rights, atol=1e-12)
    columns = jax.vmap(solve, in_axes=(None, 0))(factors[0], rights)
    np.testing.assert_allclose(matrices[0] @ columns, rights, atol=1e-12)

    def cost(factor, right):
        return jnp.sum(jnp.sin(solve(factor, right)))

    def plain_cost(factor, right):
        matrix = factor if solve is solve_lower else factor.T
        return jnp.sum(jnp.sin(jnp.linalg.solve(matrix, right)))

    for derivative in (jax.grad, jax.jacfwd):
        slopes, plain = (
            jax.vmap(derivative(each, argnums=(0, 1)))(factors, rights)
            for each in (cost, plain_cost)
        )
        np.testing.assert_allclose(slopes[0], np.tril(plain[0]), atol=1e-12)
        np.testing.assert_allclose(slopes[1], plain[1], atol=1e-12)
