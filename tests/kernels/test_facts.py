"""Variance bounds, smoothness constants and the supremum they certify, on random boxes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import kernels as sklearn

from kernelmdp import Box, FiniteSet, join
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels import (
    Constant,
    Coregional,
    Function,
    Index,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Quadratic,
    SquaredExponential,
    normalise,
)

from .expressions import expressions

SQUARE = Box([-0.5, -1.0], [1.5, 0.3])
RHO = np.hypot(1.5, 1.0)  # the corner of SQUARE farthest from the origin


# Bounds hold: random expressions in two real coordinates, by their NumPy oracles.


@st.composite
def boxes(draw):
    low = np.array(draw(st.lists(st.floats(-2, 2), min_size=2, max_size=2)))
    return Box(low, low + draw(st.sampled_from([0.1, 1.0, 3.0])))


def pairs(rng, domain, count):
    """Points and partners, from far apart to very close, inside the domain."""
    low, high = domain.bounds
    x = rng.uniform(low, high, size=(count, 2))
    reach = 10.0 ** rng.uniform(-6, 0, size=(count, 1))
    y = np.clip(x + reach * rng.normal(size=(count, 2)) * (high - low), low, high)
    return x, y


@settings(derandomize=True, database=None, deadline=None, max_examples=20)
@given(expression=expressions(columns=(0, 1)), domain=boxes())
def test_bounds_hold_for_random_expressions(expression, domain):
    rng = np.random.default_rng(0)
    constants = expression.kernel.constants(domain)
    corners, _ = domain.net(4)
    x = np.concatenate([corners, rng.uniform(*domain.bounds, size=(2000, 2))])
    for some in np.array_split(x, 100):
        largest = np.max(np.diag(expression.evaluate(some, some)))
        assert largest <= constants.variance_bound * (1 + 1e-12)
    x, y = pairs(rng, domain, 30)
    variance = np.diag(expression.evaluate(x, x)) + np.diag(expression.evaluate(y, y))
    squared = variance - 2 * np.diag(expression.evaluate(x, y))
    # The oracle itself cancels: it knows d² to rounding of the variance.
    slack = 1e-12 * constants.variance_bound
    if np.isfinite(constants.lipschitz):
        reach = np.linalg.norm(x - y, axis=1)
        assert np.all(squared <= (constants.lipschitz * reach) ** 2 * (1 + 1e-9) + slack)
    modulus = np.array([constants.modulus(np.abs(offset)) for offset in x - y])
    assert np.all(np.isfinite(modulus))  # every kernel here is continuous
    assert np.all(squared <= modulus**2 * (1 + 1e-9) + slack)
    assert constants.modulus(1.5 * np.abs(x - y)[0]) >= modulus[0] - 1e-12


def slope_and_bend(kernel, x, direction):
    """‖∂_u φ‖² and ‖∂²_u φ‖², as mixed derivatives of k on the diagonal."""

    def along(s, t):
        return kernel.pair(x + s * direction, x + t * direction)

    def both(f):
        return jax.jacfwd(jax.jacfwd(f, argnums=0), argnums=1)

    zero = jnp.zeros(())
    return both(along)(zero, zero), both(both(along))(zero, zero)


DIRECTIONS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-0.8, 0.6], [np.sqrt(0.5)] * 2])


def measured_constants(kernel, domain, count=60):
    """Largest slope and bend over points of the domain, by direction."""
    rng = np.random.default_rng(1)
    corners, _ = domain.net(4)
    x = np.concatenate([corners, rng.uniform(*domain.bounds, size=(count, 2))])
    over_points = jax.vmap(slope_and_bend, in_axes=(None, 0, None))
    measure = jax.jit(jax.vmap(over_points, in_axes=(None, None, 0)))
    slopes, bends = measure(kernel, jnp.asarray(x), jnp.asarray(DIRECTIONS))
    return np.sqrt(np.max(slopes, axis=1)), np.sqrt(np.maximum(np.max(bends, axis=1), 0.0))


COMPOSITES = {
    "disjoint sum": Quadratic().on([0]) + 3.0 * SquaredExponential(0.4).on([1]),
    "product with variance": Linear() * Polynomial(2, 0.5),
    "product": SquaredExponential([0.4, 2.0]) * Quadratic(),
    "disjoint product": SquaredExponential(0.8).on([0]) * SquaredExponential(0.5).on([1]),
    "disjoint product with variance": Polynomial(2, 1.0).on([0]) * Quadratic().on([1]),
}


@pytest.mark.parametrize("name", COMPOSITES)
def test_smoothness_dominates_derivatives(name):
    kernel = COMPOSITES[name]
    constants = kernel.constants(SQUARE)
    slopes, bends = measured_constants(kernel, SQUARE)
    assert np.all(slopes[:2] <= constants.axis_lipschitz * (1 + 1e-9))
    assert np.all(bends[:2] <= constants.axis_curvature * (1 + 1e-9))
    assert np.max(slopes) <= constants.lipschitz * (1 + 1e-9)
    assert np.max(bends) <= constants.curvature * (1 + 1e-9)
    # A bound that is far too large would pass the above: these rules lose at most a small factor.
    assert constants.lipschitz <= 2.5 * np.max(slopes)
    assert constants.curvature <= 4 * np.max(bends)


LENGTH, BASE = 0.6, 0.5 + RHO**2
ATOMS = {
    "se": (SquaredExponential(LENGTH), 1 / LENGTH, np.sqrt(3) / LENGTH**2),
    "matern": (Matern(2.5, LENGTH), np.sqrt(5 / 3) / LENGTH, 5 / LENGTH**2),
    "linear": (Linear(), 1.0, 0.0),
    "quadratic": (Quadratic(), 2 * RHO, 2.0),
    # (c + t)⁴ with derivatives 4b³, 12b², 24b, 24 at t = ρ², b = c + ρ².
    "quartic": (
        Polynomial(4, 0.5),
        np.sqrt(12 * BASE**2 * RHO**2 + 4 * BASE**3),
        np.sqrt(24 * RHO**4 + 96 * BASE * RHO**2 + 24 * BASE**2),
    ),
    # A quarter turn per unit length: w = π/2.
    "periodic": (
        Periodic(LENGTH, 4.0),
        np.pi / 2 / LENGTH,
        (np.pi / 2) ** 2 * np.sqrt(3 / LENGTH**4 + 1 / LENGTH**2),
    ),
    "constant": (Constant(3.0), 0.0, 0.0),
}


@pytest.mark.parametrize("name", ATOMS)
def test_constants_of_atoms_are_tight(name):
    kernel, lipschitz, curvature = ATOMS[name]
    constants = kernel.constants(SQUARE)
    assert constants.lipschitz == pytest.approx(lipschitz, rel=1e-12)
    assert constants.curvature == pytest.approx(curvature, rel=1e-12)
    slopes, bends = measured_constants(kernel, SQUARE)
    np.testing.assert_allclose(slopes[:2], constants.axis_lipschitz, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(bends[:2], constants.axis_curvature, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "slopes", "bends"),
    [
        (SquaredExponential([0.5, 2.0]), [2, 0.5], np.sqrt(3) * np.array([4, 0.25])),
        (Matern(2.5, [0.5, 2.0]), np.sqrt(5 / 3) * np.array([2, 0.5]), [20, 1.25]),
        (Matern(4.0, 0.5), [2 * np.sqrt(4 / 3)] * 2, [4 * np.sqrt(8)] * 2),
        (SquaredExponential(0.5).on([1]), [0, 2], [0, 4 * np.sqrt(3)]),
        (9.0 * Linear().on([0]), [3, 0], [0, 0]),
        (Matern(1.5, 0.5), [2 * np.sqrt(3)] * 2, [np.inf] * 2),
        (Matern(0.5, 0.5), [np.inf] * 2, [np.inf] * 2),
        (Matern(1.0).on([0]) * SquaredExponential(0.5).on([1]), [np.inf, 2], None),
    ],
)
def test_constants_per_axis(kernel, slopes, bends):
    constants = kernel.constants(SQUARE)
    np.testing.assert_allclose(constants.axis_lipschitz, slopes, rtol=1e-12)
    if bends is not None:
        np.testing.assert_allclose(constants.axis_curvature, bends, rtol=1e-12)


def test_product_on_shared_coordinates_adds_slopes():
    constants = (Linear() * Linear()).constants(SQUARE)
    assert constants.lipschitz == pytest.approx(
        2 * RHO
    )  # adding squares would give √2 ρ: too small
    assert constants.curvature == pytest.approx(2.0)


def test_disjoint_sum_takes_the_largest_slope():
    first, second = SquaredExponential(0.5), Matern(2.5, 0.4)
    apart = (first.on([0]) + second.on([1])).constants(SQUARE)
    assert apart.lipschitz == pytest.approx(np.sqrt(5 / 3) / 0.4)
    assert apart.curvature == pytest.approx(5 / 0.4**2)
    shared = (first + second).constants(SQUARE)
    assert shared.lipschitz == pytest.approx(np.hypot(2, np.sqrt(5 / 3) / 0.4))


@pytest.mark.parametrize(
    ("kernel", "offset", "distance"),
    [
        (Matern(0.5, 0.7), [0.3, 0.4], np.sqrt(2 * (1 - np.exp(-0.5 / 0.7)))),
        (SquaredExponential(0.7), [0.3, 0.4], np.sqrt(2 * (1 - np.exp(-0.5 * (0.5 / 0.7) ** 2)))),
        (SquaredExponential(0.7), [3e-9, 4e-9], 5e-9 / 0.7),  # where 1 − k is 0 in floats
        (Periodic(0.7, 2.0), [1.3, 7.4], np.sqrt(2 * (1 - np.exp(-4 / 0.7**2)))),  # half a turn
        (Linear(), [0.3, 0.4], 0.5),
        (Constant(), [0.3, 0.4], 0.0),
    ],
)
def test_modulus_is_tight_for_atoms(kernel, offset, distance):
    assert kernel.constants(SQUARE).modulus(np.array(offset)) == pytest.approx(distance, rel=1e-8)


def test_discrete_kernels_are_known_only_at_their_points():
    constants = Coregional([[2.0, 1.0], [1.0, 3.0]]).constants(FiniteSet.range(2))
    assert constants.variance_bound == 3.0
    assert constants.lipschitz == np.inf
    assert constants.modulus(np.zeros(1)) == 0.0
    assert constants.modulus(np.ones(1)) == np.inf


def test_declared_constants_of_a_function():
    own = Function(lambda x, y: 2.0 * x[0] * y[0], variance_bound=8.0, lipschitz=1.5, curvature=0.0)
    constants = (own + SquaredExponential(0.5)).constants(Box([0], [2]))
    assert constants.variance_bound == 9.0
    assert constants.lipschitz == pytest.approx(2.5)
    assert Function(lambda x, y: x[0] * y[0]).variance_bound(Box([0], [2])) == np.inf


# The supremum over a box, from a coarse net.

STATIONARY = [
    (SquaredExponential(0.3), sklearn.RBF(0.3)),
    *((Matern(nu, 0.3), sklearn.Matern(0.3, nu=nu)) for nu in (0.5, 1.5, 2.5)),
]


def posterior_variance(evaluate, data, noise_variance, x):
    gain = np.linalg.solve(
        evaluate(data, data) + noise_variance * np.eye(len(data)), evaluate(data, x)
    )
    return 1.0 - np.sum(evaluate(data, x) * gain, axis=0)


@pytest.mark.parametrize(("dimension", "per_axis", "refined"), [(1, 9, 801), (2, 7, 61)])
@pytest.mark.parametrize(("kernel", "evaluate"), STATIONARY)
def test_supremum_dominates_a_finer_net(kernel, evaluate, dimension, per_axis, refined):
    domain = Box([0.0] * dimension, [1.0] * dimension)
    net, spacing = domain.net(per_axis**dimension)
    finer, _ = domain.net(refined**dimension)
    constants = kernel.constants(domain)
    rng = np.random.default_rng(3)
    # Data on the net itself is the worst case: the variance is large only where nobody looks.
    cases = [net, *(rng.uniform(size=(count, dimension)) for count in (2, 5, 20, 80))]
    for data in cases:
        on_net = float(np.max(posterior_variance(evaluate, data, 1e-4, net)))
        true = np.max(posterior_variance(evaluate, data, 1e-4, finer))
        assert true <= constants.supremum(on_net, spacing) <= constants.variance_bound
    hidden = np.max(posterior_variance(evaluate, net, 1e-4, finer))
    assert hidden > 1.1 * np.max(posterior_variance(evaluate, net, 1e-4, net))


def test_supremum_formulas():
    # First order (√v + Λ√d Δ/2)², second order s² = v + c s with c = dΔ²Q/4.
    v, gap, box = 0.04, 0.05, Box([0.0, 0.0], [1.0, 1.0])
    c = 2 * gap**2 * np.sqrt(3) / 0.5**2 / 4
    second = ((c + np.sqrt(c**2 + 4 * v)) / 2) ** 2
    constants = SquaredExponential(0.5).constants(box)
    assert constants.supremum(v, np.full(2, gap)) == pytest.approx(second, rel=1e-12)
    first = (np.sqrt(v) + np.sqrt(3) / 0.5 * np.sqrt(2) * gap / 2) ** 2
    rough = Matern(1.5, 0.5).constants(box).supremum(v, np.full(2, gap))
    assert 0.8 * first <= rough <= first  # the modulus is a little sharper than Λ
    assert constants.supremum(0.9, np.full(2, 0.5)) == 1.0


@pytest.mark.parametrize("kernel", [SquaredExponential(0.3), Matern(2.5, 0.3)])
def test_supremum_is_second_order_for_smooth_kernels(kernel):
    domain = Box([0.0], [1.0])
    excess = []
    for count in (101, 201):
        _, spacing = domain.net(count)
        excess.append(kernel.constants(domain).supremum(0.1, spacing) - 0.1)
    assert excess[0] == pytest.approx(4 * excess[1], rel=0.05)


def test_supremum_on_a_finite_set_is_the_maximum():
    domain = FiniteSet([[0.0], [0.5]])
    _, spacing = domain.net(2)
    assert SquaredExponential(0.3).constants(domain).supremum(0.4, spacing) == 0.4


def test_supremum_beside_a_finite_coordinate():
    kernel = SquaredExponential(0.3).on([0]) * Index(2).on([1])
    domain = join(state=Box([0.0], [1.0]), action=FiniteSet.range(2))
    _, spacing = domain.net(202)
    alone = SquaredExponential(0.3).constants(Box([0.0], [1.0])).supremum(0.1, spacing[:1])
    assert kernel.constants(domain).supremum(0.1, spacing) <= 1.05 * alone


# Normalisation.


@pytest.mark.parametrize(
    ("kernel", "bound"),
    [(Linear(), RHO**2), (3.0 * SquaredExponential(0.5) + Quadratic(), 3 + RHO**4)],
)
def test_normalise(kernel, bound):
    unit, factor = normalise(kernel, SQUARE)
    assert unit.variance_bound(SQUARE) == pytest.approx(1.0)
    assert factor == pytest.approx(np.sqrt(bound))
    x = np.random.default_rng(2).uniform(*SQUARE.bounds, size=(5, 2))
    np.testing.assert_allclose(unit(x) * bound, kernel(x), rtol=1e-12)


def test_normalise_scales_norms():
    # The norm of an interpolant, yᵀK⁻¹y, grows by √κ.
    x, y = np.array([[0.1, 0.0], [0.9, -0.4], [0.4, 0.2]]), np.array([1.0, -0.5, 0.2])
    kernel = 4.0 * SquaredExponential(0.5)
    unit, factor = normalise(kernel, SQUARE)
    norms = [np.sqrt(y @ np.linalg.solve(np.asarray(k(x)), y)) for k in (kernel, unit)]
    assert norms[1] == pytest.approx(factor * norms[0])


def test_normalise_needs_a_finite_bound():
    with pytest.raises(ArgumentError, match="kernel: expected a finite variance bound"):
        normalise(Function(lambda x, y: x[0] * y[0]), Box([0], [1]))
