"""Kernels: functions of two points, and their algebra.

A kernel defines ``pair(x, y)`` for one pair of points; batching happens here, once. Parameters are
array leaves of a pytree, so kernels pass through ``jit``, ``vmap`` and ``grad``; what fixes shapes
(coordinates, degrees) is static. Every kernel prints as a text that ``kernelmdp.kernel`` parses.
"""

import abc
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError, ShapeError, UnknownPropertyError
from kernelmdp.kernels import facts as rules
from kernelmdp.kernels.facts import Facts
from kernelmdp.numerics.checks import as_points, positive
from kernelmdp.numerics.factor import is_traced
from kernelmdp.types import AnyArray, Key, Matrix, Point, Scalar, Vector

if TYPE_CHECKING:
    from kernelmdp.kernels.outputs import Coregionalised
from kernelmdp.numerics.modules import Module, jit

# How tightly a form binds in text: a + b, a * b, atom.
SUM, PRODUCT, ATOM = 0, 1, 2


class Kernel(Module):
    """A positive semi-definite function of two points in d coordinates.

    >>> import kernelmdp as km
    >>> kernel = 2.0 * km.kernel("se(0.5)").on("state") + km.kernel("linear").on("action")
    >>> kernel
    2.0 * se(0.5)[state] + linear[action]
    """

    @abc.abstractmethod
    def pair(self, x: Point, y: Point) -> Scalar:
        """k(x, y) for one pair of points."""

    @abc.abstractmethod
    def _facts(self, low: np.ndarray, high: np.ndarray) -> Facts:
        """Constants of the kernel on the box from low to high."""

    @abc.abstractmethod
    def _text(self) -> tuple[str, int]:
        """The text form and how tightly it binds."""

    # What composite kernels and special kernels refine.

    def variance(self, x: Point) -> Scalar:
        """k(x, x) for one point."""
        return self.pair(x, x)

    def feature_count(self, dimension: int) -> float:
        """Number of features for points of that many coordinates (at least the rank), or inf."""
        return math.inf

    @property
    def cell_count(self) -> int | None:
        """Number of cells when k(x, y) = c·1{x and y in the same cell}, c constant; else None."""
        return None

    def cell(self, x: Point) -> jax.Array:
        """The number of the cell of a point, for a kernel with cells."""
        raise UnknownPropertyError(f"{self} has no cells")

    def exponent(self, x: Point, y: Point) -> Scalar | None:
        """ln k(x, y) where that is a plain expression, so that products share an exponential."""
        return None

    def features(self, x: Point) -> Vector:
        """φ(x) with k(x, y) = φ(x)ᵀφ(y), for kernels of finite rank."""
        raise UnknownPropertyError(f"{self} has no finite feature map")

    @property
    def stationary(self) -> bool:
        """Whether k(x, y) depends on x − y only and its spectral law is known."""
        return False

    def frequencies(self, count: int, dimension: int, *, key: Key) -> Float[Array, "count d"]:
        """Draws from the spectral law: k(x, y) = k(0, 0) E cos(ωᵀ(x − y))."""
        raise UnknownPropertyError(f"{self} has no spectral law")

    def spectral_density(self, frequency: Float[Array, "... d"]) -> Float[Array, "..."]:
        """S(ω) with k(x, y) = (2π)^−d ∫ S(ω) exp(iωᵀ(x − y)) dω."""
        raise UnknownPropertyError(f"{self} has no spectral density in closed form")

    def require_dimension(self, dimension: int) -> None:
        """ShapeError when the kernel cannot act on points of this many coordinates."""

    def require_points(self, points: np.ndarray) -> None:
        """ArgumentError when points are of a kind the kernel does not know."""

    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> "Kernel":
        """The kernel with coordinate names, such as state and action, replaced by positions."""
        return self

    # What every kernel offers.

    def __call__(self, first: Any, second: Any = None) -> Matrix:
        """The matrix of k between rows of ``first`` (n, d) and ``second`` (k, d)."""
        x = as_points("first", first)
        y = x if second is None else as_points("second", second, dimension=x.shape[1])
        self._require(x)
        self._require(y)
        return gram(self, x, y.astype(x.dtype))

    def diagonal(self, points: Any) -> Vector:
        """k(x, x) for every row."""
        x = as_points("points", points)
        self._require(x)
        return variances(self, x)

    def facts(self, domain: Domain) -> Facts:
        """Variance bound and smoothness on a domain (on its bounding box)."""
        bound = self.bind(domain.names)
        bound.require_dimension(domain.dimension)
        return bound._facts(*domain.bounds)

    def variance_bound(self, domain: Domain) -> float:
        """κ: an upper bound of k(x, x) on the domain."""
        return self.facts(domain).variance_bound

    def rank(self, domain: Domain) -> float:
        """Number of features, a bound on the rank on the domain: a whole number, or infinity."""
        return self.bind(domain.names).feature_count(domain.dimension)

    def on(self, coordinates: str | int | Iterable[int]) -> "Restricted":
        """The kernel applied to some coordinates only, by position or by name."""
        return Restricted(self, coordinates)

    def astype(self, dtype: Any) -> "Kernel":
        """The kernel with its parameters in another precision."""
        cast = lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf  # noqa: E731
        return jax.tree.map(cast, self)

    def text(self) -> str:
        """The form that ``kernelmdp.kernel`` parses."""
        return self._text()[0]

    def _require(self, points: AnyArray) -> None:
        self.require_dimension(points.shape[1])
        if not is_traced(points):
            self.require_points(np.asarray(points))

    def __add__(self, other: Any) -> "Sum":
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> "Kernel":
        if isinstance(other, Kernel):
            return Product(self, other)
        return NotImplemented if not _is_number(other) else Scaled(self, other)

    def __rmul__(self, other: Any) -> "Kernel":
        return Scaled(self, other) if _is_number(other) else NotImplemented

    def __matmul__(self, other: Any) -> "Coregionalised":
        from kernelmdp.kernels.outputs import Coregionalised

        return Coregionalised(self, other)

    def __repr__(self) -> str:
        return self.text()


def _is_number(value: Any) -> bool:
    return np.ndim(value) == 0 and not isinstance(value, str | Kernel)


@jit
def gram(kernel: Kernel, x: Float[Array, "n d"], y: Float[Array, "k d"]) -> Float[Array, "n k"]:
    """Matrix of k between two sets of points, in the precision of the points."""
    k = kernel.astype(x.dtype)
    return jax.vmap(lambda a: jax.vmap(lambda b: k.pair(a, b))(y))(x)


@jit
def variances(kernel: Kernel, x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """k(x, x) for every row, in the precision of the points."""
    return jax.vmap(kernel.astype(x.dtype).variance)(x)


def embrace(kernel: Kernel, level: int) -> str:
    """Text of an operand, in parentheses when it binds more loosely than its surroundings."""
    text, binds = kernel._text()
    return text if binds >= level else f"({text})"


class Sum(Kernel):
    """k₁ + k₂; with restrictions to different coordinates, the paper's k₁ ⊕ k₂.

    >>> import kernelmdp as km
    >>> type(km.kernel("se(1.0) + linear")).__name__
    'Sum'
    """

    left: Kernel
    right: Kernel

    def pair(self, x: Point, y: Point) -> Scalar:
        return self.left.pair(x, y) + self.right.pair(x, y)

    def variance(self, x: Point) -> Scalar:
        return self.left.variance(x) + self.right.variance(x)

    def feature_count(self, dimension: int) -> float:
        return self.left.feature_count(dimension) + self.right.feature_count(dimension)

    def features(self, x: Point) -> Vector:
        return jnp.concatenate([self.left.features(x), self.right.features(x)])

    @property
    def stationary(self) -> bool:
        return self.left.stationary and self.right.stationary

    def frequencies(self, count: int, dimension: int, *, key: Key) -> Float[Array, "count d"]:
        which, left, right = jax.random.split(key, 3)
        first = self.left.frequencies(count, dimension, key=left)
        second = self.right.frequencies(count, dimension, key=right)
        origin = jnp.zeros(dimension, first.dtype)
        weight = self.left.variance(origin) / self.variance(origin)
        return jnp.where(jax.random.uniform(which, (count, 1), first.dtype) < weight, first, second)

    def spectral_density(self, frequency: Float[Array, "... d"]) -> Float[Array, "..."]:
        return self.left.spectral_density(frequency) + self.right.spectral_density(frequency)

    def require_dimension(self, dimension: int) -> None:
        self.left.require_dimension(dimension)
        self.right.require_dimension(dimension)

    def require_points(self, points: np.ndarray) -> None:
        self.left.require_points(points)
        self.right.require_points(points)

    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> Kernel:
        return Sum(self.left.bind(coordinates), self.right.bind(coordinates))

    def _facts(self, low: np.ndarray, high: np.ndarray) -> Facts:
        return rules.add(self.left._facts(low, high), self.right._facts(low, high))

    def _text(self) -> tuple[str, int]:
        return f"{embrace(self.left, SUM)} + {embrace(self.right, PRODUCT)}", SUM


class Product(Kernel):
    """k₁·k₂; with restrictions to different coordinates, the paper's k₁ ⊗ k₂.

    >>> import kernelmdp as km
    >>> km.kernel("linear[0]") * km.kernel("linear[1]")
    linear[0] * linear[1]
    """

    left: Kernel
    right: Kernel

    def pair(self, x: Point, y: Point) -> Scalar:
        exponent = self.exponent(x, y)
        if exponent is not None:
            return jnp.exp(exponent)  # one exponential for all factors: they dominate the cost
        return self.left.pair(x, y) * self.right.pair(x, y)

    def exponent(self, x: Point, y: Point) -> Scalar | None:
        left, right = self.left.exponent(x, y), self.right.exponent(x, y)
        return None if left is None or right is None else left + right

    def variance(self, x: Point) -> Scalar:
        return self.left.variance(x) * self.right.variance(x)

    def feature_count(self, dimension: int) -> float:
        return self.left.feature_count(dimension) * self.right.feature_count(dimension)

    def features(self, x: Point) -> Vector:
        return jnp.outer(self.left.features(x), self.right.features(x)).ravel()

    @property
    def cell_count(self) -> int | None:
        left, right = self.left.cell_count, self.right.cell_count
        return None if left is None or right is None else left * right

    def cell(self, x: Point) -> jax.Array:
        count = self.right.cell_count
        assert count is not None
        return self.left.cell(x) * count + self.right.cell(x)

    @property
    def stationary(self) -> bool:
        return self.left.stationary and self.right.stationary

    def frequencies(self, count: int, dimension: int, *, key: Key) -> Float[Array, "count d"]:
        # The spectral law of a product is a convolution: independent frequencies add.
        left, right = jax.random.split(key)
        return self.left.frequencies(count, dimension, key=left) + self.right.frequencies(
            count, dimension, key=right
        )

    def require_dimension(self, dimension: int) -> None:
        self.left.require_dimension(dimension)
        self.right.require_dimension(dimension)

    def require_points(self, points: np.ndarray) -> None:
        self.left.require_points(points)
        self.right.require_points(points)

    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> Kernel:
        return Product(self.left.bind(coordinates), self.right.bind(coordinates))

    def _facts(self, low: np.ndarray, high: np.ndarray) -> Facts:
        return rules.multiply(self.left._facts(low, high), self.right._facts(low, high))

    def _text(self) -> tuple[str, int]:
        return f"{embrace(self.left, PRODUCT)} * {embrace(self.right, ATOM)}", PRODUCT


class Scaled(Kernel):
    """c·k with c > 0.

    >>> import kernelmdp as km
    >>> (3.0 * km.kernel("constant(1.0)"))([[0.0]])
    Array([[3.]], dtype=float64)
    """

    kernel: Kernel
    factor: Array

    def __init__(self, kernel: Kernel, factor: Any) -> None:
        self.kernel = kernel
        self.factor = positive("factor", factor)
        if self.factor.ndim:
            raise ShapeError("factor", "one number", f"shape {self.factor.shape}")

    def pair(self, x: Point, y: Point) -> Scalar:
        return self.factor * self.kernel.pair(x, y)

    def variance(self, x: Point) -> Scalar:
        return self.factor * self.kernel.variance(x)

    def feature_count(self, dimension: int) -> float:
        return self.kernel.feature_count(dimension)

    def features(self, x: Point) -> Vector:
        return jnp.sqrt(self.factor) * self.kernel.features(x)

    @property
    def cell_count(self) -> int | None:
        return self.kernel.cell_count

    def cell(self, x: Point) -> jax.Array:
        return self.kernel.cell(x)

    @property
    def stationary(self) -> bool:
        return self.kernel.stationary

    def frequencies(self, count: int, dimension: int, *, key: Key) -> Float[Array, "count d"]:
        return self.kernel.frequencies(count, dimension, key=key)

    def spectral_density(self, frequency: Float[Array, "... d"]) -> Float[Array, "..."]:
        return self.factor * self.kernel.spectral_density(frequency)

    def require_dimension(self, dimension: int) -> None:
        self.kernel.require_dimension(dimension)

    def require_points(self, points: np.ndarray) -> None:
        self.kernel.require_points(points)

    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> Kernel:
        return Scaled(self.kernel.bind(coordinates), self.factor)

    def _facts(self, low: np.ndarray, high: np.ndarray) -> Facts:
        return rules.scale(self.kernel._facts(low, high), float(self.factor))

    def _text(self) -> tuple[str, int]:
        return f"{float(self.factor)!r} * {embrace(self.kernel, ATOM)}", PRODUCT


class Restricted(Kernel):
    """A kernel that looks only at some coordinates, given by position or by one name.

    >>> import kernelmdp as km
    >>> km.kernel("linear").on([1])([[5.0, 2.0]])
    Array([[4.]], dtype=float64)
    """

    kernel: Kernel
    coordinates: str | tuple[int, ...] = eqx.field(static=True)

    def __init__(self, kernel: Kernel, coordinates: str | int | Iterable[int]) -> None:
        self.kernel = kernel
        if isinstance(coordinates, str):
            if not coordinates.isidentifier():
                raise ArgumentError("coordinates", "a name such as state", repr(coordinates))
            self.coordinates = coordinates
            return
        try:
            several = coordinates if isinstance(coordinates, Iterable) else [coordinates]
            self.coordinates = tuple(operator.index(position) for position in several)
        except TypeError:
            raise ArgumentError("coordinates", "a name or whole numbers", coordinates) from None
        distinct = len(set(self.coordinates)) == len(self.coordinates)
        if not self.coordinates or min(self.coordinates) < 0 or not distinct:
            raise ArgumentError("coordinates", "distinct positions counted from 0", coordinates)

    @property
    def positions(self) -> tuple[int, ...]:
        """The coordinates as positions; an error while they are a name."""
        if isinstance(self.coordinates, str):
            raise ArgumentError(
                "kernel",
                "coordinates bound to positions (a domain made by join(state=..., action=...), or "
                "kernel.bind({'state': [0, 1], 'action': [2]}))",
                f"the name {self.coordinates!r} in {self}",
            )
        return self.coordinates

    def _at(self, x: Point) -> Float[Array, " chosen"]:
        # Static indices, so that the gather of a few coordinates compiles to slices.
        return jnp.stack([x[position] for position in self.positions])

    def pair(self, x: Point, y: Point) -> Scalar:
        return self.kernel.pair(self._at(x), self._at(y))

    def exponent(self, x: Point, y: Point) -> Scalar | None:
        return self.kernel.exponent(self._at(x), self._at(y))

    def variance(self, x: Point) -> Scalar:
        return self.kernel.variance(self._at(x))

    def feature_count(self, dimension: int) -> float:
        return self.kernel.feature_count(len(self.positions))

    def features(self, x: Point) -> Vector:
        return self.kernel.features(self._at(x))

    @property
    def cell_count(self) -> int | None:
        return self.kernel.cell_count

    def cell(self, x: Point) -> jax.Array:
        return self.kernel.cell(self._at(x))

    @property
    def stationary(self) -> bool:
        return self.kernel.stationary

    def frequencies(self, count: int, dimension: int, *, key: Key) -> Float[Array, "count d"]:
        inner = self.kernel.frequencies(count, len(self.positions), key=key)
        return jnp.zeros((count, dimension), inner.dtype).at[:, np.array(self.positions)].set(inner)

    def require_dimension(self, dimension: int) -> None:
        if max(self.positions) >= dimension:
            raise ShapeError(
                "points", f"more than {max(self.positions)} coordinates for {self}", dimension
            )
        self.kernel.require_dimension(len(self.positions))

    def require_points(self, points: np.ndarray) -> None:
        self.kernel.require_points(points[:, list(self.positions)])

    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> Kernel:
        inner = self.kernel.bind(coordinates)
        if isinstance(self.coordinates, str) and self.coordinates in coordinates:
            return Restricted(inner, coordinates[self.coordinates])
        return Restricted(inner, self.coordinates)

    def _facts(self, low: np.ndarray, high: np.ndarray) -> Facts:
        index = list(self.positions)
        inner = self.kernel._facts(low[index], high[index])
        return rules.restrict(inner, index, len(low))

    def _text(self) -> tuple[str, int]:
        names = self.coordinates
        inside = names if isinstance(names, str) else ", ".join(map(str, names))
        return f"{embrace(self.kernel, ATOM)}[{inside}]", ATOM
