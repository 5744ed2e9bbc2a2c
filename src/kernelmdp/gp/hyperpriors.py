"""Priors of kernel parameters."""

import math
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from kernelmdp.numerics.modules import Module


class LogNormalPrior(NamedTuple):
    """A log-normal prior of one parameter, within bounds.

    Attributes:
        median: The median.
        spread: The standard deviation of the logarithm.
        low: The lowest value.
        high: The highest value.
    """

    median: float
    spread: float
    low: float
    high: float


class HyperPrior(Module):
    """Priors of the parameters of an ARD kernel, in units of axes and of the outputs' size.

    Attributes:
        lengthscale: The prior of every lengthscale; its median is multiplied by √d.
        signal: The prior of the signal's standard deviation.
        noise: The prior of the noise's standard deviation.
    """

    lengthscale: LogNormalPrior
    signal: LogNormalPrior
    noise: LogNormalPrior

    def rows(self, dimension: int) -> Float[np.ndarray, "k 4"]:
        """Return the priors of all parameters as numbers.

        Args:
            dimension: d.

        Returns:
            A row (median, spread, low, high) for each lengthscale, the signal and the noise.
        """
        median = self.lengthscale.median * math.sqrt(dimension)
        lengthscale = self.lengthscale._replace(median=median)
        return np.array([lengthscale] * dimension + [self.signal, self.noise])


#: The prior for increments of the state. It worked on four control tasks without tuning.
#: Lengthscales of irrelevant inputs can grow to 20 axes, where the input has no influence.
DYNAMICS = HyperPrior(
    lengthscale=LogNormalPrior(0.205, math.sqrt(3), 0.05, 20.0),
    signal=LogNormalPrior(1.0, 1.0, 0.1, 10.0),
    noise=LogNormalPrior(0.01, 2.0, 1e-3, 1.0),
)
#: The prior for rewards. Lengthscales stay below half an axis, because rewards are often flat where
#: an agent has been.
REWARD = HyperPrior(
    lengthscale=LogNormalPrior(0.205, math.sqrt(3), 0.05, 0.5),
    signal=LogNormalPrior(1.0, 1.0, 0.5, 10.0),
    noise=LogNormalPrior(0.01, 2.0, 1e-3, 1.0),
)
#: The prior for rewards with many inputs. Lengthscales of irrelevant inputs can grow, as above.
RELEVANCE = eqx.tree_at(
    lambda hyper_prior: hyper_prior.lengthscale, REWARD, REWARD.lengthscale._replace(high=20.0)
)
#: The prior for rewards that were not seen to depend on the state: shorter lengthscales keep
#: unvisited states uncertain.
SPARSE = eqx.tree_at(
    lambda hyper_prior: hyper_prior.lengthscale,
    REWARD,
    LogNormalPrior(0.205, math.sqrt(3), 0.05, 0.3),
)
#: The prior for the regression of termination, a function with values 0 and 1. Its noise covers
#: what is not smooth.
ENDINGS = HyperPrior(
    lengthscale=LogNormalPrior(0.205, math.sqrt(3), 0.05, 20.0),
    signal=LogNormalPrior(1.0, 1.0, 0.5, 3.0),
    noise=LogNormalPrior(0.15, 1.0, 0.1, 1.0),
)
