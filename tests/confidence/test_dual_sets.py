"""Intersections over regularisers: β against dense arithmetic, and coverage."""

import jax.numpy as jnp
import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.confidence import Confidence
from kernelmdp.confidence.dual_sets import MULTIPLIERS, Intersection, dual_betas
from kernelmdp.gp.regularisation import with_regularisers

from .problems import beliefs, data
from .test_coverage import run
from .test_sets import COMMON

NORMS = {"norm_reward": 1.0, "norm_transition": 1.0}


def observed(rows, outputs, seed=0):
    """Points, and noisy values of functions whose norms are below 1."""
    points, *noise = data(rows, outputs, seed=seed)
    shape = 0.6 * np.asarray(km.kernel("se(0.5)")(points, np.array([[0.3, 0.4, 0.5]])))
    return points, shape[:, 0] + 0.2 * noise[0], shape + 0.2 * noise[1]


def filled(outputs=2, rows=15):
    held = beliefs(f"se(0.5) @ index({outputs})", engine="auto", tolerance=1e-10)
    return held.condition(*observed(rows, outputs))


def test_betas_match_the_dense_form():
    """r(α)² = αB² + min_c R_c² − min_g {‖g − y‖² + α‖g‖²}, with R_c² from Gram matrices."""
    points, rewards, _ = observed(15, 2)
    posterior = filled().reward
    _, spectrum = with_regularisers(posterior, MULTIPLIERS)
    proxy, B, odds = 1.7, 0.8, np.log(30)
    found = dual_betas(spectrum, norm_bound=B, variance_proxy=proxy, log_odds=odds)
    K, y, one = np.asarray(km.kernel("se(0.5)")(points)) / 0.04, rewards / 0.2, np.eye(15)
    centres = np.asarray(posterior.engines[0].basis.centres)
    values = np.asarray(km.kernel("se(0.5)")(points, centres))
    sections = B**2 * values @ values.T / len(centres) / 0.04  # tr S Sᵀ = mean of k(u, u) = 1
    priors = [K * proxy, K * proxy / 10, sections, 0.1 * sections]
    radii = [
        y @ np.linalg.solve(one + P / proxy, y) + proxy * np.linalg.slogdet(one + P / proxy)[1]
        for P in priors
    ]
    R2 = min(radii) + 2 * proxy * (odds + np.log(4))
    for a, beta in zip(MULTIPLIERS, found, strict=True):
        square = a * B**2 + R2 - a * y @ np.linalg.solve(K + a * one, y)
        assert float(beta) == pytest.approx(np.sqrt(square / a), rel=1e-6)


def test_more_of_anything_unknown_makes_betas_larger():
    _, spectrum = with_regularisers(filled().reward, MULTIPLIERS)
    options = {"norm_bound": 1.0, "variance_proxy": 1.0, "log_odds": 3.0, "missed": 0.0}
    base = np.array(dual_betas(spectrum, **options))
    for change in ({"norm_bound": 1.5}, {"log_odds": 4.0}, {"missed": 0.01}):
        assert (np.array(dual_betas(spectrum, **options | change)) > base).all()


def test_intersections_lie_in_every_member():
    points = jnp.asarray(data(30, 2, seed=3)[0])
    for outputs, shape in ((1, "lmax"), (2, "box")):
        held = filled(outputs)
        if held.transition.outputs == 1:
            held = held.__class__(held.reward, held.transition, held.offset, jnp.full(1, 0.5))
        sets = Confidence(beta="dual", shape=shape, **NORMS).sets(held, episode=2, **COMMON)
        assert sets.coverage.covered
        assert isinstance(sets.plausible, Intersection)
        found = sets.plausible(points)
        for member in sets.plausible.members:
            theirs = member(points)
            sides = theirs.sides if shape == "box" else 0.5 * theirs.radius[:, None]
            ours = found.sides if shape == "box" else 0.5 * found.radius[:, None]
            assert (jnp.abs(found.state - theirs.state) + ours <= sides + 1e-12).all()
            distance = jnp.abs(found.reward - theirs.reward)
            assert (distance + found.reward_width <= theirs.reward_width + 1e-12).all()


def test_the_smallest_ball_is_taken():
    points = jnp.asarray(np.concatenate([data(30, 2, seed=3)[0], observed(15, 2)[0]]))
    sets = Confidence(beta="dual", **NORMS).sets(filled(rows=60), episode=2, **COMMON)
    radii = np.stack([member(points).radius for member in sets.plausible.members])
    np.testing.assert_array_equal(sets.plausible(points).radius, radii.min(axis=0))


def test_they_are_narrower_and_hold_the_truth():
    """25 functions each, whose points are chosen where the reward may be highest."""
    dual, single = Confidence(beta="dual", delta=0.3, **NORMS), Confidence(delta=0.3, **NORMS)
    missed, widths = 0, []
    for seed in range(25):
        options = {"engine": "compiled"}
        ratios = run(dual, "se(0.2) @ index(1)", 1, seed, **options)[0]
        missed += bool((ratios > 1).any())
        others = run(single, "se(0.2) @ index(1)", 1, seed, **options)[0]
        widths.append(ratios[-1].max() / others[-1].max())
    assert missed == 0  # promised: at most a fifth of them
    assert np.mean(widths) > 1.0  # errors are a larger share of the width


def test_a_posterior_without_a_spectrum_keeps_one_set():
    held = beliefs("se(0.5) @ index(2)").condition(*data(5, 2))  # the exact engine
    sets = Confidence(beta="dual", **NORMS).sets(held, episode=2, **COMMON)
    single = Confidence(**NORMS).sets(held, episode=2, **COMMON)
    assert not isinstance(sets.plausible, Intersection)
    assert float(sets.beta_reward) == float(single.beta_reward)
