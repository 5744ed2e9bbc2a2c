"""The best distribution in a Kullback-Leibler ball, against its closed form."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from kernelmdp.planners.divergence_backup import DivergenceBackup

from .test_tables import best_in_ball


def best_distribution(mean, radius, values):
    """p_i ∝ p̂_i/(x − V_i) on the surface; or that at x = max V, with mass on the best state."""
    top, seen = values.max(), mean > 0
    weights = lambda x: np.where(seen, mean / np.where(seen, x - values, 1.0), 0.0)  # noqa: E731

    def divergence(x):
        p = weights(x) / weights(x).sum()
        return np.sum(mean[seen] * np.log(mean[seen] / p[seen]))

    if mean[values.argmax()] == 0 and divergence(top) < radius:
        p = weights(top) / weights(top).sum()
        kept = np.exp(divergence(top) - radius)
        return kept * p + (1 - kept) * (values == top)
    log_excess = brentq(lambda t: divergence(top + np.exp(t)) - radius, -25, 15, xtol=1e-12)
    p = weights(top + np.exp(log_excess))
    return p / p.sum()


def test_the_best_distribution_is_found():
    rng = np.random.default_rng(0)
    values = rng.normal(size=5) * 3
    means = rng.dirichlet(np.full(5, 0.7), 40)
    means[:15, values.argmax()] = 0.0
    means[10:20, values.argmin()] = 0.0
    means /= means.sum(axis=1, keepdims=True)
    radius = 10 ** rng.uniform(-3, 0.5, 40)
    found = best_in_ball(DivergenceBackup, means, radius, values)
    for mean, size, ours in zip(means, radius, found, strict=True):
        best = best_distribution(mean, size, values)
        seen = mean > 0
        assert np.sum(mean[seen] * np.log(mean[seen] / best[seen])) == pytest.approx(size, rel=1e-6)
        assert ours == pytest.approx(best @ values, abs=1e-6)


def test_the_result_is_never_too_small():
    rng = np.random.default_rng(1)
    means, values = rng.dirichlet(np.full(5, 0.5), 300), rng.normal(size=5)
    others = means + rng.random((300, 1)) * (rng.dirichlet(np.full(5, 0.5), 300) - means)
    radius = np.sum(means * np.log(means / others), axis=1)
    found = best_in_ball(DivergenceBackup, means, radius, values)
    assert (found >= others @ values - 1e-9).all()


def test_extreme_balls():
    values = np.array([1.0, 5.0, -2.0])
    means = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    radius = np.array([np.inf, np.inf, 0.0, np.log(2)])
    found = best_in_ball(DivergenceBackup, means, radius, values)
    # Everything is plausible; only the mean is; p_1 ≥ 1/2 and the rest goes to the best state.
    np.testing.assert_allclose(found, [5.0, 5.0, means[2] @ values, 3.0], atol=1e-5)
    assert float(jnp.max(jnp.asarray(found))) <= 5.0
