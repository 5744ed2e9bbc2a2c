"""The algebra of kernels: sums, products, multiples, and restrictions to some coordinates."""

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.kernels import constants as rules
from kernelmdp.kernels.base import ATOM, PRODUCT, SUM, Kernel, parenthesised, register_operation
from kernelmdp.kernels.constants import KernelConstants
from kernelmdp.numerics.checks import positive_array
from kernelmdp.types import Key, Point, Scalar, Vector


class _Combined(Kernel):
    """A kernel made of two."""

    left: Kernel
    right: Kernel

    @property
    def stationary(self) -> bool:
        return self.left.stationary and self.right.stationary

    def require_dimension(self, dimension: int) -> None:
        self.left.require_dimension(dimension)
        self.right.require_dimension(dimension)

    def require_points(self, points: np.ndarray) -> None:
        self.left.require_points(points)
        self.right.require_points(points)

    def bind(self, coordinates: Mapping[str, Sequence[int]]) -> Kernel:
        return type(self)(self.left.bind(coordinates), self.right.bind(coordinates))


@register_operation("sum")
class Sum(_Combined):
    """k₁ + k₂; with restrictions to different coordinates, the paper's k₁ ⊕ k₂.

    >>> import kernelmdp as km
    >>> type(km.kernel("se(1.0) + linear")).__name__
    'Sum'
    """

    def pair(self, x: Point, y: Point) -> Scalar:
        return self.left.pair(x, y) + self.right.pair(x, y)

    def variance(self, x: Point) -> Scalar:
        return self.left.variance(x) + self.right.variance(x)

    def feature_count(self, dimension: int) -> float:
        return self.left.feature_count(dimension) + self.right.feature_count(dimension)

    def features(self, x: Point) -> Vector:
        return jnp.concatenate([self.left.features(x), self.right.features(x)])

    def frequencies(self, count: int, dimension: int, *, key: Key) -> Float[Array, "count d"]:
        # The spectral law of a sum is a mixture, weighted by the variances.
        mixture_key, left_key, right_key = jax.random.split(key, 3)
        left = self.left.frequencies(count, dimension, key=left_key)
        right = self.right.frequencies(count, dimension, key=right_key)
        origin = jnp.zeros(dimension, left.dtype)
        weight = self.left.variance(origin) / self.variance(origin)
        from_left = jax.random.uniform(mixture_key, (count, 1), left.dtype) < weight
        return jnp.where(from_left, left, right)

    def spectral_density(self, frequency: Float[Array, "... d"]) -> Float[Array, "..."]:
        return self.left.spectral_density(frequency) + self.right.spectral_density(frequency)

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        return rules.add(self.left.constants_on(low, high), self.right.constants_on(low, high))

    def to_text(self) -> tuple[str, int]:
        return f"{parenthesised(self.left, SUM)} + {parenthesised(self.right, PRODUCT)}", SUM


@register_operation("product")
class Product(_Combined):
    """k₁·k₂; with restrictions to different coordinates, the paper's k₁ ⊗ k₂.

    >>> import kernelmdp as km
    >>> km.kernel("linear[0]") * km.kernel("linear[1]")
    linear[0] * linear[1]
    """

    def pair(self, x: Point, y: Point) -> Scalar:
        exponent = self.exponent(x, y)
        if exponent is not None:
            # Exponentials dominate the cost, so all factors share one.
            return jnp.exp(exponent)
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

    @property
    def indicator(self) -> bool:
        return self.left.indicator and self.right.indicator

    def cell(self, x: Point) -> jax.Array:
        count = self.right.cell_count
        assert count is not None
        return self.left.cell(x) * count + self.right.cell(x)

    def frequencies(self, count: int, dimension: int, *, key: Key) -> Float[Array, "count d"]:
        # The spectral law of a product is a convolution: independent frequencies add.
        left_key, right_key = jax.random.split(key)
        return self.left.frequencies(count, dimension, key=left_key) + self.right.frequencies(
            count, dimension, key=right_key
        )

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        return rules.multiply(self.left.constants_on(low, high), self.right.constants_on(low, high))

    def to_text(self) -> tuple[str, int]:
        return f"{parenthesised(self.left, PRODUCT)} * {parenthesised(self.right, ATOM)}", PRODUCT


@register_operation("multiple")
class Scaled(Kernel):
    """c·k with c > 0.

    Args:
        kernel: k.
        factor: c.

    Attributes:
        kernel: k.
        factor: c.

    Raises:
        ArgumentError: If the factor is not positive.
        ShapeError: If it is not one number.

    >>> import kernelmdp as km
    >>> (3.0 * km.kernel("constant(1.0)"))([[0.0]])
    Array([[3.]], dtype=float64)
    """

    kernel: Kernel
    factor: Array

    def __init__(self, kernel: Kernel, factor: Any) -> None:
        self.kernel = kernel
        self.factor = positive_array("factor", factor)
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

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        return rules.scale(self.kernel.constants_on(low, high), float(self.factor))

    def to_text(self) -> tuple[str, int]:
        return f"{float(self.factor)!r} * {parenthesised(self.kernel, ATOM)}", PRODUCT


@register_operation("restriction")
class Restricted(Kernel):
    """A kernel applied to some coordinates only.

    Args:
        kernel: The kernel.
        coordinates: One position, several, or the name of a group such as "state".

    Attributes:
        kernel: The kernel.
        name: The name of the coordinates, until ``bind`` replaces it by positions; else None.
        places: The positions; empty while the coordinates are a name.

    Raises:
        ArgumentError: If coordinates are neither a name nor distinct positions.

    >>> import kernelmdp as km
    >>> km.kernel("linear").on([1])([[5.0, 2.0]])
    Array([[4.]], dtype=float64)
    """

    kernel: Kernel
    name: str | None = eqx.field(static=True)
    places: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, kernel: Kernel, coordinates: str | int | Iterable[int]) -> None:
        self.kernel = kernel
        self.name, self.places = None, ()
        if isinstance(coordinates, str):
            if not coordinates.isidentifier():
                raise ArgumentError("coordinates", "a name such as state", repr(coordinates))
            self.name = coordinates
            return
        try:
            positions = coordinates if isinstance(coordinates, Iterable) else [coordinates]
            self.places = tuple(operator.index(position) for position in positions)
        except TypeError:
            raise ArgumentError("coordinates", "a name or whole numbers", coordinates) from None
        distinct = len(set(self.places)) == len(self.places)
        if not self.places or min(self.places) < 0 or not distinct:
            raise ArgumentError("coordinates", "distinct positions counted from 0", coordinates)

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the coordinates.

        Raises:
            ArgumentError: If the coordinates are a name that ``bind`` has not replaced yet.
        """
        if self.name is not None:
            raise ArgumentError(
                "kernel",
                "coordinates bound to positions (a domain made by join(state=..., action=...), or "
                "kernel.bind({'state': [0, 1], 'action': [2]}))",
                f"the name {self.name!r} in {self}",
            )
        return self.places

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

    @property
    def indicator(self) -> bool:
        return self.kernel.indicator

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
        if self.name is None:
            return Restricted(inner, self.places)
        return Restricted(inner, coordinates.get(self.name, self.name))

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        index = list(self.positions)
        inner = self.kernel.constants_on(low[index], high[index])
        return rules.restrict(inner, index, len(low))

    def to_text(self) -> tuple[str, int]:
        coordinates = ", ".join(map(str, self.places)) if self.name is None else self.name
        return f"{parenthesised(self.kernel, ATOM)}[{coordinates}]", ATOM


class Normalised(NamedTuple):
    """A normalised kernel.

    Attributes:
        kernel: The kernel, with κ ≤ 1.
        norm_factor: The factor by which norms of functions grew.

    >>> import kernelmdp as km
    >>> normalised = normalise(km.kernel("constant(4.0)"), km.Box([0.0], [1.0]))
    >>> normalised.norm_factor
    2.0
    """

    kernel: Kernel
    norm_factor: float


def normalise(kernel: Kernel, domain: Domain) -> Normalised:
    """Divide a kernel by its variance bound κ on a domain.

    A function with norm B under k has norm √κ·B under k/κ. The posterior of k with noise variance λ
    is a multiple of the posterior of k/κ with noise variance λ/κ.

    Args:
        kernel: k.
        domain: The domain.

    Returns:
        k/κ and √κ.

    Raises:
        ArgumentError: If the kernel has no finite variance bound on the domain.

    >>> from kernelmdp import Box, kernels
    >>> normalise(kernels.Linear(), Box([0.0], [2.0]))
    Normalised(kernel=0.25 * linear, norm_factor=2.0)
    """
    bound = kernel.variance_bound(domain)
    if not 0 < bound < float("inf"):
        raise ArgumentError("kernel", "a finite variance bound on the domain", bound)
    return Normalised(Scaled(kernel, 1 / bound), bound**0.5)
