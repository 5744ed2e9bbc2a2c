"""Noise distributions: additive, independent along each axis, of known or estimated size.

On a finite set of states the mean is a vector of probabilities instead, and the outcome is a state
drawn with them (``Categorical``). This is also a mean plus noise, in the space of one-hot vectors.

Planners need the distribution itself, because Assumption A1 is about p + ε, not about p alone. They
use its quadrature. For certificates they use a quantiser with a known Wasserstein distance.
"""

import abc
import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float

from kernelmdp.domains import Domain, FiniteSet
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.numerics.tracing import is_traced
from kernelmdp.types import AnyArray, Key


@dataclasses.dataclass(frozen=True, init=False)
class Noise(abc.ABC):
    """Additive noise that is independent along each axis.

    Args:
        sizes: One size for each axis, or one for all. 0 means that the axis has no noise.
        estimated: Whether the sizes are estimates. Theorems need known sizes.

    Attributes:
        sizes: The sizes.
        estimated: Whether the sizes are estimates.

    Raises:
        ArgumentError: If a size is negative or not finite.

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
        """Whether the noise is additive and normal along each axis."""
        return False

    @property
    def categorical(self) -> bool:
        """Whether the mean is a vector of state probabilities, and the outcome is a state."""
        return False

    @property
    def degrees(self) -> float:
        """Degrees of freedom of the tails; infinite for tails as light as a Gaussian's."""
        return math.inf

    def axis_sizes(self, dimension: int) -> np.ndarray:
        """Return the size along each axis.

        Args:
            dimension: The number of axes.

        Returns:
            The sizes, (dimension,).

        Raises:
            ShapeError: If the noise has sizes for another number of axes.
        """
        if len(self.sizes) not in (1, dimension):
            raise ShapeError("noise", f"1 or {dimension} sizes", len(self.sizes))
        return np.broadcast_to(np.array(self.sizes), (dimension,))

    def standard_deviations(self, dimension: int) -> np.ndarray:
        """Return the standard deviation along each axis.

        Args:
            dimension: The number of axes.

        Returns:
            The standard deviations, (dimension,).
        """
        return self.axis_sizes(dimension) * self._unit_deviation

    def sub_gaussian_proxy(self, dimension: int) -> float:
        """Return a σ such that the noise along every axis is σ-sub-Gaussian.

        Args:
            dimension: The number of axes.

        Returns:
            The largest of ``sub_gaussian_proxies``.
        """
        return float(self.sub_gaussian_proxies(dimension).max())

    def sub_gaussian_proxies(self, dimension: int) -> np.ndarray:
        """Return for each axis a σ such that E exp(tε) ≤ exp(σ²t²/2) for all t.

        Args:
            dimension: The number of axes.

        Returns:
            σ of each axis, (dimension,).
        """
        return self.standard_deviations(dimension)

    def mean_dimension(self, states: Domain) -> int:
        """Return the dimension of a mean next state.

        Args:
            states: The state space.

        Returns:
            The dimension of the states, or the number of states of a table.
        """
        return states.dimension

    def outcomes(self, means: Float[Array, "n k"], *, key: Key) -> Float[Array, "n m"]:
        """Draw raw next states.

        Args:
            means: The mean next states, (n, k).
            key: Decides the draws.

        Returns:
            The raw next states, (n, m).
        """
        return means + self.draw(means.shape, key=key)

    def embed(self, outcomes: Any) -> Any:
        """Turn raw next states into regression targets, whose expectation is the mean.

        Args:
            outcomes: The raw next states, (n, m).

        Returns:
            The targets, (n, k).
        """
        return outcomes

    def draw(self, shape: tuple[int, ...], *, key: Key) -> jax.Array:
        """Draw independent noise.

        Args:
            shape: The shape of the result. Its last axis is that of the state.
            key: Decides the draws.

        Returns:
            The noise.
        """
        sizes = jnp.broadcast_to(jnp.asarray(self.axis_sizes(shape[-1])), shape)
        return sizes * self._unit_draw(shape, key)

    @property
    @abc.abstractmethod
    def _unit_deviation(self) -> float: ...

    @abc.abstractmethod
    def _unit_draw(self, shape: tuple[int, ...], key: Key) -> jax.Array: ...

    def distribution(self, values: np.ndarray) -> np.ndarray:
        """Compute the distribution function of noise of size 1, which is symmetric and unimodal.

        Args:
            values: The values x.

        Returns:
            P(ε ≤ x) for each of them.

        Raises:
            ArgumentError: If the law does not know it.
        """
        probabilities = self._unit_distribution(values)
        if probabilities is None:
            raise ArgumentError("noise", "a law with a distribution function", type(self).__name__)
        return probabilities

    def _unit_distribution(self, values: np.ndarray) -> np.ndarray | None:
        """P(ε ≤ x) for noise of size 1; None if the law does not know it."""
        return None

    @abc.abstractmethod
    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Make a quadrature rule for noise of size 1, exact for polynomials.

        Args:
            count: The number of nodes.

        Returns:
            Nodes and weights, each (count,).
        """

    @abc.abstractmethod
    def quantiser(self, count: int) -> tuple[np.ndarray, float]:
        """Replace noise of size 1 by finitely many equally likely values.

        Args:
            count: The number of values.

        Returns:
            The values (count,), and their W₁ distance to the noise.
        """


class Gaussian(Noise):
    """Gaussian noise: ε ~ N(0, size²) along each axis.

    >>> Gaussian(0.1).sub_gaussian_proxy(2)
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

    def _unit_distribution(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(scipy.special.ndtr(values))

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        nodes, weights = np.polynomial.hermite_e.hermegauss(count)
        return nodes, weights / weights.sum()

    def quantiser(self, count: int) -> tuple[np.ndarray, float]:
        edges = scipy.stats.norm.ppf(np.linspace(0, 1, count + 1))
        density = scipy.stats.norm.pdf(edges)
        nodes = count * (density[:-1] - density[1:])  # conditional means
        # ∫ |x − node| over a cell: both sides of the node, by ∫ x φ = −φ.
        low, mid, high = edges[:-1], nodes, edges[1:]
        cdf, pdf = scipy.stats.norm.cdf, scipy.stats.norm.pdf
        below = mid * (cdf(mid) - cdf(low)) - (pdf(low) - pdf(mid))
        above = (pdf(mid) - pdf(high)) - mid * (cdf(high) - cdf(mid))
        return nodes, float(np.sum(below + above))


class Uniform(Noise):
    """Uniform noise on [−size, size] along each axis. It is size/√3-sub-Gaussian.

    >>> Uniform(0.3).standard_deviations(1).round(4)
    array([0.1732])
    """

    @property
    def _unit_deviation(self) -> float:
        return 1.0 / math.sqrt(3.0)

    def _unit_draw(self, shape: tuple[int, ...], key: Key) -> jax.Array:
        return jax.random.uniform(key, shape, minval=-1.0, maxval=1.0)

    def _unit_distribution(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(np.clip((values + 1) / 2, 0.0, 1.0))

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        nodes, weights = np.polynomial.legendre.leggauss(count)
        return nodes, weights / 2

    def quantiser(self, count: int) -> tuple[np.ndarray, float]:
        edges = np.linspace(-1, 1, count + 1)
        return (edges[:-1] + edges[1:]) / 2, 1 / (2 * count)


@dataclasses.dataclass(frozen=True, init=False)
class Categorical(Noise):
    """The next state is drawn from a finite set. Its mean is the vector of probabilities.

    One-hot vectors e with mean p are vector sub-Gaussian with σ² = 1/2 (note D4, Hoeffding). Their
    coordinates have variance p(1 − p).

    Args:
        states: The S states.
        variance: The mean variance of a coordinate over a table. None means its expectation under
            the Dirichlet(1/S) prior, (1/S)(1 − 1/S)/2.

    Attributes:
        states: The S states.
        variance: The mean variance of a coordinate.

    Raises:
        ArgumentError: If the variance is negative or not finite.

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
        prior_variance = (1 - 1 / count) / (2 * count) if count > 1 else 1.0
        object.__setattr__(self, "states", states)
        object.__setattr__(
            self, "variance", float(prior_variance if variance is None else variance)
        )

    @property
    def categorical(self) -> bool:
        return True

    @property
    def _unit_deviation(self) -> float:
        return math.sqrt(self.variance)

    def sub_gaussian_proxies(self, dimension: int) -> np.ndarray:
        return np.full(dimension, math.sqrt(0.5))

    def mean_dimension(self, states: Domain) -> int:
        return self.states.count

    def outcomes(self, means: Float[Array, "n k"], *, key: Key) -> Float[Array, "n m"]:
        chosen = jax.random.categorical(key, jnp.log(onto_simplex(means)), axis=1)
        return jnp.asarray(np.array(self.states.points))[chosen]

    def embed(self, outcomes: Any) -> AnyArray:
        # Outside compiled programs NumPy is faster: dispatch would cost more than the arithmetic.
        library = jnp if is_traced(outcomes) else np
        points = library.asarray(np.array(self.states.points))
        distances = library.abs(library.asarray(outcomes)[:, None, :] - points[None])
        return library.eye(self.states.count)[distances.sum(axis=2).argmin(axis=1)]

    def _unit_draw(self, shape: tuple[int, ...], key: Key) -> jax.Array:
        raise NotImplementedError("not additive: see outcomes")

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError("expectations are sums over states")

    def quantiser(self, count: int) -> tuple[np.ndarray, float]:
        raise NotImplementedError("expectations are sums over states")


def onto_simplex(vectors: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Project vectors to the nearest probability vectors, max(x − t, 0) with sum 1.

    With x sorted downwards, t = max_j (x_1 + … + x_j − 1)/j.

    Args:
        vectors: The vectors x, (n, k).

    Returns:
        The probability vectors, (n, k).
    """
    sums = jnp.cumsum(jnp.sort(vectors, axis=1)[:, ::-1], axis=1)
    lengths = jnp.arange(1, vectors.shape[1] + 1, dtype=vectors.dtype)
    threshold = jnp.max((sums - 1) / lengths[None, :], axis=1, keepdims=True)
    return jnp.maximum(vectors - threshold, 0.0)


#: No noise. It is a Gaussian of size 0, so that rules for Gaussian noise apply to it.
NO_NOISE = Gaussian(0.0)


def smallest_deviation(noise: Noise, metric: tuple[float, ...]) -> float:
    """Find the least standard deviation of Gaussian noise over the axes, in metric units.

    Args:
        noise: The noise.
        metric: One number for each axis, by which distances are divided.

    Returns:
        √v, where v is the least variance. It is 0 for other noise, for which no rule applies.

    >>> smallest_deviation(Gaussian([0.1, 0.4]), (1.0, 2.0))
    0.1
    """
    if not noise.gaussian:
        return 0.0
    return float((noise.standard_deviations(len(metric)) / np.array(metric)).min())


def gaussian_slope(span: float, deviation: float) -> float:
    """Bound the slope of p ↦ E V(p + ε) under Gaussian noise: L ≤ span(V)/√(2πv) (note B8, P9).

    Args:
        span: A bound of max V − min V.
        deviation: √v, the least standard deviation of the noise, in the units of L.

    Returns:
        The bound. It is infinite without noise, and 0 for a constant V.

    >>> round(gaussian_slope(1.0, 0.1), 3), gaussian_slope(1.0, 0.0), gaussian_slope(0.0, 0.0)
    (3.989, inf, 0.0)
    """
    if deviation > 0:
        return span / (math.sqrt(2 * math.pi) * deviation)
    return math.inf if span > 0 else 0.0


def as_noise(value: Any) -> Noise:
    """Make noise from a number.

    Args:
        value: Noise, which is returned unchanged, or standard deviations of Gaussian noise.

    Returns:
        The noise.
    """
    return value if isinstance(value, Noise) else Gaussian(value)
