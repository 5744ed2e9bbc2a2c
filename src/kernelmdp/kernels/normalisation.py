"""Variance 1, with the norm bound that goes with it."""

from typing import NamedTuple

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels.base import Kernel, Scaled


class Normalised(NamedTuple):
    """A kernel with κ ≤ 1 and the factor by which norms of the same functions grew.

    >>> import kernelmdp as km
    >>> normalised = normalise(km.kernel("constant(4.0)"), km.Box([0.0], [1.0]))
    >>> normalised.norm_factor
    2.0
    """

    kernel: Kernel
    norm_factor: float


def normalise(kernel: Kernel, domain: Domain) -> Normalised:
    """k/κ on the domain. A function with norm B under k has norm √κ·B under k/κ; the posterior at
    noise variance λ under k is that at λ/κ under k/κ, scaled.

    >>> from kernelmdp import Box, kernels
    >>> normalise(kernels.Linear(), Box([0.0], [2.0]))
    Normalised(kernel=0.25 * linear, norm_factor=2.0)
    """
    bound = kernel.variance_bound(domain)
    if not 0 < bound < float("inf"):
        raise ArgumentError("kernel", "a finite variance bound on the domain", bound)
    return Normalised(Scaled(kernel, 1 / bound), bound**0.5)
