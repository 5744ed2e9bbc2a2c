"""Steps of the proofs in docs/theory.md, by dense arithmetic on random and on bad instances."""

import math

import numpy as np
import pytest
import scipy

from kernelmdp.theory.noise_theorems import episode_martingale


def psd(rng, n):
    factor = rng.normal(size=(n, n))
    return factor @ factor.T


def test_errors_of_compiled_kernels_change_squares_by_their_allowances():
    """Proposition 8 and Theorem 11: y − r for y, at most 2η|Qy| + η², and 2η|Ay|."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        n, alpha = int(rng.integers(1, 7)), 10 ** rng.uniform(-1, 3)
        factor, one = rng.normal(size=(n, n)), np.eye(n)
        gram, law = factor @ factor.T, psd(rng, n) * 10 ** rng.uniform(-1, 1)
        y, r = 3 * rng.normal(size=n), rng.normal(size=n)
        eta = 10 ** rng.uniform(-2, 1)
        r *= eta * rng.uniform() ** 0.2 / np.linalg.norm(r)
        least = alpha * np.linalg.inv(gram + alpha * one)  # A²
        Q = np.linalg.inv(one + law) - least
        assert np.linalg.norm(Q, 2) <= 1 + 1e-9
        allowed = 2 * eta * np.linalg.norm(Q @ y) + eta**2
        assert (y - r) @ Q @ (y - r) <= y @ Q @ y + allowed + 1e-9
        length = math.sqrt(y @ least @ y)
        assert (y - r) @ least @ (y - r) >= length**2 - 2 * eta * length - 1e-9
        # The mean at a point moves by at most ησ/√α.
        phi = rng.normal(size=n)
        row = factor @ phi
        variance = phi @ phi - row @ np.linalg.solve(gram + alpha * one, row)
        moved = abs(row @ np.linalg.solve(gram + alpha * one, r))
        assert moved <= np.linalg.norm(r) * math.sqrt(max(variance, 0.0) / alpha) + 1e-9


def test_the_identity_of_squares():
    """Lemma 7, step 3."""
    rng = np.random.default_rng(1)
    for _ in range(100):
        n, r, alpha = *rng.integers(1, 7, 2), 10 ** rng.uniform(-2, 2)
        features, y, w = rng.normal(size=(n, r)), rng.normal(size=n), rng.normal(size=r)
        gram = features @ features.T + alpha * np.eye(n)
        mean = features.T @ np.linalg.solve(gram, y)
        left = ((features @ w - y) ** 2).sum() + alpha * w @ w
        right = ((features @ (w - mean)) ** 2).sum() + alpha * ((w - mean) ** 2).sum()
        assert left == pytest.approx(right + alpha * y @ np.linalg.solve(gram, y), rel=1e-9)


def test_stale_covariances_of_several_outputs():
    """Theorem 10, step 1: Σ_A ⪯ e^{2c} Σ_{A ∪ B}, for correlated outputs and repeated points."""
    rng = np.random.default_rng(2)
    for _ in range(500):
        m, before, after, r = (int(rng.integers(low, 8)) for low in (1, 0, 1, 1))
        old = rng.normal(size=(before * m, r)) * 10 ** rng.uniform(-1, 1)
        new = rng.normal(size=(m, r)) * 10 ** rng.uniform(-1, 1)
        new = np.tile(new, (after, 1))
        noise, at = 10 ** rng.uniform(-2, 1), rng.normal(size=(m, r))
        first = np.eye(r) + old.T @ old / noise
        second = first + new.T @ new / noise
        growth = np.linalg.slogdet(second)[1] - np.linalg.slogdet(first)[1]  # 2c
        stale, newest = (at @ np.linalg.solve(each, at.T) for each in (first, second))
        widened = math.exp(growth) * newest
        rounding = 1e-9 * (np.trace(stale) + np.trace(widened))
        assert np.linalg.eigvalsh(widened - stale).min() >= -rounding


@pytest.mark.parametrize("row", [(0.5, 0.5), (0.98, 0.02, 0, 0, 0), (0.2,) * 5])
def test_rows_of_tables_leave_their_sets_seldom(row):
    """Proposition 9, for all n at once."""
    rng, delta, steps = np.random.default_rng(3), 0.2, 300
    p, n = np.array(row), np.arange(1, steps + 1)
    counts = rng.multinomial(1, p, size=(800, steps)).cumsum(axis=1)
    S, share = len(p), counts / n[None, :, None]
    likelihood = scipy.special.xlogy(counts, share).sum(axis=2)
    divergence = likelihood - scipy.special.xlogy(counts, p).sum(axis=2)
    gammas = scipy.special.gammaln(counts + 1 / S) - scipy.special.gammaln(1 / S)
    mixture = gammas.sum(axis=2) - scipy.special.gammaln(n + 1)
    left = divergence > math.log(1 / delta) + likelihood - mixture
    assert left.any(axis=1).mean() <= delta


def test_rewards_of_tables_leave_their_sets_seldom():
    """Proposition 9, for all n at once; signs are as bad as sub-Gaussian noise can be."""
    rng, delta, noise, n = np.random.default_rng(4), 0.2, 0.7, np.arange(1, 1001)
    sums = rng.choice([-noise, noise], size=(1000, 1000)).cumsum(axis=1)
    width = noise * np.sqrt((n + 1) * (np.log(n + 1) + 2 * math.log(1 / delta)))
    share = (np.abs(sums) > width).any(axis=1).mean()
    assert 0.02 < share <= delta


def test_the_martingale_of_an_adversary():
    """Lemma 15: the chance of a costly episode may depend on all that happened."""
    rng, delta, tau, most, bound = np.random.default_rng(5), 0.1, 150, 2.0, 30.0
    added = episode_martingale(bound, 0.0, math.log(1 / delta), 1.0, 1, tau)
    spent, expected = np.zeros(3000), np.zeros(3000)
    for _ in range(tau):
        chance = np.where(expected > spent, 0.5, 0.01)
        chance = np.where(spent + most <= bound, chance, 0.0)  # costs add up to S on every path
        costs = most * (rng.uniform(size=3000) < chance)
        expected, spent = expected + most * chance, spent + costs
    assert (expected > bound + added).mean() <= delta


def test_noise_of_several_axes_bounds_value_differences():
    """Lemma 12 in two dimensions: axes with different noise, a steep V behind a projection."""
    rng = np.random.default_rng(6)
    nodes = np.linspace(-6, 6, 161)
    weights = np.exp(-(nodes**2) / 2)
    weights = np.outer(weights, weights) / weights.sum() ** 2
    first, second = np.meshgrid(nodes, nodes, indexing="ij")
    for _ in range(60):
        sizes, slope, phase = rng.uniform(0.2, 1, 2), rng.normal(size=2), rng.uniform(-1, 1)
        p = rng.uniform(-1.5, 1.5, 2)
        q = p + rng.normal(size=2) * 10 ** rng.uniform(-1, 0.5)

        def values(mean, sizes=sizes, slope=slope, phase=phase):
            x, y = (
                np.clip(mean[0] + sizes[0] * first, -1, 1),
                np.clip(mean[1] + sizes[1] * second, -1, 1),
            )
            return (np.sin(7 * (slope[0] * x + slope[1] * y) + phase) > 0).astype(float)

        left, right = (values(mean) for mean in (p, q))
        gap = abs((weights * (left - right)).sum())
        centre = (weights * right).sum()
        variance = (weights * (right - centre) ** 2).sum()
        distance = np.linalg.norm(p - q) / sizes.min()
        quadrature = 0.03  # of a step function
        assert gap <= math.erf(distance / math.sqrt(8)) + quadrature
        assert gap <= math.sqrt(variance * math.expm1(min(distance**2, 600.0))) + quadrature
