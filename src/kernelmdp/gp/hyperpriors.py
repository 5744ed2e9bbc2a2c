"""What is believed of a kernel's parameters before any data."""

import math
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float

from kernelmdp.numerics.modules import Module


class LogNormalPrior(NamedTuple):
    """A log-normal prior within bounds: median, standard deviation of the logarithm, ends."""

    median: float
    spread: float
    low: float
    high: float


class HyperPrior(Module):
    """What is believed of kernels before any data, in units of axes and of the outputs' size."""

    lengthscale: LogNormalPrior
    signal: LogNormalPrior
    noise: LogNormalPrior

    def rows(self, dimension: int) -> Float[np.ndarray, "k 4"]:
        """One row a parameter: lengthscales, signal, noise."""
        own = self.lengthscale
        each = own._replace(median=own.median * math.sqrt(dimension))
        return np.array([each] * dimension + [self.signal, self.noise])


DYNAMICS = HyperPrior(
    lengthscale=LogNormalPrior(0.205, math.sqrt(3), 0.05, 20.0),
    signal=LogNormalPrior(1.0, 1.0, 0.1, 10.0),
    noise=LogNormalPrior(0.01, 2.0, 1e-3, 1.0),
)
REWARD = HyperPrior(
    lengthscale=LogNormalPrior(0.205, math.sqrt(3), 0.05, 0.5),
    signal=LogNormalPrior(1.0, 1.0, 0.5, 10.0),
    noise=LogNormalPrior(0.01, 2.0, 1e-3, 1.0),
)
SPARSE = eqx.tree_at(
    lambda hyper_prior: hyper_prior.lengthscale,
    REWARD,
    LogNormalPrior(0.205, math.sqrt(3), 0.05, 0.3),
)
ENDINGS = HyperPrior(
    lengthscale=LogNormalPrior(0.205, math.sqrt(3), 0.05, 20.0),
    signal=LogNormalPrior(1.0, 1.0, 0.5, 3.0),
    noise=LogNormalPrior(0.15, 1.0, 0.1, 1.0),
)
