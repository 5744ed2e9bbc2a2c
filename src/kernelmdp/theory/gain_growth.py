"""Growth rates of information gains with n, logarithms aside, by class of kernel."""

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
    """Return the p in γ_n = Õ(n^p).

    It is 0 for kernels of finite rank, squared exponentials and periodic kernels. For Matern it is
    d(d+1)/(2ν + d(d+1)) as the paper cites, and d/(2ν + d) by Vakili et al. 2021. For a kernel that
    is bound to some coordinates of a domain, d counts these coordinates only.

    Args:
        kernel: The kernel.
        dimension: The dimension d of the domain.
        rate: "paper", or "improved" for the rate of Vakili et al.

    Returns:
        The exponent p. None if it is unknown.

    >>> from kernelmdp import kernels
    >>> gain_exponent(kernels.Matern(1.5), 2), gain_exponent(kernels.Matern(1.5), 2, rate="paper")
    (0.4, 0.6666666666666666)
    """
    exponents = [
        0.0 if math.isfinite(part.feature_count(dimension)) else _exponent(part, dimension, rate)
        for part in kernel.parts()
    ]
    return _largest(exponents)


def regret_exponent(exponents: list[float | None]) -> float | None:
    """Return the exponent of T in γ_T √T, the order of every bound here.

    Args:
        exponents: The exponents of the information gains.

    Returns:
        The exponent. None if the growth of a gain is unknown.
    """
    largest = _largest(exponents)
    return None if largest is None else 0.5 + largest


@functools.singledispatch
def _exponent(kernel: Kernel, dimension: int, rate: str) -> float | None:
    """The exponent of a kernel of infinite rank. You can register a rule for your own kernels."""
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
    coordinates = len(kernel.positions) if kernel.name is None else dimension
    return gain_exponent(kernel.kernel, coordinates, rate=rate)


@_exponent.register
def _scaled(kernel: Scaled, dimension: int, rate: str) -> float | None:
    return gain_exponent(kernel.kernel, dimension, rate=rate)


@_exponent.register
def _sum(kernel: Sum, dimension: int, rate: str) -> float | None:
    sides = (kernel.left, kernel.right)
    return _largest([gain_exponent(side, dimension, rate=rate) for side in sides])


@_exponent.register
def _product(kernel: Product, dimension: int, rate: str) -> float | None:
    """A factor of finite rank changes constants only. The spectra of other factors convolve."""
    left, right = kernel.left, kernel.right
    for first, second in ((left, right), (right, left)):
        if math.isfinite(first.feature_count(dimension)):
            return gain_exponent(second, dimension, rate=rate)
    exponents = [gain_exponent(side, dimension, rate=rate) for side in (left, right)]
    # The product of smooth kernels is smooth. For rough kernels no rate is known.
    return 0.0 if exponents == [0.0, 0.0] else None


def _largest(exponents: list[float | None]) -> float | None:
    known = [p for p in exponents if p is not None]
    return max(known) if len(known) == len(exponents) else None
