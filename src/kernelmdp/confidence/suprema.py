"""How steep and how large draws of a Gaussian process get: what the nets of the GP setting need.

For a centred process g with sup-deviation s and E = E sup|g|, Borell-TIS says
P(sup|g| > u) ≤ exp(−(u − E)²/2s²) for u ≥ E. E is bounded by chaining over dyadic nets (a proof)
or estimated on a net (a guess, and said so). The derivative ∂_j g is again such a process: its
deviation is at most Λ_j, its increments at most Q times the distance.
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

#: Dyadic levels summed: what is left out is below the last digit.
LEVELS = 100


class Supremum(NamedTuple):
    """E sup|g| and sup-deviation of a process; ``rigorous`` is False for an estimate.

    >>> round(Supremum(1.0, 0.5, rigorous=True).level(count=1, delta=0.1), 3)
    2.431
    """

    expected: float
    deviation: float
    rigorous: bool

    def constants(self) -> tuple[float, float]:
        """(ln a, b) with P(sup|g| > u) ≤ a exp(−(u/b)²) for all u > 0: b = 2s, ln a = E²/2s²."""
        if self.deviation == 0:
            return 0.0, 0.0
        return self.expected**2 / (2 * self.deviation**2), 2 * self.deviation

    def level(self, *, count: int, delta: float) -> float:
        """u = E + s √(2 ln(6 count/δ)), exceeded by any of ``count`` processes with chance δ/6."""
        return self.expected + self.deviation * math.sqrt(2 * math.log(6 * count / delta))


def constants_level(*, log_a: float, b: float, count: int, delta: float) -> float:
    """The paper's level b √ln(6 count a/δ), looser than ``Supremum.level``; 0 when ln < 0 (B25).

    >>> round(constants_level(log_a=2.0, b=1.0, count=1, delta=0.1), 3)
    2.469
    """
    return b * math.sqrt(max(math.log(6 * count) - math.log(delta) + log_a, 0.0))


def chaining(
    deviation: float, modulus: Callable[[np.ndarray], float], sides: np.ndarray, pieces: int = 1
) -> Supremum:
    """E sup|g| on ``pieces`` copies of a box, where increments over h are at most modulus(h).

    At level k the box has 2^{kd} cells; the centre of a cell is sides/2^{k+1} away from that of its
    parent. The maximum of n Gaussians of deviation s has E max|·| ≤ s √(2 ln 2n), so for any k₀

        E sup|g| ≤ s √(2 ln 2n_{k₀}) + Σ_{k > k₀} modulus(sides/2^{k+1}) √(2 ln 2n_k).

    The least over k₀. Dudley's bound with its sum written out: no constant 12.
    """
    k = np.arange(LEVELS)
    axes = np.count_nonzero(sides > 0)
    roots = np.sqrt(2 * (math.log(2 * pieces) + k * axes * math.log(2)))
    steps = np.array([modulus(sides / 2.0 ** (j + 1)) for j in k]) if axes else np.zeros(LEVELS)
    tails = np.append(np.cumsum((steps * roots)[::-1])[::-1][1:], 0.0)
    return Supremum(float(np.min(deviation * roots + tails)), deviation, rigorous=True)


def supremum(kernel: Kernel, domain: Domain) -> Supremum:
    """E sup|f| of a draw on a domain, by chaining; infinite when the kernel has no Lipschitz Λ.

    >>> import kernelmdp as km
    >>> supremum(km.kernel("se(1.0)"), km.Box([0.0], [1.0])).rigorous
    True
    """
    known = kernel.constants(domain)
    sides, pieces = _open_sides(domain), _pieces(domain)
    if not math.isfinite(known.lipschitz) and sides.any():
        return Supremum(math.inf, math.sqrt(known.variance_bound), rigorous=True)
    return chaining(math.sqrt(known.variance_bound), known.modulus, sides, pieces)


def slope_bound(kernel: Kernel | OutputKernel, domain: Domain, *, delta: float) -> float:
    """L with P(some |∂_j f_i| > L somewhere on the domain) ≤ δ/6, over all d axes and m outputs.

    Infinite when the kernel has no curvature constant Q (such as Matern with ν ≤ 2).

    >>> import kernelmdp as km
    >>> line = km.Box([0.0], [1.0])
    >>> smooth = slope_bound(km.kernel("se(1.0)"), line, delta=0.1)
    >>> smooth < slope_bound(km.kernel("se(0.1)"), line, delta=0.1)
    True
    """
    found = slopes(kernel, domain)
    return max((own.level(count=len(found), delta=delta) for own in found), default=0.0)


def slopes(kernel: Kernel | OutputKernel, domain: Domain) -> list[Supremum]:
    """E sup|∂_j f_i| by chaining, for every open axis j and every output i of a draw.

    >>> import kernelmdp as km
    >>> len(slopes(km.kernel("se(1.0) @ index(2)"), km.Box([0.0], [1.0])))  # one axis, two outputs
    2
    """
    outputs = kernel.outputs
    sides, pieces = _open_sides(domain), _pieces(domain)
    found = []
    for known in (kernel.constants_of(i, domain) for i in range(outputs)):
        for axis in np.flatnonzero(sides):
            slope, bend = float(known.axis_lipschitz[axis]), known.curvature
            if not (math.isfinite(slope) and math.isfinite(bend)):
                found.append(Supremum(math.inf, slope, rigorous=True))
                continue

            def modulus(h: np.ndarray, bend: float = bend) -> float:
                return bend * float(np.linalg.norm(h))

            found.append(chaining(slope, modulus, sides, pieces))
    return found


def estimated_supremum(
    kernel: Kernel,
    domain: Domain,
    *,
    key: Key,
    axis: int | None = None,
    points: int = 400,
    draws: int = 1000,
) -> Supremum:
    """E sup|f|, or E sup|∂f/∂x_axis|, as the mean over draws on a net: an estimate from below.

    >>> import kernelmdp as km
    >>> line, key = km.Box([0.0], [1.0]), jax.random.key(0)
    >>> found = estimated_supremum(km.kernel("se(1.0)"), line, key=key, points=20, draws=50)
    >>> found.rigorous, 0.5 < found.expected < 2
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
    """Length of every axis; 0 along those of finite sets, between whose points nothing is."""
    lengths = [part.bounds[1] - part.bounds[0] for part in domain.parts]
    pairs = zip(domain.parts, lengths, strict=True)
    return np.concatenate([np.zeros_like(own) if part.finite else own for part, own in pairs])


def _pieces(domain: Domain) -> int:
    """How many boxes the domain consists of."""
    return math.prod(1 if part.points is None else len(part.points) for part in domain.parts)
