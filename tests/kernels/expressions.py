"""Kernels in NumPy and SciPy, and random expressions that carry such an oracle along.

An oracle is a function of two arrays of points, rows (n, d) and (k, d), giving the matrix (n, k).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from scipy import special

from kernelmdp import kernels
from kernelmdp.kernels import Kernel

Oracle = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: In random expressions the last of three coordinates is a whole number below this.
MEMBERS = 3
COREGIONAL = np.array([[2.0, 1.0, 0.5], [1.0, 2.0, -1.0], [0.5, -1.0, 1.5]])


def points(rng, count, low=-1.0, high=1.0):
    """Points of three coordinates, the last a whole number."""
    free = rng.uniform(low, high, size=(count, 2))
    return np.column_stack([free, rng.integers(MEMBERS, size=count)])


def differences(x, y):
    return x[:, None, :] - y[None, :, :]


def squared_exponential(lengthscale) -> Oracle:
    return lambda x, y: np.exp(-0.5 * np.sum((differences(x, y) / lengthscale) ** 2, axis=-1))


def matern(nu, lengthscale) -> Oracle:
    def evaluate(x, y):
        t = np.sqrt(2 * nu * np.sum((differences(x, y) / lengthscale) ** 2, axis=-1))
        apart = np.where(t > 0, t, 1.0)
        value = 2 ** (1 - nu) / special.gamma(nu) * apart**nu * special.kv(nu, apart)
        return np.where(t > 0, value, 1.0)

    return evaluate


def periodic(lengthscale, period) -> Oracle:
    def evaluate(x, y):
        sines = np.sin(np.pi * differences(x, y) / period)
        return np.exp(-2 * np.sum((sines / lengthscale) ** 2, axis=-1))

    return evaluate


def constant(value) -> Oracle:
    return lambda x, y: np.full((len(x), len(y)), value)


def polynomial(degree, offset) -> Oracle:
    return lambda x, y: (offset + x @ y.T) ** degree


def members(matrix, column) -> Oracle:
    return lambda x, y: matrix[np.ix_(x[:, column].astype(int), y[:, column].astype(int))]


class Expression(NamedTuple):
    """A kernel and, built beside it, its oracle."""

    kernel: Kernel
    evaluate: Oracle


def plus(a: Expression, b: Expression) -> Expression:
    return Expression(a.kernel + b.kernel, lambda x, y: a.evaluate(x, y) + b.evaluate(x, y))


def times(a: Expression, b: Expression) -> Expression:
    return Expression(a.kernel * b.kernel, lambda x, y: a.evaluate(x, y) * b.evaluate(x, y))


def scaled(factor: float, a: Expression) -> Expression:
    return Expression(factor * a.kernel, lambda x, y: factor * a.evaluate(x, y))


def restricted(a: Expression, chosen: list[int]) -> Expression:
    return Expression(a.kernel.on(chosen), lambda x, y: a.evaluate(x[:, chosen], y[:, chosen]))


SCALES = st.sampled_from([0.3, 0.5, 0.8, 1.0, 1.7, 3.0])


@st.composite
def atoms(draw, columns: tuple[int, ...]) -> Expression:
    """A kernel on the given columns of ``points``, all at once."""
    d = len(columns)
    per_axis = st.lists(SCALES, min_size=d, max_size=d)
    names = ["se", "matern", "periodic", "constant", "linear", "polynomial"]
    name = draw(st.sampled_from([*names, "index", "coregional"] if 2 in columns else names))
    if name == "se":
        lengthscale = draw(SCALES | per_axis)
        made = kernels.SquaredExponential(lengthscale), squared_exponential(lengthscale)
    elif name == "matern":
        nu, lengthscale = draw(st.sampled_from([0.5, 0.7, 1.5, 2.5, 3.0])), draw(SCALES | per_axis)
        made = kernels.Matern(nu, lengthscale), matern(nu, lengthscale)
    elif name == "periodic":
        lengthscale, period = draw(SCALES | per_axis), draw(SCALES | per_axis)
        made = kernels.Periodic(lengthscale, period), periodic(lengthscale, period)
    elif name == "constant":
        value = draw(SCALES)
        made = kernels.Constant(value), constant(value)
    elif name == "linear":
        made = kernels.Linear(), polynomial(1, 0.0)
    elif name == "polynomial":
        degree, offset = draw(st.integers(1, 3)), draw(st.sampled_from([0.0, 0.5, 1.0]))
        made = kernels.Polynomial(degree, offset), polynomial(degree, offset)
    else:
        discrete = kernels.Index(MEMBERS) if name == "index" else kernels.Coregional(COREGIONAL)
        matrix = np.eye(MEMBERS) if name == "index" else COREGIONAL
        place = columns.index(2)
        made = (discrete if d == 1 else discrete.on(place)), members(matrix, place)
    return Expression(*made)


@st.composite
def expressions(draw, columns: tuple[int, ...] = (0, 1, 2), depth: int = 3) -> Expression:
    """A kernel on the given columns of ``points``: operations nested at most ``depth`` deep."""
    forms = ["atom", "sum", "product", "scaled", "restricted"]
    form = draw(st.sampled_from(forms)) if depth else "atom"
    if form == "sum":
        return plus(draw(expressions(columns, depth - 1)), draw(expressions(columns, depth - 1)))
    if form == "product":
        return times(draw(expressions(columns, depth - 1)), draw(expressions(columns, depth - 1)))
    if form == "scaled":
        return scaled(draw(SCALES), draw(expressions(columns, depth - 1)))
    if form == "restricted":
        places = st.sampled_from(range(len(columns)))
        chosen = draw(st.lists(places, min_size=1, max_size=len(columns), unique=True))
        inner = tuple(columns[place] for place in chosen)
        return restricted(draw(expressions(inner, depth - 1)), chosen)
    return draw(atoms(columns))
