"""Sums, products, scalings and restrictions against NumPy, nested as they come."""

import functools

import equinox as eqx
import numpy as np
import pytest
from hypothesis import given, settings

from kernelmdp import Box, FiniteSet, join, kernel, kernels
from kernelmdp.errors import ArgumentError

from .expressions import (
    Expression,
    expressions,
    matern,
    plus,
    points,
    polynomial,
    squared_exponential,
    times,
)

random_expressions = functools.partial(
    settings, derandomize=True, database=None, deadline=None, max_examples=10
)

SE = Expression(kernels.SquaredExponential(0.7), squared_exponential(0.7))
MATERN = Expression(kernels.Matern(1.5, 0.4), matern(1.5, 0.4))
LINEAR = Expression(kernels.Linear(), polynomial(1, 0.0))


def assert_same(first, second):
    scale = max(1.0, np.max(np.abs(second)))
    np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-11 * scale)


@random_expressions()
@given(expression=expressions())
def test_expression_is_a_kernel_and_the_one_written(expression):
    x = points(np.random.default_rng(1), 9)
    gram = np.asarray(expression.kernel(x))
    assert_same(gram, expression.evaluate(x, x))
    assert_same(gram, gram.T)
    assert_same(np.asarray(expression.kernel.diagonal(x)), np.diag(gram))
    assert np.linalg.eigvalsh(gram)[0] >= -1e-9 * len(x) * max(1.0, np.max(np.diag(gram)))


@random_expressions(max_examples=60)
@given(expression=expressions())
def test_text_gives_the_kernel_back(expression):
    text = expression.kernel.text()
    assert repr(expression.kernel) == text
    again = kernel(text)
    assert again.text() == text
    # The same operations in the same order on the same numbers, and so the same matrix.
    assert eqx.tree_equal(again, expression.kernel)


def test_sums_are_not_flattened_into_products():
    x = points(np.random.default_rng(3), 6)
    a, b, c = (e.evaluate(x, x) for e in (SE, MATERN, LINEAR))
    ka, kb, kc = (e.kernel for e in (SE, MATERN, LINEAR))
    assert_same(np.asarray(((ka + kb) * kc)(x)), (a + b) * c)
    assert_same(np.asarray((ka * (kb + kc))(x)), a * (b + c))
    assert_same(np.asarray(((ka + kb) * (kb + kc))(x)), (a + b) * (b + c))
    assert_same(np.asarray((ka + kb * kc)(x)), a + b * c)
    assert_same(np.asarray((2.0 * (ka + kb) * kc)(x)), 2 * (a + b) * c)


def test_laws_of_arithmetic():
    x = points(np.random.default_rng(4), 6)
    a, b, c = SE.kernel, MATERN.kernel.on([2, 0]), LINEAR.kernel
    assert_same((a + b)(x), (b + a)(x))
    assert_same((a * b)(x), (b * a)(x))
    assert_same(((a + b) * c)(x), (a * c + b * c)(x))
    assert_same((2.5 * (a + b))(x), (2.5 * a + b * 2.5)(x))


def test_restricting_a_restriction_counts_positions_inside():
    x = points(np.random.default_rng(5), 6)
    nested = kernels.SquaredExponential(0.7).on([1]).on([2, 0])  # coordinate 1 of (2, 0) is 0
    assert_same(np.asarray(nested(x)), SE.evaluate(x[:, [0]], x[:, [0]]))


@pytest.mark.parametrize(
    "text", ["se(0.7)[state] + linear[action]", "se(0.7)[state]*linear[action]"]
)
def test_direct_sum_and_tensor_product_on_named_coordinates(text):
    x = np.random.default_rng(6).normal(size=(6, 3))
    domain = join(state=Box([0, 0], [1, 1]), action=Box([-1], [1]))
    first = SE.evaluate(x[:, :2], x[:, :2])
    second = LINEAR.evaluate(x[:, 2:], x[:, 2:])
    expected = first + second if "+" in text else first * second
    assert_same(np.asarray(kernel(text).bind(domain.names)(x)), expected)
    by_position = kernel(text.replace("state", "0, 1").replace("action", "2"))
    assert_same(np.asarray(by_position(x)), expected)
    assert kernel(text).bind(domain.names).text() == by_position.text()


def test_bound_names_follow_the_order_of_the_domain():
    x = np.random.default_rng(7).normal(size=(4, 3))
    swapped = join(action=Box([-1], [1]), state=Box([0, 0], [1, 1]))
    bound = kernel("se(0.7)[state]").bind(swapped.names)
    assert_same(np.asarray(bound(x)), SE.evaluate(x[:, 1:], x[:, 1:]))


@pytest.mark.parametrize(
    "use",
    [
        lambda k: k(np.zeros((2, 2))),
        lambda k: k.diagonal(np.zeros((2, 2))),
        lambda k: k.rank(Box([0, 0], [1, 1])),
        lambda k: k.constants(Box([0, 0], [1, 1])),
        lambda k: k.constants(join(position=Box([0], [1]), action=Box([0], [1]))),
        lambda k: k.bind({"action": [1]})(np.zeros((2, 2))),
    ],
)
def test_unbound_name_is_an_error_that_names_it(use):
    with pytest.raises(ArgumentError, match="'state'"):
        use(kernels.Linear().on("state") + kernels.Linear().on([0]))


def test_facts_and_rank_bind_by_the_names_of_the_domain():
    domain = join(state=FiniteSet([[0.0, 1.0], [2.0, 0.0]]), action=Box([-1], [3]))
    k = kernels.Linear().on("state") + kernels.Quadratic().on("action")
    assert k.rank(domain) == 3
    assert k.variance_bound(domain) == pytest.approx((2**2 + 1) + 3**4)


def test_scaling_composes_and_sums_of_equal_kernels_double():
    x = points(np.random.default_rng(8), 5)
    twice = plus(SE, SE)
    assert_same(np.asarray(twice.kernel(x)), np.asarray((2.0 * SE.kernel)(x)))
    assert_same(np.asarray((3.0 * (2.0 * SE.kernel))(x)), 6 * SE.evaluate(x, x))
    squared = times(SE, SE)  # a product of equal SE kernels is one of lengthscale ℓ/√2
    assert_same(np.asarray(squared.kernel(x)), squared_exponential(0.7 / np.sqrt(2))(x, x))
