"""β, the half-width of a confidence set in standard deviations: one formula for each theorem.

All functions are pure and accept numbers or traced arrays. Sizes of nets exceed every number type,
so they appear as logarithms only.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

#: A number, or a scalar array.
Number = float | int | Array


@jax.jit
def rkhs_beta(
    *,
    norm_bound: Number,
    noise_proxy: Number,
    regulariser: Number,
    delta: Number,
    gain: Number,
    share: Number = 3.0,
) -> Float[Array, ""]:
    """Compute β = B + (σ/√λ) √(2(ln(share/δ) + G)) (paper, Theorem 1).

    It holds for functions of RKHS norm at most B.

    Args:
        norm_bound: B.
        noise_proxy: σ, the sub-Gaussian constant of the noise.
        regulariser: λ.
        delta: δ.
        gain: G, the maximum gain before the episode (paper), or the realised gain, which is valid
            and never larger (note B9).
        share: This set fails with probability at most δ/share. The paper gives a third of δ each
            to the reward, the transition and the martingale.

    Returns:
        β.

    >>> beta = rkhs_beta(norm_bound=1, noise_proxy=0.5, regulariser=2, delta=0.1, gain=2)
    >>> print(f"{float(beta):.5f}")
    2.16202
    """
    inside = jnp.log(_real(share)) - jnp.log(_real(delta)) + _real(gain)
    return _real(norm_bound) + _real(noise_proxy) / jnp.sqrt(_real(regulariser)) * jnp.sqrt(
        2 * inside
    )


@jax.jit
def mixture_beta(
    *,
    norm_bound: Number,
    noise_proxy: Number,
    regulariser: Number,
    delta: Number,
    gain: Number,
    share: Number = 3.0,
) -> Float[Array, ""]:
    """Compute β = √(B² + (σ²/λ) 2(ln(share/δ) + G)) (docs/theory.md, Lemma 7).

    It holds for the same functions as ``rkhs_beta`` and is smaller, because norm and noise add as
    squares.

    Args:
        norm_bound: B.
        noise_proxy: σ, the sub-Gaussian constant of the noise.
        regulariser: λ.
        delta: δ.
        gain: G, the realised gain, or any bound of it.
        share: This set fails with probability at most δ/share.

    Returns:
        β.

    >>> beta = mixture_beta(norm_bound=1, noise_proxy=0.5, regulariser=2, delta=0.1, gain=2)
    >>> print(f"{float(beta):.5f}")
    1.53307
    """
    inside = jnp.log(_real(share)) - jnp.log(_real(delta)) + _real(gain)
    squares = _real(norm_bound) ** 2 + _real(noise_proxy) ** 2 / _real(regulariser) * 2 * inside
    return jnp.sqrt(squares)


def net_counts(
    *, sides: Float[Array, " d"], together: Float[Array, " d"], slope: Number, episode: Number
) -> Float[Array, " d"]:
    """Count the cells of a net along each axis: max(1, ⌈2 c_j g_j l² L̄⌉).

    Between a point and the centre of its cell a function then changes by at most 1/(2 l²), half of
    what the paper allows. The paper has no ⌈·⌉ and no max(1, ·) (note B25). Counts are floats,
    because they exceed every integer type.

    Args:
        sides: Lengths c_j of the axes. An axis of length 0 needs one cell.
        together: Numbers g_j of axes that share a net with axis j: m for axes of the state, q for
            axes of the action.
        slope: L̄, a bound of all partial derivatives.
        episode: l, counted from 1.

    Returns:
        The numbers of cells.

    >>> sides, together = jnp.array([1.0, 2.0]), jnp.array([2.0, 2.0])
    >>> net_counts(sides=sides, together=together, slope=1.0, episode=2)
    Array([16., 32.], dtype=float64)
    """
    cells = 2 * sides * together * (_real(episode) ** 2 * _real(slope))
    return jnp.maximum(1.0, jnp.ceil(cells))


def log_cells(counts: Float[Array, " d"]) -> Float[Array, ""]:
    """Compute ln(|S_l| |A_l|) = Σ_j ln q_j. The number of cells itself is never formed.

    Args:
        counts: Numbers q_j of cells along each axis.

    Returns:
        The logarithm of the number of cells.

    >>> round(float(log_cells(jnp.array([10.0, 20.0]))), 4)  # ln 200
    5.2983
    """
    return jnp.sum(jnp.log(counts))


def gp_beta(
    *, log_cells: Number, episode: Number, delta: Number, outputs: Number = 1
) -> Float[Array, ""]:
    """Compute β = √(2[ln|S_l| + ln|A_l| + ln m + 2 ln π + 2 ln l − ln δ]) (paper, appendix D).

    It holds for draws of a Gaussian process on boxes.

    Args:
        log_cells: ln|S_l| + ln|A_l|.
        episode: l, counted from 1.
        delta: δ.
        outputs: 1 for the β of the reward, m for that of the transition.

    Returns:
        β.

    >>> round(float(gp_beta(log_cells=5.0, episode=3, delta=0.1)), 3)
    4.856
    """
    inside = _real(log_cells) + jnp.log(_real(outputs)) + _over_episodes(episode, delta)
    return jnp.sqrt(2 * inside)


def finite_beta(
    *, points: Number, episode: Number, delta: Number, outputs: Number = 1
) -> Float[Array, ""]:
    """Compute β = √(2 ln(|Z| m π² l²/(2δ))) for draws of a GP on finitely many points.

    It needs no net and no slack. Σ_l 2δ/(π² l²) = δ/3, half of what nets cost, because no
    derivative needs a bound.

    Args:
        points: |Z|.
        episode: l, counted from 1.
        delta: δ.
        outputs: 1 for the β of the reward, m for that of the transition.

    Returns:
        β.

    >>> round(float(finite_beta(points=12, episode=1, delta=0.1)), 3)
    3.573
    """
    inside = jnp.log(_real(points)) + jnp.log(_real(outputs)) + _over_episodes(episode, delta)
    return jnp.sqrt(2 * (inside - jnp.log(2.0)))


def joint_beta(single: Number, outputs: int) -> Float[Array, ""]:
    """Compute the β of m outputs together from the β of one, for draws of a GP.

    The error of m outputs is N(0, Σ(z)), so P(‖Σ^{−1/2} error‖ > √m + t) ≤ exp(−t²/2). This is
    valid for the shapes "lmax" and "ellipsoid". The paper's bound for each output is valid for
    "trace" only.

    Args:
        single: The β of one output.
        outputs: m.

    Returns:
        √m + β, or β for one output.

    >>> float(joint_beta(2.0, 4))  # √m + β
    4.0
    """
    return _real(single) if outputs == 1 else jnp.sqrt(float(outputs)) + _real(single)


@jax.jit
def misspecified_beta(
    beta: Number, *, norm_bound: Number, error: Number, count: Number, regulariser: Number
) -> Float[Array, ""]:
    """Compute β + B √(N e/λ), for posteriors with a kernel k_r ⪯ k, k − k_r ≤ e on the diagonal.

    f = g + r with ‖g‖ ≤ B in the space of k_r and |r| ≤ B √e (Aronszajn). The N values of r in the
    data move the posterior mean by at most σ(z) √(N/λ) B √e; r(z) itself adds B √e to the width.

    Args:
        beta: β of the exact kernel.
        norm_bound: B.
        error: e.
        count: N, the number of rows.
        regulariser: λ.

    Returns:
        The larger β.

    >>> float(misspecified_beta(2.0, norm_bound=1.0, error=1e-4, count=100, regulariser=0.01))
    3.0
    """
    drift = jnp.sqrt(_real(count) * _real(error) / _real(regulariser))
    return _real(beta) + _real(norm_bound) * drift


def _over_episodes(episode: Number, delta: Number) -> Array:
    return 2 * jnp.log(jnp.pi) + 2 * jnp.log(_real(episode)) - jnp.log(_real(delta))


def _real(value: Any) -> Array:
    return jnp.asarray(value, float)
