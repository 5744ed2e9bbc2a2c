"""A random finite basis for a prior draw of any kernel built from stationary and finite-rank parts.

Stationary parts get random Fourier features, parts of finite rank their exact features, and sums
and products combine them. This is the fallback for kernels that do not compile.
"""

import math

import jax

from kernelmdp.errors import UnknownPropertyError
from kernelmdp.gp.basis import (
    Basis,
    FeatureBasis,
    FourierBasis,
    Products,
    ScaledBasis,
    SideBySide,
)
from kernelmdp.kernels import Kernel, Product, Scaled, Sum
from kernelmdp.types import Key


def prior_basis(kernel: Kernel, dimension: int, count: int, *, key: Key) -> Basis:
    """A basis g with E g(x)ᵀg(y) = k(x, y), from ``count`` frequencies for each stationary part."""
    if kernel.feature_count(dimension) < math.inf:
        return FeatureBasis(kernel)
    if kernel.stationary:
        return FourierBasis(kernel, kernel.frequencies(count, dimension, key=key))
    left, right = jax.random.split(key)
    if isinstance(kernel, Scaled):
        return ScaledBasis(prior_basis(kernel.kernel, dimension, count, key=key), kernel.factor)
    if isinstance(kernel, Sum | Product):
        make = SideBySide if isinstance(kernel, Sum) else Products
        return make(
            prior_basis(kernel.left, dimension, count, key=left),
            prior_basis(kernel.right, dimension, count, key=right),
        )
    raise UnknownPropertyError(
        f"{kernel} has no spectral law and so no random features; use sample_at on a finite set, "
        "sample(..., method='lazy'), or a domain on which the kernel compiles"
    )
