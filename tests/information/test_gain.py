"""Maximum information gain: certified bounds against attained gains and closed forms."""

import itertools

import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError
from kernelmdp.information import dual_certificates

SE = km.kernels.SquaredExponential


def unit(d):
    return km.Box([0.0] * d, [1.0] * d)


def gain(kernel, points, noise):
    return gain_of(np.asarray(kernel(points)), noise)


def gain_of(K, noise):
    return 0.5 * np.linalg.slogdet(np.eye(len(K)) + K / noise)[1]


# Certified values of the reference table: box [0, 1]^d, n/λ = 100, 1000, 5000.
TABLE = [
    (0.5, 1, {100: 4.90, 1000: 8.97, 5000: 12.39}),
    (0.5, 2, {1000: 19.98}),
]


@pytest.mark.parametrize(("lengthscale", "dimension", "values"), TABLE)
def test_certified_values(lengthscale, dimension, values):
    for n, value in values.items():
        found = km.information.maximum_gain(
            SE(lengthscale), domain=unit(dimension), n=n, noise_variance=1.0
        )
        assert found.method == "dual"
        assert found.upper == pytest.approx(value, rel=0.01)
        assert found.lower <= found.upper
        assert found.lower >= 0.985 * found.upper
        for name in ("tensor", "taylor", "fourier", "trivial"):
            assert found.upper <= found.bounds[name]


def test_lower_and_upper_bound_in_a_known_case():
    found = km.information.maximum_gain(SE(0.5), domain=unit(1), n=1000, noise_variance=1.0)
    assert found.lower == pytest.approx(8.96, abs=0.02)
    assert found.lower <= found.upper <= 9.0


@pytest.mark.parametrize("text", ["matern(1.5, 0.4)", "se(0.4) * linear"])
def test_one_certificate_bounds_every_design_at_every_n_and_noise(text):
    kernel, domain = km.kernel(text), unit(1)
    line = dual_certificates.ladder(kernel, domain)._certificate(300.0)
    rng = np.random.default_rng(0)
    for draw in (rng.random, lambda size: np.round(rng.random(size))):
        # Of one matrix: the first n points are a design of their own.
        K = np.asarray(kernel(draw((150, 1))))
        for n, noise in itertools.product((1, 7, 40, 150), (0.01, 0.3, 1.0, 20.0)):
            assert gain_of(K[:n, :n], noise) <= line.bound(n / noise) + 1e-9
    even = np.asarray(kernel(np.linspace(1, 0, 150)[:, None]))
    for step, noise in itertools.product((1, 4, 30, 150), (0.01, 0.3, 1.0, 20.0)):
        K = even[::step, ::step]
        assert gain_of(K, noise) <= line.bound(len(K) / noise) + 1e-9
    for n in (10, 1000):
        assert dual_certificates.ladder(kernel, domain).lower(n, 1.0) <= line.bound(n) + 1e-9


def test_the_dual_bound_depends_on_n_over_noise_only():
    ladder = dual_certificates.ladder(SE(0.5), unit(1))
    by_ten = km.information.upper_bounds(SE(0.5), unit(1), 1000, 10.0)["dual"]
    assert ladder.bound(100.0) == pytest.approx(by_ten, abs=1e-9)


def test_finite_sets_have_nearly_no_gap():
    points = np.random.default_rng(0).random((50, 2))
    found = km.information.maximum_gain(
        SE(0.3), domain=km.FiniteSet(points), n=200, noise_variance=1.0
    )
    assert found.upper - found.lower <= 0.01
    assert found.upper == pytest.approx(15.667, abs=0.01)


def test_one_hot_is_exact():
    kernel, domain = km.kernels.OneHot(3, 2), km.FiniteSet.range(3, 2)
    found = km.information.maximum_gain(kernel, domain=domain, n=20, noise_variance=0.7)
    best = max(
        0.5 * sum(np.log1p(c / 0.7) for c in counts)
        for counts in itertools.product(range(8), repeat=6)
        if sum(counts) == 20
    )
    assert found.upper == pytest.approx(best, abs=1e-9)
    assert found.lower == pytest.approx(best, abs=1e-6)


def test_linear_kernel_is_exact_on_a_symmetric_box():
    # The corners of a symmetric box are a tight frame of vectors of the largest norm.
    domain = km.Box([-1.0, -1.0], [1.0, 1.0])
    found = km.information.maximum_gain(
        km.kernels.Linear(), domain=domain, n=40, noise_variance=0.5
    )
    exact = np.log1p(40 * 2 / (2 * 0.5))
    assert found.upper == pytest.approx(exact, rel=1e-3)
    assert found.lower == pytest.approx(exact, rel=1e-3)
    assert found.bounds["finite rank"] == pytest.approx(exact, abs=1e-9)


def test_smaller_gain_at_larger_noise_and_noise_must_be_given(unchecked):
    values = [
        km.information.maximum_gain(SE(0.5), domain=unit(1), n=50, noise_variance=h).upper
        for h in (5.0, 10.0)
    ]
    assert values[1] < values[0]
    with pytest.raises(TypeError, match="noise_variance"):
        km.information.maximum_gain(SE(0.5), domain=unit(1), n=50)
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(ArgumentError, match="noise_variance"):
            km.information.maximum_gain(SE(0.5), domain=unit(1), n=5, noise_variance=wrong)
    with pytest.raises(ArgumentError, match="n: expected"):
        km.information.maximum_gain(SE(0.5), domain=unit(1), n=2.5, noise_variance=1.0)


def test_composition_rules_apply_where_the_dual_does_not_reach():
    domain = km.Box([0.0] * 6, [1.0] * 6)
    kernel = km.kernel("se(0.5)[0, 1] + se(0.5)[2, 3] * linear[4, 5]")
    found = km.information.maximum_gain(kernel, domain=domain, n=200, noise_variance=1.0)
    assert found.method.startswith("sum rule")
    assert "product rule: rank 2" in found.method
    assert found.upper < found.bounds["trivial"] / 2
    rng = np.random.default_rng(0)
    assert gain(kernel, rng.random((200, 6)), 1.0) < found.upper
    assert found.lower <= found.upper
    eight = km.information.maximum_gain(SE(2.0), domain=unit(8), n=500, noise_variance=1.0)
    assert eight.method in ("taylor", "tensor")
    assert gain(SE(2.0), rng.random((500, 8)), 1.0) < eight.upper


B = [[1.0, 0.6], [0.6, 0.7]]


@pytest.mark.parametrize(
    "text",
    [
        "se(0.4) @ index(3)",
        f"se(0.4) @ coregional({B})",
        "independent(se(0.4), linear, matern(2.5, 0.5))",
        f"se(0.4) @ coregional({B}) + linear @ index(2)",
    ],
)
def test_structured_gain_of_transition_kernels(text):
    kernel = km.kernel(text)
    n, noise = 60, 0.5
    found = km.information.maximum_gain(kernel, domain=unit(1), n=n, noise_variance=noise)
    rng = np.random.default_rng(0)
    designs = [rng.random((n, 1)), np.linspace(0, 1, n)[:, None], np.round(rng.random((n, 1)))]
    attained = max(gain(kernel, design, noise) for design in designs)
    assert attained <= found.upper + 1e-9
    assert found.lower <= found.upper
    if "index(3)" in text:
        single = km.information.maximum_gain(SE(0.4), domain=unit(1), n=n, noise_variance=noise)
        assert found.upper == pytest.approx(3 * single.upper)
    if text == f"se(0.4) @ coregional({B})":
        # One design serves both outputs: the joint certificate is no worse than two separate ones.
        assert found.bounds["structured dual"] <= found.bounds["structured: dual"] + 1e-2
        assert attained >= 0.9 * found.upper


def test_gain_curve_is_a_valid_bound_and_close_to_the_tight_one():
    ns = [0, 1, 10, 700, 3000]
    curve = km.information.gain_curve(SE(0.5), domain=unit(1), ns=ns, noise_variance=2.0)
    assert curve[0] == 0
    assert (np.diff(curve) > 0).all()
    for n, value in zip(ns[2:], curve[2:], strict=True):
        tight = km.information.maximum_gain(SE(0.5), domain=unit(1), n=n, noise_variance=2.0)
        assert tight.lower <= value <= 1.02 * tight.upper


def test_realised_gain_matches_the_posterior():
    rng = np.random.default_rng(0)
    points = rng.random((30, 2))
    for text, targets in (("se(0.5)", rng.random(30)), ("se(0.5) @ index(2)", rng.random((30, 2)))):
        kernel = km.kernel(text)
        posterior = km.gp.posterior(kernel, noise_variance=0.1, dimension=2)
        realised = km.information.realised_gain(kernel, points, noise_variance=0.1)
        assert realised == pytest.approx(
            posterior.condition(points, targets).information_gain, abs=1e-9
        )


def test_a_kernel_of_unknown_size_is_refused():
    own = km.kernels.Function(lambda x, y: x[0] * y[0], name="own")
    with pytest.raises(ArgumentError, match="variance_bound"):
        km.information.maximum_gain(own, domain=unit(1), n=5, noise_variance=1.0)
