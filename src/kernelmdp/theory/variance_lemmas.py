"""Lemmas about variances and information gains, as checks on the data of a run (note A8).

Each function takes a ``VarianceHistory``, and returns a ``Check`` with both sides. The lemmas hold
for every sequence of points. So a check fails only if the numbers of the run are wrong.

Letters are those of A8. Lemmas (h) to (k) need values, sets or draws. They are in
``value_lemmas``.

>>> import numpy as np
>>> import kernelmdp as km
>>> km.theory.variance_lemmas.determinant_of_a_sum(np.eye(2), np.eye(2)).holds
True
"""

import math
from typing import Any

import numpy as np

from kernelmdp.errors import ShapeError
from kernelmdp.gp import Posterior
from kernelmdp.kernels import Kernel
from kernelmdp.numerics.checks import positive_number
from kernelmdp.theory.check import Check, at_most, equal, not_applicable
from kernelmdp.theory.variance_history import VarianceHistory


def chain_rule(history: VarianceHistory, gains: Any, *, tolerance: float = 0.0) -> Check:
    """Check (a), the chain rule of the information gain, after every episode l.

    ½ ln|I + K_l/λ| = ½ Σ_{t ≤ lH} ln(1 + σ²_{t−1}(x_t)/λ) (appendix B of the paper; used in the
    proof of every theorem). The result shows the worst episode. The total gain alone does not
    depend on the order of episodes, so it would not detect a wrong order.

    Args:
        history: The variances and gains of a run.
        gains: The gains after each episode that a posterior or a stored run claims, (E,).
        tolerance: An allowance for a known error of the gains.

    Returns:
        The result.

    Raises:
        ShapeError: If there is not one gain for each episode.

    >>> import numpy as np
    >>> from kernelmdp import kernel
    >>> from kernelmdp.theory.variance_history import variance_history
    >>> history = variance_history(kernel("se(1)"), np.zeros((2, 1, 1)), noise_variance=1.0)
    >>> chain_rule(history, np.log([2.0, 3.0]) / 2).holds
    True
    """
    claimed = np.asarray(gains, float)
    if claimed.shape != (history.episodes,):
        raise ShapeError("gains", f"shape ({history.episodes},), one an episode", claimed.shape)
    log_ratios = np.log1p(history.in_order / history.noise_variances[:, None, None])
    summed = np.cumsum(history.copies @ (0.5 * np.sum(log_ratios, axis=2)))
    worst = int(np.argmax(_distances(summed, claimed)))
    return equal(
        "(a) chain rule of the information gain",
        summed[worst],
        claimed[worst],
        tolerance=tolerance,
        note=f"worst after episode {worst + 1}; both sides are equal",
    )


def variance_drop(history: VarianceHistory) -> Check:
    """Check (b), how much one observation can reduce a variance: σ²_{t−1}(z) ≤ (1 + κ/λ) σ²_t(z).

    It is checked at all query points, after every observation.

    Args:
        history: The variances and gains of a run.

    Returns:
        The result.
    """
    factor = (1 + history.prior_variances / history.noise_variances)[:, None, None]
    before, after = history.query_variances[:, :-1], history.query_variances[:, 1:]
    left, right = _worst(
        before / history.prior_variances[:, None, None], factor * after, history.prior_variances
    )
    return at_most("(b) variance before and after an observation", left, right, note="over κ")


def in_order_sum(history: VarianceHistory) -> Check:
    """Check (c), the sum of variances in order: Σ_t σ²_{t−1}(x_t) ≤ 2κ/ln(1 + κ/λ) · IG.

    The right side is at most (2λ + κ) · IG.

    Args:
        history: The variances and gains of a run.

    Returns:
        The result.
    """
    constant = (
        2 * history.prior_variances / np.log1p(history.prior_variances / history.noise_variances)
    )
    return at_most(
        "(c) sum of variances in order",
        history.copies @ np.sum(history.in_order, axis=(1, 2)),
        (history.copies * constant) @ np.sum(history.gains, axis=1),
    )


def stale_sum(history: VarianceHistory) -> Check:
    """Check (d), the paper's sum of stale variances: Σ_lh Σ_i σ²_{l−1}(z_lh, i) ≤ 2e·mH · IG.

    It needs λ = mH (H for the reward) and κ ≤ 1. It is in the paper's appendix before the proof of
    Theorem 1. Lemma (e) needs neither condition.

    Args:
        history: The variances and gains of a run.

    Returns:
        The result.
    """
    name, block = "(d) sum of stale variances, the paper's", history.horizon * history.outputs
    if not np.allclose(history.noise_variances, block, rtol=1e-6):
        return not_applicable(
            name, f"the paper has λ = {block}, here it is {history.noise_variances[0]:g}"
        )
    if (history.prior_variances > 1 + 1e-12).any():
        return not_applicable(
            name, f"the paper has κ ≤ 1, here it is {history.prior_variances.max():g}"
        )
    total = history.copies @ np.sum(history.stale, axis=(1, 2))
    return at_most(name, total, 2 * math.e * block * history.gain)


def block_lemma(history: VarianceHistory) -> Check:
    """Check (e), the block lemma: Σ_lh σ²_{l−1}(z_lh) ≤ 2bκ · IG/ln(1 + bκ/λ) (note P1).

    It holds for every λ. b is the number of rows of an episode.

    Args:
        history: The variances and gains of a run.

    Returns:
        The result.
    """
    block_variance = history.block * history.prior_variances
    constant = 2 * block_variance / np.log1p(block_variance / history.noise_variances)
    return at_most(
        "(e) block lemma: sum of stale variances",
        history.copies @ np.sum(history.stale, axis=(1, 2)),
        (history.copies * constant) @ np.sum(history.gains, axis=1),
    )


def variance_ratio(history: VarianceHistory) -> Check:
    """Check (f), how much an episode can reduce a deviation: σ_{l−1}(z) ≤ exp(gain of l) · σ_l(z).

    This is sharper than the paper's e^{γ}. It is checked at all query points, for every episode l.

    Args:
        history: The variances and gains of a run.

    Returns:
        The result.
    """
    after_episodes = history.query_variances[:, :: history.block]
    before, after = np.sqrt(after_episodes[:, :-1]), np.sqrt(after_episodes[:, 1:])
    scale = np.sqrt(history.prior_variances)
    growth = np.exp(history.gains)[:, :, None]
    left, right = _worst(before / scale[:, None, None], growth * after, scale)
    return at_most("(f) deviation before and after an episode", left, right, note="over √κ")


def rare_jumps(history: VarianceHistory, *, jump: float = 0.5) -> Check:
    """Check (g), rare jumps: fewer than IG/c episodes gain more than c (note P2).

    So Σ_lh σ_{l−1}(z_lh) ≤ e^c √(T · 2κ IG/ln(1 + κ/λ)) + b√κ · IG/c, for each independent part.

    Args:
        history: The variances and gains of a run.
        jump: The gain c of an episode that counts as a jump.

    Returns:
        The result.
    """
    c = positive_number("jump", jump)
    count = np.sum(history.gains > c, axis=1)
    total = np.sum(history.gains, axis=1)
    constant = (
        2 * history.prior_variances / np.log1p(history.prior_variances / history.noise_variances)
    )
    steps = history.episodes * history.block
    no_jumps = math.exp(c) * np.sqrt(steps * constant * total)
    right = no_jumps + history.block * np.sqrt(history.prior_variances) * total / c
    left = np.sum(np.sqrt(history.stale), axis=(1, 2))
    jumps_are_rare = bool((count <= total / c).all())
    check = at_most(
        "(g) rare jumps: sum of stale deviations",
        history.copies @ left,
        history.copies @ right,
        note=f"{int(count.max())} episodes gained more than {c:g}, at most {total.max() / c:.4g}",
    )
    return (
        check if jumps_are_rare else Check(check.name, check.left, check.right, False, check.note)
    )


def deviation_smoothness(
    posterior: Posterior, kernel: Kernel, first: Any, second: Any, *, tolerance: float = 0.0
) -> Check:
    """Check (l), that deviations are as smooth as the kernel: |σ(z) − σ(z')| ≤ d_k(z, z').

    Args:
        posterior: Any posterior of the kernel.
        kernel: The kernel, that of each output if there are several.
        first: Points z, (n, d).
        second: Points z', (n, d).
        tolerance: An allowance for a known error of the deviations.

    Returns:
        The result, for the worst pair.
    """
    x, y = np.asarray(first, float), np.asarray(second, float)
    covariances = np.diagonal(np.asarray(kernel(x, y)))
    variances = [np.asarray(kernel.diagonal(z)) for z in (x, y)]
    distances = np.sqrt(np.maximum(variances[0] + variances[1] - 2 * covariances, 0))
    deviations = [np.asarray(posterior.predict(z)[1]).reshape(len(x), -1) for z in (x, y)]
    differences = np.max(np.abs(deviations[0] - deviations[1]), axis=1)
    worst = int(np.argmax(differences - distances))
    return at_most(
        "(l) deviations are as smooth as the kernel",
        differences[worst],
        distances[worst],
        tolerance=tolerance,
        note=f"worst of {len(x)} pairs",
    )


def determinant_of_a_sum(first: Any, second: Any) -> Check:
    """Check (m), the determinant of a sum: ln|I + A + B| ≤ ln|I + A| + ln|I + B| (note P7).

    So gains of sums of kernels add up, without the extra logarithm of the paper's composition
    rules.

    Args:
        first: A, positive semi-definite, (n, n).
        second: B, positive semi-definite, (n, n).

    Returns:
        The result.

    >>> determinant_of_a_sum([[1.0]], [[2.0]]).right.__round__(4)
    1.7918
    """
    a, b = np.asarray(first, float), np.asarray(second, float)
    eye = np.eye(len(a))
    left, *parts = (float(np.linalg.slogdet(eye + matrix)[1]) for matrix in (a + b, a, b))
    return at_most("(m) determinant of a sum", left, sum(parts))


def variance_lemmas(history: VarianceHistory) -> list[Check]:
    """Check (b) to (g), which need a history only.

    Args:
        history: The variances and gains of a run.

    Returns:
        The results.
    """
    lemmas = (variance_drop, in_order_sum, stale_sum, block_lemma, variance_ratio, rare_jumps)
    return [lemma(history) for lemma in lemmas]


def _distances(expected: np.ndarray, claimed: np.ndarray) -> np.ndarray:
    """Absolute differences; infinite if a claimed number is not finite."""
    return np.where(np.isfinite(claimed), np.abs(expected - claimed), np.inf)


def _worst(left: np.ndarray, right: np.ndarray, scale: np.ndarray) -> tuple[float, float]:
    """Both sides at the worst difference, the right side divided by the scale of its part."""
    scaled = right / scale[:, None, None]
    index = np.unravel_index(np.argmax(left - scaled), left.shape)
    return float(left[index]), float(scaled[index])
