"""Noise laws: additive, independent along each axis, known (or estimated, and then said so).

The planner needs the law itself (A1 is a statement about p + ε, not about p alone): its
quadrature, and a quantiser with a known Wasserstein distance where a certificate is asked for.
"""

import abc
import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.types import Key


@dataclasses.dataclass(frozen=True, init=False)
class Noise(abc.ABC):
    """One size for each axis, or one for all; 0 means that the axis has no noise."""

    sizes: tuple[float, ...]
    estimated: bool = False

    def __init__(self, sizes: Any, *, estimated: bool = False) -> None:
        array = np.atleast_1d(np.asarray(sizes, dtype=float))
        if array.ndim != 1 or not (np.isfinite(array) & (array >= 0)).all():
            raise ArgumentError("noise", "finite sizes of at least 0", repr(sizes))
        object.__setattr__(self, "sizes", tuple(float(x) for x in array))
        object.__setattr__(self, "estimated", bool(estimated))

    def along(self, dimension: int) -> np.ndarray:
        """The size along each of ``dimension`` axes."""
        if len(self.sizes) not in (1, dimension):
            raise ShapeError("noise", f"1 or {dimension} sizes", len(self.sizes))
        return np.broadcast_to(np.array(self.sizes), (dimension,))

    def standard_deviations(self, dimension: int) -> np.ndarray:
        """Standard deviation along each axis."""
        return self.along(dimension) * self._unit_deviation

    def proxy(self, dimension: int) -> float:
        """σ such that every axis is σ-sub-Gaussian: E exp(tε) ≤ exp(σ²t²/2)."""
        return float(self.standard_deviations(dimension).max())

    def draw(self, shape: tuple[int, ...], *, key: Key) -> jax.Array:
        """Independent draws; the last axis of ``shape`` runs over the axes of the state."""
        sizes = jnp.broadcast_to(jnp.asarray(self.along(shape[-1])), shape)
        return sizes * self._unit_draw(shape, key)

    @property
    @abc.abstractmethod
    def _unit_deviation(self) -> float: ...

    @abc.abstractmethod
    def _unit_draw(self, shape: tuple[int, ...], key: Key) -> jax.Array: ...

    @abc.abstractmethod
    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights of a rule for the law of size 1, exact for polynomials."""

    @abc.abstractmethod
    def quantiser(self, count: int) -> tuple[np.ndarray, float]:
        """``count`` equally likely values for the law of size 1, and their W₁ distance to it."""


class Gaussian(Noise):
    """ε ~ N(0, size²) along each axis.

    >>> Gaussian(0.1).proxy(2)
    0.1
    """

    @property
    def _unit_deviation(self) -> float:
        return 1.0

    def _unit_draw(self, shape: tuple[int, ...], key: Key) -> jax.Array:
        return jax.random.normal(key, shape)

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        nodes, weights = np.polynomial.hermite_e.hermegauss(count)
        return nodes, weights / weights.sum()

    def quantiser(self, count: int) -> tuple[np.ndarray, float]:
        edges = stats.norm.ppf(np.linspace(0, 1, count + 1))
        density = stats.norm.pdf(edges)
        nodes = count * (density[:-1] - density[1:])  # conditional means
        # ∫ |x − node| over a cell: both sides of the node, by ∫ x φ = −φ.
        low, mid, high = edges[:-1], nodes, edges[1:]
        cdf, pdf = stats.norm.cdf, stats.norm.pdf
        below = mid * (cdf(mid) - cdf(low)) - (pdf(low) - pdf(mid))
        above = (pdf(mid) - pdf(high)) - mid * (cdf(high) - cdf(mid))
        return nodes, float(np.sum(below + above))


class Uniform(Noise):
    """ε uniform on [−size, size] along each axis; bounded, and size/√3-sub-Gaussian."""

    @property
    def _unit_deviation(self) -> float:
        return 1.0 / math.sqrt(3.0)

    def _unit_draw(self, shape: tuple[int, ...], key: Key) -> jax.Array:
        return jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        nodes, weights = np.polynomial.legendre.leggauss(count)
        return nodes, weights / 2

    def quantiser(self, count: int) -> tuple[np.ndarray, float]:
        edges = np.linspace(-1, 1, count + 1)
        return (edges[:-1] + edges[1:]) / 2, 1 / (2 * count)


#: No noise at all.
SILENT = Gaussian(0.0)


def as_noise(value: Any) -> Noise:
    """A noise law, or the standard deviation of a Gaussian one."""
    return value if isinstance(value, Noise) else Gaussian(value)
