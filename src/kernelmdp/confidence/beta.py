"""How many standard deviations a confidence set is wide: β, one formula for each theorem.

Pure functions of numbers or traced arrays. Cardinalities of nets, which soon exceed every
number type, appear as logarithms only.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

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
    """β = B + (σ/√λ) √(2(ln(share/δ) + G)), for functions of norm at most B (paper, Theorem 1).

    δ/share is the probability given to this one set: the paper gives a third each to reward,
    transition and martingale. G is the maximum gain before the episode (paper) or the realised one
    (math B9: valid and never larger).

    >>> beta = rkhs_beta(norm_bound=1, noise_proxy=0.5, regulariser=2, delta=0.1, gain=2)
    >>> print(f"{float(beta):.5f}")
    2.16202
    """
    inside = jnp.log(_real(share)) - jnp.log(_real(delta)) + _real(gain)
    return _real(norm_bound) + _real(noise_proxy) / jnp.sqrt(_real(regulariser)) * jnp.sqrt(
        2 * inside
    )


def net_counts(
    *, sides: Float[Array, " d"], together: Float[Array, " d"], slope: Number, episode: Number
) -> Float[Array, " d"]:
    """Cells along each axis: max(1, ⌈2 c_j g_j l² L̄⌉), as floats: they exceed every integer type.

    c_j is the length of axis j, g_j how many axes are laid out together with it (m for the axes of
    the state, q for those of the action), L̄ bounds every partial derivative. Cell centres are then
    within 1/(2 l²) of the function, half of what the paper allows. The paper has no ⌈·⌉ and no
    max(1, ·) (math B25). An axis of length 0 needs one cell.

    >>> sides, together = jnp.array([1.0, 2.0]), jnp.array([2.0, 2.0])
    >>> net_counts(sides=sides, together=together, slope=1.0, episode=2)
    Array([16., 32.], dtype=float64)
    """
    wanted = 2 * sides * together * (_real(episode) ** 2 * _real(slope))
    return jnp.maximum(1.0, jnp.ceil(wanted))


def log_cells(counts: Float[Array, " d"]) -> Float[Array, ""]:
    """ln of the number of cells, Σ_j ln q_j: |S_l| |A_l| itself is never formed.

    >>> round(float(log_cells(jnp.array([10.0, 20.0]))), 4)  # ln 200
    5.2983
    """
    return jnp.sum(jnp.log(counts))


def gp_beta(
    *, log_cells: Number, episode: Number, delta: Number, outputs: Number = 1
) -> Float[Array, ""]:
    """β = √(2[ln|S_l| + ln|A_l| + ln m + 2 ln π + 2 ln l − ln δ]), for draws of a GP on boxes.

    With one output the β of the reward, with m that of the transition (paper, appendix D).

    >>> round(float(gp_beta(log_cells=5.0, episode=3, delta=0.1)), 3)
    4.856
    """
    inside = _real(log_cells) + jnp.log(_real(outputs)) + _over_episodes(episode, delta)
    return jnp.sqrt(2 * inside)


def finite_beta(
    *, points: Number, episode: Number, delta: Number, outputs: Number = 1
) -> Float[Array, ""]:
    """β = √(2 ln(|Z| m π² l²/(2δ))), for draws of a GP on finitely many points: no net, no slack.

    Σ_l 2δ/(π² l²) = δ/3: half of what nets cost, since no derivative needs a bound.

    >>> round(float(finite_beta(points=12, episode=1, delta=0.1)), 3)
    3.573
    """
    inside = jnp.log(_real(points)) + jnp.log(_real(outputs)) + _over_episodes(episode, delta)
    return jnp.sqrt(2 * (inside - jnp.log(2.0)))


def joint_beta(single: Number, outputs: int) -> Float[Array, ""]:
    """β of all m outputs together, from the β of one, for draws of a GP.

    The error of m outputs is N(0, Σ(z)), so P(‖Σ^{−1/2} error‖ > √m + t) ≤ exp(−t²/2), which serves
    the shapes "lmax" and "ellipsoid". The paper's bound, output by output, only serves "trace".

    >>> float(joint_beta(2.0, 4))  # √m + β
    4.0
    """
    return _real(single) if outputs == 1 else jnp.sqrt(float(outputs)) + _real(single)


@jax.jit
def misspecified_beta(
    beta: Number, *, norm_bound: Number, error: Number, count: Number, regulariser: Number
) -> Float[Array, ""]:
    """β + B √(N e/λ): the price of computing with a kernel k_r ⪯ k, k − k_r ≤ e on the diagonal.

    f = g + r with ‖g‖ ≤ B in the space of k_r and |r| ≤ B √e (Aronszajn). The N values of r in the
    data move the posterior mean by at most σ(z) √(N/λ) B √e; r(z) itself adds B √e to the width.

    >>> float(misspecified_beta(2.0, norm_bound=1.0, error=1e-4, count=100, regulariser=0.01))
    3.0
    """
    drift = jnp.sqrt(_real(count) * _real(error) / _real(regulariser))
    return _real(beta) + _real(norm_bound) * drift


def _over_episodes(episode: Number, delta: Number) -> Array:
    return 2 * jnp.log(jnp.pi) + 2 * jnp.log(_real(episode)) - jnp.log(_real(delta))


def _real(value: Any) -> Array:
    return jnp.asarray(value, float)
