"""Information-gain bounds from splitting a kernel into low-rank blocks and a small rest.

Each bound writes the kernel as a convergent sum of positive semi-definite terms, keeps the first
terms in blocks of known rank and largest diagonal, and bounds what is left by its diagonal. Any
choice of blocks is valid, so each function returns the smallest value over many choices.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from kernelmdp.information.closed_forms import (
    low_rank_gain,
    non_negative_number,
    positive_number,
    trivial,
    whole_number,
)

Array = NDArray[np.float64]

# Break points beyond this number are thinned out; every subset of them gives a valid bound.
_MOST_BREAK_POINTS = 200
_CONSECUTIVE_BREAK_POINTS = 50

# Round-off of a pivoted Cholesky residual of a unit-diagonal kernel is about 1e-15 for the ranks
# used here; this allowance is added to it, and the factorisation stops a decade above.
_ROUND_OFF = 1e-14
_AXIS_GRID = 20_001
_LARGEST_AXIS_RANK = 400
_MOST_MULTI_INDICES = 200_000

# Periods tried for the torus, as multiples of the width of the box.
_PERIOD_RATIOS = 1.0 + np.geomspace(0.05, 100.0, 60)
_LATTICE_RADIUS = {1: 100_000, 2: 500, 3: 200}
_NEAR_IMAGES = 12
_FAR_IMAGES = 2000


def nested(*, residuals: ArrayLike, n: int, noise_variance: float) -> float:
    """Tightest block bound from a nested sequence of low-rank approximations of the kernel.

    residuals[a] bounds k(x, x) - k_a(x, x), where k_a has rank a, and k_0 = 0, k_1 - k_0,
    k_2 - k_1, ..., k - k_a are positive semi-definite (as for Nystrom approximations on growing
    point sets). The terms a..b-1 form a block of rank b - a and diagonal at most residuals[a].
    Gains of sums are sub-additive, so every partition into blocks bounds the gain; the best
    partition and truncation are found by dynamic programming over (thinned) break points.
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
    points = _break_points(sequence.size - 1)
    kept = sequence[points]
    ranks = np.maximum(points[None, :] - points[:, None], 0)
    return _best_partition(ranks, kept[:, None], kept, n, noise_variance)


def taylor(*, dimension: int, radius: float, n: int, noise_variance: float) -> float:
    """Bound for exp(-|x - y|^2 / 2) on a ball of this radius, from its Taylor series.

    k(x, y) = e^{-(|x|^2 + |y|^2)/2} sum_j (x.y)^j / j!, whose degree-j term has rank
    C(j+d-1, d-1) and diagonal P(Poisson(t) = j) at t = |x|^2. A block of degrees a..b-1 has
    diagonal P(a <= Poisson(t) < b), largest at t = ((b-1)!/(a-1)!)^(1/(b-a)) or at
    radius^2 if that is smaller (t = 0 for a = 0); degrees >= J leave P(Poisson(radius^2) >= J).
    """
    dimension = whole_number("dimension", dimension, 1)
    radius = non_negative_number("radius", radius)
    largest = radius * radius
    n = whole_number("n", n, 0)
    noise_variance = positive_number("noise_variance", noise_variance)
    # The highest degree does not depend on n and noise_variance, so that the bound is a minimum
    # over a fixed family and hence monotone in both.
    highest = 16
    while special.gammainc(highest, largest) > 1e-40 and highest < 10**6:
        highest *= 2
    degrees = _break_points(highest)
    below = np.rint(special.binom(degrees - 1.0 + dimension, dimension))
    below[0] = 0.0
    # Ranks too large to be subtracted exactly stand for "more than n", which is always valid.
    differences = below[None, :] - np.minimum(below, 1e15)[:, None]
    ranks = np.where(below[None, :] < 1e15, np.maximum(differences, 0.0), np.inf)
    start, stop = np.triu_indices(degrees.size, k=1)
    first, last = degrees[start].astype(float), degrees[stop].astype(float)
    inner = first > 0
    peak = np.zeros(first.shape)
    log_peak = special.gammaln(last[inner]) - special.gammaln(first[inner])
    peak[inner] = np.minimum(np.exp(log_peak / (last[inner] - first[inner])), largest)
    traces = np.zeros(ranks.shape)
    traces[start, stop] = _poisson_reaches(first, peak) - _poisson_reaches(last, peak)
    rest = _poisson_reaches(degrees.astype(float), np.full(degrees.size, largest))
    return _best_partition(ranks, traces, rest, n, noise_variance)


def tensor(*, sides: ArrayLike, n: int, noise_variance: float) -> float:
    """Bound for exp(-|x - y|^2 / 2) on a box with these side lengths, from 1-D approximations.

    On each axis, greedy Nystrom approximations of rank a leave at most delta_a of the unit
    diagonal, so u_1(x)^2 + u_2(x)^2 + ... = 1 is a law on the indices with tails P(> a) <=
    delta_a. In the box the diagonal is a law of independent indices; for a down-closed set S of
    multi-indices "outside S" is an increasing event, so by stochastic dominance at most
    1 - sum_S prod_i (delta_{a_i - 1} - delta_{a_i}) is left. Growing S along decreasing
    prod_i delta_{a_i - 1}, which keeps it down-closed, gives a sequence for ``nested``.
    """
    lengths = np.asarray(sides, dtype=float)
    if lengths.ndim != 1 or lengths.size == 0:
        raise ValueError(f"sides must hold one length per axis, got shape {lengths.shape}")
    if not np.all(np.isfinite(lengths)) or np.any(lengths < 0):
        raise ValueError(f"sides must be finite and >= 0, got {sides!r}")
    ordered = tuple(sorted(lengths.tolist(), reverse=True))
    # Which first point is better, the end or the centre of each axis, depends on the sides.
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
    """Bound for a stationary isotropic kernel on a box of this width, from a torus around it.

    The periodic kernel sum_m k(x - y + mP), P > width, has Fourier weights a_j = P^-d S(2 pi j/P)
    on functions of modulus one, so its gain is at most 0.5 sum_j ln(1 + n a_j / noise); the
    weights left out sum to at most k(0) + eps - sum_kept a_j and act as a residual. Its excess
    over k lies in [0, eps], eps = sum_{m != 0} sup k(x + mP), so K is at most the periodic Gram
    matrix plus (n eps / 2) I, which adds (n/2) ln(1 + n eps / (2 noise)) and may then be counted
    as extra noise. spectral_density takes |omega|^2 and radial_kernel the distance; k must be
    non-increasing, and r^(d+1) k(r) too at distances far beyond the width.
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
        noise = noise_variance + 0.5 * n * excess
        weights = np.asarray(spectral_density(squares * (2.0 * np.pi / period) ** 2))
        weights = weights / period**dimension
        left = np.maximum(peak + excess - np.cumsum(counts * weights), 10 * _ROUND_OFF * peak)
        kept = np.cumsum(0.5 * counts * np.log1p(n * weights / noise))
        best = min(best, wrapping + float(np.min(kept + 0.5 * n * np.log1p(left / noise))))
    return float(best)


def _break_points(last: int) -> NDArray[np.int64]:
    if last < _MOST_BREAK_POINTS:
        return np.arange(last + 1)
    spread = np.geomspace(
        _CONSECUTIVE_BREAK_POINTS, last, _MOST_BREAK_POINTS - _CONSECUTIVE_BREAK_POINTS
    )
    return np.unique(
        np.concatenate([np.arange(_CONSECUTIVE_BREAK_POINTS), np.rint(spread).astype(np.int64)])
    )


def _best_partition(
    ranks: NDArray[Any], traces: Array, rest: Array, n: int, noise_variance: float
) -> float:
    """Smallest total gain of consecutive blocks [a, b) from 0 to a final break point.

    ranks[a, b] and traces[a, b] (broadcast) describe the block; rest[b] is the diagonal left.
    """
    gains = low_rank_gain(ranks, traces, n, noise_variance)
    best = np.zeros(rest.size)
    for stop in range(1, rest.size):
        best[stop] = np.min(best[:stop] + gains[:stop, stop])
    return float(np.min(best + 0.5 * n * np.log1p(rest / noise_variance)))


def _poisson_reaches(count: Array, mean: Array) -> Array:
    """P(Poisson(mean) >= count), elementwise."""
    return np.where(count > 0, special.gammainc(np.maximum(count, 1.0), mean), 1.0)


@lru_cache(maxsize=256)
def _axis_residuals(side: float, start: int) -> Array:
    """Certified sup over [0, side] of the 1-D residual variance after 0, 1, 2, ... greedy points.

    The first point is grid point number start; after it, the point of largest residual is added.
    Between grid points the residual variance g = s^2 satisfies g'' >= -2 sqrt(3) s (the fourth
    derivative of the kernel at 0 is 3), so sup g <= v + c sup s with v the largest grid value and
    c = sqrt(3) spacing^2 / 4; also s is 1-Lipschitz, and g never grows when a point is added.
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
    """Diagonal left after 0, 1, 2, ... multi-indices in decreasing order of prod delta_{a-1}."""
    bounds = np.ones(1)
    masses = np.ones(1)
    for side in sides:
        axis = _axis_residuals(side, start)
        # The p-th best partial index joined with the a-th axis index comes after the p * a pairs
        # that dominate it, so only pairs with p * a within the cap can be among the best.
        reach = [_MOST_MULTI_INDICES // index for index in range(1, axis.size)]
        joined = np.concatenate([bounds[:r] * axis[a] for a, r in enumerate(reach)])
        joined_masses = np.concatenate(
            [masses[:r] * (axis[a] - axis[a + 1]) for a, r in enumerate(reach)]
        )
        # A stable sort keeps dominating pairs first among ties, so every prefix is down-closed.
        order = np.argsort(-joined, kind="stable")[:_MOST_MULTI_INDICES]
        bounds, masses = joined[order], joined_masses[order]
    # Adding up from the small end keeps the relative precision of small residuals; the mass that
    # was never listed is summed exactly, with an allowance for the rounding of the products.
    unlisted = max(1.0 - math.fsum(masses), 0.0) + _ROUND_OFF
    tails = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    return _frozen(np.minimum(tails + unlisted, 1.0))


@lru_cache(maxsize=3)
def _lattice_shells(dimension: int) -> tuple[Array, Array]:
    """Squared lengths of integer vectors up to a radius, increasing, and how many have each."""
    radius = _LATTICE_RADIUS[dimension]
    steps = np.arange(radius + 1)
    if dimension == 1:
        return _frozen(steps.astype(float) ** 2), _frozen(np.where(steps > 0, 2.0, 1.0))
    counts = np.zeros(radius**2 + 1)
    counts[0] = 1.0
    for _ in range(dimension):
        wider = counts.copy()
        for step in steps[1:]:
            wider[step**2 :] += 2.0 * counts[: counts.size - step**2]
        counts = wider
    squares = np.flatnonzero(counts)
    return _frozen(squares.astype(float)), _frozen(counts[squares])


def _periodic_excess(
    radial_kernel: Callable[[Array], Array], dimension: int, width: float, period: float
) -> float:
    """Bound on the sum over images m != 0 of sup k(x + m period), |x_i| <= width.

    Near images are listed one by one. Image m is at least |m|_inf period - width away, which
    bounds the farther shells of constant |m|_inf; beyond the last of S shells, terms that fall
    at least as fast as 1 / shell^2 sum to at most S times the last one.
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
    values.setflags(write=False)  # cached arrays are shared between calls
    return values
