"""Kernels on finite sets. Points are whole numbers 0, 1, ..., size − 1 in one coordinate."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.kernels.base import ATOM, IndependentPart, Kernel, OutputDecomposition
from kernelmdp.kernels.constants import KernelConstants, unknown_constants
from kernelmdp.numerics.checks import float_array, integer, require_finite
from kernelmdp.types import Point, Scalar, Vector


def _whole(x: Point) -> jax.Array:
    return jnp.round(x[0]).astype(jnp.int32)


def _require_members(points: np.ndarray, size: int, kernel: Kernel) -> None:
    member = (points == np.round(points)) & (points >= 0) & (points < size)
    if not member.all():
        wrong = points[~member.all(axis=1)][0, 0]
        raise ArgumentError("points", f"whole numbers 0 to {size - 1} for {kernel}", wrong)


def _require_one(dimension: int, kernel: Kernel) -> None:
    if dimension != 1:
        raise ShapeError("points", f"one coordinate for {kernel} (restrict it with .on)", dimension)


class Index(Kernel):
    """1{i = j} on {0, ..., size − 1}: different points are independent.

    Args:
        size: The number of points.

    Attributes:
        size: The number of points.

    >>> Index(3)([[0.0], [1.0]])
    Array([[1., 0.],
           [0., 1.]], dtype=float64)
    """

    size: int = eqx.field(static=True)

    def __init__(self, size: int) -> None:
        self.size = integer("size", size, least=1)

    @property
    def matrix(self) -> Array:
        """The identity matrix, the covariance between points."""
        return jnp.eye(self.size)

    def across(self, kernel: Kernel, same_noise: bool) -> OutputDecomposition:
        """Decompose the outputs of k ⊗ identity, which are independent for any noise.

        Args:
            kernel: k.
            same_noise: Whether all outputs have one noise variance.

        Returns:
            The decomposition.
        """
        if same_noise:
            return OutputDecomposition((IndependentPart(kernel, copies=self.size),))
        return OutputDecomposition((IndependentPart(kernel),) * self.size, jnp.eye(self.size))

    def pair(self, x: Point, y: Point) -> Scalar:
        return (_whole(x) == _whole(y)).astype(x.dtype)

    def feature_count(self, dimension: int) -> float:
        return self.size

    def features(self, x: Point) -> Vector:
        return jax.nn.one_hot(_whole(x), self.size, dtype=x.dtype)

    @property
    def cell_count(self) -> int | None:
        return self.size

    @property
    def indicator(self) -> bool:
        return True

    def cell(self, x: Point) -> jax.Array:
        return _whole(x)

    def require_dimension(self, dimension: int) -> None:
        _require_one(dimension, self)

    def require_points(self, points: np.ndarray) -> None:
        _require_members(points, self.size, self)

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        return unknown_constants(len(low), variance_bound=1.0)

    def to_text(self) -> tuple[str, int]:
        return f"index({self.size})", ATOM


class Coregional(Kernel):
    """B[i, j] on {0, ..., size − 1} for a symmetric positive semi-definite matrix B.

    Args:
        matrix: B.

    Attributes:
        matrix: B.
        root: A matrix with B = root rootᵀ and as many columns as the rank of B.

    Raises:
        ShapeError: If the matrix is not square.
        ArgumentError: If it is not symmetric positive semi-definite, or zero.

    >>> Coregional([[1.0, 0.5], [0.5, 1.0]])([[0.0]], [[1.0]])
    Array([[0.5]], dtype=float64)
    """

    matrix: Array
    root: Array

    def __init__(self, matrix: Any) -> None:
        array = float_array(matrix)
        if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] == 0:
            raise ShapeError("matrix", "a square matrix", f"shape {tuple(array.shape)}")
        require_finite("matrix", array)
        host = np.asarray(array, dtype=float)
        size = float(np.abs(host).max())
        if not np.allclose(host, host.T, rtol=0, atol=1e-12 * size):
            raise ArgumentError("matrix", "a symmetric matrix", host.tolist())
        values, vectors = np.linalg.eigh(host)
        if values[0] < -1e-12 * max(size, 1e-300) * len(host) or values[-1] <= 0:
            raise ArgumentError(
                "matrix",
                "positive semi-definite and not zero",
                f"smallest eigenvalue {values[0]:g}",
            )
        nonzero = values > 1e-14 * values[-1] * len(host)
        self.matrix = jnp.asarray(array)
        self.root = jnp.asarray(vectors[:, nonzero] * np.sqrt(values[nonzero]))

    @property
    def size(self) -> int:
        """The number of points."""
        return self.matrix.shape[0]

    def across(self, kernel: Kernel, same_noise: bool) -> OutputDecomposition | None:
        """Decompose the outputs of k ⊗ B along the eigenvectors of B.

        The eigenvalue b_j is the squared length of column j of the root.

        Args:
            kernel: k.
            same_noise: Whether all outputs have one noise variance.

        Returns:
            The decomposition, or None if noise variances differ.
        """
        if not same_noise:
            return None
        lengths = jnp.linalg.norm(self.root, axis=0)
        scales = np.sum(np.asarray(self.root, dtype=float) ** 2, axis=0)
        pairs = zip(scales, lengths, strict=True)
        parts = tuple(
            IndependentPart(kernel, float(scale), float(length)) for scale, length in pairs
        )
        return OutputDecomposition(parts, self.root / lengths[None, :])

    def pair(self, x: Point, y: Point) -> Scalar:
        return self.matrix[_whole(x), _whole(y)]

    def feature_count(self, dimension: int) -> float:
        return self.root.shape[1]

    def features(self, x: Point) -> Vector:
        return self.root[_whole(x)]

    def require_dimension(self, dimension: int) -> None:
        _require_one(dimension, self)

    def require_points(self, points: np.ndarray) -> None:
        _require_members(points, self.size, self)

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        largest = float(np.max(np.diag(np.asarray(self.matrix, dtype=float))))
        return unknown_constants(len(low), variance_bound=largest)

    def to_text(self) -> tuple[str, int]:
        rows = np.asarray(self.matrix, dtype=float).tolist()
        return f"coregional({rows!r})", ATOM


def OneHot(*sizes: int) -> Kernel:  # noqa: N802  (reads like the other kernels)
    """Make the kernel 1{x = y} on tuples of whole numbers, one coordinate each.

    Args:
        *sizes: The number of points of each coordinate.

    Returns:
        The kernel.

    Raises:
        ArgumentError: If there is no size.

    >>> OneHot(6, 2)
    index(6)[0] * index(2)[1]
    """
    if not sizes:
        raise ArgumentError("sizes", "at least one size", "none")
    return product([Index(size).on(axis) for axis, size in enumerate(sizes)])


def product(kernels: Sequence[Kernel]) -> Kernel:
    """Multiply kernels, from left to right.

    Args:
        kernels: At least one kernel.

    Returns:
        The product.
    """
    total = kernels[0]
    for kernel in kernels[1:]:
        total = total * kernel
    return total
