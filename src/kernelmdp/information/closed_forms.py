"""Bounds on the maximum information gain that are formulas of a few numbers.

The maximum information gain is the supremum, over sequences of n points (repeats allowed), of
``0.5 * ln|I + K / noise_variance|``. Everything here is an upper bound up to round-off, and
``one_hot`` is the exact value.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def whole_number(name: str, value: float, minimum: int) -> int:
    """Return value as an int, or raise ValueError unless it is a whole number >= minimum."""
    try:
        whole = int(value)
        is_whole = whole == value
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole or whole < minimum:
        raise ValueError(f"{name} must be a whole number >= {minimum}, got {value!r}")
    return whole


def positive_number(name: str, value: float) -> float:
    """Return value as a float, or raise ValueError unless it is finite and > 0."""
    number = _finite_number(name, value, "> 0")
    if number <= 0:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")
    return number


def non_negative_number(name: str, value: float) -> float:
    """Return value as a float, or raise ValueError unless it is finite and >= 0."""
    number = _finite_number(name, value, ">= 0")
    if number < 0:
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
    return number


def _finite_number(name: str, value: float, expected: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number {expected}, got {value!r}")
    return number


def low_rank_gain(rank: ArrayLike, trace: ArrayLike, n: int, noise_variance: float) -> Any:
    """Largest gain of a kernel of this rank whose diagonal is at most trace (elementwise).

    At most m = min(rank, n) eigenvalues are non-zero and they sum to at most n * trace, so by
    concavity of the logarithm the gain is at most (m/2) ln(1 + n trace / (m noise_variance)).
    """
    active = np.minimum(np.asarray(rank, dtype=float), n)
    share = n / np.maximum(active, 1.0)
    return 0.5 * active * np.log1p(share * np.asarray(trace, dtype=float) / noise_variance)


def trivial(*, variance_bound: float, n: int, noise_variance: float) -> float:
    """Bound (n/2) ln(1 + variance_bound / noise_variance) for any kernel.

    Assumes k(x, x) <= variance_bound. Valid because the determinant of a positive definite
    matrix is at most the product of its diagonal (Hadamard).
    """
    variance_bound = non_negative_number("variance_bound", variance_bound)
    n = whole_number("n", n, 0)
    noise_variance = positive_number("noise_variance", noise_variance)
    return float(0.5 * n * np.log1p(variance_bound / noise_variance))


def finite_rank(*, rank: int, variance_bound: float, n: int, noise_variance: float) -> float:
    """Bound (r/2) ln(1 + n kappa / (r noise_variance)) for a kernel of rank r, when n >= r.

    kappa is variance_bound, a bound on k(x, x). Valid because the r non-zero eigenvalues sum to
    at most n kappa and the logarithm is concave. With n < r the n eigenvalues give the trivial
    bound. Exact for the linear kernel on a ball (rank = dimension <= n, kappa = squared radius),
    where equal-norm tight frames attain it.
    """
    rank = whole_number("rank", rank, 1)
    variance_bound = non_negative_number("variance_bound", variance_bound)
    n = whole_number("n", n, 0)
    noise_variance = positive_number("noise_variance", noise_variance)
    return float(low_rank_gain(rank, variance_bound, n, noise_variance))


def one_hot(*, cells: int, n: int, noise_variance: float) -> float:
    """Exact maximum gain of the kernel 1{x = x'} on a finite set of cells.

    c visits to a cell give 0.5 ln(1 + c / noise_variance), which is concave in c, so visiting
    evenly is optimal: with n = c * cells + r, r cells are visited c + 1 times and the rest c.
    """
    cells = whole_number("cells", cells, 1)
    n = whole_number("n", n, 0)
    noise_variance = positive_number("noise_variance", noise_variance)
    visits, extra = divmod(n, cells)
    common = (cells - extra) * math.log1p(visits / noise_variance)
    return 0.5 * (common + extra * math.log1p((visits + 1) / noise_variance))


def blocks(
    *,
    ranks: Sequence[int],
    traces: Sequence[float],
    residual: float,
    n: int,
    noise_variance: float,
) -> float:
    """Bound for a kernel that is a sum of low-rank blocks and a small residual kernel.

    Assumes k = sum_b k_b + k_rest, all positive semi-definite, rank k_b <= ranks[b],
    k_b(x, x) <= traces[b] and k_rest(x, x) <= residual. The gain of a sum of kernels is at most
    the sum of the gains, so the bound is sum_b (r_b/2) ln(1 + n t_b / (r_b noise_variance))
    + (n/2) ln(1 + residual / noise_variance), a block with r_b > n counting as one of rank n.
    """
    if len(ranks) != len(traces):
        raise ValueError(
            f"ranks and traces must have one entry per block, got {len(ranks)} and {len(traces)}"
        )
    checked_ranks = [whole_number("ranks", rank, 1) for rank in ranks]
    checked_traces = [non_negative_number("traces", trace) for trace in traces]
    n = whole_number("n", n, 0)
    noise_variance = positive_number("noise_variance", noise_variance)
    kept = float(np.sum(low_rank_gain(checked_ranks, checked_traces, n, noise_variance)))
    residual = non_negative_number("residual", residual)
    return kept + trivial(variance_bound=residual, n=n, noise_variance=noise_variance)


def sum_rule(first: float, second: float) -> float:
    """Gain bound of k1 + k2 from gain bounds of k1 and k2 at the same n and noise: their sum.

    Valid because |I + A + B| <= |I + A| |I + B| for positive semi-definite A and B.
    """
    return non_negative_number("first", first) + non_negative_number("second", second)


def product_rank_rule(*, rank: int, gain: Callable[[float], float], noise_variance: float) -> float:
    """Gain bound rank * gain(rank * noise_variance) of k1 * k2, where k2 has this rank.

    gain maps a noise variance to a gain bound of k1 at the wanted n; k2(x, x) <= 1 is assumed.
    Writing k2 as a sum of rank-one terms, K1 o K2 = sum_j D_j K1 D_j with diagonal D_j and
    sum_j D_j^2 <= I; sub-additivity and then Jensen's inequality over j for the concave log
    determinant give the bound.
    """
    rank = whole_number("rank", rank, 1)
    noise_variance = positive_number("noise_variance", noise_variance)
    return rank * non_negative_number("gain(...)", gain(rank * noise_variance))


def krause_ong_sum(first: float, second: float, *, n: int) -> float:
    """The published rule for k1 + k2: first + second + 2 ln n. Looser than ``sum_rule``."""
    n = whole_number("n", n, 0)
    return sum_rule(first, second) + 2.0 * math.log(max(n, 1))


def krause_ong_product(gain: float, *, rank: int, n: int) -> float:
    """The published rule for k1 * k2 with k2 of this rank: rank * gain + rank * ln n.

    gain bounds the gain of k1 at the same n and noise. Looser than ``product_rank_rule``.
    """
    rank = whole_number("rank", rank, 1)
    n = whole_number("n", n, 0)
    return rank * (non_negative_number("gain", gain) + math.log(max(n, 1)))
