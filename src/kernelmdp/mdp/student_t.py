"""Student-t noise. Its tails are heavy, so no theorem of the paper covers it."""

import dataclasses
import math
from typing import Any

import jax
import numpy as np
import scipy

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.noise import Noise
from kernelmdp.numerics.checks import positive_number
from kernelmdp.types import Key


@dataclasses.dataclass(frozen=True, init=False)
class StudentT(Noise):
    """ε = size · t_ν along each axis, with ν = ``degrees`` > 2 degrees of freedom.

    Its standard deviation is size · √(ν/(ν − 2)). It has no exponential moment.

    Args:
        sizes: The size of the noise, one number for each axis or one for all.
        degrees: The degrees of freedom ν, more than 2.
        estimated: Whether the sizes are estimates.

    Attributes:
        degrees: The degrees of freedom ν.

    Raises:
        ArgumentError: If a size is negative or not finite, or ``degrees`` is at most 2.

    >>> round(float(StudentT(0.1).standard_deviations(1)[0]), 4)
    0.1732
    """

    degrees: float = 3.0

    def __init__(self, sizes: Any, *, degrees: float = 3.0, estimated: bool = False) -> None:
        super().__init__(sizes, estimated=estimated)
        if not positive_number("degrees", degrees) > 2:
            raise ArgumentError("degrees", "more than 2, so that a variance exists", degrees)
        object.__setattr__(self, "degrees", float(degrees))

    @property
    def _unit_deviation(self) -> float:
        return math.sqrt(self.degrees / (self.degrees - 2))

    def sub_gaussian_proxies(self, dimension: int) -> np.ndarray:
        """Raise an error unless all sizes are 0, because the noise is not sub-Gaussian.

        Args:
            dimension: The number of axes.

        Returns:
            Zeros, (dimension,), if there is no noise.

        Raises:
            ArgumentError: If a size is positive.
        """
        if not any(self.sizes):
            return np.zeros(dimension)
        raise ArgumentError(
            "noise",
            "a sub-Gaussian law, which confidence sets and theorems need",
            f"Student-t with {self.degrees:g} degrees of freedom",
        )

    def _unit_draw(self, shape: tuple[int, ...], key: Key) -> jax.Array:
        return jax.random.t(key, self.degrees, shape)

    def _unit_distribution(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(scipy.special.stdtr(self.degrees, values))

    def quadrature(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Make the Gauss rule in x = t/√(ν + t²), whose density is ∝ (1 − x²)^{ν/2 − 1}.

        It is exact for polynomials in x, not in t, because t has no moments beyond ν. It suits
        bounded smooth functions, such as values of clipped states.

        Args:
            count: The number of nodes.

        Returns:
            Nodes and weights, each (count,).
        """
        nodes, weights = scipy.special.roots_gegenbauer(count, (self.degrees - 1) / 2)
        nodes = (nodes - nodes[::-1]) / 2  # symmetric to the last digit
        return math.sqrt(self.degrees) * nodes / np.sqrt(1 - nodes**2), weights / weights.sum()

    def quantiser(self, count: int) -> tuple[np.ndarray, float]:
        """Quantise the law to the conditional means of equally likely cells.

        The means follow from ∫ t f = −(ν + t²)/(ν − 1) f.

        Args:
            count: The number of values.

        Returns:
            The values (count,), and their W₁ distance to the law of size 1.
        """
        law, nu = scipy.stats.t(self.degrees), self.degrees

        def tail(t: np.ndarray) -> np.ndarray:
            finite = np.where(np.isfinite(t), t, 0.0)
            return np.where(np.isfinite(t), (nu + finite**2) / (nu - 1) * law.pdf(finite), 0.0)

        edges = law.ppf(np.linspace(0, 1, count + 1))
        nodes = count * (tail(edges[:-1]) - tail(edges[1:]))
        low, high = edges[:-1], edges[1:]
        below = nodes * (law.cdf(nodes) - law.cdf(low)) - (tail(low) - tail(nodes))
        above = (tail(nodes) - tail(high)) - nodes * (law.cdf(high) - law.cdf(nodes))
        return nodes, float(np.sum(below + above))
