"""Bounds of suprema and slopes of draws of a Gaussian process, for the nets of the GP setting.

For a centred process g with sup-deviation s and E = E sup|g|, Borell-TIS says
P(sup|g| > u) ≤ exp(−(u − E)²/2s²) for u ≥ E. E is bounded by chaining over dyadic nets, which is a
proof, or estimated on a net, which is labelled as an estimate. The derivative ∂_j g is again such a
process. Its deviation is at most Λ_j, and its increments are at most Q times the distance.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.domains import Domain
from kernelmdp.kernels import Kernel, OutputKernel
from kernelmdp.types import Key

#: Number of dyadic levels in the chaining sum. The rest of the sum is below rounding.
LEVELS = 100


class Supremum(NamedTuple):
    """Bounds of the supremum of a Gaussian process g.

    Attributes:
        expected: E = E sup|g|, or a bound of it.
        deviation: s, the largest standard deviation.
        rigorous: Whether ``expected`` is a proven bound, and not an estimate.

    >>> round(Supremum(1.0, 0.5, rigorous=True).level(count=1, delta=0.1), 3)
    2.431
    """

    expected: float
    deviation: float
    rigorous: bool

    def constants(self) -> tuple[float, float]:
        """Compute a and b with P(sup|g| > u) ≤ a exp(−(u/b)²) for all u > 0.

        Returns:
            ln a = E²/2s² and b = 2s.
        """
        if self.deviation == 0:
            return 0.0, 0.0
        return self.expected**2 / (2 * self.deviation**2), 2 * self.deviation

    def level(self, *, count: int, delta: float) -> float:
        """Compute a level that any of several processes exceeds with probability at most δ/6.

        Args:
            count: The number of processes.
            delta: δ.

        Returns:
            E + s √(2 ln(6 count/δ)).
        """
        return self.expected + self.deviation * math.sqrt(2 * math.log(6 * count / delta))


def constants_level(*, log_a: float, b: float, count: int, delta: float) -> float:
    """Compute the paper's level b √ln(6 count a/δ), which is looser than ``Supremum.level``.

    Args:
        log_a: ln a.
        b: b.
        count: The number of processes.
        delta: δ.

    Returns:
        The level; 0 where the logarithm is negative (note B25).

    >>> round(constants_level(log_a=2.0, b=1.0, count=1, delta=0.1), 3)
    2.469
    """
    return b * math.sqrt(max(math.log(6 * count) - math.log(delta) + log_a, 0.0))


def chaining(
    deviation: float, modulus: Callable[[np.ndarray], float], sides: np.ndarray, pieces: int = 1
) -> Supremum:
    """Bound E sup|g| on copies of a box by chaining.

    At level k the box has 2^{kd} cells. The centre of a cell is sides/2^{k+1} away from that of its
    parent. The maximum of n Gaussians of deviation s has E max|·| ≤ s √(2 ln 2n), so for any k₀

        E sup|g| ≤ s √(2 ln 2n_{k₀}) + Σ_{k > k₀} modulus(sides/2^{k+1}) √(2 ln 2n_k).

    The bound is the least over k₀. It is Dudley's bound as a sum, without the constant 12.

    Args:
        deviation: s, the largest standard deviation.
        modulus: Bounds the deviation of g(x + h) − g(x) for a displacement h, (d,).
        sides: Lengths of the box, (d,).
        pieces: The number of copies of the box.

    Returns:
        The bound.
    """
    k = np.arange(LEVELS)
    axes = np.count_nonzero(sides > 0)
    roots = np.sqrt(2 * (math.log(2 * pieces) + k * axes * math.log(2)))
    steps = np.array([modulus(sides / 2.0 ** (j + 1)) for j in k]) if axes else np.zeros(LEVELS)
    tails = np.append(np.cumsum((steps * roots)[::-1])[::-1][1:], 0.0)
    return Supremum(float(np.min(deviation * roots + tails)), deviation, rigorous=True)


def supremum(kernel: Kernel, domain: Domain) -> Supremum:
    """Bound E sup|f| of a draw f on a domain, by chaining.

    Args:
        kernel: The kernel.
        domain: The domain.

    Returns:
        The bound; infinite if the kernel has no Lipschitz constant Λ.

    >>> import kernelmdp as km
    >>> supremum(km.kernel("se(1.0)"), km.Box([0.0], [1.0])).rigorous
    True
    """
    constants = kernel.constants(domain)
    sides, pieces = _open_sides(domain), _pieces(domain)
    if not math.isfinite(constants.lipschitz) and sides.any():
        return Supremum(math.inf, math.sqrt(constants.variance_bound), rigorous=True)
    return chaining(math.sqrt(constants.variance_bound), constants.modulus, sides, pieces)


def slope_bound(kernel: Kernel | OutputKernel, domain: Domain, *, delta: float) -> float:
    """Compute L with P(some |∂_j f_i| > L somewhere on the domain) ≤ δ/6.

    The bound is over all d axes and m outputs.

    Args:
        kernel: The kernel of the draw f.
        domain: The domain.
        delta: δ.

    Returns:
        L; infinite if the kernel has no curvature constant Q, such as Matern with ν ≤ 2.

    >>> import kernelmdp as km
    >>> line = km.Box([0.0], [1.0])
    >>> smooth = slope_bound(km.kernel("se(1.0)"), line, delta=0.1)
    >>> smooth < slope_bound(km.kernel("se(0.1)"), line, delta=0.1)
    True
    """
    suprema = slopes(kernel, domain)
    return max((slope.level(count=len(suprema), delta=delta) for slope in suprema), default=0.0)


def slopes(kernel: Kernel | OutputKernel, domain: Domain) -> list[Supremum]:
    """Bound E sup|∂_j f_i| by chaining, for every axis j of a box and every output i of a draw.

    Args:
        kernel: The kernel of the draw f.
        domain: The domain.

    Returns:
        A bound for each output and each axis, axes fastest.

    >>> import kernelmdp as km
    >>> len(slopes(km.kernel("se(1.0) @ index(2)"), km.Box([0.0], [1.0])))  # one axis, two outputs
    2
    """
    outputs = kernel.outputs
    sides, pieces = _open_sides(domain), _pieces(domain)
    bounds = []
    for constants in (kernel.constants_of(i, domain) for i in range(outputs)):
        for axis in np.flatnonzero(sides):
            slope, curvature = float(constants.axis_lipschitz[axis]), constants.curvature
            if not (math.isfinite(slope) and math.isfinite(curvature)):
                bounds.append(Supremum(math.inf, slope, rigorous=True))
                continue

            def modulus(h: np.ndarray, curvature: float = curvature) -> float:
                return curvature * float(np.linalg.norm(h))

            bounds.append(chaining(slope, modulus, sides, pieces))
    return bounds


def estimated_supremum(
    kernel: Kernel,
    domain: Domain,
    *,
    key: Key,
    axis: int | None = None,
    points: int = 400,
    draws: int = 1000,
) -> Supremum:
    """Estimate E sup|f| or E sup|∂f/∂x_axis| as the mean over draws on a net.

    The supremum over a net is smaller than over the domain, so the estimate is too low on average.

    Args:
        kernel: The kernel of the draw f.
        domain: The domain.
        key: Decides the draws.
        axis: The axis of the derivative; None for f itself.
        points: The largest number of points of the net.
        draws: The number of draws.

    Returns:
        The estimate, with ``rigorous`` False.

    >>> import kernelmdp as km
    >>> line, key = km.Box([0.0], [1.0]), jax.random.key(0)
    >>> estimate = estimated_supremum(km.kernel("se(1.0)"), line, key=key, points=20, draws=50)
    >>> estimate.rigorous, 0.5 < estimate.expected < 2
    (False, True)
    """
    bound = kernel.bind(domain.names)
    x = jnp.asarray(domain.net(points)[0])

    def derivative(a: jax.Array, b: jax.Array) -> jax.Array:
        return jax.jacfwd(jax.grad(bound.pair), argnums=1)(a, b)[axis, axis]

    pair = bound.pair if axis is None else derivative
    matrix = np.asarray(jax.vmap(lambda a: jax.vmap(lambda b: pair(a, b))(x))(x))
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[None, :]
    paths = np.asarray(jax.random.normal(key, (draws, len(root)))) @ root.T
    deviation = math.sqrt(max(float(np.diag(matrix).max()), 0.0))
    return Supremum(float(np.abs(paths).max(axis=1).mean()), deviation, rigorous=False)


def _open_sides(domain: Domain) -> np.ndarray:
    """Length of every axis; 0 for axes of finite sets."""
    sides = [part.bounds[1] - part.bounds[0] for part in domain.parts]
    pairs = zip(domain.parts, sides, strict=True)
    return np.concatenate([np.zeros_like(side) if part.finite else side for part, side in pairs])


def _pieces(domain: Domain) -> int:
    """The number of boxes that make up the domain: one for each combination of finite points."""
    return math.prod(1 if part.points is None else len(part.points) for part in domain.parts)
