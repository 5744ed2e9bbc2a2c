"""The contracts of kernels that are fitted to data: a family before the fit, kernels after it.

There are two families: squared exponentials with one lengthscale for every coordinate
(``ARDFamily``, fast), and any kernel expression with free parameters (``FreeKernel``). ``fit`` and
``inducing_posterior`` use these contracts only.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.gp.fit_config import InducingConfig
from kernelmdp.gp.hyperpriors import HyperPrior
from kernelmdp.kernels import Kernel
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Key


class PriorDraw(Module):
    """One function for each output, drawn from the prior approximately, by random features."""

    @abc.abstractmethod
    def __call__(self, embedded: Float[Array, "n p"]) -> Float[Array, "n m"]:
        """Evaluate the functions at embedded points."""


class KernelSum(Module):
    """Σ_u coefficients_u k_i(x, u) for every output i, a function of embedded points x."""

    @abc.abstractmethod
    def __call__(self, embedded: Float[Array, "n p"]) -> Float[Array, "n m"]:
        """Evaluate the sums at embedded points."""


class BatchedKernels(Module):
    """Kernels of m independent outputs, with the noise of each. Parameters are arrays.

    Attributes:
        signal: The signal's standard deviation of each output.
        noise: The noise's standard deviation of each output.
    """

    signal: eqx.AbstractVar[Float[Array, " m"]]
    noise: eqx.AbstractVar[Float[Array, " m"]]

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """The number of coordinates of a point."""

    @abc.abstractmethod
    def embed(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        """Convert points to the coordinates that the other methods take.

        Args:
            points: (n, d).

        Returns:
            Embedded points, (n, p).
        """

    @abc.abstractmethod
    def gram(
        self, first: Float[Array, "n p"], second: Float[Array, "k p"]
    ) -> Float[Array, "m n k"]:
        """Compute k_i between embedded points, for every output i.

        Args:
            first: (n, p).
            second: (k, p).

        Returns:
            The matrices, (m, n, k).
        """

    def slopes(
        self,
        embedded: Float[Array, "n p"],
        centres: Float[Array, "k p"],
        weights: Float[Array, "m n k"],
    ) -> Float[Array, "n m p"]:
        """Compute Σ_u weights_u ∂k_i(x, u)/∂x, for every output i.

        Args:
            embedded: The points x, (n, p).
            centres: The points u, (k, p).
            weights: One number for each output, point and centre, (m, n, k).

        Returns:
            The slopes, (n, m, p).
        """
        pull_back = jax.vjp(lambda x: self.gram(x, centres), embedded)[1]
        m = weights.shape[0]
        separate = jnp.eye(m, dtype=weights.dtype)[:, :, None, None] * weights[None]
        return jax.vmap(lambda each: pull_back(each)[0], out_axes=1)(separate)

    def weighted_sum(
        self, centres: Float[Array, "k p"], coefficients: Float[Array, "m k"]
    ) -> KernelSum:
        """Make the function Σ_u coefficients_u k_i(x, u).

        Planners evaluate it many times, so a class may prepare it.

        Args:
            centres: The embedded points u, (k, p).
            coefficients: (m, k).

        Returns:
            The function of embedded points.
        """
        return GramSum(self, centres, coefficients)

    @abc.abstractmethod
    def variances(self, embedded: Float[Array, "n p"]) -> Float[Array, "#n m"]:
        """Compute k_i(z, z).

        Args:
            embedded: (n, p).

        Returns:
            The variances, (n, m), or one row if they are the same everywhere.
        """

    @abc.abstractmethod
    def scale(
        self, embedded: Float[Array, "n p"], counted: Float[Array, " n"]
    ) -> Float[Array, " m"]:
        """Compute the size of k_i(z, z), which is the unit of jitter and never zero.

        Args:
            embedded: (n, p).
            counted: 1 for rows that count, 0 for padding.

        Returns:
            The size for each output.
        """

    @abc.abstractmethod
    def prior_draw(self, config: InducingConfig, *, keys: tuple[Key, Key, Key]) -> PriorDraw:
        """Draw one function for each output, independently.

        Args:
            config: Number and size of random features.
            keys: Keys for frequencies, phases and weights.

        Returns:
            The functions.
        """

    @abc.abstractmethod
    def selection_kernel(self, points: Float[Array, "n d"]) -> "BatchedKernels":
        """Make the kernel with which inducing points for all outputs are selected.

        Args:
            points: The candidates, (n, d).

        Returns:
            Kernels with one output.
        """

    @abc.abstractmethod
    def kernels(self) -> list[Kernel]:
        """Return the kernel of each output as an expression, which has a text form.

        Returns:
            The kernels.
        """


class GramSum(KernelSum):
    """The sum by the kernel matrix, for any kernels.

    Attributes:
        kernels: The kernels.
        centres: The embedded points u.
        coefficients: The coefficients of each output.
    """

    kernels: BatchedKernels
    centres: Float[Array, "k p"]
    coefficients: Float[Array, "m k"]

    def __call__(self, embedded: Float[Array, "n p"]) -> Float[Array, "n m"]:
        gram = self.kernels.gram(embedded, self.centres)
        return jnp.einsum("mnk,mk->nm", gram, self.coefficients)


class KernelFamily(Module):
    """Kernels of m outputs with free parameters, and the priors of these parameters.

    A parameter vector has k logarithms. The last is that of the noise, in units of the output.

    Attributes:
        sizes: The unit of each output.
    """

    sizes: eqx.AbstractVar[Float[Array, " m"]]

    @abc.abstractmethod
    def parameter_priors(self, hyper_prior: HyperPrior) -> Float[np.ndarray, "m k 4"]:
        """Return the priors of all parameters as numbers.

        Args:
            hyper_prior: The priors of lengthscales, signal and noise.

        Returns:
            Median, spread, lowest and highest value of each parameter of each output.
        """

    @abc.abstractmethod
    def output(self, index: int) -> "KernelFamily":
        """Return the family of one output.

        Args:
            index: The number of the output.

        Returns:
            The family.
        """

    @abc.abstractmethod
    def kernels_at(self, logs: Float[Array, "m k"]) -> BatchedKernels:
        """Make the kernels with given parameters.

        Args:
            logs: Logarithms of the parameters.

        Returns:
            The kernels.
        """
