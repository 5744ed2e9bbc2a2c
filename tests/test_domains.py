"""Boxes, finite sets and their products: nets, spread points, and what lies outside."""

import dataclasses
import itertools
import math

import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelmdp import Box, FiniteSet, join
from kernelmdp.domains import Unbounded
from kernelmdp.errors import ArgumentError, DomainError, KernelMDPError, ShapeError

BOX = Box(low=[-1.0, 0.0], high=[1.0, 4.0])
TABLE = FiniteSet([[0.0, 1.0], [2.0, 0.0], [2.0, 5.0]])
JOINED = join(state=BOX, action=FiniteSet([[0.0], [1.0], [5.0]]))
SWAPPED = join(mode=FiniteSet.range(2), state=Box([0], [1]), action=Box([2, 2], [3, 5]))


# Nets.


def corners(domain):
    return set(itertools.product(*zip(*domain.bounds, strict=True)))


def rows(points):
    return {tuple(map(float, row)) for row in points}


@st.composite
def boxes(draw):
    low = draw(st.lists(st.floats(-5, 5), min_size=1, max_size=3))
    sides = draw(st.lists(st.sampled_from([0.1, 1.0, 7.0]), min_size=len(low), max_size=len(low)))
    return Box(low, np.add(low, sides))


@settings(derandomize=True, database=None, deadline=None, max_examples=60)
@given(domain=boxes(), budget=st.integers(2, 2000))
def test_net_of_a_box(domain, budget):
    points, spacing = domain.net(budget)
    low, high = domain.bounds
    assert len(points) <= max(budget, 2**domain.dimension)
    assert len(points) > (max(budget, 2**domain.dimension) ** (1 / domain.dimension) - 1.01) ** (
        domain.dimension
    )
    assert corners(domain) <= rows(points)
    for axis in range(domain.dimension):
        levels = np.unique(points[:, axis])
        np.testing.assert_allclose(np.diff(levels), spacing[axis], rtol=1e-9)
    # Every point of the box has a net point within half a spacing along each axis.
    inside = np.random.default_rng(0).uniform(low, high, size=(20, domain.dimension))
    offsets = np.abs(inside[:, None, :] - points[None, :, :])
    covered = np.all(offsets <= spacing / 2 * (1 + 1e-9), axis=2).any(axis=1)
    assert covered.all()


def test_net_of_a_cube_uses_its_budget():
    assert len(Box([0] * 3, [1] * 3).net(1000)[0]) == 1000  # though 1000**(1/3) < 10 in floats


def test_net_of_a_finite_set_is_the_set():
    points, spacing = TABLE.net(2)
    np.testing.assert_array_equal(points, [[0, 1], [2, 0], [2, 5]])
    np.testing.assert_array_equal(spacing, [0, 0])


def test_net_of_a_product():
    points, spacing = JOINED.net(300)
    assert len(points) == 300
    np.testing.assert_allclose(spacing, [2 / 9, 4 / 9, 0])
    assert rows(points) == {
        (*place, action) for place in rows(BOX.net(100)[0]) for action in (0.0, 1.0, 5.0)
    }
    assert len(rows(points)) == 300


def test_net_keeps_the_order_of_the_factors():
    points, spacing = SWAPPED.net(2 * 5**3)
    assert set(points[:, 0]) == {0.0, 1.0}
    assert spacing[0] == 0
    np.testing.assert_allclose(spacing[1:], [0.25, 0.25, 0.75])
    assert corners(SWAPPED) <= rows(points)


def test_table_of_whole_numbers():
    assert FiniteSet.range(2, 3).points == ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2))
    assert FiniteSet.range(2, 3).count == 6


# Spread points.


@pytest.mark.parametrize(
    "domain", [BOX, TABLE, JOINED, SWAPPED, join(a=TABLE, b=FiniteSet.range(2))]
)
def test_spread_is_inside_and_repeatable(domain):
    points = domain.spread_points(64)
    np.testing.assert_array_equal(points, domain.spread_points(64))
    assert points.shape[1] == domain.dimension
    assert np.max(domain.distance_outside(points)) <= 1e-12
    if domain.finite:
        assert rows(points) == rows(domain.net(1)[0])
    else:
        assert 64 <= len(points) <= 256


def test_spread_fills_the_box():
    points = BOX.spread_points(256)
    assert corners(BOX) <= rows(points)
    cells = np.floor((points - [-1, 0]) / [0.5, 1.0] * (1 - 1e-9))
    assert len(rows(cells)) == 16  # every cell of a 4 × 4 grid


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 6])
def test_spread_visits_every_face(dimension):
    points = Box([0] * dimension, [1] * dimension).spread_points(512)
    for axis in range(dimension):
        others = np.delete(points, axis, axis=1)
        for side in (0.0, 1.0):
            on_face = others[points[:, axis] == side]
            assert len(on_face) >= 128 // dimension  # an even share of a quarter
            assert np.all(np.ptp(on_face, axis=0) > 0.9)


# Outside.


def test_distance_outside():
    points = np.array([[0.0, 1.0], [-1.5, 4.25], [2.0, -1.0]])
    np.testing.assert_allclose(BOX.distance_outside(points), [[0, 0], [0.5, 0.25], [1, 1]])
    points = np.array([[0.0, 1.0], [2.5, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(TABLE.distance_outside(points), [[0, 0], [0.5, 1], [0, 1]])
    points = np.array([[0.0, 1.0, 4.5], [2.0, 1.0, 1.0]])
    np.testing.assert_allclose(JOINED.distance_outside(points), [[0, 0, 0.5], [1, 0, 0]])


@pytest.mark.parametrize(
    ("domain", "points", "told"),
    [
        (BOX, [[0.0, 1.0], [0.0, 4.5]], ["point 1", "coordinate 1 = 4.5", "outside by 0.5"]),
        (BOX, [[-3.0, 4.5]], ["point 0", "coordinate 0 = -3", "outside by 2"]),
        (BOX, [[0.0, math.nan]], ["coordinate 1 = nan"]),
        (TABLE, [[0.0, 1.0], [2.0, 0.1]], ["point 1", "coordinate 1 = 0.1", "outside by 0.1"]),
        (JOINED, [[0.0, 1.0, 2.5]], ["coordinate 2 = 2.5", "outside by 1.5"]),
    ],
)
def test_points_outside_are_named(domain, points, told):
    with pytest.raises(DomainError) as caught:
        domain.require_inside("z", jnp.array(points))
    assert caught.value.argument == "z"
    for part in told:
        assert part in str(caught.value)


def test_points_inside_pass_with_rounding():
    BOX.require_inside("z", jnp.array([[1.0 + 1e-12, 4.0 + 1e-12], [-1.0, 0.0]]))
    JOINED.require_inside("z", jnp.array([[0.3, 0.3, 5.0]]))


# Structure.


def test_projections():
    assert BOX.project([1]) == Box([0], [4])
    assert BOX.project([1, 0]) == Box([0, -1], [4, 1])
    assert TABLE.project([0]) == FiniteSet([[0.0], [2.0]])
    assert JOINED.project([2]) == FiniteSet([[0.0], [1.0], [5.0]])
    assert JOINED.project([0, 1]) == BOX
    assert JOINED.project([1, 2]) == join(state=Box([0], [4]), action=JOINED.project([2]))
    with pytest.raises(ArgumentError, match="grouped by factor"):
        JOINED.project([0, 2, 1])


def test_names_and_bounds_of_a_product():
    assert SWAPPED.names == {"mode": (0,), "state": (1,), "action": (2, 3)}
    assert SWAPPED.dimension == 4
    np.testing.assert_array_equal(SWAPPED.bounds[0], [0, 0, 2, 2])
    np.testing.assert_array_equal(SWAPPED.bounds[1], [1, 1, 3, 5])
    assert BOX.names == {}
    assert not SWAPPED.finite
    assert join(a=TABLE).finite


@pytest.mark.parametrize("domain", [BOX, TABLE, JOINED])
def test_equal_domains_hash_alike(domain):
    again = eval(repr(domain)) if domain is BOX else dataclasses.replace(domain)
    assert again == domain
    assert hash(again) == hash(domain)
    assert len({domain, again, BOX.project([0])}) == 2


def test_a_domain_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        BOX.low = (0.0, 0.0)
    BOX.bounds[0][0] = 9.0
    assert BOX.low == (-1.0, 0.0)


# Bad input.


@pytest.fixture
def as_installed():
    """Without the run-time type checks of the tests: bad input must meet our own errors."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("make", "kind", "argument"),
    [
        (lambda: Box([0, 0], [1]), ShapeError, "high"),
        (lambda: Box([0], [0]), ArgumentError, "low"),
        (lambda: Box([1], [0]), ArgumentError, "low"),
        (lambda: Box([math.nan], [1]), ArgumentError, "low"),
        (lambda: Box([0], [math.inf]), ArgumentError, "high"),
        (lambda: Box([[0]], [[1]]), ArgumentError, "low"),
        (lambda: Box([], []), ArgumentError, "low"),
        (lambda: Box("zero", 1), ArgumentError, "low"),
        (lambda: FiniteSet([0.0, 1.0]), ShapeError, "points"),
        (lambda: FiniteSet([]), ShapeError, "points"),
        (lambda: FiniteSet([[math.nan]]), ArgumentError, "points"),
        (lambda: FiniteSet([[0.0], [1.0, 2.0]]), ArgumentError, "points"),
        (lambda: FiniteSet.range(3, 0), ShapeError, "points"),
        (lambda: join(), ArgumentError, "factors"),
        (lambda: join(state=[0, 1]), ArgumentError, "state"),
    ],
)
def test_bad_input_is_named(make, kind, argument):
    with pytest.raises(kind) as caught:
        make()
    assert isinstance(caught.value, KernelMDPError)
    assert caught.value.argument == argument
    assert f"{argument}: expected " in str(caught.value)


def test_one_number_is_a_box_in_one_coordinate():
    assert Box(0, 1) == Box([0.0], [1.0])


def test_what_domains_answer_without_a_test_of_their_type():
    angle = Box([-3.0, -1.0], [3.0, 1.0], periodic=[0])
    three = FiniteSet([[0.0], [1.0], [2.0]])
    points = join(action=three, state=angle)
    assert points.periodic == (1,)
    assert angle.periodic == (0,)
    assert three.periodic == ()
    assert points.parts == (three, angle)
    assert angle.parts == (angle,)
    assert three.points is not None
    assert angle.points is None
    assert points.points is None
    assert points.bounded
    assert not join(a=angle, b=Unbounded(1)).bounded
    gap = points.difference(jnp.array([[2.0, 2.5, 1.0]]), jnp.array([[0.0, -2.5, 0.0]]))
    np.testing.assert_allclose(gap, [[2.0, -1.0, 1.0]])
