"""Noise laws: additive, independent along each axis, known (or estimated, and then said so).

On a finite set of states the mean is a vector of probabilities instead, and the outcome a state
drawn with them (``Categorical``): also a mean plus noise, in the space of one-hot vectors.

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
from jaxtyping import Array, Float
from scipy import stats

from kernelmdp.domains import Domain, FiniteSet
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.numerics.factorisation import is_traced
from kernelmdp.types import AnyArray, Key


@dataclasses.dataclass(frozen=True, init=False)
class Noise(abc.ABC):
    """One size for each axis, or one for all; 0 means that the axis has no noise.

    >>> from kernelmdp.mdp import Gaussian
    >>> Gaussian([0.1, 0.2]).standard_deviations(2), Gaussian(0.1).gaussian
    (array([0.1, 0.2]), True)
    """

    sizes: tuple[float, ...]
    estimated: bool = False

    def __init__(self, sizes: Any, *, estimated: bool = False) -> None:
        array = np.atleast_1d(np.asarray(sizes, dtype=float))
        if array.ndim != 1 or not (np.isfinite(array) & (array >= 0)).all():
            raise ArgumentError("noise", "finite sizes of at least 0", repr(sizes))
        object.__setattr__(self, "sizes", tuple(float(x) for x in array))
        object.__setattr__(self, "estimated", bool(estimated))

    @property
    def gaussian(self) -> bool:
        """Whether the noise is added to the mean and normal along each axis."""
        return False

    @property
    def categorical(self) -> bool:
        """Whether the mean is a vector of probabilities of states, and the outcome one of them."""
        return False

    @property
    def degrees(self) -> float:
        """Degrees of freedom of its tails; infinite for tails as light as a Gaussian's."""
        return math.inf

    def along(self, dimension: int) -> np.ndarray:
        """The size along each of ``dimension`` axes."""
        if len(self.sizes) not in (1, dimension):
            raise ShapeError("noise", f"1 or {dimension} sizes", len(self.sizes))
        return np.broadcast_to(np.array(self.sizes), (dimension,))

    def standard_deviations(self, dimension: int) -> np.ndarray:
        """Standard deviation along each axis."""
        return self.along(dimension) * self._unit_deviation

    def proxy(self, dimension: int) -> float:
        """σ such that every axis is σ-sub-Gaussian."""
        return float(self.proxies(dimension).max())

    def proxies(self, dimension: int) -> np.ndarray:
        """σ of every axis such that the noise is sub-Gaussian: E exp(tε) ≤ exp(σ²t²/2)."""
        return self.standard_deviations(dimension)

    def mean_dimension(self, states: Domain) -> int:
        """Coordinates of the mean of the next state."""
        return states.dimension

    def outcomes(self, means: Float[Array, "n k"], *, key: Key) -> Float[Array, "n m"]:
        """Raw next states with these means."""
        return means + self.draw(means.shape, key=key)

    def embed(self, outcomes: Any) -> Any:
        """Raw next states as vectors whose expectation is the mean: what is regressed on."""
        return outcomes

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
    def gaussian(self) -> bool:
        return True

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
    """ε uniform on [−size, size] along each axis; bounded, and size/√3-sub-Gaussian.

    >>> Uniform(0.3).standard_deviations(1).round(4)
    array([0.1732])
    """

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


@dataclasses.dataclass(frozen=True, init=False)
class Categorical(Noise):
    """The next state is drawn from a finite set; its mean is the vector of probabilities.

    One-hot vectors e with mean p are vector sub-Gaussian with σ² = 1/2 (math D4, Hoeffding);
    their coordinates have variance p(1 − p), on average over a table ``variance``, or where that
    is not known its mean under the Dirichlet(1/S) prior, (1/S)(1 − 1/S)/2.

    >>> from kernelmdp.domains import FiniteSet
    >>> three = FiniteSet([[0.0], [1.0], [2.0]])
    >>> Categorical(three).mean_dimension(three)
    3
    """

    states: FiniteSet = dataclasses.field(kw_only=True)
    variance: float = dataclasses.field(kw_only=True)

    def __init__(self, states: FiniteSet, *, variance: float | None = None) -> None:
        super().__init__(1.0, estimated=variance is None)
        if variance is not None and not (math.isfinite(variance) and variance >= 0):
            raise ArgumentError("variance", "finite and at least 0", variance)
        count = states.count
        typical = (1 - 1 / count) / (2 * count) if count > 1 else 1.0
        object.__setattr__(self, "states", states)
        object.__setattr__(self, "variance", float(typical if variance is None else variance))

    @property
    def categorical(self) -> bool:
        return True

    @property
    def _unit_deviation(self) -> float:
        return math.sqrt(self.variance)

    def proxies(self, dimension: int) -> np.ndarray:
        return np.full(dimension, math.sqrt(0.5))

    def mean_dimension(self, states: Domain) -> int:
        return self.states.count

    def outcomes(self, means: Float[Array, "n k"], *, key: Key) -> Float[Array, "n m"]:
        chosen = jax.random.categorical(key, jnp.log(onto_simplex(means)), axis=1)
        return jnp.asarray(np.array(self.states.points))[chosen]

    def embed(self, outcomes: Any) -> AnyArray:
        # On the host outside programs: a dispatch would cost more than the arithmetic.
        library = jnp if is_traced(outcomes) else np
        points = library.asarray(np.array(self.states.points))
        gaps = library.abs(library.asarray(outcomes)[:, None, :] - points[None])
        return library.eye(self.states.count)[gaps.sum(axis=2).argmin(axis=1)]

    def _unit_draw(self, shape: tuple[int, ...], key: Key) -> jax.Array:
        raise NotImplementedError("not additive: see outcomes")

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError("expectations are sums over states")

    def quantiser(self, count: int) -> tuple[np.ndarray, float]:
        raise NotImplementedError("expectations are sums over states")


def onto_simplex(vectors: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """The nearest probability vectors: max(x − t, 0) with t such that they sum to 1.

    With x sorted downwards, t = max_j (x_1 + … + x_j − 1)/j.
    """
    sums = jnp.cumsum(jnp.sort(vectors, axis=1)[:, ::-1], axis=1)
    lengths = jnp.arange(1, vectors.shape[1] + 1, dtype=vectors.dtype)
    level = jnp.max((sums - 1) / lengths[None, :], axis=1, keepdims=True)
    return jnp.maximum(vectors - level, 0.0)


#: No noise at all.
NO_NOISE = Gaussian(0.0)


def smallest_deviation(noise: Noise, metric: tuple[float, ...]) -> float:
    """The least standard deviation over the axes, in metric units, of Gaussian noise.

    Args:
        noise: The law of the noise.
        metric: One number for each axis, by which distances are divided.

    Returns:
        √v, v the least variance; 0 where the noise is not Gaussian and no rule for it applies.

    >>> smallest_deviation(Gaussian([0.1, 0.4]), (1.0, 2.0))
    0.1
    """
    if not noise.gaussian:
        return 0.0
    return float((noise.standard_deviations(len(metric)) / np.array(metric)).min())


def gaussian_slope(span: float, deviation: float) -> float:
    """L ≤ span(V)/√(2πv): how fast p ↦ E V(p + ε) changes under Gaussian noise (math B8, P9).

    Args:
        span: A bound of max V − min V.
        deviation: √v, the least standard deviation of the noise, in the units of L.

    Returns:
        The bound of the slope; infinite without noise, and 0 for a constant V.

    >>> round(gaussian_slope(1.0, 0.1), 3), gaussian_slope(1.0, 0.0), gaussian_slope(0.0, 0.0)
    (3.989, inf, 0.0)
    """
    if deviation > 0:
        return span / (math.sqrt(2 * math.pi) * deviation)
    return math.inf if span > 0 else 0.0


def as_noise(value: Any) -> Noise:
    """A noise law, or the standard deviation of a Gaussian one."""
    return value if isinstance(value, Noise) else Gaussian(value)
