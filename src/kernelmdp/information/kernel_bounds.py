"""Bounds on the maximum gain by class of kernel: from its parts, or from a series expansion.

Both functions dispatch on the class of the kernel. Add a rule for your own class of kernels with
``composition_bounds.register`` or ``expansion_bounds.register``.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from kernelmdp.domains import Domain
from kernelmdp.information import closed_forms, series_bounds
from kernelmdp.kernels import (
    Kernel,
    Matern,
    Product,
    Restricted,
    Scaled,
    SquaredExponential,
    Sum,
)
from kernelmdp.numerics.modules import jit

#: Returns name and value of the tightest bound of a kernel, on a domain, at a noise variance.
Best: TypeAlias = Callable[[Kernel, Domain, float], tuple[str, float]]


@functools.singledispatch
def composition_bounds(
    kernel: Kernel, domain: Domain, noise_variance: float, best: Best
) -> dict[str, float]:
    """Return bounds on the gain of a composite kernel from bounds of its parts.

    Args:
        kernel: The kernel, whose class selects the rule.
        domain: The domain of its points.
        noise_variance: Noise variance λ.
        best: Returns name and value of the tightest bound of a part, on a domain, at a noise
            variance. The number of points n is fixed inside it.

    Returns:
        The bounds in nats, by name; empty for a kernel that is not composite.
    """
    return {}


@composition_bounds.register
def _of_restricted(
    kernel: Restricted, domain: Domain, noise_variance: float, best: Best
) -> dict[str, float]:
    # Only the coordinates that the kernel reads matter. They may be few enough for the dual bound.
    name, value = best(kernel.kernel, domain.project(kernel.positions), noise_variance)
    return {f"restricted: {name}": value}


@composition_bounds.register
def _of_scaled(
    kernel: Scaled, domain: Domain, noise_variance: float, best: Best
) -> dict[str, float]:
    name, value = best(kernel.kernel, domain, noise_variance / float(kernel.factor))
    return {f"scaled: {name}": value}


@composition_bounds.register
def _of_sum(kernel: Sum, domain: Domain, noise_variance: float, best: Best) -> dict[str, float]:
    (first_name, first_bound), (second_name, second_bound) = (
        best(term, domain, noise_variance) for term in (kernel.left, kernel.right)
    )
    return {
        f"sum rule: {first_name} + {second_name}": closed_forms.sum_rule(first_bound, second_bound)
    }


@composition_bounds.register
def _of_product(
    kernel: Product, domain: Domain, noise_variance: float, best: Best
) -> dict[str, float]:
    """γ(k₁k₂; λ) ≤ D γ(k₁; Dλ/κ₂) when k₂ has rank D and variance at most κ₂."""
    bounds = {}
    for first, second in ((kernel.left, kernel.right), (kernel.right, kernel.left)):
        rank = second.feature_count(domain.dimension)
        variance_bound = second.variance_bound(domain)
        if math.isfinite(rank) and 0 < variance_bound < math.inf:
            name, value = best(first, domain, rank * noise_variance / variance_bound)
            bounds[f"product rule: rank {rank:g} x {name}"] = rank * value
    return bounds


@functools.singledispatch
def expansion_bounds(
    kernel: Kernel, domain: Domain, n: int, noise_variance: float
) -> dict[str, float]:
    """Return bounds on the gain of a kernel of the scaled distance, from series expansions.

    Args:
        kernel: The kernel, whose class selects the rule.
        domain: The domain of its points.
        n: Number of points.
        noise_variance: Noise variance λ.

    Returns:
        The bounds in nats, by name; empty for kernels without a known expansion.
    """
    return {}


@expansion_bounds.register
def _of_matern(kernel: Matern, domain: Domain, n: int, noise_variance: float) -> dict[str, float]:
    sides = _sides(domain, kernel.lengthscale)
    return _fourier(Matern(kernel.nu), sides, n, noise_variance)


@expansion_bounds.register
def _of_squared_exponential(
    kernel: SquaredExponential, domain: Domain, n: int, noise_variance: float
) -> dict[str, float]:
    sides = _sides(domain, kernel.lengthscale)
    radius = float(np.linalg.norm(sides)) / 2
    return {
        "tensor": series_bounds.tensor(sides=sides, n=n, noise_variance=noise_variance),
        "taylor": series_bounds.taylor(
            dimension=len(sides), radius=radius, n=n, noise_variance=noise_variance
        ),
        **_fourier(SquaredExponential(), sides, n, noise_variance),
    }


def _sides(domain: Domain, lengthscale: Any) -> np.ndarray:
    """Lengths of the domain's axes in units of the lengthscales, (d,)."""
    low, high = domain.bounds
    return (high - low) / np.asarray(lengthscale, dtype=float)


def _fourier(unit: Kernel, sides: np.ndarray, n: int, noise_variance: float) -> dict[str, float]:
    """Fourier bound for a kernel of unit lengthscale, in at most 3 dimensions.

    The domain is enlarged to a cube whose side is the longest one.
    """
    d = len(sides)
    if d > 3:
        return {}

    def spectral_density(squared_frequency: np.ndarray) -> np.ndarray:
        # The density is a function of |ω|² alone, so evaluate it on the first axis.
        frequency = np.zeros((*np.shape(squared_frequency), d))
        frequency[..., 0] = np.sqrt(squared_frequency)
        return np.asarray(_density(unit, frequency))

    def radial_kernel(distance: np.ndarray) -> np.ndarray:
        r = np.atleast_1d(distance)
        values = np.asarray(unit(r.reshape(-1, 1), np.zeros((1, 1)))).reshape(r.shape)
        return values if np.ndim(distance) else values[0]

    bound = series_bounds.fourier(
        spectral_density=spectral_density,
        radial_kernel=radial_kernel,
        dimension=d,
        width=float(sides.max()),
        n=n,
        noise_variance=noise_variance,
    )
    return {"fourier": bound}


@jit
def _density(kernel: Kernel, frequency: Any) -> Any:
    return kernel.spectral_density(frequency)
