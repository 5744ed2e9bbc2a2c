"""Stationary kernels: squared exponential, Matern and periodic.

All use the Euclidean distance of scaled coordinates, r² = Σ_j ((x_j − y_j)/ℓ_j)², in any dimension.
A lengthscale is one number, or one for each coordinate.
"""

import functools
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float

from kernelmdp.errors import ShapeError, UnknownPropertyError
from kernelmdp.kernels.base import ATOM, Kernel
from kernelmdp.kernels.constants import KernelConstants
from kernelmdp.numerics.checks import positive_array, positive_number
from kernelmdp.types import ArrayLike, Key, Point, Scalar

#: Up to this many coordinates, sums over coordinates are unrolled. The compiler then fuses distance
#: and exponential into one vectorised loop. It was measured to be five times as fast as a vector
#: expression.
UNROLL = 16


def _squared_distance(x: Point, y: Point, scale: Array) -> Scalar:
    """Σ_j ((x_j − y_j)/scale_j)²; ``scale`` is one number or one for each coordinate."""
    inverse = 1 / scale
    if x.shape[0] > UNROLL:
        return jnp.sum(((x - y) * inverse) ** 2)
    factors = [inverse if scale.size == 1 else inverse[j] for j in range(x.shape[0])]
    terms = [((x[j] - y[j]) * jnp.reshape(factors[j], ())) ** 2 for j in range(x.shape[0])]
    return functools.reduce(jnp.add, terms)


def _require_vector(name: str, value: Array, dimension: int) -> None:
    if value.ndim == 1 and value.shape[0] not in (1, dimension):
        raise ShapeError(name, f"one number or {dimension}", f"{value.shape[0]} numbers")


def _numbers(value: Array) -> str:
    host = np.asarray(value, dtype=float)
    return repr(float(host)) if host.ndim == 0 else repr([float(x) for x in host])


def _stationary_constants(
    low: np.ndarray, lipschitz: ArrayLike, curvature: ArrayLike, modulus: Any
) -> KernelConstants:
    """Constants of a kernel with variance 1, from its constants along the axes.

    The steepest axis must be the steepest direction, as for functions of a scaled distance.
    """
    d = len(low)
    lipschitz, curvature = np.broadcast_to(lipschitz, (d,)), np.broadcast_to(curvature, (d,))
    return KernelConstants(
        variance_bound=1.0,
        lipschitz=float(lipschitz.max()),
        curvature=float(curvature.max()),
        axis_lipschitz=lipschitz,
        axis_curvature=curvature,
        modulus=modulus,
        constant_variance=True,
    )


class SquaredExponential(Kernel):
    """exp(−r²/2).

    Λ = 1/ℓ, Q = √3/ℓ², S(ω) = (2π)^{d/2} Πℓ_j exp(−Σ ℓ_j² ω_j²/2).

    Args:
        lengthscale: ℓ: one number, or one for each coordinate.

    Attributes:
        lengthscale: ℓ.

    >>> float(SquaredExponential(lengthscale=2.0)([[0.0]], [[2.0]])[0, 0])  # exp(-1/2)
    0.6065306597126334
    """

    lengthscale: Array

    def __init__(self, lengthscale: Any = 1.0) -> None:
        self.lengthscale = positive_array("lengthscale", lengthscale)

    def pair(self, x: Point, y: Point) -> Scalar:
        return jnp.exp(self.exponent(x, y))

    def exponent(self, x: Point, y: Point) -> Scalar:
        return -0.5 * _squared_distance(x, y, self.lengthscale)

    def variance(self, x: Point) -> Scalar:
        return jnp.ones((), x.dtype)

    @property
    def stationary(self) -> bool:
        return True

    def frequencies(self, count: int, dimension: int, *, key: Key) -> Float[Array, "count d"]:
        scales = jnp.broadcast_to(self.lengthscale, (count, dimension))
        return jax.random.normal(key, scales.shape, scales.dtype) / scales

    def spectral_density(self, frequency: Float[Array, "... d"]) -> Float[Array, "..."]:
        scales = jnp.broadcast_to(self.lengthscale, frequency.shape)
        root = math.sqrt(2 * math.pi)
        decay = jnp.exp(-0.5 * jnp.sum((scales * frequency) ** 2, axis=-1))
        return jnp.prod(root * scales, axis=-1) * decay

    def require_dimension(self, dimension: int) -> None:
        _require_vector("lengthscale", self.lengthscale, dimension)

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        scale = np.asarray(self.lengthscale, dtype=float)

        def modulus(offsets: np.ndarray) -> float:
            # expm1 keeps 1 − exp(−t) exact for tiny offsets.
            return math.sqrt(-2 * math.expm1(-0.5 * float(np.sum((offsets / scale) ** 2))))

        return _stationary_constants(low, 1 / scale, math.sqrt(3) / scale**2, modulus)

    def to_text(self) -> tuple[str, int]:
        return f"se({_numbers(self.lengthscale)})", ATOM


class Matern(Kernel):
    """Matern with any smoothness ν > 0: 2^{1−ν}/Γ(ν) t^ν K_ν(t), t = √(2ν) r.

    ν = 1/2, 3/2 and 5/2 have closed forms. Other ν use a piecewise Chebyshev table, built once from
    the Bessel function, with relative error below 1e-11. You cannot differentiate with respect to
    ν. Λ² = ν/((ν−1)ℓ²) for ν > 1 and Q² = 3ν²/((ν−1)(ν−2)ℓ⁴) for ν > 2; else not available.

    Args:
        nu: ν.
        lengthscale: ℓ: one number, or one for each coordinate.

    Attributes:
        lengthscale: ℓ.
        nu: ν.

    >>> Matern(nu=0.5, lengthscale=1.0)([[0.0]], [[1.0]]).round(4)  # exp(−1)
    Array([[0.3679]], dtype=float64)
    """

    lengthscale: Array
    nu: float = eqx.field(static=True)

    def __init__(self, nu: float, lengthscale: Any = 1.0) -> None:
        self.nu = positive_number("nu", nu)
        self.lengthscale = positive_array("lengthscale", lengthscale)

    def pair(self, x: Point, y: Point) -> Scalar:
        return matern_profile(self.nu, 2 * self.nu * _squared_distance(x, y, self.lengthscale))

    def variance(self, x: Point) -> Scalar:
        return jnp.ones((), x.dtype)

    @property
    def stationary(self) -> bool:
        return True

    def frequencies(self, count: int, dimension: int, *, key: Key) -> Float[Array, "count d"]:
        # A multivariate Student law: all coordinates of one frequency share the mixing variable.
        normal_key, mixing_key = jax.random.split(key)
        scales = jnp.broadcast_to(self.lengthscale, (count, dimension))
        dtype = scales.dtype
        direction = jax.random.normal(normal_key, scales.shape, dtype) / scales
        mixing = jax.random.gamma(mixing_key, jnp.asarray(self.nu, dtype), (count, 1), dtype)
        return direction * jnp.sqrt(self.nu / mixing)

    def spectral_density(self, frequency: Float[Array, "... d"]) -> Float[Array, "..."]:
        d, nu = frequency.shape[-1], self.nu
        scales = jnp.broadcast_to(self.lengthscale, frequency.shape)
        constant = (
            d * math.log(2)
            + 0.5 * d * math.log(math.pi)
            + float(scipy.special.gammaln(nu + d / 2) - scipy.special.gammaln(nu))
            + nu * math.log(2 * nu)
        )
        radius = 2 * nu + jnp.sum((scales * frequency) ** 2, axis=-1)
        return jnp.prod(scales, axis=-1) * jnp.exp(constant - (nu + d / 2) * jnp.log(radius))

    def require_dimension(self, dimension: int) -> None:
        _require_vector("lengthscale", self.lengthscale, dimension)

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        scale, nu = np.asarray(self.lengthscale, dtype=float), self.nu
        lipschitz = math.sqrt(nu / (nu - 1)) / scale if nu > 1 else np.full_like(scale, math.inf)
        curvature = (
            math.sqrt(3 * nu**2 / ((nu - 1) * (nu - 2))) / scale**2
            if nu > 2
            else np.full_like(scale, math.inf)
        )

        def modulus(offsets: np.ndarray) -> float:
            scaled = float(np.sum((offsets / scale) ** 2))
            value = float(matern_profile(nu, jnp.asarray(2 * nu * scaled)))
            # 1e-10 covers the rounding error of k, so that the bound is not too small.
            by_value = math.sqrt(2 * (max(0.0, 1 - value) + 1e-10))
            by_lipschitz = math.sqrt(nu / (nu - 1) * scaled) if nu > 1 else math.inf
            return min(by_lipschitz, by_value)

        return _stationary_constants(low, lipschitz, curvature, modulus)

    def to_text(self) -> tuple[str, int]:
        return f"matern({self.nu!r}, {_numbers(self.lengthscale)})", ATOM


def matern_profile(nu: float, squared: Scalar) -> Scalar:
    """Compute the Matern function of t² = 2ν r². Derivatives at t = 0 are right where they exist.

    Args:
        nu: ν.
        squared: t².

    Returns:
        The function's value.
    """
    is_positive = squared > 0
    t = jnp.sqrt(jnp.where(is_positive, squared, 1.0))
    if nu in (0.5, 1.5, 2.5):
        t = jnp.minimum(t, 1000.0)  # exp(−t) is 0 long before; t² must not overflow to ∞·0
    if nu == 0.5:
        value = jnp.exp(-t)
    elif nu == 1.5:
        value = (1 + t) * jnp.exp(-t)
    elif nu == 2.5:
        value = (1 + t + t**2 / 3) * jnp.exp(-t)
    else:
        value = _tabulated(nu, t)
    # At t = 0 the Taylor polynomial is used. A constant would make all derivatives 0.
    taylor = jnp.ones_like(squared)
    if nu > 1:
        taylor = taylor - squared / (4 * (nu - 1))
    if nu > 2:
        taylor = taylor + squared**2 / (32 * (nu - 1) * (nu - 2))
    return jnp.where(is_positive, value, taylor)


#: Length of a segment of the Matern table in ln t. With DEGREE 12 the table is exact to rounding.
SEGMENT = 0.5
#: Degree of the polynomial on each segment of the table.
DEGREE = 12
#: Largest ν for which SciPy's Bessel function is used. Above, it overflows at small t.
BESSEL_LIMIT = 20.0


@functools.lru_cache(maxsize=64)
def _matern_table(nu: float) -> tuple[float, np.ndarray]:
    """Start of the table in ln t and, by segment, polynomial coefficients of ln k(t) + t.

    As a function of ln t, ln k(t) + t is analytic in a strip of half-width π/2. A polynomial of
    degree 12 on segments of length 1/2 is therefore exact to rounding. Below the start,
    1 − k < 1e-16.
    """
    # t² is a float, so ln t > −373. The table need not start lower as ν → 0.
    start = max(-37.0 / (2 * min(nu, 1.0)), -400.0)
    largest = math.log(max(800.0, 40 * math.sqrt(2 * nu)))  # k < exp(−600) beyond
    count = math.ceil((largest - start) / SEGMENT)
    centres = start + SEGMENT * (np.arange(count) + 0.5)
    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    t = np.exp(centres[:, None] + 0.5 * SEGMENT * nodes)
    if nu > BESSEL_LIMIT:
        values = _log_matern_smooth(nu, t) + t
    else:
        log_bessel = np.log(scipy.special.kve(nu, t))  # of e^t K_ν(t)
        values = (1 - nu) * math.log(2) - scipy.special.gammaln(nu) + nu * np.log(t) + log_bessel
    # kve loses its last digits as t → 0 for large ν. There ln k = −ν t²/(2 (ν−1) 2ν) to rounding.
    if nu > 2:
        tiny = t < 1e-4
        values = np.where(tiny, -(t**2) / (4 * (nu - 1)) + t, values)
    vandermonde = np.vander(nodes, DEGREE + 1, increasing=True)
    return start, np.linalg.solve(vandermonde, values.T).T


def _log_matern_smooth(nu: float, t: np.ndarray) -> np.ndarray:
    """ln k(t) for ν above 20, where the Bessel function overflows.

    k(t) = Γ(ν)⁻¹ ∫ s^{ν−1} exp(−s − t²/(4s)) ds by the trapezoidal rule in ln s. The integrand is
    a bell with peak s = (ν + w)/2, w² = ν² + t², and width w^{−1/2}, for which the rule is exact to
    rounding.
    """

    def log_integral(t: np.ndarray) -> np.ndarray:
        w = np.hypot(nu, t)[..., None]
        excess = t[..., None] ** 2 / (w + nu)  # w − ν
        v = np.arange(-16.0, 12.0, 0.25) / np.sqrt(w)
        exponent = nu * v - (nu + excess / 2) * np.expm1(v) - excess / 2 * np.expm1(-v)
        peak = nu * np.log1p(excess / (2 * nu)) - excess - 0.5 * np.log(w)
        return peak[..., 0] + np.log(np.sum(np.exp(exponent), axis=-1))

    return log_integral(t) - log_integral(np.zeros(1))[0]


def _tabulated(nu: float, t: Scalar) -> Scalar:
    start, table = _matern_table(nu)
    position = (jnp.log(t) - start) / SEGMENT
    segment = jnp.clip(jnp.floor(position), 0, len(table) - 1)
    local = jnp.clip(2 * (position - segment) - 1, -1.0, 1.0)
    coefficients = jnp.asarray(table, t.dtype)[segment.astype(jnp.int32)]
    total = coefficients[DEGREE]
    for power in range(DEGREE - 1, -1, -1):
        total = total * local + coefficients[power]
    return jnp.where(position < 0, 1.0, jnp.exp(total - t))


class Periodic(Kernel):
    """exp(−2 Σ_j sin²(π (x_j − y_j)/p_j)/ℓ_j²): a squared exponential on the circle, for angles.

    It is the squared exponential of the points (cos, sin)(2πx/p) with the same lengthscale.
    With w = 2π/p: Λ = w/ℓ, Q² = w⁴ (3/ℓ⁴ + 1/ℓ²).

    Args:
        lengthscale: ℓ: one number, or one for each coordinate.
        period: p: one number, or one for each coordinate.

    Attributes:
        lengthscale: ℓ.
        period: p.

    >>> Periodic(lengthscale=1.0, period=2.0)([[0.0]], [[2.0]])  # once around
    Array([[1.]], dtype=float64)
    """

    lengthscale: Array
    period: Array

    def __init__(self, lengthscale: Any = 1.0, period: Any = 2 * math.pi) -> None:
        self.lengthscale = positive_array("lengthscale", lengthscale)
        self.period = positive_array("period", period)

    def pair(self, x: Point, y: Point) -> Scalar:
        return jnp.exp(self.exponent(x, y))

    def exponent(self, x: Point, y: Point) -> Scalar:
        # Distances of points on circles need cosines and sines of points. The formula with sin²
        # would need them of pairs, of which there are many more.
        d = x.shape[0]
        angular = 2 * math.pi / jnp.broadcast_to(self.period, (d,))
        inverse = 1 / jnp.broadcast_to(self.lengthscale, (d,))
        differences = [
            inverse[j] * (wave(angular[j] * x[j]) - wave(angular[j] * y[j]))
            for j in range(d)
            for wave in (jnp.cos, jnp.sin)
        ]
        return -0.5 * functools.reduce(jnp.add, [difference**2 for difference in differences])

    def variance(self, x: Point) -> Scalar:
        return jnp.ones((), x.dtype)

    @property
    def stationary(self) -> bool:
        return True

    def frequencies(self, count: int, dimension: int, *, key: Key) -> Float[Array, "count d"]:
        # Fourier coefficients e^{−c} I_j(c), c = 1/ℓ²: the law of a difference of two Poissons.
        up_key, down_key = jax.random.split(key)
        rate = jnp.broadcast_to(0.5 / self.lengthscale**2, (count, dimension))
        orders = jax.random.poisson(up_key, rate) - jax.random.poisson(down_key, rate)
        angular = jnp.broadcast_to(2 * math.pi / self.period, (count, dimension))
        return angular * orders.astype(angular.dtype)

    def spectral_density(self, frequency: Float[Array, "... d"]) -> Float[Array, "..."]:
        raise UnknownPropertyError(f"{self} has a discrete spectral law and so no density")

    def require_dimension(self, dimension: int) -> None:
        _require_vector("lengthscale", self.lengthscale, dimension)
        _require_vector("period", self.period, dimension)

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        scale = np.asarray(self.lengthscale, dtype=float)
        angular = 2 * math.pi / np.asarray(self.period, dtype=float)

        def modulus(offsets: np.ndarray) -> float:
            half_angle = np.minimum(0.5 * angular * offsets, math.pi / 2)
            exponent = -2 * float(np.sum((np.sin(half_angle) / scale) ** 2))
            return math.sqrt(-2 * math.expm1(exponent))

        curvature = angular**2 * np.sqrt(3 / scale**4 + 1 / scale**2)
        return _stationary_constants(low, angular / scale, curvature, modulus)

    def to_text(self) -> tuple[str, int]:
        return f"periodic({_numbers(self.lengthscale)}, {_numbers(self.period)})", ATOM
