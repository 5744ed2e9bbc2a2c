"""The text form of kernels: what parses, what it means, and where it says it is wrong."""

import ast
import inspect

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelmdp import kernel, kernels
from kernelmdp.errors import ArgumentError, KernelMDPError, KernelTextError
from kernelmdp.kernels import text as grammar

# The grammar must stand on its own, not on the type checks that only tests install.
pytestmark = pytest.mark.usefixtures("as_installed")

B = [[2.0, 1.0], [1.0, 2.0]]
WRITTEN = [
    (kernels.SquaredExponential(0.5), "se(0.5)"),
    (kernels.SquaredExponential([0.5, 1e-05]), "se([0.5, 1e-05])"),
    (kernels.Matern(2.5, 1.0), "matern(2.5, 1.0)"),
    (kernels.Matern(0.7, [1.0, 3.0]), "matern(0.7, [1.0, 3.0])"),
    (kernels.Periodic(0.5, 2.0), "periodic(0.5, 2.0)"),
    (kernels.Constant(1e20), "constant(1e+20)"),
    (kernels.Linear(), "linear"),
    (kernels.Quadratic(), "quadratic"),
    (kernels.Polynomial(3, 0.5), "polynomial(3, 0.5)"),
    (kernels.Index(4), "index(4)"),
    (kernels.Coregional(B), "coregional([[2.0, 1.0], [1.0, 2.0]])"),
    (kernels.OneHot(6, 2), "index(6)[0] * index(2)[1]"),
    (kernels.Linear().on("state"), "linear[state]"),
    (kernels.Linear().on([2, 0]), "linear[2, 0]"),
    (2 * kernels.Linear(), "2.0 * linear"),
    (3.0 * (2.0 * kernels.Linear()), "3.0 * (2.0 * linear)"),
    ((kernels.Linear() + kernels.Constant()).on(0), "(linear + constant(1.0))[0]"),
    (2.0 * (kernels.Linear() + kernels.Index(2)), "2.0 * (linear + index(2))"),
    (2.0 * (kernels.Linear() * kernels.Index(2)), "2.0 * (linear * index(2))"),
    ((kernels.Linear() * kernels.Index(2)).on(0), "(linear * index(2))[0]"),
    ((kernels.Linear() + kernels.Index(2)) * kernels.Linear(), "(linear + index(2)) * linear"),
    (kernels.Linear() * (kernels.Linear() + kernels.Index(2)), "linear * (linear + index(2))"),
    (kernels.Linear() * (kernels.Linear() * kernels.Index(2)), "linear * (linear * index(2))"),
    (kernels.Linear() + (kernels.Linear() + kernels.Index(2)), "linear + (linear + index(2))"),
]


@pytest.mark.parametrize(("made", "text"), WRITTEN)
def test_repr_is_the_text_that_parses(made, text):
    assert repr(made) == made.text() == text
    again = kernel(text)
    assert again.text() == text
    assert eqx.tree_equal(again, made)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("  se( 0.5 )\n\t+linear ", "se(0.5) + linear"),
        ("se(lengthscale=0.5)", "se(0.5)"),
        ("se(lengthscale = [1, 2])", "se([1.0, 2.0])"),
        ("matern(nu=1.5, lengthscale=2)", "matern(1.5, 2.0)"),
        ("matern(lengthscale=2, nu=1.5)", "matern(1.5, 2.0)"),
        ("matern(2, lengthscale=.5)", "matern(2.0, 0.5)"),
        ("periodic(period=1)", "periodic(1.0, 1.0)"),
        ("polynomial(2, 0)", "quadratic"),
        ("polynomial(degree=2)", "polynomial(2, 1.0)"),
        ("linear()", "linear"),
        ("onehot(3, 2)", "index(3)[0] * index(2)[1]"),
        ("linear[0:3]", "linear[0, 1, 2]"),
        ("linear * 2", "2.0 * linear"),
        ("2 * 3 * linear", "6.0 * linear"),
        ("2 * linear * 3", "3.0 * (2.0 * linear)"),
        ("linear + linear + linear", "linear + linear + linear"),
        ("linear + linear * linear", "linear + linear * linear"),
        ("((linear))", "linear"),
        ("linear[1, 2][0]", "linear[1, 2][0]"),
    ],
)
def test_other_spellings(text, canonical):
    assert kernel(text).text() == canonical


def test_precedence_is_that_of_arithmetic():
    x, y = np.array([[1.0]]), np.array([[2.0]])

    def value(text):
        return float(kernel(text)(x, y)[0, 0])

    assert value("linear + linear * quadratic") == 2 + 2 * 4
    assert value("(linear + linear) * quadratic") == (2 + 2) * 4
    assert value("linear * quadratic + linear") == 2 * 4 + 2
    assert value("3 * linear + quadratic * 2") == 3 * 2 + 4 * 2


# The text, where it goes wrong, and a word of what was expected there.
WRONG = [
    ("", 0, "a kernel"),
    ("  ", 2, "a kernel"),
    ("se(1.0", 6, "','"),
    ("se(1.0))", 7, "the end"),
    ("se(1.0) linear", 8, "the end"),
    ("linear + ", 9, "a kernel"),
    ("+ linear", 0, "a kernel"),
    ("linear * * linear", 9, "a kernel"),
    ("linear - linear", 7, "the end"),
    ("linear & linear", 7, "an operator"),
    ("linear + gaussian(1.0)", 9, "one of"),
    ("2.0", 0, "a factor"),
    ("linear + 2.0", 9, "a factor"),
    ("(2.0) * linear", 1, "a factor"),
    ("-2.0 * linear", 5, "greater than 0"),
    ("linear + se(0.0)", 9, "greater than 0"),
    ("se([1.0, -1.0])", 0, "greater than 0"),
    ("se(lengths=1.0)", 0, "valid arguments"),
    ("se(1.0, lengthscale=2.0)", 0, "valid arguments"),
    ("se(lengthscale=1.0, lengthscale=2.0)", 20, "once"),
    ("se([1.0,])", 8, "a number"),
    ("se([])", 4, "a number"),
    ("se(1.0 2.0)", 7, "','"),
    ("constant([1.0, 2.0])", 0, "one number"),
    ("matern", 0, "valid arguments"),
    ("index(2.5)", 0, "whole number"),
    ("index(1e400)", 0, "valid arguments"),
    ("coregional([[1, 2], [2, 1]])", 0, "semi-definite"),
    ("linear[", 7, "a position"),
    ("linear[0.5]", 7, "a position"),
    ("linear[-1]", 7, "a position"),
    ("linear[state, action]", 12, "']'"),
    ("linear[0:]", 9, "a position"),
    ("linear[2:1]", 6, "distinct positions"),
    ("linear[0, 0]", 6, "distinct positions"),
    ("(linear", 7, "')'"),
    ("linear @ linear", 7, "Index(m)"),
    ("2.0 @ index(2)", 4, "combine"),
    ("linear @ index(2) + linear", 18, "combine"),
    ("linear @ index(2) + linear @ index(3)", 18, "2 outputs"),
    ("(linear @ index(2))[0]", 19, "before a restriction"),
    ("independent()", 0, "one per output"),
    ("independent(1.0)", 0, "one per output"),
    ("__import__('os')", 11, "a name"),
]


@pytest.mark.parametrize(("text", "position", "expected"), WRONG)
def test_error_points_at_what_is_wrong(text, position, expected):
    with pytest.raises(KernelTextError) as caught:
        kernel(text)
    error = caught.value
    assert error.position == position
    assert error.argument == "text"
    assert expected in error.expected
    *_, shown, pointer = str(error).split("\n")
    assert shown == "  " + text
    assert pointer.index("^") == 2 + position


@pytest.mark.parametrize("opening", ["(", "[", "se(", "independent(", "se(["])
def test_deep_nesting_is_a_text_error(opening):
    with pytest.raises(KernelTextError):
        kernel(opening * 3000)


def test_text_must_be_a_text():
    with pytest.raises(ArgumentError, match="text: expected a text"):
        kernel(2.0)


WORDS = [*grammar.NAMES, "state", "lengthscale", "nu", "1.0", "2", "-1", "0.5", "1e400", "[0]"]
MARKS = [*"+*@()[],:=-. ", "[[2,1],[1,2]]", "(1.0)", "(2)"]
SOUND = [
    "(se(0.5)[state] + matern(2.5, 1.0)[0:2]) * linear[action] @ index(2)",
    "2.0 * periodic(lengthscale=[1,2], period=3) + constant(1e-5) * quadratic",
    "coregional([[2,1],[1,2]])[2] * polynomial(3, offset=.5) + onehot(3,2)",
    "independent(se(1), 2*linear) + linear @ index(2)",
]


@st.composite
def damaged(draw):
    """A sound text with a few pieces put in place of others: many still parse."""
    text = draw(st.sampled_from(SOUND))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(text)))
        piece = draw(st.sampled_from(["", *MARKS, *"0123e"]))
        text = text[:place] + piece + text[place + draw(st.integers(0, 2)) :]
    return text


def parse(text):
    """The kernel, or the error if it is the one that texts may raise."""
    try:
        return kernel(text)
    except KernelTextError as error:
        return error


@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(text=damaged() | st.lists(st.sampled_from(WORDS + MARKS), max_size=12).map("".join))
def test_any_text_parses_or_is_a_text_error(text):
    parsed = parse(text)
    if not isinstance(parsed, KernelTextError):
        canonical = parsed.text()
        assert kernel(canonical).text() == canonical


@settings(derandomize=True, database=None, deadline=None, max_examples=100)
@given(text=st.text(max_size=20) | st.text("selinar()[],+*@:=.01 -e", max_size=20))
def test_any_characters_are_a_text_error(text):
    parsed = parse(text)
    assert not isinstance(parsed, KernelTextError) or 0 <= parsed.position <= len(text)


def test_nothing_is_evaluated():
    tree = ast.parse(inspect.getsource(grammar))
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert "KernelTextError" in called  # the walk sees calls
    assert not called & {"eval", "exec", "compile", "__import__", "getattr"}


# Functions of the user.


def cubic(x, y):
    return jnp.dot(x, y) ** 3


def test_functions_by_name():
    x = np.random.default_rng(0).normal(size=(4, 2))
    made = kernel(
        "2.0 * cubic[1] + base", functions={"cubic": cubic, "base": kernels.Constant(3.0)}
    )
    np.testing.assert_allclose(made(x), 2 * np.outer(x[:, 1], x[:, 1]) ** 3 + 3, rtol=1e-12)
    text = made.text()
    assert text == "2.0 * cubic[1] + constant(3.0)"
    assert kernel(text, functions={"cubic": cubic}).text() == text
    with pytest.raises(KernelTextError, match="one of") as caught:
        kernel(text)
    assert caught.value.position == 6


def test_functions_take_no_arguments_and_must_be_functions():
    with pytest.raises(KernelTextError):
        kernel("cubic(2)", functions={"cubic": cubic})
    with pytest.raises(KernelMDPError, match="function: expected a function of two points"):
        kernel("cubic", functions={"cubic": 3.0})
