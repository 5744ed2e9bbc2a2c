"""The base classes of kernels.

A kernel defines ``pair(x, y)`` for one pair of points. Batching happens here, once. Parameters are
array leaves of a pytree, so kernels pass through ``jit``, ``vmap`` and ``grad``. Whatever fixes
shapes, such as coordinates and degrees, is static. Every kernel prints as a text that
``kernelmdp.kernel`` parses.
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
from kernelmdp.numerics.modules import Module, jit
from kernelmdp.numerics.tracing import is_traced
from kernelmdp.types import AnyArray, Key, Matrix, Point, Scalar, Vector

#: Precedence of a sum in the text form; lower binds more loosely.
SUM = 0
#: Precedence of a product in the text form.
PRODUCT = 1
#: Precedence of a single kernel in the text form.
ATOM = 2

C = TypeVar("C", bound=Callable[..., Any])
K = TypeVar("K")
#: Classes that the operators on kernels make, by operation. These classes derive from ``Kernel``,
#: so this module cannot import them; their modules register them.
OPERATIONS: dict[str, Callable[..., Any]] = {}


def register_operation(name: str) -> Callable[[C], C]:
    """Register a class as the result of an operator on kernels.

    Args:
        name: The operation.

    Returns:
        A decorator for the class.
    """

    def register(kernel_class: C) -> C:
        OPERATIONS[name] = kernel_class
        return kernel_class

    return register


class IndependentPart(NamedTuple):
    """Independent functions with the kernel scale · kernel.

    Attributes:
        kernel: The kernel.
        scale: The factor of the kernel.
        length: √scale, computed separately, so its square may differ from ``scale`` by rounding.
        copies: The number of functions.
    """

    kernel: "Kernel"
    scale: float = 1.0
    length: float = 1.0
    copies: int = 1


class OutputDecomposition(NamedTuple):
    """Outputs as linear combinations of independent functions.

    Output i is Σ_j axes[i, j] g_j, where g_j has the kernel of part j.

    Attributes:
        parts: The kernels of the functions g_j.
        axes: Orthonormal columns, (m, q). None means one part, of which every output is a copy.
    """

    parts: tuple[IndependentPart, ...]
    axes: Float[Array, "m q"] | None = None


class KernelBase(Module):
    """The common contract of kernels of one output (``Kernel``) and of several (``OutputKernel``).

    >>> import kernelmdp as km
    >>> [(k.outputs, k.scalar) for k in (km.kernel("linear"), km.kernel("linear @ index(2)"))]
    [(1, True), (2, False)]
    """

    @property
    @abc.abstractmethod
    def outputs(self) -> int:
        """The number of outputs m; 1 for a kernel on points."""

    @property
    def scalar(self) -> bool:
        """Whether it is a kernel on points, and not on pairs of a point and an output."""
        return False

    @abc.abstractmethod
    def parts(self) -> tuple["Kernel", ...]:
        """Return the kernels on points that the kernel is made of.

        Returns:
            The kernels.
        """

    @abc.abstractmethod
    def decompose(self, *, same_noise: bool) -> OutputDecomposition | None:
        """Write the outputs as combinations of independent functions.

        Args:
            same_noise: Whether all outputs are observed with one noise variance. A rotation of
                the outputs then leaves the noise independent.

        Returns:
            The decomposition, or None if the outputs stay correlated.
        """

    @abc.abstractmethod
    def as_scalar(self, dimension: int) -> "Kernel":
        """Convert to a kernel on points.

        Args:
            dimension: The number of coordinates of a point.

        Returns:
            The kernel; with several outputs it acts on points (x, i), the output last.
        """

    @abc.abstractmethod
    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> Any:
        """Replace names of coordinates, such as state and action, by positions.

        Args:
            coordinates: Positions by name.

        Returns:
            The kernel on positions.
        """

    @abc.abstractmethod
    def variance_bound(self, domain: Domain) -> float:
        """Bound the variance on a domain.

        Args:
            domain: The domain.

        Returns:
            κ, an upper bound of the variance of every output.
        """

    @abc.abstractmethod
    def constants_of(self, output: int, domain: Domain) -> KernelConstants:
        """Compute variance bound and smoothness of the kernel of one output.

        Args:
            output: The number of the output, from 0.
            domain: The domain.

        Returns:
            The constants.
        """

    @abc.abstractmethod
    def __call__(self, first: Any, second: Any = None) -> Matrix:
        """Compute the kernel matrix between rows of ``first`` (n, d) and ``second`` (k, d)."""

    @abc.abstractmethod
    def to_text(self) -> tuple[str, int]:
        """Return the text form and its precedence.

        Returns:
            The text, and ``SUM``, ``PRODUCT`` or ``ATOM``.
        """

    def astype(self: K, dtype: Any) -> K:
        """Convert the parameters to another precision.

        Args:
            dtype: float64 or float32.

        Returns:
            The kernel.
        """
        cast = lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf  # noqa: E731
        return jax.tree.map(cast, self)

    def text(self) -> str:
        """Return the text that ``kernelmdp.kernel`` parses.

        Returns:
            The text.
        """
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
        """Compute k(x, y) for one pair of points, with jax.numpy.

        Args:
            x: A point, (d,).
            y: A point, (d,).

        Returns:
            k(x, y).
        """

    @abc.abstractmethod
    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        """Compute the constants of the kernel on a box.

        Args:
            low: Lower ends of the axes, (d,).
            high: Upper ends, (d,).

        Returns:
            Variance bound and smoothness.
        """

    @property
    def outputs(self) -> int:
        return 1

    @property
    def scalar(self) -> bool:
        return True

    def terms(self) -> tuple["Kernel", ...]:
        """Return the terms of a sum. A kernel on points is one term, also if it is a sum.

        Returns:
            The kernel itself.
        """
        return (self,)

    def parts(self) -> tuple["Kernel", ...]:
        return (self,)

    def decompose(self, *, same_noise: bool) -> OutputDecomposition:
        return OutputDecomposition((IndependentPart(self),))

    def as_scalar(self, dimension: int) -> "Kernel":
        return self

    def constants_of(self, output: int, domain: Domain) -> KernelConstants:
        return self.constants(domain)

    # Methods that special kernels override.

    def variance(self, x: Point) -> Scalar:
        """Compute k(x, x) for one point.

        Args:
            x: The point, (d,).

        Returns:
            k(x, x).
        """
        return self.pair(x, x)

    def feature_count(self, dimension: int) -> float:
        """Count the features of the kernel.

        Args:
            dimension: The number of coordinates of a point.

        Returns:
            The number of features, which is at least the rank, or infinity.
        """
        return math.inf

    @property
    def cell_count(self) -> int | None:
        """The number of cells if k(x, y) = c·1{x and y in the same cell}; else None."""
        return None

    @property
    def indicator(self) -> bool:
        """Whether k(x, y) = 1{x and y in the same cell}, without a factor."""
        return False

    def cell(self, x: Point) -> jax.Array:
        """Return the number of the cell of a point, for a kernel with cells.

        Args:
            x: The point, (d,).

        Returns:
            The number of the cell, from 0.

        Raises:
            UnknownPropertyError: If the kernel has no cells.
        """  # noqa: DOC202  (an override returns)
        raise UnknownPropertyError(f"{self} has no cells")

    def exponent(self, x: Point, y: Point) -> Scalar | None:
        """Compute ln k(x, y), if it is cheap. Products of such kernels share one exponential.

        Args:
            x: A point, (d,).
            y: A point, (d,).

        Returns:
            ln k(x, y), or None.
        """
        return None

    def features(self, x: Point) -> Vector:
        """Compute φ(x) with k(x, y) = φ(x)ᵀφ(y), for kernels of finite rank.

        Args:
            x: A point, (d,).

        Returns:
            φ(x), (r,).

        Raises:
            UnknownPropertyError: If the kernel has no finite feature map.
        """  # noqa: DOC202  (an override returns)
        raise UnknownPropertyError(f"{self} has no finite feature map")

    @property
    def stationary(self) -> bool:
        """Whether k(x, y) depends on x − y only and its spectral law is known."""
        return False

    def frequencies(self, count: int, dimension: int, *, key: Key) -> Float[Array, "count d"]:
        """Draw frequencies ω from the spectral law: k(x, y) = k(0, 0) E cos(ωᵀ(x − y)).

        Args:
            count: The number of frequencies.
            dimension: d.
            key: Decides the draws.

        Returns:
            The frequencies.

        Raises:
            UnknownPropertyError: If the kernel has no spectral law.
        """  # noqa: DOC202  (an override returns)
        raise UnknownPropertyError(f"{self} has no spectral law")

    def spectral_density(self, frequency: Float[Array, "... d"]) -> Float[Array, "..."]:
        """Compute S(ω) with k(x, y) = (2π)^−d ∫ S(ω) exp(iωᵀ(x − y)) dω.

        Args:
            frequency: ω.

        Returns:
            S(ω).

        Raises:
            UnknownPropertyError: If there is no closed form.
        """  # noqa: DOC202  (an override returns)
        raise UnknownPropertyError(f"{self} has no spectral density in closed form")

    def require_dimension(self, dimension: int) -> None:
        """Raise ShapeError if the kernel cannot act on points of this many coordinates.

        Args:
            dimension: The number of coordinates.
        """

    def require_points(self, points: np.ndarray) -> None:
        """Raise ArgumentError if the kernel is not defined at some points.

        Args:
            points: The points, (n, d).
        """

    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> "Kernel":
        return self

    # Methods that every kernel has.

    def __call__(self, first: Any, second: Any = None) -> Matrix:
        """Compute the kernel matrix between rows of ``first`` (n, d) and ``second`` (k, d)."""
        x = as_points("first", first)
        y = x if second is None else as_points("second", second, dimension=x.shape[1])
        self._require(x)
        self._require(y)
        return gram(self, x, y.astype(x.dtype))

    def diagonal(self, points: Any) -> Vector:
        """Compute k(x, x) for every row.

        Args:
            points: The points, (n, d).

        Returns:
            The variances, (n,).
        """
        x = as_points("points", points)
        self._require(x)
        return variances(self, x)

    def constants(self, domain: Domain) -> KernelConstants:
        """Compute variance bound and smoothness on a domain.

        Args:
            domain: The domain; the constants hold on its bounding box.

        Returns:
            The constants.
        """
        bound = self.bind(domain.names)
        bound.require_dimension(domain.dimension)
        return bound.constants_on(*domain.bounds)

    def variance_bound(self, domain: Domain) -> float:
        return self.constants(domain).variance_bound

    def rank(self, domain: Domain) -> float:
        """Bound the rank of the kernel on a domain.

        Args:
            domain: The domain.

        Returns:
            The number of features: a whole number, or infinity.
        """
        return self.bind(domain.names).feature_count(domain.dimension)

    def on(self, coordinates: str | int | Iterable[int]) -> "Kernel":
        """Apply the kernel to some coordinates only.

        Args:
            coordinates: One position, several, or a name such as "state".

        Returns:
            The restricted kernel.
        """
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
    """Compute the kernel matrix between two sets of points, in the precision of the points.

    Args:
        kernel: k.
        x: Points, (n, d).
        y: Points, (k, d).

    Returns:
        The matrix, (n, k).
    """
    k = kernel.astype(x.dtype)
    return jax.vmap(lambda a: jax.vmap(lambda b: k.pair(a, b))(y))(x)


@jit
def variances(kernel: Kernel, x: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Compute k(x, x) for every row, in the precision of the points.

    Args:
        kernel: k.
        x: Points, (n, d).

    Returns:
        The variances, (n,).
    """
    return jax.vmap(kernel.astype(x.dtype).variance)(x)


def parenthesised(kernel: Kernel, level: int) -> str:
    """Return the text of an operand, in parentheses if it needs them.

    Args:
        kernel: The operand.
        level: The precedence of the operation around it.

    Returns:
        The text.
    """
    text, precedence = kernel.to_text()
    return text if precedence >= level else f"({text})"
