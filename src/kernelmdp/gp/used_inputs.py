"""Kernels that depend on some coordinates of a point, and ignore the others.

The state of a problem may hold what a step was measured to cost. Nothing depends on that. Where the
coordinate is no input, it has no lengthscale, and data cannot suggest that something depends on it.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.gp.fit_config import InducingConfig
from kernelmdp.gp.hyperpriors import HyperPrior
from kernelmdp.gp.kernel_families import BatchedKernels, KernelFamily, KernelSum, PriorDraw
from kernelmdp.kernels import Kernel
from kernelmdp.types import Key


class KernelsOnInputs(BatchedKernels):
    """Kernels of some coordinates of a point.

    Attributes:
        signal: The signal's standard deviation of each output.
        noise: The noise's standard deviation of each output.
        inner: The kernels of the inputs alone.
        inputs: The coordinates that are inputs.
        coordinates: The number of coordinates of a point.
    """

    signal: Float[Array, " m"]
    noise: Float[Array, " m"]
    inner: BatchedKernels
    inputs: tuple[int, ...] = eqx.field(static=True)
    coordinates: int = eqx.field(static=True)

    @staticmethod
    def of(inner: BatchedKernels, inputs: tuple[int, ...], coordinates: int) -> "KernelsOnInputs":
        """Make kernels of points from kernels of their inputs.

        Args:
            inner: The kernels of the inputs alone.
            inputs: The coordinates that are inputs.
            coordinates: The number of coordinates of a point.

        Returns:
            The kernels.
        """
        return KernelsOnInputs(inner.signal, inner.noise, inner, inputs, coordinates)

    @property
    def dimension(self) -> int:
        return self.coordinates

    def embed(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        return self.inner.embed(points[:, np.array(self.inputs)])

    def gram(
        self, first: Float[Array, "n p"], second: Float[Array, "k p"]
    ) -> Float[Array, "m n k"]:
        return self.inner.gram(first, second)

    def slopes(
        self,
        embedded: Float[Array, "n p"],
        centres: Float[Array, "k p"],
        weights: Float[Array, "m n k"],
    ) -> Float[Array, "n m p"]:
        return self.inner.slopes(embedded, centres, weights)

    def weighted_sum(
        self, centres: Float[Array, "k p"], coefficients: Float[Array, "m k"]
    ) -> KernelSum:
        return self.inner.weighted_sum(centres, coefficients)

    def variances(self, embedded: Float[Array, "n p"]) -> Float[Array, "#n m"]:
        return self.inner.variances(embedded)

    def scale(
        self, embedded: Float[Array, "n p"], counted: Float[Array, " n"]
    ) -> Float[Array, " m"]:
        return self.inner.scale(embedded, counted)

    def prior_draw(self, config: InducingConfig, *, keys: tuple[Key, Key, Key]) -> PriorDraw:
        return self.inner.prior_draw(config, keys=keys)

    def selection_kernel(self, points: Float[Array, "n d"]) -> "KernelsOnInputs":
        inner = self.inner.selection_kernel(points[:, np.array(self.inputs)])
        return KernelsOnInputs.of(inner, self.inputs, self.coordinates)

    def kernels(self) -> list[Kernel]:
        return [kernel.on(self.inputs) for kernel in self.inner.kernels()]


class FamilyOnInputs(KernelFamily):
    """A family of kernels of some coordinates of a point.

    Attributes:
        sizes: The unit of each output.
        inner: The family of kernels of the inputs alone.
        inputs: The coordinates that are inputs.
        coordinates: The number of coordinates of a point.
        own_priors: Priors of the parameters of some outputs, by their number, instead of the prior
            of all others.
    """

    sizes: Float[Array, " m"]
    inner: KernelFamily
    inputs: tuple[int, ...] = eqx.field(static=True)
    coordinates: int = eqx.field(static=True)
    own_priors: Mapping[int, HyperPrior]

    def parameter_priors(self, hyper_prior: HyperPrior) -> Float[np.ndarray, "m k 4"]:
        rows = self.inner.parameter_priors(hyper_prior)
        for output, prior in self.own_priors.items():
            rows[output] = self.inner.output(output).parameter_priors(prior)[0]
        return rows

    def output(self, index: int) -> KernelFamily:
        priors = {0: self.own_priors[index]} if index in self.own_priors else {}
        return on_inputs(self.inner.output(index), self.inputs, self.coordinates, priors)

    def kernels_at(self, logs: Float[Array, "m k"]) -> KernelsOnInputs:
        return KernelsOnInputs.of(self.inner.kernels_at(logs), self.inputs, self.coordinates)


def on_inputs(
    family: KernelFamily,
    inputs: Sequence[int],
    coordinates: int,
    own_priors: Mapping[int, HyperPrior] = MappingProxyType({}),
) -> KernelFamily:
    """Let a family of kernels depend on some coordinates of a point.

    Args:
        family: The family of kernels of the inputs alone.
        inputs: The coordinates that are inputs.
        coordinates: The number of coordinates of a point.
        own_priors: Priors of the parameters of some outputs, by their number.

    Returns:
        The family of kernels of points; the given one if all coordinates are inputs.

    >>> import jax.numpy as jnp
    >>> from kernelmdp.gp.ard import ARDFamily
    >>> one = jnp.ones(1)
    >>> kernels = on_inputs(ARDFamily(one, one, one, ()), (0,), 2).kernels_at(jnp.zeros((1, 3)))
    >>> kernels.kernels()[0].text()
    '(1.0 * se([1.0])[0])[0]'
    """
    if len(inputs) == coordinates:
        return family
    return FamilyOnInputs(family.sizes, family, tuple(inputs), coordinates, dict(own_priors))
