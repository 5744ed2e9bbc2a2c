"""What users get wrong: an error that names the argument, what was expected and what came."""

import math
import operator

import numpy as np
import pytest

from kernelmdp import Box, join
from kernelmdp.errors import ArgumentError, DataError, KernelMDPError, ShapeError
from kernelmdp.kernels import (
    Constant,
    Coregional,
    Function,
    Index,
    Matern,
    OneHot,
    Periodic,
    Polynomial,
    Scaled,
    SquaredExponential,
)

# The library's own errors, not those of the type checks that only tests install.
pytestmark = pytest.mark.usefixtures("as_installed")

SE = SquaredExponential()
X = np.zeros((3, 2))


def assert_names(caught, argument, got):
    error = caught.value
    assert error.argument == argument
    assert str(error).startswith(f"{argument}: expected {error.expected}, got ")
    assert error.expected
    assert got in str(error.got)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, [1.0, 0.0], []])
@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (SquaredExponential, "lengthscale"),
        (lambda value: Matern(1.5, value), "lengthscale"),
        (lambda value: Periodic(value, 1.0), "lengthscale"),
        (lambda value: Periodic(1.0, value), "period"),
        (Constant, "value"),
        (lambda value: Scaled(SE, value), "factor"),
    ],
)
def test_scales_must_be_positive_and_finite(make, argument, value):
    with pytest.raises(ArgumentError) as caught:
        make(value)
    assert_names(caught, argument, str(value))


@pytest.mark.parametrize(
    ("make", "argument", "got"),
    [
        (lambda: Matern(0.0), "nu", "0"),
        (lambda: Matern(-1.5), "nu", "-1.5"),
        (lambda: Matern(math.inf), "nu", "inf"),
        (lambda: Matern(math.nan), "nu", "nan"),
        (lambda: Matern("smooth"), "nu", "smooth"),
        (lambda: Polynomial(0), "degree", "0"),
        (lambda: Polynomial(1.5), "degree", "1.5"),
        (lambda: Polynomial(2, -1.0), "offset", "-1"),
        (lambda: Polynomial(2, math.nan), "offset", "nan"),
        (lambda: Polynomial(2, "one"), "offset", "one"),
        (lambda: Constant([1.0, 2.0]), "value", "(2,)"),
        (lambda: Scaled(SE, [1.0, 2.0]), "factor", "(2,)"),
        (lambda: -2.0 * SE, "factor", "-2"),
        (lambda: SE * 0, "factor", "0"),
        (lambda: SE * math.nan, "factor", "nan"),
        (lambda: SquaredExponential([[1.0]]), "lengthscale", "(1, 1)"),
        (lambda: Index(0), "size", "0"),
        (lambda: Index(2.5), "size", "2.5"),
        (lambda: OneHot(), "sizes", "none"),
        (lambda: Coregional([[1.0, 2.0], [2.0, 1.0]]), "matrix", "-1"),
        (lambda: Coregional([[1.0, 0.5], [0.0, 1.0]]), "matrix", "0.5"),
        (lambda: Coregional([[0.0]]), "matrix", "0"),
        (lambda: Coregional([[math.nan]]), "matrix", "nan"),
        (lambda: Coregional([1.0, 2.0]), "matrix", "(2,)"),
        (lambda: Coregional(np.ones((2, 3))), "matrix", "(2, 3)"),
        (lambda: Function(3.0), "function", "3.0"),
        (lambda: Function(lambda x, y: x * y)(X), "function", "(2,)"),
        (lambda: SE.on([]), "coordinates", "[]"),
        (lambda: SE.on(-1), "coordinates", "-1"),
        (lambda: SE.on([0, 0]), "coordinates", "[0, 0]"),
        (lambda: SE.on([0.5]), "coordinates", "0.5"),
        (lambda: SE.on(0.5), "coordinates", "0.5"),
        (lambda: SE.on("the state"), "coordinates", "the state"),
        (lambda: SE @ "index", "index", "index"),
    ],
)
def test_parameters(make, argument, got):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert_names(caught, argument, got)


@pytest.mark.parametrize(
    ("use", "kind", "argument", "got"),
    [
        (lambda: SquaredExponential([1.0, 2.0, 3.0])(X), ShapeError, "lengthscale", "3"),
        (lambda: Periodic(1.0, [1.0] * 3)(X), ShapeError, "period", "3"),
        (lambda: Matern(1.5, [1.0] * 3).on([0, 1])(X), ShapeError, "lengthscale", "3"),
        (lambda: (SE + SquaredExponential([1.0] * 3)).diagonal(X), ShapeError, "lengthscale", "3"),
        (lambda: SE(np.zeros(3)), ShapeError, "first", "(3,)"),
        (lambda: SE(X, np.zeros((2, 3))), ShapeError, "second", "(2, 3)"),
        (lambda: SE(X, np.zeros(2)), ShapeError, "second", "(2,)"),
        (lambda: SE([[math.nan, 0.0]]), DataError, "first", "nan"),
        (lambda: SE(X, [[0.0, math.inf]]), DataError, "second", "inf at index (0, 1)"),
        (lambda: SE.diagonal([[math.nan]]), DataError, "points", "nan"),
        (lambda: SE.on([2])(X), ShapeError, "points", "2"),
        (lambda: (2.0 * (SE * SE.on([0, 5])))(X), ShapeError, "points", "2"),
        (lambda: Index(3)(X), ShapeError, "points", "2"),
        (lambda: Index(3)([[0.0], [3.0]]), ArgumentError, "points", "3"),
        (lambda: Index(3)([[-1.0]]), ArgumentError, "points", "-1"),
        (lambda: Index(3)([[0.5]]), ArgumentError, "points", "0.5"),
        (lambda: Index(3).diagonal([[7.0]]), ArgumentError, "points", "7"),
        (lambda: Coregional(np.eye(2))([[0.0]], [[2.0]]), ArgumentError, "points", "2"),
        (lambda: (SE.on(0) * Index(2).on(1))([[0.0, 4.0]]), ArgumentError, "points", "4"),
        (lambda: SE.on("state")(X), ArgumentError, "kernel", "'state'"),
        (lambda: SE.on("state").bind({"action": [0]})(X), ArgumentError, "kernel", "'state'"),
        (lambda: SE.on([3]).constants(Box([0, 0], [1, 1])), ShapeError, "points", "2"),
        (lambda: SE.on("goal").rank(join(state=Box([0], [1]))), ArgumentError, "kernel", "'goal'"),
    ],
)
def test_points(use, kind, argument, got):
    with pytest.raises(kind) as caught:
        use()
    assert isinstance(caught.value, KernelMDPError)
    assert_names(caught, argument, got)


@pytest.mark.parametrize(
    ("operate", "other"),
    [
        (operator.add, 1.0),
        (operator.add, None),
        (operator.mul, "2"),
        (operator.mul, [2.0, 3.0]),
        (operator.sub, SE),
        (operator.pow, 2),
    ],
)
def test_operators_on_other_things(operate, other):
    with pytest.raises(TypeError):
        operate(SE, other)
    if other is not SE:
        with pytest.raises(TypeError):
            operate(other, SE)


def test_an_error_changes_nothing():
    kernel = Index(3)
    with pytest.raises(ArgumentError):
        kernel([[5.0]])
    np.testing.assert_array_equal(kernel([[0.0], [2.0]]), np.eye(2))
