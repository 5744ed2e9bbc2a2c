"""What kernels that are fitted to data must offer: before the fit a family, after it kernels.

Two families exist: squared exponentials with a lengthscale for every coordinate (``ARDFamily``, fast)
and any kernel expression with free parameters (``FreeKernel``). ``fit`` and ``inducing_posterior``
know these contracts and nothing else of a kernel.
"""

import abc

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.gp.fit_config import InducingConfig
from kernelmdp.gp.hyperpriors import HyperPrior
from kernelmdp.kernels import Kernel
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Key


class PriorDraw(Module):
    """One function for each output, drawn from the prior. Approximate: random features."""

    @abc.abstractmethod
    def __call__(self, embedded: Float[Array, "n p"]) -> Float[Array, "n m"]:
        """Values at embedded points."""


class BatchedKernels(Module):
    """Kernels of m independent outputs, with the noise of each. Parameters are arrays."""

    signal: eqx.AbstractVar[Float[Array, " m"]]
    noise: eqx.AbstractVar[Float[Array, " m"]]

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Number of coordinates of a point."""

    @abc.abstractmethod
    def embed(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        """Points in the coordinates that the methods below take."""

    @abc.abstractmethod
    def gram(
        self, first: Float[Array, "n p"], second: Float[Array, "k p"]
    ) -> Float[Array, "m n k"]:
        """k_i between embedded points, for every output i."""

    @abc.abstractmethod
    def variances(self, embedded: Float[Array, "n p"]) -> Float[Array, "#n m"]:
        """k_i(z, z); one row when it is the same everywhere."""

    @abc.abstractmethod
    def scale(
        self, embedded: Float[Array, "n p"], counted: Float[Array, " n"]
    ) -> Float[Array, " m"]:
        """The size of k_i(z, z) where ``counted`` is 1: the unit of jitter. Never zero."""

    @abc.abstractmethod
    def prior_draw(self, config: InducingConfig, *, keys: tuple[Key, Key, Key]) -> PriorDraw:
        """One function for each output, independent of one another."""

    @abc.abstractmethod
    def selection_kernel(self, points: Float[Array, "n d"]) -> "BatchedKernels":
        """Kernels of one output, in which centres for all outputs are chosen among the points."""

    @abc.abstractmethod
    def kernels(self) -> list[Kernel]:
        """The kernel of each output as an expression, for its text."""


class KernelFamily(Module):
    """Kernels of m outputs whose parameters are still open, and what is believed of them.

    A parameter vector has k logarithms; the last is that of the noise, in units of the output.
    """

    sizes: eqx.AbstractVar[Float[Array, " m"]]

    @abc.abstractmethod
    def parameter_priors(self, hyper_prior: HyperPrior) -> Float[np.ndarray, "m k 4"]:
        """Median, log-deviation, low and high end of each parameter of each output."""

    @abc.abstractmethod
    def output(self, index: int) -> "KernelFamily":
        """The family of one output."""

    @abc.abstractmethod
    def kernels_at(self, logs: Float[Array, "m k"]) -> BatchedKernels:
        """The kernels with these logarithms of parameters."""
