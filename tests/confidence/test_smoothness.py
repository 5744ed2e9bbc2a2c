"""Suprema of Gaussian processes: proofs against draws."""

import jax
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.confidence import (
    Supremum,
    constants_level,
    estimated_supremum,
    slope_bound,
    supremum,
)

SE = km.kernels.SquaredExponential
SQUARE = km.Box([0.0, 0.0], [1.0, 2.0])


@pytest.mark.parametrize("text", ["matern(2.5, 0.4)", "linear + constant(1.0)"])
def test_chaining_is_above_draws_and_not_far(text):
    proof = supremum(km.kernel(text), SQUARE)
    guess = estimated_supremum(km.kernel(text), SQUARE, key=jax.random.key(0))
    assert proof.rigorous
    assert not guess.rigorous
    assert guess.expected <= proof.expected <= 6 * guess.expected
    assert guess.deviation <= proof.deviation + 1e-12


def test_finite_sets_use_the_maximum_of_gaussians():
    points = km.FiniteSet(np.arange(100.0)[:, None])
    found = supremum(SE(0.01), points)
    draws = np.abs(np.random.default_rng(0).standard_normal((2000, 100))).max(axis=1).mean()
    assert found.expected == pytest.approx(np.sqrt(2 * np.log(200)))
    assert draws <= found.expected <= 1.5 * draws


def test_estimated_derivatives_match_random_features():
    """The deviation of ∂f is 1/ℓ, and E sup|∂f| agrees with draws made of cosines."""
    line, lengthscale = km.Box([0.0], [1.0]), 0.3
    found = estimated_supremum(SE(lengthscale), line, key=jax.random.key(1), axis=0)
    assert found.deviation == pytest.approx(1 / lengthscale, rel=1e-9)
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 100)
    omega = rng.standard_normal((300, 100)) / lengthscale
    phase = rng.random((300, 100)) * 2 * np.pi
    slopes = (
        np.sqrt(2 / 100)
        * omega[:, None, :]
        * np.sin(omega[:, None, :] * x[None, :, None] + (phase[:, None, :]))
    )
    tops = np.abs(slopes.sum(axis=2)).max(axis=1)
    assert found.expected == pytest.approx(tops.mean(), rel=0.07)


def test_slope_bound_is_rarely_exceeded():
    line, kernel, delta = km.Box([0.0], [1.0]), SE(0.3), 0.9
    level = slope_bound(kernel, line, delta=delta)
    x = np.linspace(0, 1, 300)[:, None]
    values, vectors = np.linalg.eigh(np.asarray(kernel(x)))
    normal = np.random.default_rng(0).standard_normal((2000, 300))
    draws = normal @ (vectors * np.sqrt(np.maximum(values, 0))).T
    slopes = np.abs(np.diff(draws, axis=1) * 299).max(axis=1)
    assert np.mean(slopes > level) <= delta / 6
    assert level < 6 * np.quantile(slopes, 1 - delta / 6)


def test_slope_bound_of_outputs():
    line = km.Box([0.0], [1.0])
    one = slope_bound(SE(0.5), line, delta=0.1)
    two = slope_bound(km.kernels.Independent([SE(0.5), SE(0.5)]), line, delta=0.1)
    assert two - one == pytest.approx(2 * (np.sqrt(2 * np.log(120)) - np.sqrt(2 * np.log(60))))
    steep = slope_bound(SE(0.5) @ km.kernels.Coregional([[4.0, 0.0], [0.0, 1.0]]), line, delta=0.1)
    assert steep == pytest.approx(2 * two)
    assert slope_bound(km.kernels.Matern(1.5, 0.5), line, delta=0.1) == np.inf
    assert supremum(km.kernels.Matern(0.5, 0.5), line).expected == np.inf
    total = SE(0.5) @ km.kernels.Index(2) + SE(0.5) @ km.kernels.Index(2)
    assert slope_bound(total, line, delta=0.1) == pytest.approx(np.sqrt(2) * two)


def test_borell_constants():
    known = Supremum(expected=1.3, deviation=0.7, rigorous=True)
    log_a, b = known.constants()
    for u in np.linspace(0.01, 8.0, 50):
        tail = 1.0 if u <= 1.3 else np.exp(-((u - 1.3) ** 2) / (2 * 0.49))
        assert tail <= np.exp(log_a - (u / b) ** 2) * (1 + 1e-12)
    assert known.level(count=4, delta=0.1) == pytest.approx(1.3 + 0.7 * np.sqrt(2 * np.log(240)))
    paper = constants_level(log_a=log_a, b=b, count=4, delta=0.1)
    assert paper == pytest.approx(b * np.sqrt(np.log(240) + log_a))
    assert paper >= known.level(count=4, delta=0.1)
    assert constants_level(log_a=-50.0, b=2.0, count=1, delta=0.5) == 0.0
