"""Bounds on the maximum gain by class of kernel: from its parts, or from a series of its own.

Register a rule for a class of your own with ``composed.register`` or ``series.register``.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import jax.numpy as jnp
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

#: The tightest bound by name of a kernel on a domain at a noise variance.
Best: TypeAlias = Callable[[Kernel, Domain, float], tuple[str, float]]


@functools.singledispatch
def composed(kernel: Kernel, domain: Domain, noise: float, best: Best) -> dict[str, float]:
    """Bounds from the kernels that a kernel is made of; none for a kernel that is not composed."""
    return {}


@composed.register
def _of_restricted(
    kernel: Restricted, domain: Domain, noise: float, best: Best
) -> dict[str, float]:
    # Only the coordinates it looks at matter, which may bring the dual within reach.
    name, value = best(kernel.kernel, domain.project(kernel.positions), noise)
    return {f"restricted: {name}": value}


@composed.register
def _of_scaled(kernel: Scaled, domain: Domain, noise: float, best: Best) -> dict[str, float]:
    name, value = best(kernel.kernel, domain, noise / float(kernel.factor))
    return {f"scaled: {name}": value}


@composed.register
def _of_sum(kernel: Sum, domain: Domain, noise: float, best: Best) -> dict[str, float]:
    (first, a), (second, b) = (best(side, domain, noise) for side in (kernel.left, kernel.right))
    return {f"sum rule: {first} + {second}": closed_forms.sum_rule(a, b)}


@composed.register
def _of_product(kernel: Product, domain: Domain, noise: float, best: Best) -> dict[str, float]:
    """γ(k₁k₂; λ) ≤ D γ(k₁; Dλ/κ₂) when k₂ has rank D and variance at most κ₂."""
    found = {}
    for other, finite in ((kernel.left, kernel.right), (kernel.right, kernel.left)):
        rank = finite.feature_count(domain.dimension)
        top = finite.variance_bound(domain)
        if math.isfinite(rank) and 0 < top < math.inf:
            name, value = best(other, domain, rank * noise / top)
            found[f"product rule: rank {rank:g} x {name}"] = rank * value
    return found


@functools.singledispatch
def series(kernel: Kernel, domain: Domain, n: int, noise: float) -> dict[str, float]:
    """Bounds from series of a kernel that is a function of the scaled distance; else none."""
    return {}


@series.register
def _of_matern(kernel: Matern, domain: Domain, n: int, noise: float) -> dict[str, float]:
    sides = _sides(domain, kernel.lengthscale)
    return _fourier(Matern(kernel.nu), sides, n, noise)


@series.register
def _of_squared_exponential(
    kernel: SquaredExponential, domain: Domain, n: int, noise: float
) -> dict[str, float]:
    sides = _sides(domain, kernel.lengthscale)
    radius = float(np.linalg.norm(sides)) / 2
    return {
        "tensor": series_bounds.tensor(sides=sides, n=n, noise_variance=noise),
        "taylor": series_bounds.taylor(
            dimension=len(sides), radius=radius, n=n, noise_variance=noise
        ),
        **_fourier(SquaredExponential(), sides, n, noise),
    }


def _sides(domain: Domain, lengthscale: Any) -> np.ndarray:
    """Lengths of the domain's axes in lengthscales."""
    low, high = domain.bounds
    return (high - low) / np.asarray(lengthscale, dtype=float)


def _fourier(unit: Kernel, sides: np.ndarray, n: int, noise: float) -> dict[str, float]:
    """For a kernel of unit lengthscale, on the cube of the longest side; in up to 3 dimensions."""
    d = len(sides)
    if d > 3:
        return {}

    def along(squared: np.ndarray) -> np.ndarray:
        # An isotropic function of |ω|², evaluated on the first axis.
        frequency = (
            jnp.zeros((*np.shape(squared), d)).at[..., 0].set(jnp.sqrt(jnp.asarray(squared)))
        )
        return np.asarray(unit.spectral_density(frequency))

    def radial(distance: np.ndarray) -> np.ndarray:
        r = np.atleast_1d(distance)
        values = np.asarray(unit(r.reshape(-1, 1), np.zeros((1, 1)))).reshape(r.shape)
        return values if np.ndim(distance) else values[0]

    bound = series_bounds.fourier(
        spectral_density=along,
        radial_kernel=radial,
        dimension=d,
        width=float(sides.max()),
        n=n,
        noise_variance=noise,
    )
    return {"fourier": bound}
