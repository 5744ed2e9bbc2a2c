"""Transition kernels against Kronecker products and blocks; row (t, i) stands at t·m + i."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from kernelmdp import Box, join, kernel
from kernelmdp.errors import ArgumentError, KernelTextError
from kernelmdp.kernels import (
    Coregional,
    Coregionalised,
    Independent,
    Index,
    Linear,
    Matern,
    Quadratic,
    SquaredExponential,
)
from kernelmdp.kernels.output_kernels import with_outputs

from .expressions import matern, polynomial, squared_exponential

B = np.array([[2.0, 0.5, -1.0], [0.5, 1.0, 0.0], [-1.0, 0.0, 3.0]])
DOMAIN = join(state=Box([-1, -1], [1, 1]), action=Box([0], [2]))


@pytest.fixture
def x(rng):
    return rng.normal(size=(5, 3))


@pytest.fixture
def y(rng):
    return rng.normal(size=(4, 3))


def blocks(*oracles):
    """Row (t, i), column (s, j): k_i(x_t, y_s) when i = j."""

    def evaluate(x, y):
        m = len(oracles)
        full = np.zeros((len(x) * m, len(y) * m))
        for i, oracle in enumerate(oracles):
            full[i::m, i::m] = oracle(x, y)
        return full

    return evaluate


def kronecker(oracle, matrix):
    return lambda x, y: np.kron(oracle(x, y), matrix)


FORMS = {
    "index": (
        SquaredExponential(0.7) @ Index(3),
        kronecker(squared_exponential(0.7), np.eye(3)),
    ),
    "coregional": (
        Matern(1.5, [0.5, 1.0, 2.0]) @ Coregional(B),
        kronecker(matern(1.5, [0.5, 1.0, 2.0]), B),
    ),
    "independent": (
        Independent([SquaredExponential(0.7), Linear(), 2.0 * Matern(0.5)]),
        blocks(
            squared_exponential(0.7),
            polynomial(1, 0.0),
            lambda x, y: 2 * matern(0.5, 1.0)(x, y),
        ),
    ),
    "sum": (
        Linear() @ Coregional(B) + SquaredExponential(0.7) @ Index(3),
        lambda x, y: np.kron(x @ y.T, B) + np.kron(squared_exponential(0.7)(x, y), np.eye(3)),
    ),
    "sum with independent": (
        Linear() @ Coregional(B) + Independent([Linear(), Quadratic(), Linear()]),
        lambda x, y: (
            np.kron(x @ y.T, B)
            + blocks(polynomial(1, 0.0), polynomial(2, 0.0), polynomial(1, 0.0))(x, y)
        ),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_full_matrix(name, x, y):
    made, oracle = FORMS[name]
    np.testing.assert_allclose(made(x, y), oracle(x, y), atol=1e-12)
    assert made.outputs == 3


@pytest.mark.parametrize("name", ["coregional", "independent"])
def test_scalar_form_takes_the_output_as_last_coordinate(name, x, y):
    made, oracle = FORMS[name]
    scalar = made.as_scalar(3)
    first = np.column_stack([x, [0, 2, 1, 1, 0]])
    second = np.column_stack([y, [2, 2, 0, 1]])
    full = oracle(x, y)
    expected = [[full[3 * t + int(a[3]), 3 * s + int(b[3])] for s, b in enumerate(second)]
                for t, a in enumerate(first)]  # fmt: skip
    np.testing.assert_allclose(scalar(first, second), expected, atol=1e-12)


def test_rows_of_points_and_outputs():
    x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    rows = [[1, 2, 0], [1, 2, 1], [1, 2, 2], [3, 4, 0], [3, 4, 1], [3, 4, 2]]
    np.testing.assert_array_equal(with_outputs(x, 3), rows)
    assert with_outputs(x.astype(jnp.float32), 3).dtype == jnp.float32


@pytest.mark.parametrize("name", FORMS)
def test_text_gives_the_kernel_back(name):
    made, _ = FORMS[name]
    again = kernel(made.text())
    assert again.text() == made.text() == repr(made)
    assert eqx.tree_equal(again, made)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("se(1.0)[state] @ index(2)", "se(1.0)[state] @ index(2)"),
        ("(se(1.0) + linear) @ index(2)", "(se(1.0) + linear) @ index(2)"),
        ("2.0 * linear @ index(2)", "(2.0 * linear) @ index(2)"),
        ("independent(se(1), 2 * linear + linear)", "independent(se(1.0), 2.0 * linear + linear)"),
        ("linear @ index(2) + (linear @ index(2))", "linear @ index(2) + linear @ index(2)"),
        (
            "linear @ index(2) + (linear @ index(2) + linear @ index(2))",
            "linear @ index(2) + (linear @ index(2) + linear @ index(2))",
        ),
    ],
)
def test_texts(text, canonical):
    assert kernel(text).text() == canonical
    assert kernel(canonical).text() == canonical


def test_names_are_bound_in_every_part(x):
    named = Independent([SquaredExponential(0.7).on("state"), Linear().on("action")])
    named = named + (Linear().on("action") @ Index(2))
    states, actions = x[:, :2], x[:, 2:]
    linear = polynomial(1, 0.0)(actions, actions)
    expected = np.kron(linear, np.eye(2))
    expected[0::2, 0::2] += squared_exponential(0.7)(states, states)
    expected[1::2, 1::2] += linear
    np.testing.assert_allclose(named.bind(DOMAIN.names)(x), expected, atol=1e-12)
    with pytest.raises(ArgumentError, match="'state'"):
        named(x)


@pytest.mark.parametrize(
    ("made", "bound"),
    [
        (Linear() @ Index(2), 6.0),
        (Linear() @ Coregional(B), 18.0),
        (Independent([Linear().on("action"), 3.0 * SquaredExponential()]), 4.0),
        (Linear().on("state") @ Coregional(B) + SquaredExponential() @ Index(3), 7.0),
    ],
)
def test_variance_bound(made, bound):
    assert made.variance_bound(DOMAIN) == pytest.approx(
        bound
    )  # attained at state (1, −1), action 2


def test_parts_are_the_kernels_on_points():
    made = FORMS["sum with independent"][0]
    assert [part.text() for part in made.parts()] == ["linear", "linear", "quadratic", "linear"]


def test_single_precision(x):
    made, oracle = FORMS["coregional"]
    single = made(x.astype(np.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, oracle(x, x), atol=1e-5)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: Linear() @ 2, "index"),
        (lambda: Linear() @ Linear(), "index"),
        (lambda: Coregionalised(Linear(), Index(2).on(0)), "index"),
        (lambda: Independent([]), "kernels"),
        (lambda: Independent([Linear(), 2.0]), "kernels"),
        (lambda: Linear() @ Index(2) + Linear() @ Index(3), "right"),
    ],
)
def test_bad_input_is_named(make, argument):
    with pytest.raises(ArgumentError) as caught:
        make()
    assert caught.value.argument == argument


@pytest.mark.parametrize("text", ["linear @ linear", "linear @ index(2) * linear"])
def test_bad_text(text):
    with pytest.raises(KernelTextError):
        kernel(text)


def test_sum_with_a_kernel_on_points_is_refused():
    with pytest.raises(TypeError):
        Linear() @ Index(2) + Linear()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("same_noise", [True, False])
def test_independent_parts_make_up_the_kernel(form, same_noise, x):
    """Σ_j scale_j k_j(x, y) u_j u_jᵀ is the whole kernel, wherever outputs can be split."""
    own, oracle = FORMS[form]
    found = own.decompose(same_noise=same_noise)
    if found is None:
        assert form not in ("index", "independent")
        return
    m = own.outputs
    if found.axes is None:
        (part,) = found.parts
        assert part.copies == m
        total = np.kron(np.asarray(part.kernel(x)), np.eye(m))
    else:
        axes = np.asarray(found.axes)
        np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-12)
        total = sum(
            np.kron(part.scale * np.asarray(part.kernel(x)), np.outer(u, u))
            for part, u in zip(found.parts, axes.T, strict=True)
        )
    np.testing.assert_allclose(total, oracle(x, x), atol=1e-12)


def test_a_kernel_of_one_output_is_its_own_part():
    own = SquaredExponential(0.7)
    assert own.outputs == 1
    assert own.scalar
    assert own.parts() == (own,)
    assert own.decompose(same_noise=False).parts[0].kernel is own


@pytest.mark.parametrize("form", FORMS)
def test_facts_of_one_output_bound_its_variance(form, x):
    own, oracle = FORMS[form]
    box = Box([-5.0] * 3, [5.0] * 3)
    variances = np.diag(oracle(x, x)).reshape(len(x), own.outputs)
    for i in range(own.outputs):
        assert variances[:, i].max() <= own.constants_of(i, box).variance_bound * (1 + 1e-12)
