"""Kernels of finite rank on vectors: constant, linear, polynomial."""

import itertools
import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.kernels.base import ATOM, Kernel
from kernelmdp.kernels.constants import KernelConstants, linear_modulus
from kernelmdp.numerics.checks import integer, positive_array
from kernelmdp.types import Point, Scalar, Vector


def _largest(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Largest |x_j| on the box."""
    return np.maximum(np.abs(low), np.abs(high))


class Constant(Kernel):
    """c > 0 for every pair of points: an unknown constant function.

    Args:
        value: c.

    Attributes:
        value: c.

    Raises:
        ArgumentError: If c is not positive.
        ShapeError: If c is not one number.

    >>> Constant(2.0)([[0.0]], [[5.0]])
    Array([[2.]], dtype=float64)
    """

    value: Array

    def __init__(self, value: Any = 1.0) -> None:
        self.value = positive_array("value", value)
        if self.value.ndim:
            raise ShapeError("value", "one number", f"shape {self.value.shape}")

    def pair(self, x: Point, y: Point) -> Scalar:
        return self.value

    def feature_count(self, dimension: int) -> float:
        return 1

    def features(self, x: Point) -> Vector:
        return jnp.sqrt(self.value)[None]

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        flat = np.zeros(len(low))
        return KernelConstants(
            variance_bound=float(self.value),
            lipschitz=0.0,
            curvature=0.0,
            axis_lipschitz=flat,
            axis_curvature=flat,
            modulus=lambda h: 0.0,
            constant_variance=True,
        )

    def to_text(self) -> tuple[str, int]:
        return f"constant({float(self.value)!r})", ATOM


class Linear(Kernel):
    """xᵀy: features x, rank d, κ = ρ² = max ‖x‖², Λ = 1, Q = 0.

    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    Array([[11.]], dtype=float64)
    """

    def pair(self, x: Point, y: Point) -> Scalar:
        return jnp.dot(x, y)

    def feature_count(self, dimension: int) -> float:
        return dimension

    def features(self, x: Point) -> Vector:
        return x

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        d = len(low)
        return KernelConstants(
            variance_bound=float(np.sum(_largest(low, high) ** 2)),
            lipschitz=1.0,
            curvature=0.0,
            axis_lipschitz=np.ones(d),
            axis_curvature=np.zeros(d),
            modulus=linear_modulus(np.ones(d), 1.0),
        )

    def to_text(self) -> tuple[str, int]:
        return "linear", ATOM


class Polynomial(Kernel):
    """(c + xᵀy)^p with c ≥ 0: rank C(d+p, p), or C(d+p−1, p) when c = 0.

    With g(t) = (c + t)^p at t = ρ²: κ = g, Λ² = g″ρ² + g′, Q² = g⁗ρ⁴ + 4 g‴ρ² + 2 g″.

    Args:
        degree: p.
        offset: c.

    Attributes:
        degree: p.
        offset: c.

    Raises:
        ArgumentError: If p is not a whole number above 0, or c is negative or not finite.

    >>> Polynomial(3, 1.0)([[2.0]], [[1.0]])  # (1 + 2)³
    Array([[27.]], dtype=float64)
    """

    degree: int = eqx.field(static=True)
    offset: float = eqx.field(static=True)

    def __init__(self, degree: int, offset: float = 1.0) -> None:
        self.degree = integer("degree", degree, least=1)
        try:
            self.offset = float(offset)
        except (TypeError, ValueError):
            raise ArgumentError("offset", "a finite number of at least 0", repr(offset)) from None
        if not (math.isfinite(self.offset) and self.offset >= 0):
            raise ArgumentError("offset", "a finite number of at least 0", offset)

    def pair(self, x: Point, y: Point) -> Scalar:
        return (self.offset + jnp.dot(x, y)) ** self.degree

    def _powers(self, dimension: int) -> list[tuple[int, ...]]:
        """Exponents of the monomials; the last entry is the power of the offset."""
        factors = dimension + (1 if self.offset > 0 else 0)
        choices = itertools.combinations_with_replacement(range(factors), self.degree)
        powers = [tuple(choice.count(i) for i in range(factors)) for choice in choices]
        return [p if self.offset > 0 else (*p, 0) for p in powers]

    def feature_count(self, dimension: int) -> float:
        factors = dimension + (1 if self.offset > 0 else 0)
        return math.comb(factors + self.degree - 1, self.degree)

    def features(self, x: Point) -> Vector:
        # √(multinomial coefficient · c^{last}) Π x_j^{α_j}
        columns = []
        for *alpha, last in self._powers(x.shape[0]):
            ways = math.factorial(self.degree) // math.prod(map(math.factorial, (*alpha, last)))
            term = jnp.full((), math.sqrt(ways * self.offset**last), x.dtype)
            for j, power in enumerate(alpha):
                if power:
                    term = term * x[j] ** power
            columns.append(term)
        return jnp.stack(columns)

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        largest = _largest(low, high)
        square = float(np.sum(largest**2))
        base, p = self.offset + square, self.degree

        def derivative(order: int) -> float:
            return math.perm(p, order) * base ** (p - order) if order <= p else 0.0

        # Both functions take the largest (uᵀx)² along a unit direction u.
        def lipschitz(a: np.ndarray | float) -> Any:
            return np.sqrt(derivative(2) * a + derivative(1))

        def curvature(a: np.ndarray | float) -> Any:
            terms = ((derivative(4), np.square(a)), (4 * derivative(3), a), (2 * derivative(2), 1))
            # Terms with factor 0 are left out: on an unbounded domain they would be 0·∞.
            return np.sqrt(sum(factor * part for factor, part in terms if factor) + 0 * np.sign(a))

        axis_lipschitz = np.asarray(lipschitz(largest**2))
        return KernelConstants(
            variance_bound=base**p,
            lipschitz=float(lipschitz(square)),
            curvature=float(curvature(square)),
            axis_lipschitz=axis_lipschitz,
            axis_curvature=np.asarray(curvature(largest**2)),
            modulus=linear_modulus(axis_lipschitz, float(lipschitz(square))),
        )

    def to_text(self) -> tuple[str, int]:
        if (self.degree, self.offset) == (2, 0.0):
            return "quadratic", ATOM
        return f"polynomial({self.degree}, {self.offset!r})", ATOM


def Quadratic() -> Polynomial:  # noqa: N802  (reads like the other kernels)
    """Make the kernel (xᵀy)², with features x_i² and √2 x_i x_j.

    Its functions are the quadratic forms sᵀPs, with norm ‖P_sym‖_F.

    Returns:
        The kernel.

    >>> Quadratic()([[2.0]], [[3.0]])
    Array([[36.]], dtype=float64)
    """
    return Polynomial(degree=2, offset=0.0)
