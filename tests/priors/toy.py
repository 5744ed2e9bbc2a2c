"""A small regression for all tests of priors: an SE kernel in one dimension, of rank about five."""

import functools

import jax.numpy as jnp
import numpy as np

import kernelmdp as km
from kernelmdp.mdp import Gaussian
from kernelmdp.priors import Setting
from kernelmdp.priors.unknown import Columns, unknown

N, SIZE = 8, 0.3
POINTS = jnp.linspace(0.05, 0.95, N)[:, None]
#: Where functions are ranked: between data, and away from them.
WATCHED = jnp.array([[0.43], [0.0]])


@functools.cache
def posterior(lengthscale=0.6):
    kernel = km.kernels.SquaredExponential(lengthscale)
    domain = km.Box([0.0], [1.0])
    return km.gp.posterior(kernel, noise_variance=SIZE**2, domain=domain, tolerance=1e-3)


def columns(count=1, size=SIZE):
    """Any number of independent functions: a test of many replications is one call."""
    (group,) = unknown(posterior(), [size]).groups
    return Columns(group.basis, group.root, group.probes, jnp.full(count, size))


def setting(noise=None, **norms):
    noise = Gaussian(SIZE) if noise is None else noise
    return Setting(None, noise, noise, **norms)


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
