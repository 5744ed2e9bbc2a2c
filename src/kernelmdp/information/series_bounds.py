"""Information-gain bounds from splitting a kernel into low-rank blocks and a small residual.

Each bound writes the kernel as a convergent sum of positive semi-definite terms. It groups the
first terms into blocks of known rank and largest diagonal, and bounds the residual by its diagonal.
Any choice of blocks is valid, so each function returns the smallest value over many choices.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from kernelmdp.information.closed_forms import (
    low_rank_gain,
    non_negative_number,
    positive_number,
    trivial,
    whole_number,
)

Array = NDArray[np.float64]

#: Largest number of break points between blocks. If there are more, they are thinned out, since
#: the dynamic programme takes their square in time. Every subset gives a valid bound.
_MOST_BREAK_POINTS = 200
#: Number of first break points that are never thinned out. The others are spaced geometrically.
_CONSECUTIVE_BREAK_POINTS = 50

#: Allowance added to the residual of a pivoted Cholesky factorisation of a unit-diagonal kernel.
#: Its round-off is about 1e-15 for the ranks used here. The factorisation stops a decade above.
_ROUND_OFF = 1e-14
#: Grid points along one axis of a box. A finer grid gives smaller certified residuals and takes
#: more time and memory.
_AXIS_GRID = 20_001
#: Largest rank of the approximation along one axis. It bounds time and memory.
_LARGEST_AXIS_RANK = 400
#: Largest number of multi-indices of a box that are listed. It bounds time and memory.
_MOST_MULTI_INDICES = 200_000

#: Periods tried for the torus, as multiples of the width of the box. Any ratio above 1 is valid.
_PERIOD_RATIOS = 1.0 + np.geomspace(0.05, 100.0, 60)
#: Largest length of the integer frequency vectors whose weights are computed, by dimension. It
#: trades a smaller residual against time and memory.
_LATTICE_RADIUS = {1: 100_000, 2: 500, 3: 200}
#: Periodic images up to this index along each axis are summed one by one.
_NEAR_IMAGES = 12
#: Shells of images up to this index are summed shell by shell. Farther ones are bounded together.
_FAR_IMAGES = 2000


def nested(*, residuals: ArrayLike, n: int, noise_variance: float) -> float:
    """Return the tightest block bound from a nested sequence of low-rank approximations.

    residuals[a] bounds k(x, x) - k_a(x, x), where k_a has rank a, k_0 = 0, and
    k_1 - k_0, k_2 - k_1, ..., k - k_a are positive semi-definite. Nystrom approximations on growing
    point sets are such a sequence. The terms a..b-1 form a block of rank b - a and diagonal at most
    residuals[a]. Gains of sums are sub-additive, so every partition into blocks bounds the gain.
    Dynamic programming over (thinned) break points finds the best partition and truncation.

    Args:
        residuals: Bounds on the residual diagonal after rank 0, 1, 2, ...; finite, not negative
            and non-increasing.
        n: Number of points.
        noise_variance: Noise variance λ.

    Returns:
        The bound in nats.

    Raises:
        ValueError: If ``residuals`` is no such sequence.
    """
    sequence = np.asarray(residuals, dtype=float)
    if sequence.ndim != 1 or sequence.size == 0:
        raise ValueError(f"residuals must be a non-empty 1-D sequence, got shape {sequence.shape}")
    if not np.all(np.isfinite(sequence)) or np.any(sequence < 0):
        raise ValueError(f"residuals must be finite and >= 0, got {sequence!r}")
    if np.any(np.diff(sequence) > 0):
        raise ValueError(f"residuals must be non-increasing, got {sequence!r}")
    n = whole_number("n", n, 0)
    noise_variance = positive_number("noise_variance", noise_variance)
    breaks = _break_points(sequence.size - 1)
    diagonals = sequence[breaks]
    ranks = np.maximum(breaks[None, :] - breaks[:, None], 0)
    return _best_partition(ranks, diagonals[:, None], diagonals, n, noise_variance)


def taylor(*, dimension: int, radius: float, n: int, noise_variance: float) -> float:
    """Bound the gain of exp(-|x - y|^2 / 2) on a ball, from the kernel's Taylor series.

    k(x, y) = e^{-(|x|^2 + |y|^2)/2} sum_j (x.y)^j / j!, whose degree-j term has rank
    C(j+d-1, d-1) and diagonal P(Poisson(t) = j) at t = |x|^2. A block of degrees a..b-1 has
    diagonal P(a <= Poisson(t) < b), largest at t = ((b-1)!/(a-1)!)^(1/(b-a)) or at
    radius^2 if that is smaller (t = 0 for a = 0). Degrees >= J leave P(Poisson(radius^2) >= J).

    Args:
        dimension: Dimension d of the ball.
        radius: Radius of the ball, in lengthscales.
        n: Number of points.
        noise_variance: Noise variance λ.

    Returns:
        The bound in nats.
    """
    dimension = whole_number("dimension", dimension, 1)
    radius = non_negative_number("radius", radius)
    squared_radius = radius * radius
    n = whole_number("n", n, 0)
    noise_variance = positive_number("noise_variance", noise_variance)
    # The highest degree does not depend on n and noise_variance. So the bound is a minimum over a
    # fixed family, and hence monotone in both.
    highest = 16
    while scipy.special.gammainc(highest, squared_radius) > 1e-40 and highest < 10**6:
        highest *= 2
    degrees = _break_points(highest)
    rank_below = np.rint(scipy.special.binom(degrees - 1.0 + dimension, dimension))
    rank_below[0] = 0.0
    # Ranks that are too large to be subtracted exactly become infinite. A larger rank is always
    # valid, and any rank above n counts as n.
    differences = rank_below[None, :] - np.minimum(rank_below, 1e15)[:, None]
    ranks = np.where(rank_below[None, :] < 1e15, np.maximum(differences, 0.0), np.inf)
    start, stop = np.triu_indices(degrees.size, k=1)
    first, last = degrees[start].astype(float), degrees[stop].astype(float)
    positive = first > 0
    peak = np.zeros(first.shape)
    log_ratio = scipy.special.gammaln(last[positive]) - scipy.special.gammaln(first[positive])
    peak[positive] = np.minimum(
        np.exp(log_ratio / (last[positive] - first[positive])), squared_radius
    )
    traces = np.zeros(ranks.shape)
    traces[start, stop] = _poisson_reaches(first, peak) - _poisson_reaches(last, peak)
    residuals = _poisson_reaches(degrees.astype(float), np.full(degrees.size, squared_radius))
    return _best_partition(ranks, traces, residuals, n, noise_variance)


def tensor(*, sides: ArrayLike, n: int, noise_variance: float) -> float:
    """Bound the gain of exp(-|x - y|^2 / 2) on a box, from one-dimensional approximations.

    On each axis, greedy Nystrom approximations of rank a leave at most delta_a of the unit
    diagonal. So u_1(x)^2 + u_2(x)^2 + ... = 1 is a probability distribution on the indices, with
    tails P(> a) <= delta_a. In the box the diagonal is a distribution of independent indices. For a
    down-closed set S of multi-indices, "outside S" is an increasing event. By stochastic dominance
    its probability is at most 1 - sum_S prod_i (delta_{a_i - 1} - delta_{a_i}). S grows along
    decreasing prod_i delta_{a_i - 1}, which keeps it down-closed. This gives a sequence for
    ``nested``.

    Args:
        sides: Side lengths of the box in lengthscales, (d,).
        n: Number of points.
        noise_variance: Noise variance λ.

    Returns:
        The bound in nats.

    Raises:
        ValueError: If ``sides`` is not a vector of finite numbers >= 0.
    """
    lengths = np.asarray(sides, dtype=float)
    if lengths.ndim != 1 or lengths.size == 0:
        raise ValueError(f"sides must hold one length per axis, got shape {lengths.shape}")
    if not np.all(np.isfinite(lengths)) or np.any(lengths < 0):
        raise ValueError(f"sides must be finite and >= 0, got {sides!r}")
    ordered = tuple(sorted(lengths.tolist(), reverse=True))
    # The better first point is the end or the centre of each axis, depending on the sides.
    return min(
        nested(residuals=_box_residuals(ordered, start), n=n, noise_variance=noise_variance)
        for start in (0, _AXIS_GRID // 2)
    )


def fourier(
    *,
    spectral_density: Callable[[Array], Array],
    radial_kernel: Callable[[Array], Array],
    dimension: int,
    width: float,
    n: int,
    noise_variance: float,
) -> float:
    """Bound the gain of a stationary isotropic kernel on a box, from a torus around the box.

    The periodic kernel sum_m k(x - y + mP), P > width, has Fourier weights a_j = P^-d S(2 pi j/P)
    on functions of modulus one. So its gain is at most 0.5 sum_j ln(1 + n a_j / noise). The
    weights beyond a truncation sum to at most k(0) + eps - sum_{j before it} a_j. They act as a
    residual.

    The excess of the periodic kernel over k lies in [0, eps], eps = sum_{m != 0} sup k(x + mP). So
    K is at most the periodic Gram matrix plus (n eps / 2) I. That term adds
    (n/2) ln(1 + n eps / (2 noise)), and may then be counted as extra noise.

    Args:
        spectral_density: Spectral density S as a function of |omega|^2.
        radial_kernel: The kernel k as a function of the distance r. It must be non-increasing, and
            so must r^(d+1) k(r) at distances far beyond the width.
        dimension: Dimension d of the box, at most 3.
        width: Side length of the box.
        n: Number of points.
        noise_variance: Noise variance λ.

    Returns:
        The bound in nats.

    Raises:
        ValueError: If ``dimension`` is above 3.
    """
    dimension = whole_number("dimension", dimension, 1)
    if dimension not in _LATTICE_RADIUS:
        raise ValueError(f"dimension must be at most 3 for the Fourier bound, got {dimension}")
    width = positive_number("width", width)
    n = whole_number("n", n, 0)
    noise_variance = positive_number("noise_variance", noise_variance)
    peak = non_negative_number("radial_kernel(0)", np.asarray(radial_kernel(np.zeros(1)))[0])
    best = trivial(variance_bound=peak, n=n, noise_variance=noise_variance)
    squares, counts = _lattice_shells(dimension)
    for period in width * _PERIOD_RATIOS:
        excess = _periodic_excess(radial_kernel, dimension, width, period)
        wrapping = 0.5 * n * np.log1p(0.5 * n * excess / noise_variance)
        if not wrapping < best:
            continue
        total_noise = noise_variance + 0.5 * n * excess
        weights = np.asarray(spectral_density(squares * (2.0 * np.pi / period) ** 2))
        weights = weights / period**dimension
        residuals = np.maximum(peak + excess - np.cumsum(counts * weights), 10 * _ROUND_OFF * peak)
        gains = np.cumsum(0.5 * counts * np.log1p(n * weights / total_noise))
        totals = gains + 0.5 * n * np.log1p(residuals / total_noise)
        best = min(best, wrapping + float(np.min(totals)))
    return float(best)


def _break_points(last: int) -> NDArray[np.int64]:
    """Increasing integers from 0 to ``last``, thinned out if there are too many."""
    if last < _MOST_BREAK_POINTS:
        return np.arange(last + 1)
    spread = np.geomspace(
        _CONSECUTIVE_BREAK_POINTS, last, _MOST_BREAK_POINTS - _CONSECUTIVE_BREAK_POINTS
    )
    return np.unique(
        np.concatenate([np.arange(_CONSECUTIVE_BREAK_POINTS), np.rint(spread).astype(np.int64)])
    )


def _best_partition(
    ranks: NDArray[Any], traces: Array, residuals: Array, n: int, noise_variance: float
) -> float:
    """Smallest total gain of consecutive blocks [a, b) from 0 to a final break point.

    ranks[a, b] and traces[a, b] (broadcast) describe a block. residuals[b] bounds the diagonal of
    the terms from b on.
    """
    gains = low_rank_gain(ranks, traces, n, noise_variance)
    best = np.zeros(residuals.size)
    for stop in range(1, residuals.size):
        best[stop] = np.min(best[:stop] + gains[:stop, stop])
    return float(np.min(best + 0.5 * n * np.log1p(residuals / noise_variance)))


def _poisson_reaches(count: Array, mean: Array) -> Array:
    """P(Poisson(mean) >= count), elementwise."""
    return np.where(count > 0, scipy.special.gammainc(np.maximum(count, 1.0), mean), 1.0)


@lru_cache(maxsize=256)
def _axis_residuals(side: float, start: int) -> Array:
    """Certified sup over [0, side] of the 1-D residual variance after 0, 1, 2, ... greedy points.

    The first point is grid point number ``start``. Each later point is the one of largest residual.
    Between grid points the residual variance g = s^2 satisfies g'' >= -2 sqrt(3) s, because the
    fourth derivative of the kernel at 0 is 3. So sup g <= v + c sup s, with v the largest grid
    value and c = sqrt(3) spacing^2 / 4. Also s is 1-Lipschitz, and g never grows when a point is
    added.
    """
    grid = np.linspace(0.0, side, _AXIS_GRID)
    spacing = side / (_AXIS_GRID - 1)
    curvature = math.sqrt(3.0) * spacing**2 / 4.0
    factor = np.empty((_LARGEST_AXIS_RANK, _AXIS_GRID))
    variance = np.ones(_AXIS_GRID)
    residuals = [1.0]
    for rank in range(_LARGEST_AXIS_RANK):
        pivot = int(np.argmax(variance)) if rank > 0 else start
        if variance[pivot] <= 10 * _ROUND_OFF:
            break
        column = np.exp(-0.5 * (grid - grid[pivot]) ** 2) - factor[:rank, pivot] @ factor[:rank]
        factor[rank] = column / math.sqrt(variance[pivot])
        variance = np.maximum(variance - factor[rank] ** 2, 0.0)
        value = float(np.max(variance)) + _ROUND_OFF
        second_order = (0.5 * (curvature + math.sqrt(curvature**2 + 4.0 * value))) ** 2
        first_order = (math.sqrt(value) + 0.5 * spacing) ** 2
        residuals.append(min(second_order, first_order, residuals[-1]))
    return _frozen(np.array(residuals))


@lru_cache(maxsize=32)
def _box_residuals(sides: tuple[float, ...], start: int) -> Array:
    """Residual diagonals after 0, 1, 2, ... multi-indices, in decreasing prod delta_{a-1}."""
    bounds = np.ones(1)
    masses = np.ones(1)
    for side in sides:
        axis = _axis_residuals(side, start)
        # The p-th best partial index joined with the a-th axis index comes after the p * a pairs
        # that dominate it. So only pairs with p * a within the cap can be among the best.
        partial_counts = [_MOST_MULTI_INDICES // index for index in range(1, axis.size)]
        joined = np.concatenate(
            [bounds[:count] * axis[a] for a, count in enumerate(partial_counts)]
        )
        joined_masses = np.concatenate(
            [masses[:count] * (axis[a] - axis[a + 1]) for a, count in enumerate(partial_counts)]
        )
        # A stable sort keeps dominating pairs first among ties, so every prefix is down-closed.
        order = np.argsort(-joined, kind="stable")[:_MOST_MULTI_INDICES]
        bounds, masses = joined[order], joined_masses[order]
    # Summing from the small end keeps the relative precision of small residuals. The mass that is
    # not listed is summed exactly, with an allowance for the rounding of the products.
    unlisted = max(1.0 - math.fsum(masses), 0.0) + _ROUND_OFF
    tails = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    return _frozen(np.minimum(tails + unlisted, 1.0))


@lru_cache(maxsize=3)
def _lattice_shells(dimension: int) -> tuple[Array, Array]:
    """Squared lengths of integer vectors up to a radius, increasing, and the number of each."""
    radius = _LATTICE_RADIUS[dimension]
    steps = np.arange(radius + 1)
    if dimension == 1:
        return _frozen(steps.astype(float) ** 2), _frozen(np.where(steps > 0, 2.0, 1.0))
    counts = np.zeros(radius**2 + 1)
    counts[0] = 1.0
    for _ in range(dimension):
        with_axis = counts.copy()
        for step in steps[1:]:
            with_axis[step**2 :] += 2.0 * counts[: counts.size - step**2]
        counts = with_axis
    squares = np.flatnonzero(counts)
    return _frozen(squares.astype(float)), _frozen(counts[squares])


def _periodic_excess(
    radial_kernel: Callable[[Array], Array], dimension: int, width: float, period: float
) -> float:
    """Bound on the sum over images m != 0 of sup k(x + m period), |x_i| <= width.

    Near images are summed one by one. Image m is at least |m|_inf period - width away, which bounds
    the farther shells of constant |m|_inf. Beyond the last of S shells the terms fall at least as
    fast as 1 / shell^2, so they sum to at most S times the last one.
    """
    images = np.arange(_NEAR_IMAGES + 1)
    gaps = np.maximum(images * period - width, 0.0)
    squares, counts = np.zeros(1), np.ones(1)
    for _ in range(dimension):
        squares = np.add.outer(squares, gaps**2).ravel()
        counts = np.multiply.outer(counts, np.where(images > 0, 2.0, 1.0)).ravel()
    counts[0] = 0.0
    near = float(np.sum(counts * radial_kernel(np.sqrt(squares))))
    shells = np.arange(_NEAR_IMAGES + 1, _FAR_IMAGES + 1, dtype=float)
    sizes = (2.0 * shells + 1.0) ** dimension - (2.0 * shells - 1.0) ** dimension
    far = sizes * radial_kernel(shells * period - width)
    return near + float(np.sum(far) + _FAR_IMAGES * far[-1])


def _frozen(values: Array) -> Array:
    """The same array, made read-only because cached arrays are shared between calls."""
    values.setflags(write=False)
    return values
