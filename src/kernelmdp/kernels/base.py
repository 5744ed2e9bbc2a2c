"""What every kernel answers. ``algebra.py`` has sums and products, ``outputs.py`` several outputs.

A kernel defines ``pair(x, y)`` for one pair of points; batching happens here, once. Parameters are
array leaves of a pytree, so kernels pass through ``jit``, ``vmap`` and ``grad``; what fixes shapes
(coordinates, degrees) is static. Every kernel prints as a text that ``kernelmdp.kernel`` parses.
"""

import abc
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.errors import UnknownPropertyError
from kernelmdp.kernels.constants import KernelConstants
from kernelmdp.numerics.checks import as_points
from kernelmdp.numerics.factorisation import is_traced
from kernelmdp.numerics.modules import Module, jit
from kernelmdp.types import AnyArray, Key, Matrix, Point, Scalar, Vector

# How tightly a form binds in text: a + b, a * b, atom.
SUM, PRODUCT, ATOM = 0, 1, 2

C = TypeVar("C", bound=Callable[..., Any])
K = TypeVar("K")
#: The classes that operators on kernels make, by the operation. They derive from ``Kernel``, so
#: their own files enter them here.
OPERATIONS: dict[str, Callable[..., Any]] = {}


def register_operation(name: str) -> Callable[[C], C]:
    """Enter a class as what an operator on kernels makes."""

    def enter(made: C) -> C:
        OPERATIONS[name] = made
        return made

    return enter


class IndependentPart(NamedTuple):
    """scale · kernel: the kernel of ``copies`` independent functions.

    ``length`` is √scale, computed by itself: its square may differ in the last digit.
    """

    kernel: "Kernel"
    scale: float = 1.0
    length: float = 1.0
    copies: int = 1


class OutputDecomposition(NamedTuple):
    """Outputs as combinations of independent functions, which the parts describe.

    Output i is Σ_j axes[i, j] g_j, where g_j has the kernel of part j and ``axes`` (m, q) has
    orthonormal columns. Without axes there is one part, and every output is a copy of it.
    """

    parts: tuple[IndependentPart, ...]
    axes: Float[Array, "m q"] | None = None


class KernelBase(Module):
    """What kernels of one output (``Kernel``) and of several (``OutputKernel``) both answer.

    >>> import kernelmdp as km
    >>> [(k.outputs, k.scalar) for k in (km.kernel("linear"), km.kernel("linear @ index(2)"))]
    [(1, True), (2, False)]
    """

    @property
    @abc.abstractmethod
    def outputs(self) -> int:
        """Number of outputs m; 1 for a kernel on points alone."""

    @property
    def scalar(self) -> bool:
        """Whether it is a kernel on points alone, and not on pairs of a point and an output."""
        return False

    @abc.abstractmethod
    def parts(self) -> tuple["Kernel", ...]:
        """The kernels on points that it is made of."""

    @abc.abstractmethod
    def decompose(self, *, same_noise: bool) -> OutputDecomposition | None:
        """Its outputs as independent functions.

        Args:
            same_noise: Whether all outputs are observed with one noise variance. A rotation of
                the outputs then leaves the noise independent.

        Returns:
            The independent functions, or None where outputs stay correlated.
        """

    @abc.abstractmethod
    def as_scalar(self, dimension: int) -> "Kernel":
        """As a kernel on points alone: with several outputs on (x, i), the output last."""

    @abc.abstractmethod
    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> Any:
        """The kernel with coordinate names, such as state and action, replaced by positions."""

    @abc.abstractmethod
    def variance_bound(self, domain: Domain) -> float:
        """κ: an upper bound of the variance on the domain, of every output."""

    @abc.abstractmethod
    def constants_of(self, output: int, domain: Domain) -> KernelConstants:
        """Variance bound and smoothness, on a domain, of the kernel of one output."""

    @abc.abstractmethod
    def __call__(self, first: Any, second: Any = None) -> Matrix:
        """The matrix of the kernel between rows of ``first`` (n, d) and ``second`` (k, d)."""

    @abc.abstractmethod
    def to_text(self) -> tuple[str, int]:
        """The text form and how tightly it binds."""

    def astype(self: K, dtype: Any) -> K:
        """The kernel with its parameters in another precision."""
        cast = lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf  # noqa: E731
        return jax.tree.map(cast, self)

    def text(self) -> str:
        """The form that ``kernelmdp.kernel`` parses."""
        return self.to_text()[0]

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, KernelBase) or other.scalar != self.scalar:
            return NotImplemented
        return OPERATIONS["sum" if self.scalar else "sum of outputs"](self, other)

    def __repr__(self) -> str:
        return self.text()


class Kernel(KernelBase):
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
    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        """Constants of the kernel on the box from low to high."""

    @property
    def outputs(self) -> int:
        return 1

    @property
    def scalar(self) -> bool:
        return True

    def terms(self) -> tuple["Kernel", ...]:
        """Itself: sums of kernels on points are one kernel."""
        return (self,)

    def parts(self) -> tuple["Kernel", ...]:
        return (self,)

    def decompose(self, *, same_noise: bool) -> OutputDecomposition:
        return OutputDecomposition((IndependentPart(self),))

    def as_scalar(self, dimension: int) -> "Kernel":
        return self

    def constants_of(self, output: int, domain: Domain) -> KernelConstants:
        return self.constants(domain)

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

    @property
    def indicator(self) -> bool:
        """Whether k(x, y) = 1{x and y in the same cell}, without a factor."""
        return False

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

    def constants(self, domain: Domain) -> KernelConstants:
        """Variance bound and smoothness on a domain (on its bounding box)."""
        bound = self.bind(domain.names)
        bound.require_dimension(domain.dimension)
        return bound.constants_on(*domain.bounds)

    def variance_bound(self, domain: Domain) -> float:
        """κ: an upper bound of k(x, x) on the domain."""
        return self.constants(domain).variance_bound

    def rank(self, domain: Domain) -> float:
        """Number of features, a bound on the rank on the domain: a whole number, or infinity."""
        return self.bind(domain.names).feature_count(domain.dimension)

    def on(self, coordinates: str | int | Iterable[int]) -> "Kernel":
        """The kernel applied to some coordinates only, by position or by name."""
        return OPERATIONS["restriction"](self, coordinates)

    def _require(self, points: AnyArray) -> None:
        self.require_dimension(points.shape[1])
        if not is_traced(points):
            self.require_points(np.asarray(points))

    def __mul__(self, other: Any) -> "Kernel":
        if isinstance(other, Kernel):
            return OPERATIONS["product"](self, other)
        return OPERATIONS["multiple"](self, other) if _is_number(other) else NotImplemented

    def __rmul__(self, other: Any) -> "Kernel":
        return OPERATIONS["multiple"](self, other) if _is_number(other) else NotImplemented

    def __matmul__(self, other: Any) -> Any:
        return OPERATIONS["outputs"](self, other)


def _is_number(value: Any) -> bool:
    return np.ndim(value) == 0 and not isinstance(value, str)


@jit
def gram(kernel: Kernel, x: Float[Array, "n d"], y: Float[Array, "k d"]) -> Float[Array, "n k"]:
    """Matrix of k between two sets of points, in the precision of the points."""
    k = kernel.astype(x.dtype)
    return jax.vmap(lambda a: jax.vmap(lambda b: k.pair(a, b))(y))(x)


@jit
def variances(kernel: Kernel, x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """k(x, x) for every row, in the precision of the points."""
    return jax.vmap(kernel.astype(x.dtype).variance)(x)


def parenthesised(kernel: Kernel, level: int) -> str:
    """Text of an operand, in parentheses when it binds more loosely than its surroundings."""
    text, binds = kernel.to_text()
    return text if binds >= level else f"({text})"
