"""Lemmas about variances and information gains, as checks on the data of a run (math A8).

Each function takes a ``VarianceHistory``, what the data said observation by observation, and returns a
``Check`` with both sides. They hold for every sequence of points, so on numbers that are what they
claim to be they can only fail by rounding: a failure means that the numbers are not.

Letters are those of A8; (h) to (k), which need values, sets or draws, are in ``chances``.

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


def chain_rule(found: VarianceHistory, gains: Any, *, tolerance: float = 0.0) -> Check:
    """(a) ½ ln|I + K_l/λ| = ½ Σ_{t ≤ lH} ln(1 + σ²_{t−1}(x_t)/λ), after every episode l.

    ``gains`` (E,) are those that a posterior or a stored run claims after each episode; the check
    shows the episode that is worst. The total alone would not notice another order of episodes.
    (Appendix B of the paper; used in the proof of every theorem.)

    >>> import numpy as np
    >>> from kernelmdp import kernel
    >>> from kernelmdp.theory.variance_history import variance_history
    >>> found = variance_history(kernel("se(1)"), np.zeros((2, 1, 1)), noise_variance=1.0)
    >>> chain_rule(found, np.log([2.0, 3.0]) / 2).holds
    True
    """
    claimed = np.asarray(gains, float)
    if claimed.shape != (found.episodes,):
        raise ShapeError("gains", f"shape ({found.episodes},), one an episode", claimed.shape)
    inside = np.log1p(found.in_order / found.noise[:, None, None])
    summed = np.cumsum(found.copies @ (0.5 * np.sum(inside, axis=2)))
    worst = int(np.argmax(_distance(summed, claimed)))
    return equal(
        "(a) chain rule of the information gain",
        summed[worst],
        claimed[worst],
        tolerance=tolerance,
        note=f"worst after episode {worst + 1}; both sides are equal",
    )


def variance_drop(found: VarianceHistory) -> Check:
    """(b) σ²_{t−1}(z) ≤ (1 + κ/λ) σ²_t(z): one observation cannot say more than that.

    At all queries of the walk, after every observation.
    """
    factor = (1 + found.prior / found.noise)[:, None, None]
    before, after = found.followed[:, :-1], found.followed[:, 1:]
    left, right = _worst(before / found.prior[:, None, None], factor * after, found.prior)
    return at_most("(b) variance before and after an observation", left, right, note="over κ")


def in_order_sum(found: VarianceHistory) -> Check:
    """(c) Σ_t σ²_{t−1}(x_t) ≤ 2κ/ln(1 + κ/λ) · IG, never more than (2λ + κ) · IG."""
    constant = 2 * found.prior / np.log1p(found.prior / found.noise)
    return at_most(
        "(c) sum of variances in order",
        found.copies @ np.sum(found.in_order, axis=(1, 2)),
        (found.copies * constant) @ np.sum(found.gains, axis=1),
    )


def stale_sum(found: VarianceHistory) -> Check:
    """(d) Σ_lh Σ_i σ²_{l−1}(z_lh, i) ≤ 2e·mH · IG for λ = mH (H for the reward) and κ ≤ 1.

    The paper's, in the appendix before the proof of Theorem 1; (e) needs neither condition.
    """
    name, wide = "(d) sum of stale variances, the paper's", found.horizon * found.outputs
    if not np.allclose(found.noise, wide, rtol=1e-6):
        return not_applicable(name, f"the paper has λ = {wide}, here it is {found.noise[0]:g}")
    if (found.prior > 1 + 1e-12).any():
        return not_applicable(name, f"the paper has κ ≤ 1, here it is {found.prior.max():g}")
    total = found.copies @ np.sum(found.stale, axis=(1, 2))
    return at_most(name, total, 2 * math.e * wide * found.gain)


def block_lemma(found: VarianceHistory) -> Check:
    """(e) Σ_lh σ²_{l−1}(z_lh) ≤ 2bκ · IG/ln(1 + bκ/λ) for every λ, b rows an episode (math P1)."""
    wide = found.block * found.prior
    constant = 2 * wide / np.log1p(wide / found.noise)
    return at_most(
        "(e) block lemma: sum of stale variances",
        found.copies @ np.sum(found.stale, axis=(1, 2)),
        (found.copies * constant) @ np.sum(found.gains, axis=1),
    )


def variance_ratio(found: VarianceHistory) -> Check:
    """(f) σ_{l−1}(z) ≤ exp(gain of episode l) · σ_l(z), sharper than the paper's e^{γ}.

    At all queries of the walk, for every episode.
    """
    ends = found.followed[:, :: found.block]
    before, after = np.sqrt(ends[:, :-1]), np.sqrt(ends[:, 1:])
    scale = np.sqrt(found.prior)
    growth = np.exp(found.gains)[:, :, None]
    left, right = _worst(before / scale[:, None, None], growth * after, scale)
    return at_most("(f) deviation before and after an episode", left, right, note="over √κ")


def rare_jumps(found: VarianceHistory, *, jump: float = 0.5) -> Check:
    """(g) Fewer than IG/c episodes gain more than c, so Σ_lh σ_{l−1}(z_lh) ≤
    e^c √(T · 2κ IG/ln(1 + κ/λ)) + b√κ · IG/c (math P2), for each independent part.
    """
    c = positive_number("jump", jump)
    count = np.sum(found.gains > c, axis=1)
    total = np.sum(found.gains, axis=1)
    constant = 2 * found.prior / np.log1p(found.prior / found.noise)
    steps = found.episodes * found.block
    smooth = math.exp(c) * np.sqrt(steps * constant * total)
    right = smooth + found.block * np.sqrt(found.prior) * total / c
    left = np.sum(np.sqrt(found.stale), axis=(1, 2))
    few = bool((count <= total / c).all())
    check = at_most(
        "(g) rare jumps: sum of stale deviations",
        found.copies @ left,
        found.copies @ right,
        note=f"{int(count.max())} episodes gained more than {c:g}, at most {total.max() / c:.4g}",
    )
    return check if few else Check(check.name, check.left, check.right, False, check.note)


def deviation_smoothness(
    posterior: Posterior, kernel: Kernel, first: Any, second: Any, *, tolerance: float = 0.0
) -> Check:
    """(l) |σ(z) − σ(z')| ≤ d_k(z, z') for any posterior of the kernel; points (n, d) in pairs.

    Of m outputs the kernel is that of each.
    """
    x, y = np.asarray(first, float), np.asarray(second, float)
    across = np.diagonal(np.asarray(kernel(x, y)))
    own = [np.asarray(kernel.diagonal(z)) for z in (x, y)]
    distance = np.sqrt(np.maximum(own[0] + own[1] - 2 * across, 0))
    deviations = [np.asarray(posterior.predict(z)[1]).reshape(len(x), -1) for z in (x, y)]
    apart = np.max(np.abs(deviations[0] - deviations[1]), axis=1)
    worst = int(np.argmax(apart - distance))
    return at_most(
        "(l) deviations are as smooth as the kernel",
        apart[worst],
        distance[worst],
        tolerance=tolerance,
        note=f"worst of {len(x)} pairs",
    )


def determinant_of_a_sum(first: Any, second: Any) -> Check:
    """(m) ln|I + A + B| ≤ ln|I + A| + ln|I + B| for positive semi-definite A and B (math P7).

    Gains of sums of kernels add up, without the extra logarithm of the paper's composition rules.

    >>> determinant_of_a_sum([[1.0]], [[2.0]]).right.__round__(4)
    1.7918
    """
    a, b = np.asarray(first, float), np.asarray(second, float)
    eye = np.eye(len(a))
    left, *parts = (float(np.linalg.slogdet(eye + each)[1]) for each in (a + b, a, b))
    return at_most("(m) determinant of a sum", left, sum(parts))


def variance_lemmas(found: VarianceHistory) -> list[Check]:
    """(b) to (g), all that a walk alone can answer."""
    lemmas = (variance_drop, in_order_sum, stale_sum, block_lemma, variance_ratio, rare_jumps)
    return [lemma(found) for lemma in lemmas]


def _distance(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(other), np.abs(one - other), np.inf)


def _worst(left: np.ndarray, right: np.ndarray, scale: np.ndarray) -> tuple[float, float]:
    """Both sides where the difference is worst, in units of the prior."""
    scaled = right / scale[:, None, None]
    place = np.unravel_index(np.argmax(left - scaled), left.shape)
    return float(left[place]), float(scaled[place])
