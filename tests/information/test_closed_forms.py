"""Information-gain bounds that are formulas: reference values, exactness, and domination."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kernelmdp.information import closed_forms, series_bounds

SIZES = (100, 1000, 5000)


def gain(gram, noise_variance):
    return 0.5 * np.linalg.slogdet(np.eye(len(gram)) + gram / noise_variance)[1]


def squared_distances(points):
    return np.sum((points[:, None, :] - points[None, :, :]) ** 2, axis=-1)


def se_gram(points, lengthscale):
    return np.exp(-0.5 * squared_distances(points) / lengthscale**2)


def greedy_gain(candidates_gram, n, noise_variance):
    """Gain of n greedily chosen candidates, repeats allowed: an achievable value."""
    cross = np.empty((n, len(candidates_gram)))
    variance = np.diag(candidates_gram).copy()
    total = 0.0
    for step in range(n):
        chosen = int(np.argmax(variance))
        total += 0.5 * math.log1p(variance[chosen] / noise_variance)
        column = candidates_gram[chosen] - cross[:step, chosen] @ cross[:step]
        cross[step] = column / math.sqrt(variance[chosen] + noise_variance)
        variance = np.maximum(variance - cross[step] ** 2, 0.0)
    return total


# Bounds for a kernel of this lengthscale on the unit box.


def se_tensor(lengthscale, dimension, n, noise_variance=1.0):
    sides = np.full(dimension, 1.0 / lengthscale)
    return series_bounds.tensor(sides=sides, n=n, noise_variance=noise_variance)


def se_taylor(lengthscale, dimension, n, noise_variance=1.0):
    radius = 0.5 * math.sqrt(dimension) / lengthscale
    return series_bounds.taylor(
        dimension=dimension, radius=radius, n=n, noise_variance=noise_variance
    )


def se_fourier(lengthscale, dimension, n, noise_variance=1.0):
    scale = (2.0 * np.pi * lengthscale**2) ** (dimension / 2)
    return series_bounds.fourier(
        spectral_density=lambda square: scale * np.exp(-0.5 * lengthscale**2 * square),
        radial_kernel=lambda r: np.exp(-0.5 * (r / lengthscale) ** 2),
        dimension=dimension,
        width=1.0,
        n=n,
        noise_variance=noise_variance,
    )


def matern_profile(smoothness, lengthscale):
    def profile(r):
        x = math.sqrt(2 * smoothness) * np.asarray(r) / lengthscale
        polynomial = {0.5: 1.0, 1.5: 1.0 + x, 2.5: 1.0 + x + x**2 / 3.0}[smoothness]
        return polynomial * np.exp(-x)

    return profile


def matern_fourier(smoothness, lengthscale, dimension, n, noise_variance=1.0):
    rate = 2 * smoothness / lengthscale**2
    power = smoothness + dimension / 2
    scale = 2**dimension * math.pi ** (dimension / 2) * math.gamma(power) / math.gamma(smoothness)
    return series_bounds.fourier(
        spectral_density=lambda square: scale * rate**smoothness * (rate + square) ** -power,
        radial_kernel=matern_profile(smoothness, lengthscale),
        dimension=dimension,
        width=1.0,
        n=n,
        noise_variance=noise_variance,
    )


SE_BOUNDS = {"tensor": se_tensor, "fourier": se_fourier, "taylor": se_taylor}

# (lengthscale, dimension): achievable gains at noise 1 (None: not known), then reference bounds.
SE_REFERENCE = {
    (0.2, 1): {
        "achievable": (7.44, 14.56, 20.60),
        "tensor": (9.3, 18.3, 25.7),
        "fourier": (9.8, 21.4, 32.1),
        "taylor": (14.7, 32.5, 47.4),
    },
    (0.2, 2): {
        "achievable": (17.5, 46.96, 77.7),
        "tensor": (24.8, 73.1, 124.0),
        "fourier": (25.4, 86.9, 166.0),
        "taylor": (37.0, 199.0, 403.0),
    },
    (0.5, 1): {
        "achievable": (4.90, 8.96, 12.38),
        "tensor": (6.0, 11.1, 15.1),
        "fourier": (7.8, 16.7, 24.9),
        "taylor": (7.2, 13.4, 18.7),
    },
    (0.5, 2): {
        "achievable": (8.98, 19.95, 30.57),
        "tensor": (12.8, 29.8, 46.1),
        "fourier": (18.8, 58.4, 108.0),
        "taylor": (16.9, 41.8, 67.5),
    },
    (0.5, 3): {
        "achievable": (14.7, 39.1),
        "tensor": (23.5, 68.4),
        "fourier": (32.9, 151.0),
        "taylor": (30.9, 104.0),
    },
    (0.5, 4): {"achievable": (21.5, 69.0), "tensor": (34.7, 144.0), "taylor": (36.5, 207.0)},
    (1.0, 4): {
        "achievable": (None, None, None),
        "tensor": (21.1, 61.0, 107.0),
        "taylor": (15.8, 49.5, 95.7),
    },
}

SE_CASES = [
    (*setting, name, n, reference, lower)
    for setting, columns in SE_REFERENCE.items()
    for name in SE_BOUNDS
    if name in columns
    for n, reference, lower in zip(SIZES, columns[name], columns["achievable"], strict=False)
]


@pytest.mark.parametrize(("lengthscale", "dimension", "name", "n", "reference", "lower"), SE_CASES)
def test_squared_exponential_table(lengthscale, dimension, name, n, reference, lower):
    value = SE_BOUNDS[name](lengthscale, dimension, n)
    assert value <= 1.02 * reference
    # Improvements on the reference values are small, so a large one would be a mistake.
    assert value >= 0.90 * reference
    if lower is not None:
        assert value >= lower


@pytest.mark.parametrize(
    ("smoothness", "lengthscale", "dimension", "n", "reference", "lower"),
    [
        (2.5, 0.2, 1, 100, 12.7, 8.50),
        (2.5, 0.2, 1, 1000, 33.6, 18.48),
        (1.5, 0.2, 1, 100, 14.3, 9.32),
        (1.5, 0.2, 1, 1000, 41.8, 22.08),
        (0.5, 0.2, 1, 100, 21.4, 13.9),
        (0.5, 0.2, 1, 1000, 88.6, 48.1),
        (2.5, 0.5, 2, 100, 26.9, 10.63),
        (2.5, 0.5, 2, 1000, 117.0, 27.3),
        (1.5, 0.5, 2, 100, 30.3, 11.9),
        (1.5, 0.5, 2, 1000, 149.0, 34.5),
    ],
)
def test_matern_fourier_table(smoothness, lengthscale, dimension, n, reference, lower):
    value = matern_fourier(smoothness, lengthscale, dimension, n)
    assert max(lower, 0.85 * reference) <= value <= 1.02 * reference


@pytest.mark.parametrize(("n", "expected"), [(100, 34.657), (1000, 346.574), (5000, 1732.868)])
def test_trivial_table(n, expected):
    value = closed_forms.trivial(variance_bound=1.0, n=n, noise_variance=1.0)
    assert value == pytest.approx(expected, abs=1e-3)


# Exact values.


def partitions(total, parts, largest):
    """Non-increasing ways to write total as a sum of at most `parts` whole numbers."""
    if parts == 0:
        if total == 0:
            yield ()
        return
    for first in range(min(total, largest), -1, -1):
        for others in partitions(total - first, parts - 1, first):
            yield (first, *others)


@pytest.mark.parametrize("noise_variance", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("n", [4, 18, 20])
def test_one_hot_is_the_best_allocation(n, noise_variance):
    best = max(
        0.5 * sum(math.log1p(visits / noise_variance) for visits in allocation)
        for allocation in partitions(n, 6, n)
    )
    value = closed_forms.one_hot(cells=6, n=n, noise_variance=noise_variance)
    assert value == pytest.approx(best, abs=1e-12)


def unit_tight_frame(dimension, n):
    """n unit vectors with frame operator (n / dimension) I: harmonic frames."""
    k = np.arange(n)
    pairs = [
        wave(2.0 * np.pi * (frequency + 1) * k / n)
        for frequency in range(dimension // 2)
        for wave in (np.cos, np.sin)
    ]
    if dimension % 2:
        pairs.append(np.full(n, math.sqrt(0.5)))
    return np.stack(pairs, axis=1) * math.sqrt(2.0 / dimension)


@pytest.mark.parametrize(("dimension", "n"), [(2, 7), (3, 11), (4, 9)])
def test_finite_rank_is_attained_by_the_linear_kernel(dimension, n):
    radius, noise_variance = 1.7, 0.3
    points = radius * unit_tight_frame(dimension, n)
    assert np.allclose(np.linalg.norm(points, axis=1), radius, atol=1e-12)
    value = closed_forms.finite_rank(
        rank=dimension, variance_bound=radius**2, n=n, noise_variance=noise_variance
    )
    assert value == pytest.approx(gain(points @ points.T, noise_variance), abs=1e-9)


def test_finite_rank_with_few_points_is_trivial():
    few = {"variance_bound": 2.0, "n": 3, "noise_variance": 0.5}
    assert closed_forms.finite_rank(rank=8, **few) == pytest.approx(closed_forms.trivial(**few))


def test_blocks_by_hand():
    value = closed_forms.blocks(
        ranks=[2, 50], traces=[1.0, 0.3], residual=0.01, n=10, noise_variance=0.5
    )
    by_hand = math.log(1 + 10 / (2 * 0.5)) + 5 * math.log(1 + 0.3 / 0.5) + 5 * math.log(1.02)
    assert value == pytest.approx(by_hand, rel=1e-12)


def test_nested_is_the_best_partition():
    rng = np.random.default_rng(3)
    for n, noise_variance in [(4, 1.0), (50, 0.1), (10**6, 1.0)]:
        residuals = np.sort(10.0 ** rng.uniform(-8, 0, size=8))[::-1]
        best = math.inf
        for last in range(len(residuals)):
            for size in range(last):
                for inner in itertools.combinations(range(1, last), size):
                    starts, stops = (0, *inner), (*inner, last)
                    total = closed_forms.blocks(
                        ranks=[b - a for a, b in zip(starts, stops, strict=True)],
                        traces=[residuals[a] for a in starts],
                        residual=residuals[last],
                        n=n,
                        noise_variance=noise_variance,
                    )
                    best = min(best, total)
        best = min(
            best,
            closed_forms.trivial(variance_bound=residuals[0], n=n, noise_variance=noise_variance),
        )
        value = series_bounds.nested(residuals=residuals, n=n, noise_variance=noise_variance)
        assert value == pytest.approx(best, rel=1e-12)


def test_nested_thins_long_sequences():
    residuals = np.exp(-np.arange(100_000) / 300.0)
    value = series_bounds.nested(residuals=residuals, n=10**6, noise_variance=1.0)
    two_blocks = min(
        closed_forms.blocks(
            ranks=[first, last - first],
            traces=[1.0, residuals[first]],
            residual=residuals[last],
            n=10**6,
            noise_variance=1.0,
        )
        for first in range(300, 3000, 300)
        for last in range(first + 300, 9000, 300)
    )
    assert value <= two_blocks


@pytest.mark.parametrize(
    ("lengthscale", "dimension", "n"), [(0.2, 1, 1000), (0.5, 3, 1000), (1, 4, 100)]
)
def test_taylor_is_no_worse_than_one_block_per_degree(lengthscale, dimension, n):
    square = dimension / (4.0 * lengthscale**2)
    one_block_per_degree = min(
        closed_forms.blocks(
            ranks=[math.comb(j + dimension - 1, dimension - 1) for j in range(highest)],
            traces=[stats.poisson.pmf(j, min(j, square)) for j in range(highest)],
            residual=stats.poisson.sf(highest - 1, square),
            n=n,
            noise_variance=1.0,
        )
        for highest in range(60)
    )
    assert se_taylor(lengthscale, dimension, n) <= one_block_per_degree * (1 + 1e-9)


# Domination of achievable gains.


@pytest.mark.parametrize("noise_variance", [1e-4, 0.1, 2.0])
def test_squared_exponential_bounds_dominate_random_designs(noise_variance):
    rng = np.random.default_rng(0)
    for dimension, lengthscale in [(1, 0.3), (2, 0.4), (3, 1.0)]:
        n = 30
        achieved = 0.0
        for _ in range(200):
            spread = rng.choice(["uniform", "corners", "clustered"])
            shape = {"uniform": 1.0, "corners": 0.3, "clustered": 3.0}[spread]
            points = rng.beta(shape, shape, size=(n, dimension))
            achieved = max(achieved, gain(se_gram(points, lengthscale), noise_variance))
        candidates = rng.uniform(size=(400, dimension))
        greedy = greedy_gain(se_gram(candidates, lengthscale), n, noise_variance)
        for name, bound in SE_BOUNDS.items():
            value = bound(lengthscale, dimension, n, noise_variance)
            assert value >= max(achieved, greedy), (name, dimension)


@pytest.mark.parametrize("noise_variance", [1e-8, 1e-5])
def test_bounds_dominate_greedy_designs_at_tiny_noise(noise_variance):
    candidates = np.linspace(0.0, 1.0, 401)[:, None]
    for lengthscale in (0.2, 1.0):
        greedy = greedy_gain(se_gram(candidates, lengthscale), 500, noise_variance)
        for name, bound in SE_BOUNDS.items():
            assert greedy <= bound(lengthscale, 1, 500, noise_variance), name
        assert se_tensor(lengthscale, 1, 500, noise_variance) <= 1.5 * greedy


def test_matern_bound_dominates_random_designs():
    rng = np.random.default_rng(1)
    for smoothness, dimension in [(0.5, 1), (1.5, 2), (2.5, 3)]:
        value = matern_fourier(smoothness, 0.7, dimension, 30, 0.1)
        profile = matern_profile(smoothness, 0.7)
        for _ in range(200):
            points = rng.beta(0.5, 0.5, size=(30, dimension))
            assert gain(profile(np.sqrt(squared_distances(points))), 0.1) <= value


def test_anisotropic_tensor_dominates_and_is_symmetric():
    rng = np.random.default_rng(2)
    sides = np.array([5.0, 1.0, 0.2])
    value = series_bounds.tensor(sides=sides, n=40, noise_variance=0.05)
    assert value == series_bounds.tensor(sides=sides[::-1], n=40, noise_variance=0.05)
    candidates = sides * rng.uniform(size=(500, 3))
    greedy = greedy_gain(se_gram(candidates, 1.0), 40, 0.05)
    assert greedy <= value <= 2.0 * greedy
    for _ in range(200):
        points = sides * rng.uniform(size=(40, 3))
        assert gain(se_gram(points, 1.0), 0.05) <= value


def test_capped_multi_indices_leave_the_right_residual(monkeypatch):
    """The residuals are those of the best multi-indices, also when the list is cut short."""
    sides, start, cap = (2.0, 1.0, 0.5), 0, 60
    monkeypatch.setattr(series_bounds, "_MOST_MULTI_INDICES", cap)
    residuals = series_bounds._box_residuals.__wrapped__(sides, start)
    axes = [series_bounds._axis_residuals(side, start) for side in sides]
    listed = sorted(
        itertools.product(*(range(1, axis.size) for axis in axes)),
        key=lambda index: -math.prod(axis[a - 1] for axis, a in zip(axes, index, strict=True)),
    )[:cap]
    assert len(residuals) == cap + 1
    for index in listed:
        below = itertools.product(*(range(max(a - 1, 1), a + 1) for a in index))
        assert set(below) <= set(listed)
    masses = [
        math.prod(axis[a - 1] - axis[a] for axis, a in zip(axes, index, strict=True))
        for index in listed
    ]
    expected = 1.0 - np.concatenate([[0.0], np.cumsum(masses)])
    assert np.allclose(residuals, expected, rtol=0, atol=1e-12)
    assert residuals[-1] > 1e-6


def test_axis_residuals_cover_the_points_between_the_grid():
    """Rebuild the greedy points and evaluate the residual variance densely off the grid."""
    side, start, count = 2.0, 0, 6
    grid = np.linspace(0.0, side, series_bounds._AXIS_GRID)
    dense = np.random.default_rng(9).uniform(0.0, side, size=5000)
    certified = series_bounds._axis_residuals(side, start)
    chosen = [grid[start]]

    def residual(points):
        gram = se_gram(np.array(chosen)[:, None], 1.0)
        cross = np.exp(-0.5 * (points[:, None] - np.array(chosen)[None, :]) ** 2)
        return 1.0 - np.sum(cross * np.linalg.solve(gram, cross.T).T, axis=1)

    for rank in range(1, count):
        value = float(np.max(residual(dense)))
        assert value <= certified[rank] <= 1.01 * value
        chosen.append(grid[int(np.argmax(residual(grid)))])


def test_finite_rank_and_one_hot_dominate_random_designs():
    rng = np.random.default_rng(4)
    n, noise_variance = 25, 0.2
    quadratic = closed_forms.finite_rank(
        rank=6, variance_bound=1.0, n=n, noise_variance=noise_variance
    )
    table = closed_forms.one_hot(cells=7, n=n, noise_variance=noise_variance)
    anything = closed_forms.trivial(variance_bound=1.0, n=n, noise_variance=noise_variance)
    for _ in range(200):
        points = rng.normal(size=(n, 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        gram = (points @ points.T) ** 2
        assert gain(gram, noise_variance) <= quadratic + 1e-9
        assert gain(gram, noise_variance) <= anything
        cells = rng.integers(7, size=n)
        assert gain(1.0 * (cells[:, None] == cells[None, :]), noise_variance) <= table + 1e-9


def test_blocks_and_nested_dominate_random_designs():
    """Pivoted Cholesky on a finite domain gives certified residuals with no continuum to cover."""
    rng = np.random.default_rng(5)
    gram = se_gram(rng.uniform(size=(60, 2)), 0.3)
    n, noise_variance = 45, 0.1
    residuals, leading_diagonal, left = [1.0], None, gram.copy()
    for rank in range(1, 30):
        pivot = int(np.argmax(np.diag(left)))
        left = left - np.outer(left[:, pivot], left[pivot]) / left[pivot, pivot]
        residuals.append(float(np.max(np.diag(left))))
        if rank == 10:
            leading_diagonal = float(np.max(np.diag(gram - left)))
    noise = {"n": n, "noise_variance": noise_variance}
    best = series_bounds.nested(residuals=np.minimum.accumulate(residuals), **noise)
    two = closed_forms.blocks(
        ranks=[10], traces=[leading_diagonal], residual=residuals[10], **noise
    )
    assert best <= two + 1e-9
    assert greedy_gain(gram, n, noise_variance) <= best
    for _ in range(200):
        chosen = rng.integers(60, size=n)
        assert gain(gram[np.ix_(chosen, chosen)], noise_variance) <= best


# Composition.


def random_psd(rng, size):
    factor = rng.normal(size=(size, rng.integers(1, size + 1)))
    return factor @ factor.T * 10.0 ** rng.uniform(-2, 1)


@pytest.mark.parametrize("noise_variance", [0.1, 1.0, 10.0])
def test_gain_of_a_sum(noise_variance):
    rng = np.random.default_rng(6)
    for _ in range(50):
        first, second = random_psd(rng, 12), random_psd(rng, 12)
        bound = closed_forms.sum_rule(gain(first, noise_variance), gain(second, noise_variance))
        assert gain(first + second, noise_variance) <= bound + 1e-9
    # Kernels on disjoint points attain it.
    first, second = np.diag([1.0, 2.0, 0.0]), np.diag([0.0, 0.0, 3.0])
    bound = closed_forms.sum_rule(gain(first, noise_variance), gain(second, noise_variance))
    assert gain(first + second, noise_variance) == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize("noise_variance", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("rank", [1, 2, 4])
def test_gain_of_a_product_with_a_low_rank_factor(rank, noise_variance):
    rng = np.random.default_rng(7)
    for _ in range(50):
        gram = random_psd(rng, 12)
        features = rng.normal(size=(12, rank))
        features *= rng.uniform(0.5, 1.0, size=(12, 1)) / np.linalg.norm(
            features, axis=1, keepdims=True
        )
        bound = closed_forms.product_rank_rule(
            rank=rank, gain=lambda noise, k=gram: gain(k, noise), noise_variance=noise_variance
        )
        assert gain(gram * (features @ features.T), noise_variance) <= bound + 1e-9


def test_product_rule_is_attained_by_an_index_kernel():
    """With every point seen once per output, k1 times the identity on D outputs has D copies."""
    rng = np.random.default_rng(8)
    gram = random_psd(rng, 6)
    copies = np.kron(gram, np.eye(3))
    # The 18 rows repeat each of the 6 points 3 times, and so does the Gram matrix of k1 alone.
    bound = closed_forms.product_rank_rule(
        rank=3, gain=lambda noise: gain(np.kron(gram, np.ones((3, 3))), noise), noise_variance=0.7
    )
    assert bound == pytest.approx(gain(copies, 0.7), rel=1e-9)


def test_published_rules_are_looser():
    assert closed_forms.krause_ong_sum(2.0, 3.0, n=100) == pytest.approx(5 + 2 * math.log(100))
    assert closed_forms.krause_ong_product(2.0, rank=3, n=100) == pytest.approx(
        6 + 3 * math.log(100)
    )

    def linear(noise):
        return closed_forms.finite_rank(rank=2, variance_bound=1.0, n=100, noise_variance=noise)

    ours = closed_forms.product_rank_rule(rank=3, gain=linear, noise_variance=0.1)
    assert ours <= closed_forms.krause_ong_product(linear(0.1), rank=3, n=100)


# Dependence on n and the noise variance.

BOUNDS = {
    "trivial": lambda **s: closed_forms.trivial(variance_bound=1.3, **s),
    "finite_rank": lambda **s: closed_forms.finite_rank(rank=5, variance_bound=1.3, **s),
    "one_hot": lambda **s: closed_forms.one_hot(cells=5, **s),
    "blocks": lambda **s: closed_forms.blocks(ranks=[3, 40], traces=[1.0, 0.2], residual=1e-3, **s),
    "nested": lambda **s: series_bounds.nested(residuals=0.5 ** np.arange(30), **s),
    "taylor": lambda **s: series_bounds.taylor(dimension=3, radius=1.5, **s),
    "tensor": lambda **s: series_bounds.tensor(sides=[3.0, 1.0], **s),
    "fourier": lambda **s: series_bounds.fourier(
        spectral_density=lambda square: 0.32 * np.pi * np.exp(-0.08 * square),
        radial_kernel=lambda r: np.exp(-0.5 * (r / 0.4) ** 2),
        dimension=2,
        width=1.0,
        **s,
    ),
}


@pytest.mark.parametrize("name", BOUNDS)
@given(
    n=st.integers(0, 10**6),
    more=st.integers(1, 10**6),
    log_noise=st.floats(-6, 3),
    growth=st.floats(1.01, 100.0),
)
@settings(max_examples=8, deadline=None, derandomize=True)
def test_monotone_in_n_and_noise(name, n, more, log_noise, growth):
    noise = 10.0**log_noise
    value = BOUNDS[name](n=n, noise_variance=noise)
    assert value >= 0.0
    slack = 1e-9 * (1.0 + value)
    assert BOUNDS[name](n=n + more, noise_variance=noise) >= value - slack
    assert BOUNDS[name](n=n, noise_variance=growth * noise) <= value + slack


@pytest.mark.parametrize("name", BOUNDS)
def test_no_data_no_gain_and_extreme_arguments(name):
    assert BOUNDS[name](n=0, noise_variance=1.0) == 0.0
    value = BOUNDS[name](n=10**9, noise_variance=1e-8)
    assert isinstance(value, float)
    assert math.isfinite(value)
    assert value <= closed_forms.trivial(variance_bound=1.3, n=10**9, noise_variance=1e-8)


def test_only_the_ratio_matters_beyond_the_rank():
    # one_hot has rank 5 and takes multiples of 5 points; finite_rank has rank 5.
    for name in ("finite_rank", "one_hot"):
        small = BOUNDS[name](n=100, noise_variance=1.0)
        assert BOUNDS[name](n=1000, noise_variance=10.0) == pytest.approx(small, rel=1e-12)
    # The residual term of a series grows to its limit at a fixed ratio.
    for name in ("taylor", "tensor", "nested"):
        values = [BOUNDS[name](n=1000 * c, noise_variance=float(c)) for c in (1, 10, 100, 1000)]
        assert all(a <= b * (1 + 1e-12) for a, b in itertools.pairwise(values))
        assert values[-1] == pytest.approx(values[-2], rel=1e-4)
        assert values[-1] == pytest.approx(values[0], rel=2e-2)


# Shapes of the domain.


def test_high_dimension_is_quick_and_useful():
    sides = np.full(8, 0.5)
    value = series_bounds.tensor(sides=sides, n=1000, noise_variance=0.1)
    assert value < 0.5 * closed_forms.trivial(variance_bound=1.0, n=1000, noise_variance=0.1)
    assert value >= closed_forms.finite_rank(rank=1, variance_bound=1.0, n=1000, noise_variance=0.1)


@pytest.mark.parametrize("noise_variance", [0.01, 1.0])
def test_domain_of_one_point(noise_variance):
    one_point = 0.5 * math.log1p(1000 / noise_variance)
    noise = {"n": 1000, "noise_variance": noise_variance}
    assert series_bounds.taylor(dimension=2, radius=0.0, **noise) == pytest.approx(one_point)
    assert series_bounds.tensor(sides=[0.0, 0.0], **noise) == pytest.approx(one_point, abs=1e-6)


def test_huge_domains_fall_back_to_the_trivial_bound():
    noise = {"n": 50, "noise_variance": 0.1}
    trivial = closed_forms.trivial(variance_bound=1.0, **noise)
    assert series_bounds.taylor(dimension=300, radius=1e4, **noise) == pytest.approx(trivial)
    assert se_fourier(1e-3, 2, **noise) == pytest.approx(trivial)


# Arguments.

NOISE = {"n": 10, "noise_variance": 1.0}


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("n", lambda: closed_forms.trivial(variance_bound=1.0, n=-1, noise_variance=1.0)),
        ("n", lambda: closed_forms.trivial(variance_bound=1.0, n=2.5, noise_variance=1.0)),
        ("n", lambda: series_bounds.tensor(sides=[1.0], n=math.inf, noise_variance=1.0)),
        ("noise_variance", lambda: closed_forms.one_hot(cells=2, n=1, noise_variance=0.0)),
        ("noise_variance", lambda: se_taylor(0.5, 1, 10, math.nan)),
        ("noise_variance", lambda: se_fourier(0.5, 1, 10, math.inf)),
        ("variance_bound", lambda: closed_forms.trivial(variance_bound=-1.0, **NOISE)),
        ("rank", lambda: closed_forms.finite_rank(rank=0, variance_bound=1.0, **NOISE)),
        ("rank", lambda: closed_forms.krause_ong_product(1.0, rank=0, n=3)),
        ("cells", lambda: closed_forms.one_hot(cells=0, **NOISE)),
        ("ranks", lambda: closed_forms.blocks(ranks=[1], traces=[], residual=0.0, **NOISE)),
        ("traces", lambda: closed_forms.blocks(ranks=[1], traces=[-1], residual=0.0, **NOISE)),
        ("residual", lambda: closed_forms.blocks(ranks=[1], traces=[1], residual=-1, **NOISE)),
        ("residuals", lambda: series_bounds.nested(residuals=[], **NOISE)),
        ("residuals", lambda: series_bounds.nested(residuals=[1.0, 2.0], **NOISE)),
        ("residuals", lambda: series_bounds.nested(residuals=[1.0, -2.0], **NOISE)),
        ("dimension", lambda: series_bounds.taylor(dimension=0, radius=1.0, **NOISE)),
        ("radius", lambda: series_bounds.taylor(dimension=1, radius=-1.0, **NOISE)),
        ("sides", lambda: series_bounds.tensor(sides=[1.0, -1.0], **NOISE)),
        ("sides", lambda: series_bounds.tensor(sides=1.0, **NOISE)),
        ("dimension", lambda: se_fourier(0.5, 4, 10)),
        ("first", lambda: closed_forms.sum_rule(math.nan, 1.0)),
    ],
)
def test_bad_arguments_are_named(unchecked, argument, call):
    with pytest.raises(ValueError, match=rf"^{argument} .*got"):
        call()


@pytest.mark.parametrize("name", BOUNDS)
def test_n_and_noise_variance_are_required(name):
    with pytest.raises(TypeError, match="noise_variance"):
        BOUNDS[name](n=10)
    with pytest.raises(TypeError, match="'n'"):
        BOUNDS[name](noise_variance=1.0)
