"""How gains grow with n, logarithms aside: by class of kernel."""

import functools
import math

from kernelmdp.kernels import (
    Kernel,
    Matern,
    OutputKernel,
    Periodic,
    Product,
    Restricted,
    Scaled,
    SquaredExponential,
    Sum,
)


def gain_exponent(
    kernel: Kernel | OutputKernel, dimension: int, *, rate: str = "improved"
) -> float | None:
    """p with γ_n = Õ(n^p): 0 for finite rank, SE and periodic kernels; None where nothing is known.

    Matern: d(d+1)/(2ν + d(d+1)) as the paper cites, d/(2ν + d) by Vakili et al. 2021. A kernel
    bound to the coordinates of a domain is looked at on its own coordinates only.

    >>> from kernelmdp import kernels
    >>> gain_exponent(kernels.Matern(1.5), 2), gain_exponent(kernels.Matern(1.5), 2, rate="paper")
    (0.4, 0.6666666666666666)
    """
    found = [
        0.0 if math.isfinite(part.feature_count(dimension)) else _exponent(part, dimension, rate)
        for part in kernel.parts()
    ]
    return _largest(found)


def regret_exponent(powers: list[float | None]) -> float | None:
    """Of T in γ_T √T, the order of every bound here; None when a gain's growth is not known."""
    largest = _largest(powers)
    return None if largest is None else 0.5 + largest


@functools.singledispatch
def _exponent(kernel: Kernel, dimension: int, rate: str) -> float | None:
    """Of a kernel of infinite rank, by its class; register a rule for a kernel of your own."""
    return None


@_exponent.register(SquaredExponential)
@_exponent.register(Periodic)
def _smooth(kernel: Kernel, dimension: int, rate: str) -> float:
    return 0.0


@_exponent.register
def _matern(kernel: Matern, dimension: int, rate: str) -> float:
    size = dimension * (dimension + 1) if rate == "paper" else dimension
    return size / (2 * float(kernel.nu) + size)


@_exponent.register
def _restricted(kernel: Restricted, dimension: int, rate: str) -> float | None:
    own = len(kernel.positions) if kernel.name is None else dimension
    return gain_exponent(kernel.kernel, own, rate=rate)


@_exponent.register
def _scaled(kernel: Scaled, dimension: int, rate: str) -> float | None:
    return gain_exponent(kernel.kernel, dimension, rate=rate)


@_exponent.register
def _sum(kernel: Sum, dimension: int, rate: str) -> float | None:
    sides = (kernel.left, kernel.right)
    return _largest([gain_exponent(side, dimension, rate=rate) for side in sides])


@_exponent.register
def _product(kernel: Product, dimension: int, rate: str) -> float | None:
    """A factor of finite rank changes nothing but constants; the spectra of others convolve."""
    left, right = kernel.left, kernel.right
    for finite, other in ((left, right), (right, left)):
        if math.isfinite(finite.feature_count(dimension)):
            return gain_exponent(other, dimension, rate=rate)
    both = [gain_exponent(side, dimension, rate=rate) for side in (left, right)]
    # Smooth times smooth is smooth; the rate of a product with a rough kernel is not stated.
    return 0.0 if both == [0.0, 0.0] else None


def _largest(powers: list[float | None]) -> float | None:
    known = [p for p in powers if p is not None]
    return max(known) if len(known) == len(powers) else None
