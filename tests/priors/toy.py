"""A small regression for all tests of priors: an SE kernel in one dimension, of rank about five."""

import functools

import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.mdp import Gaussian
from kernelmdp.priors import PriorProblem
from kernelmdp.priors.weight_space import WeightColumns, weight_space_function

N, SIZE = 8, 0.3
POINTS = jnp.linspace(0.05, 0.95, N)[:, None]
#: Where functions are ranked: between data, and away from them.
WATCHED = jnp.array([[0.43], [0.0]])

#: A problem of two weights, for quadrature.
FEATURES = np.array([[1.0, 0.2], [0.3, -1.0], [0.8, 0.8], [-0.5, 0.4]])
TARGETS = np.array([0.9, -0.4, 3.0, -0.2])  # the third does not fit: an outlier

#: The least p-value at which ranks count as uniform (seeds are fixed).
LEAST = 1e-3


@functools.cache
def posterior(lengthscale=0.6):
    kernel = km.kernels.SquaredExponential(lengthscale)
    domain = km.Box([0.0], [1.0])
    return km.gp.posterior(kernel, noise_variance=SIZE**2, domain=domain, tolerance=1e-3)


def columns(count=1, size=SIZE):
    """Any number of independent functions: a test of many replications is one call."""
    (group,) = weight_space_function(posterior(), [size]).groups
    return WeightColumns(group.basis, group.root, group.probes, jnp.full(count, size))


def setting(noise=None, **norms):
    noise = Gaussian(SIZE) if noise is None else noise
    return PriorProblem(None, noise, noise, **norms)


def uniform_p(ranks, draws):
    """p-value of a chi-square test that ranks among so many draws are uniform on 0..draws."""
    from scipy import stats

    counts = np.bincount(np.asarray(ranks).ravel(), minlength=draws + 1)
    assert counts.min() >= 0
    assert len(counts) == draws + 1
    return stats.chisquare(counts).pvalue


def ranks(truths, draws):
    """Ranks of truths (n,) among draws (k, n)."""
    return np.sum(np.asarray(draws) < np.asarray(truths)[None, :], axis=0)


def watched(columns, weights):
    """Function values (points, ..., p) from weights (..., r, p)."""
    return jnp.einsum("kr,...rp->k...p", columns.features(WATCHED), weights)


def square(half=5.0, count=801):
    """Places on a square, for quadrature."""
    axis = np.linspace(-half, half, count)
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=2).reshape(-1, 2)


def assert_drawn_from(drawn, places, logs):
    """Means and variances of independent draws (n, k) against a log-density at places (m, k).

    Errors are those of the law itself, by the same quadrature. Estimated from the draws they come
    out too small where little mass lies far away.
    """
    mass = np.exp(logs - logs.max())
    mass /= mass.sum()
    mean = mass @ places
    variance, fourth = mass @ (places - mean) ** 2, mass @ (places - mean) ** 4
    error = np.sqrt(variance / len(drawn))
    assert (np.abs(drawn.mean(axis=0) - mean) < 4 * error).all()
    error = np.sqrt((fourth - variance**2) / len(drawn))
    assert (np.abs(np.mean((drawn - mean) ** 2, axis=0) - variance) < 4 * error).all()
