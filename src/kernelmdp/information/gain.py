"""Information gain: realised by data, and the maximum over all designs, bounded on both sides."""

import dataclasses
import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.information import closed_forms, dual_certificates
from kernelmdp.information.kernel_bounds import composed, series
from kernelmdp.kernels import Coregionalised, Independent, Kernel, OutputKernel, OutputSum
from kernelmdp.numerics.checks import as_points, integer, positive_number
from kernelmdp.numerics.factorisation import checked_cholesky


@dataclasses.dataclass(frozen=True)
class MaximumGain:
    """Bounds on the maximum information gain γ_n(k, X, λ) over sequences of n points.

    ``upper`` is rigorous and named by ``method``; ``lower`` is attained by some sequence.
    ``bounds`` has every upper bound that was tried.

    >>> import kernelmdp as km
    >>> line = km.Box([0.0], [1.0])
    >>> gain = maximum_gain(km.kernel("linear"), domain=line, n=2, noise_variance=1.0)
    >>> gain.lower <= gain.upper
    True
    """

    lower: float
    upper: float
    method: str
    bounds: dict[str, float]


def realised_gain(kernel: Kernel | OutputKernel, points: Any, *, noise_variance: Any) -> float:
    """½ ln|I + K/λ| of the points, dense; for transition kernels over all outputs.

    >>> import kernelmdp as km
    >>> round(realised_gain(km.kernel("linear"), [[1.0]], noise_variance=1.0), 4)  # ln(2)/2
    0.3466
    """
    x = as_points("points", points)
    noise = positive_number("noise_variance", noise_variance)
    matrix = kernel(x)
    factor = checked_cholesky(
        jnp.eye(matrix.shape[0], dtype=matrix.dtype) + matrix / noise,
        "I + K/λ",
        "is the kernel positive semi-definite?",
    )
    return float(jnp.sum(jnp.log(jnp.diagonal(factor))))


def maximum_gain(
    kernel: Kernel | OutputKernel, *, domain: Domain, n: int, noise_variance: Any
) -> MaximumGain:
    """Bounds on γ_n; the upper one is the tightest that applies, returned by name.

    For a transition kernel n counts transitions, each with all m outputs (the structured gain:
    proofs only ever see products of points and outputs). Costly parts are remembered by kernel and
    domain. The dependence on the noise variance λ is never implicit: it must be given.

    >>> from kernelmdp import Box, kernels
    >>> gain = maximum_gain(kernels.Linear(), domain=Box([-1.0], [1.0]), n=10, noise_variance=1.0)
    >>> print(f"{gain.lower:.3f} {gain.upper:.3f}")
    1.199 1.199
    """
    n = integer("n", n, least=0)
    noise = positive_number("noise_variance", noise_variance)
    bounds = upper_bounds(kernel, domain, n, noise)
    if not bounds:
        raise ArgumentError(
            "kernel", "a finite variance bound on the domain (give variance_bound)", kernel
        )
    method = min(bounds, key=lambda name: bounds[name])
    return MaximumGain(
        lower=min(_lower(kernel.bind(domain.names), domain, n, noise), bounds[method]),
        upper=bounds[method],
        method=method,
        bounds=bounds,
    )


def gain_curve(kernel: Kernel, *, domain: Domain, ns: Any, noise_variance: Any) -> np.ndarray:
    """Upper bounds of γ_n for many n at once, from a ladder of certificates when one applies.

    >>> import kernelmdp as km
    >>> line = km.Box([0.0], [1.0])
    >>> gain_curve(km.kernel("linear"), domain=line, ns=[1, 10], noise_variance=1.0).round(3)
    array([0.347, 1.199])
    """
    noise = positive_number("noise_variance", noise_variance)
    counts = [integer("ns", n, least=0) for n in np.atleast_1d(np.asarray(ns))]
    kernel = kernel.bind(domain.names)
    cheap = [_closed_bounds(kernel, domain, n, noise) for n in counts]
    values = [min(b.values(), default=math.inf) for b in cheap]
    if dual_certificates.applicable(kernel, domain):
        rungs = dual_certificates.ladder(kernel, domain)
        values = [
            min(v, rungs.bound(n / noise, exactly=False))
            for v, n in zip(values, counts, strict=True)
        ]
    return np.array(values)


def upper_bounds(
    kernel: Kernel | OutputKernel, domain: Domain, n: int, noise: float, *, designs: bool = True
) -> dict[str, float]:
    """Every upper bound that applies, by name; without ``designs`` only those that cost little.

    >>> import kernelmdp as km
    >>> bounds = upper_bounds(km.kernel("linear"), km.Box([0.0], [1.0]), 10, 1.0, designs=False)
    >>> min(bounds.values()) > 0
    True
    """
    return _upper(kernel.bind(domain.names), domain, n, noise, designs)


@functools.singledispatch
def _upper(kernel: Any, domain: Domain, n: int, noise: float, designs: bool) -> dict[str, float]:
    raise ArgumentError("kernel", "k @ Index, k @ Coregional, Independent or their sum", kernel)


@_upper.register
def _of_kernel(
    kernel: Kernel, domain: Domain, n: int, noise: float, designs: bool
) -> dict[str, float]:
    bounds = _closed_bounds(kernel, domain, n, noise)
    if designs and dual_certificates.applicable(kernel, domain):
        bounds["dual"] = dual_certificates.ladder(kernel, domain).bound(n / noise)
    best = lambda k, on, at: _best(upper_bounds(k, on, n, at, designs=designs))  # noqa: E731
    bounds.update(composed(kernel, domain, noise, best))
    return {name: value for name, value in bounds.items() if math.isfinite(value)}


def _best(bounds: dict[str, float]) -> tuple[str, float]:
    return min(bounds.items(), key=lambda item: item[1], default=("none", math.inf))


def _closed_bounds(kernel: Kernel, domain: Domain, n: int, noise: float) -> dict[str, float]:
    """Bounds that cost next to nothing."""
    bounds: dict[str, float] = {}
    if n == 0:
        return {"no data": 0.0}
    top = kernel.variance_bound(domain)
    if math.isfinite(top):
        bounds["trivial"] = closed_forms.trivial(variance_bound=top, n=n, noise_variance=noise)
        rank = kernel.feature_count(domain.dimension)
        if domain.points is not None:
            rank = min(rank, len(domain.points))
        if math.isfinite(rank):
            bounds["finite rank"] = closed_forms.finite_rank(
                rank=int(rank), variance_bound=top, n=n, noise_variance=noise
            )
    cells = kernel.cell_count if kernel.indicator else None
    if cells is not None:
        cells = cells if domain.points is None else min(cells, len(domain.points))
        bounds["one-hot (exact)"] = closed_forms.one_hot(cells=cells, n=n, noise_variance=noise)
    if not domain.finite:
        bounds.update(series(kernel, domain, n, noise))
    return bounds


# Structured gains: all outputs are seen at each of the n points.


@_upper.register
def _of_coregionalised(
    kernel: Coregionalised, domain: Domain, n: int, noise: float, designs: bool
) -> dict[str, float]:
    scales = _scales(kernel)
    parts = {
        b: _best(upper_bounds(kernel.kernel, domain, n, noise / b, designs=designs))
        for b in set(scales)
    }
    total = sum(parts[b][1] for b in scales)
    bounds = {f"structured: {'/'.join(sorted({name for name, _ in parts.values()}))}": total}
    if designs and len(set(scales)) > 1 and dual_certificates.applicable(kernel.kernel, domain):
        # One design must serve all outputs, which the sum above does not know.
        rungs = dual_certificates.ladder(kernel.kernel, domain, scales)
        bounds["structured dual"] = rungs.bound(n / noise)
    return bounds


@_upper.register
def _of_independent(
    kernel: Independent, domain: Domain, n: int, noise: float, designs: bool
) -> dict[str, float]:
    each = [_best(upper_bounds(k, domain, n, noise, designs=designs)) for k in kernel.kernels]
    names = "/".join(sorted({name for name, _ in each}))
    return {f"independent: {names}": sum(value for _, value in each)}


@_upper.register
def _of_output_sum(
    kernel: OutputSum, domain: Domain, n: int, noise: float, designs: bool
) -> dict[str, float]:
    (first, a), (second, b) = (
        _best(upper_bounds(part, domain, n, noise, designs=designs)) for part in kernel.terms()
    )
    return {f"sum rule: {first} + {second}": closed_forms.sum_rule(a, b)}


def _scales(kernel: Coregionalised) -> tuple[float, ...]:
    """b_j of every independent output of k ⊗ B."""
    split = kernel.decompose(same_noise=True)
    assert split is not None
    return tuple(part.scale for part in split.parts for _ in range(part.copies))


@functools.singledispatch
def _lower(kernel: Any, domain: Domain, n: int, noise: float) -> float:
    """The gain of a good design: rounded from the dual's weights, or the best single part's."""
    # Gains of the other parts only add: what one part can gain is gained.
    return max(_lower(part, domain, n, noise) for part in kernel.parts())


@_lower.register
def _lower_of_kernel(kernel: Kernel, domain: Domain, n: int, noise: float) -> float:
    return dual_certificates.ladder(kernel, domain).lower(n, noise)


@_lower.register
def _lower_of_coregionalised(kernel: Coregionalised, domain: Domain, n: int, noise: float) -> float:
    scales = _scales(kernel)
    if len(set(scales)) == 1:  # one design is best for every output
        return len(scales) * _lower(kernel.kernel, domain, n, noise / scales[0])
    return dual_certificates.ladder(kernel.kernel, domain, scales).lower(n, noise)


@_lower.register
def _lower_of_sum(kernel: OutputSum, domain: Domain, n: int, noise: float) -> float:
    return max(_lower(part, domain, n, noise) for part in kernel.terms())
