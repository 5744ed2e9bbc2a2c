"""Closed-form bounds on the maximum information gain.

The maximum information gain is the supremum, over sequences of n points (repeats allowed), of
``0.5 * ln|I + K / noise_variance|``. Every function in this module returns an upper bound, up to
round-off. ``one_hot`` returns the exact value.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


def whole_number(name: str, value: float, minimum: int) -> int:
    """Return ``value`` as an int if it is a whole number of at least ``minimum``.

    Args:
        name: Name of the argument, for the error message.
        value: The number to check. A float such as 3.0 counts as whole.
        minimum: Smallest accepted value.

    Returns:
        The value as an int.

    Raises:
        ValueError: If ``value`` is no whole number, or is below ``minimum``.
    """
    try:
        whole = int(value)
        is_whole = whole == value
    except (TypeError, ValueError, OverflowError):
        is_whole = False
    if not is_whole or whole < minimum:
        raise ValueError(f"{name} must be a whole number >= {minimum}, got {value!r}")
    return whole


def positive_number(name: str, value: float) -> float:
    """Return ``value`` as a float if it is finite and greater than zero.

    Args:
        name: Name of the argument, for the error message.
        value: The number to check.

    Returns:
        The value as a float.

    Raises:
        ValueError: If ``value`` is not a finite number > 0.
    """
    number = _finite_number(name, value, "> 0")
    if number <= 0:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")
    return number


def non_negative_number(name: str, value: float) -> float:
    """Return ``value`` as a float if it is finite and not negative.

    Args:
        name: Name of the argument, for the error message.
        value: The number to check.

    Returns:
        The value as a float.

    Raises:
        ValueError: If ``value`` is not a finite number >= 0.
    """
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
    """Bound the gain of kernels of given ranks and largest diagonals, elementwise.

    At most m = min(rank, n) eigenvalues of the Gram matrix are non-zero, and they sum to at most
    n * trace. The logarithm is concave, so the gain is at most
    (m/2) ln(1 + n trace / (m noise_variance)).

    Args:
        rank: Rank of each kernel. An infinite rank is allowed and counts as n.
        trace: Bound on k(x, x) of each kernel, of a shape that broadcasts with ``rank``.
        n: Number of points.
        noise_variance: Noise variance λ.

    Returns:
        The bounds, an array of the broadcast shape of ``rank`` and ``trace``.
    """
    active = np.minimum(np.asarray(rank, dtype=float), n)
    per_eigenvalue = n / np.maximum(active, 1.0)
    return 0.5 * active * np.log1p(per_eigenvalue * np.asarray(trace, dtype=float) / noise_variance)


def trivial(*, variance_bound: float, n: int, noise_variance: float) -> float:
    """Bound the gain of any kernel by (n/2) ln(1 + variance_bound / noise_variance).

    The bound assumes k(x, x) <= variance_bound. It is valid because the determinant of a positive
    definite matrix is at most the product of its diagonal (Hadamard).

    Args:
        variance_bound: Bound on k(x, x) over the domain.
        n: Number of points.
        noise_variance: Noise variance λ.

    Returns:
        The bound in nats.
    """
    variance_bound = non_negative_number("variance_bound", variance_bound)
    n = whole_number("n", n, 0)
    noise_variance = positive_number("noise_variance", noise_variance)
    return float(0.5 * n * np.log1p(variance_bound / noise_variance))


def finite_rank(*, rank: int, variance_bound: float, n: int, noise_variance: float) -> float:
    """Bound the gain of a kernel of rank r by (r/2) ln(1 + n kappa / (r noise_variance)), n >= r.

    kappa is ``variance_bound``, a bound on k(x, x). The bound is valid because the r non-zero
    eigenvalues sum to at most n kappa and the logarithm is concave. If n < r, the n eigenvalues
    give the trivial bound. The bound is exact for the linear kernel on a ball (rank = dimension
    <= n, kappa = squared radius), where equal-norm tight frames attain it.

    Args:
        rank: Rank r of the kernel.
        variance_bound: Bound kappa on k(x, x) over the domain.
        n: Number of points.
        noise_variance: Noise variance λ.

    Returns:
        The bound in nats.
    """
    rank = whole_number("rank", rank, 1)
    variance_bound = non_negative_number("variance_bound", variance_bound)
    n = whole_number("n", n, 0)
    noise_variance = positive_number("noise_variance", noise_variance)
    return float(low_rank_gain(rank, variance_bound, n, noise_variance))


def one_hot(*, cells: int, n: int, noise_variance: float) -> float:
    """Return the exact maximum gain of the kernel 1{x = x'} on a finite set of cells.

    c visits to one cell gain 0.5 ln(1 + c / noise_variance). This is concave in c, so even visits
    are optimal: with n = c * cells + r, r cells are visited c + 1 times and the others c times.

    Args:
        cells: Number of cells.
        n: Number of points, here of visits.
        noise_variance: Noise variance λ.

    Returns:
        The exact maximum gain in nats.
    """
    cells = whole_number("cells", cells, 1)
    n = whole_number("n", n, 0)
    noise_variance = positive_number("noise_variance", noise_variance)
    visits, remainder = divmod(n, cells)
    common = (cells - remainder) * math.log1p(visits / noise_variance)
    return 0.5 * (common + remainder * math.log1p((visits + 1) / noise_variance))


def blocks(
    *,
    ranks: Sequence[int],
    traces: Sequence[float],
    residual: float,
    n: int,
    noise_variance: float,
) -> float:
    """Bound the gain of a kernel that is a sum of low-rank blocks and a small residual kernel.

    The bound assumes k = sum_b k_b + k_rest, where all terms are positive semi-definite,
    rank k_b <= ranks[b], k_b(x, x) <= traces[b] and k_rest(x, x) <= residual. The gain of a sum of
    kernels is at most the sum of their gains, so the bound is
    sum_b (r_b/2) ln(1 + n t_b / (r_b noise_variance)) + (n/2) ln(1 + residual / noise_variance).
    A block with r_b > n counts as one of rank n.

    Args:
        ranks: Rank r_b of each block.
        traces: Bound t_b on the diagonal of each block, as many as ``ranks``.
        residual: Bound on the diagonal of the residual kernel.
        n: Number of points.
        noise_variance: Noise variance λ.

    Returns:
        The bound in nats.

    Raises:
        ValueError: If ``ranks`` and ``traces`` differ in length.
    """
    if len(ranks) != len(traces):
        raise ValueError(
            f"ranks and traces must have one entry per block, got {len(ranks)} and {len(traces)}"
        )
    checked_ranks = [whole_number("ranks", rank, 1) for rank in ranks]
    checked_traces = [non_negative_number("traces", trace) for trace in traces]
    n = whole_number("n", n, 0)
    noise_variance = positive_number("noise_variance", noise_variance)
    block_gain = float(np.sum(low_rank_gain(checked_ranks, checked_traces, n, noise_variance)))
    residual = non_negative_number("residual", residual)
    return block_gain + trivial(variance_bound=residual, n=n, noise_variance=noise_variance)


def sum_rule(first: float, second: float) -> float:
    """Bound the gain of k1 + k2 by the sum of gain bounds of k1 and k2 at the same n and noise.

    The rule is valid because |I + A + B| <= |I + A| |I + B| for positive semi-definite A and B.

    Args:
        first: Bound on the gain of k1.
        second: Bound on the gain of k2.

    Returns:
        The bound in nats.
    """
    return non_negative_number("first", first) + non_negative_number("second", second)


def product_rank_rule(*, rank: int, gain: Callable[[float], float], noise_variance: float) -> float:
    """Bound the gain of k1 * k2 by rank * gain(rank * noise_variance), where k2 has this rank.

    The rule assumes k2(x, x) <= 1. Write k2 as a sum of rank-one terms, so that
    K1 o K2 = sum_j D_j K1 D_j with diagonal D_j and sum_j D_j^2 <= I. Sub-additivity, then Jensen's
    inequality over j for the concave log determinant, give the bound.

    Args:
        rank: Rank of k2.
        gain: Maps a noise variance to a bound on the gain of k1 at the wanted n.
        noise_variance: Noise variance λ.

    Returns:
        The bound in nats.
    """
    rank = whole_number("rank", rank, 1)
    noise_variance = positive_number("noise_variance", noise_variance)
    return rank * non_negative_number("gain(...)", gain(rank * noise_variance))


def krause_ong_sum(first: float, second: float, *, n: int) -> float:
    """Bound the gain of k1 + k2 by the published rule, first + second + 2 ln n.

    The rule is that of Krause & Ong (2011). It is looser than ``sum_rule``.

    Args:
        first: Bound on the gain of k1.
        second: Bound on the gain of k2.
        n: Number of points.

    Returns:
        The bound in nats.
    """
    n = whole_number("n", n, 0)
    return sum_rule(first, second) + 2.0 * math.log(max(n, 1))


def krause_ong_product(gain: float, *, rank: int, n: int) -> float:
    """Bound the gain of k1 * k2 by the published rule, rank * gain + rank * ln n.

    The rule is that of Krause & Ong (2011). It is looser than ``product_rank_rule``.

    Args:
        gain: Bound on the gain of k1 at the same n and noise.
        rank: Rank of k2.
        n: Number of points.

    Returns:
        The bound in nats.
    """
    rank = whole_number("rank", rank, 1)
    n = whole_number("n", n, 0)
    return rank * (non_negative_number("gain", gain) + math.log(max(n, 1)))
