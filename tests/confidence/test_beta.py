"""β: closed forms against independent arithmetic, in many digits where logarithms matter."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from kernelmdp.confidence import (
    finite_beta,
    gp_beta,
    joint_beta,
    log_cells,
    misspecified_beta,
    mixture_beta,
    net_counts,
    rkhs_beta,
)


def test_rkhs_beta_before_any_data():
    B, sigma, H, delta = 1.7, 0.3, 5, 0.1
    found = rkhs_beta(norm_bound=B, noise_proxy=sigma, regulariser=H, delta=delta, gain=0)
    assert float(found) == pytest.approx(B + sigma * np.sqrt(2 * np.log(3 / delta) / H), abs=1e-14)


@pytest.mark.parametrize("share", [2.0, 3.0])
def test_rkhs_beta_with_gain_and_share(share):
    found = rkhs_beta(
        norm_bound=2.0, noise_proxy=0.4, regulariser=0.09, delta=0.01, gain=12.5, share=share
    )
    oracle = 2.0 + 0.4 / 0.3 * np.sqrt(2 * (np.log(share / 0.01) + 12.5))
    assert float(found) == pytest.approx(oracle, rel=1e-13)


def test_norm_and_noise_of_a_mixture_add_as_squares():
    options = {"norm_bound": 2.0, "noise_proxy": 0.4, "regulariser": 0.09, "delta": 0.01}
    for gain in (0.0, 0.3, 12.5, 400.0):
        found = float(mixture_beta(gain=gain, **options))
        oracle = np.sqrt(4 + (0.4 / 0.3) ** 2 * 2 * (np.log(3 / 0.01) + gain))
        assert found == pytest.approx(oracle, rel=1e-13)
        assert found < float(rkhs_beta(gain=gain, **options))


def test_gp_beta_in_many_digits():
    mpmath.mp.dps = 60
    m = q = 20
    c1, c2, slope, episode, delta = 1.3, 0.7, 2.9, 10**6, 1e-12
    sides = jnp.asarray([c1] * m + [c2] * q)
    counts = net_counts(sides=sides, together=jnp.full(m + q, 20.0), slope=slope, episode=episode)
    l2, L = mpmath.mpf(episode) ** 2, mpmath.mpf(slope)
    states = max(1, mpmath.ceil(2 * mpmath.mpf(c1) * m * l2 * L)) ** m
    actions = max(1, mpmath.ceil(2 * mpmath.mpf(c2) * q * l2 * L)) ** q
    for outputs in (1, m):
        found = gp_beta(log_cells=log_cells(counts), episode=episode, delta=delta, outputs=outputs)
        inside = states * actions * outputs * mpmath.pi**2 * l2 / mpmath.mpf(delta)
        assert mpmath.isfinite(inside)
        assert abs(float(found) - mpmath.sqrt(2 * mpmath.log(inside))) < 1e-9


def test_finite_beta_in_many_digits():
    mpmath.mp.dps = 60
    for outputs in (1, 3):
        found = finite_beta(points=200, episode=10**6, delta=1e-12, outputs=outputs)
        inside = 200 * outputs * mpmath.pi**2 * mpmath.mpf(10) ** 12 / (2 * mpmath.mpf(1e-12))
        assert abs(float(found) - mpmath.sqrt(2 * mpmath.log(inside))) < 1e-9


def test_nets_have_at_least_one_cell_along_an_axis():
    counts = net_counts(
        sides=jnp.asarray([0.0, 1e-9, 1.0]), together=jnp.ones(3), slope=0.3, episode=2
    )
    np.testing.assert_array_equal(counts, [1.0, 1.0, 3.0])  # ⌈2 · 1 · 4 · 0.3⌉ = ⌈2.4⌉


def test_joint_beta_covers_the_norm_of_gaussians():
    rng = np.random.default_rng(0)
    for m, single in ((2, 1.0), (5, 2.0)):
        norms = np.linalg.norm(rng.standard_normal((200_000, m)), axis=1)
        missed = np.mean(norms > float(joint_beta(single, m)))
        assert missed <= np.exp(-(single**2) / 2)
        # Output by output, as the paper bounds them, the same chance would not be kept.
        assert np.mean(norms > single) > np.exp(-(single**2) / 2)
    assert float(joint_beta(1.5, 1)) == 1.5


def test_misspecified_beta():
    found = misspecified_beta(3.0, norm_bound=2.0, error=0.01, count=100, regulariser=4.0)
    assert float(found) == pytest.approx(3.0 + 2.0 * np.sqrt(100 * 0.01 / 4.0), rel=1e-14)


def test_betas_can_be_traced():
    episodes = jnp.arange(1, 9)
    gains = jnp.linspace(0.0, 4.0, 8)
    rkhs = jax.vmap(
        lambda g: rkhs_beta(norm_bound=1.0, noise_proxy=0.1, regulariser=0.5, delta=0.1, gain=g)
    )(gains)
    gp = jax.vmap(lambda e: gp_beta(log_cells=3.0, episode=e, delta=0.1))(episodes)
    finite = jax.vmap(lambda e: finite_beta(points=7, episode=e, delta=0.1))(episodes)
    for values in (rkhs, gp, finite):
        assert np.all(np.diff(np.asarray(values)) > 0)
    assert float(gp[2]) == pytest.approx(np.sqrt(2 * (3.0 + np.log(np.pi**2 * 9 / 0.1))), rel=1e-13)
