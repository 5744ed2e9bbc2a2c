"""The information gain of data, and bounds on its maximum over all sequences of n points."""

import dataclasses
import functools
import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.domains import Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.information import closed_forms, dual_certificates
from kernelmdp.information.kernel_bounds import composition_bounds, expansion_bounds
from kernelmdp.kernels import Coregionalised, Independent, Kernel, OutputKernel, OutputSum
from kernelmdp.numerics.checks import as_points, integer, positive_number
from kernelmdp.numerics.factorisation import checked_cholesky
from kernelmdp.numerics.keywords import suggests_keywords


@dataclasses.dataclass(frozen=True)
class MaximumGain:
    """Bounds on the maximum information gain γ_n(k, X, λ) over sequences of n points.

    Attributes:
        lower: A gain in nats that some sequence of n points attains.
        upper: A rigorous upper bound in nats, the smallest of ``bounds``.
        method: The name of the upper bound, such as "dual".
        bounds: Every upper bound that was computed, by name.

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
    """Return the information gain ½ ln|I + K/λ| of points, by a dense factorisation.

    Args:
        kernel: The kernel k. For a transition kernel the gain is that of all outputs.
        points: The points, (n, d).
        noise_variance: Noise variance λ > 0.

    Returns:
        The gain in nats.

    >>> import kernelmdp as km
    >>> round(realised_gain(km.kernel("linear"), [[1.0]], noise_variance=1.0), 4)  # ln(2)/2
    0.3466
    """
    checked_points = as_points("points", points)
    noise_variance = positive_number("noise_variance", noise_variance)
    matrix = kernel(checked_points)
    factor = checked_cholesky(
        jnp.eye(matrix.shape[0], dtype=matrix.dtype) + matrix / noise_variance,
        "I + K/λ",
        "is the kernel positive semi-definite?",
    )
    return float(jnp.sum(jnp.log(jnp.diagonal(factor))))


@suggests_keywords
def maximum_gain(
    kernel: Kernel | OutputKernel, *, domain: Domain, n: int, noise_variance: Any
) -> MaximumGain:
    """Bound the maximum information gain γ_n(k, X, λ) from below and above.

    The upper bound is the tightest one that applies to the kernel and domain. For a transition
    kernel the gain is the structured one: each of the n points is observed with all m outputs.
    The proofs need no more, since they only use products of points and outputs.

    Certificates are cached by kernel and domain for the life of the process.

    Args:
        kernel: The kernel k, of a reward or of a transition.
        domain: The domain X of the points.
        n: Number of points; for a transition kernel, of transitions.
        noise_variance: Noise variance λ > 0. It has no default because the gain depends on it.

    Returns:
        Lower and upper bound, with the name of the upper one.

    Raises:
        ArgumentError: If no upper bound applies, because the kernel has no variance bound.

    >>> from kernelmdp import Box, kernels
    >>> gain = maximum_gain(kernels.Linear(), domain=Box([-1.0], [1.0]), n=10, noise_variance=1.0)
    >>> print(f"{gain.lower:.3f} {gain.upper:.3f}")
    1.199 1.199
    """
    n = integer("n", n, least=0)
    noise_variance = positive_number("noise_variance", noise_variance)
    bounds = upper_bounds(kernel, domain, n, noise_variance)
    if not bounds:
        raise ArgumentError(
            "kernel", "a finite variance bound on the domain (give variance_bound)", kernel
        )
    method = min(bounds, key=lambda name: bounds[name])
    return MaximumGain(
        lower=min(_lower(kernel.bind(domain.names), domain, n, noise_variance), bounds[method]),
        upper=bounds[method],
        method=method,
        bounds=bounds,
    )


def gain_curve(kernel: Kernel, *, domain: Domain, ns: Any, noise_variance: Any) -> np.ndarray:
    """Return upper bounds on γ_n(k, X, λ) for many n at once.

    They come from closed forms and, where the domain allows it, from a ladder of certificates.

    Args:
        kernel: The kernel k.
        domain: The domain X of the points.
        ns: Numbers of points, one or several.
        noise_variance: Noise variance λ > 0.

    Returns:
        The bounds in nats, one for each n; infinite where none applies.

    >>> import kernelmdp as km
    >>> line = km.Box([0.0], [1.0])
    >>> gain_curve(km.kernel("linear"), domain=line, ns=[1, 10], noise_variance=1.0).round(3)
    array([0.347, 1.199])
    """
    noise_variance = positive_number("noise_variance", noise_variance)
    counts = [integer("ns", n, least=0) for n in np.atleast_1d(np.asarray(ns))]
    kernel = kernel.bind(domain.names)
    closed = [_closed_bounds(kernel, domain, n, noise_variance) for n in counts]
    curve = [min(bounds.values(), default=math.inf) for bounds in closed]
    if dual_certificates.is_certifiable(kernel, domain):
        ladder = dual_certificates.ladder(kernel, domain)
        curve = [
            min(bound, ladder.bound(n / noise_variance, exactly=False))
            for bound, n in zip(curve, counts, strict=True)
        ]
    return np.array(curve)


def upper_bounds(
    kernel: Kernel | OutputKernel,
    domain: Domain,
    n: int,
    noise_variance: float,
    *,
    designs: bool = True,
) -> dict[str, float]:
    """Return every upper bound on γ_n(k, X, λ) that applies, by name.

    Args:
        kernel: The kernel k, of a reward or of a transition.
        domain: The domain X of the points.
        n: Number of points; for a transition kernel, of transitions.
        noise_variance: Noise variance λ > 0.
        designs: Whether to include the dual bound, the default. It needs an optimised design,
            which takes seconds. All other bounds cost little.

    Returns:
        The bounds in nats, by name. If none applies, the result is empty for a ``Kernel`` and has
        an infinite bound for an ``OutputKernel``.

    >>> import kernelmdp as km
    >>> bounds = upper_bounds(km.kernel("linear"), km.Box([0.0], [1.0]), 10, 1.0, designs=False)
    >>> min(bounds.values()) > 0
    True
    """
    return _upper(kernel.bind(domain.names), domain, n, noise_variance, designs)


@functools.singledispatch
def _upper(
    kernel: Any, domain: Domain, n: int, noise_variance: float, designs: bool
) -> dict[str, float]:
    """Upper bounds by name, by class of a kernel whose coordinates are bound."""
    raise ArgumentError("kernel", "k @ Index, k @ Coregional, Independent or their sum", kernel)


@_upper.register
def _of_kernel(
    kernel: Kernel, domain: Domain, n: int, noise_variance: float, designs: bool
) -> dict[str, float]:
    bounds = _closed_bounds(kernel, domain, n, noise_variance)
    if designs and dual_certificates.is_certifiable(kernel, domain):
        bounds["dual"] = dual_certificates.ladder(kernel, domain).bound(n / noise_variance)
    best = lambda part, part_domain, part_noise: _best(  # noqa: E731
        upper_bounds(part, part_domain, n, part_noise, designs=designs)
    )
    bounds.update(composition_bounds(kernel, domain, noise_variance, best))
    return {name: value for name, value in bounds.items() if math.isfinite(value)}


def _best(bounds: dict[str, float]) -> tuple[str, float]:
    """Name and value of the smallest bound; an infinite one named "none" if there is none."""
    return min(bounds.items(), key=lambda item: item[1], default=("none", math.inf))


def _closed_bounds(
    kernel: Kernel, domain: Domain, n: int, noise_variance: float
) -> dict[str, float]:
    """Closed-form bounds and series bounds, which need no design."""
    bounds: dict[str, float] = {}
    if n == 0:
        return {"no data": 0.0}
    variance_bound = kernel.variance_bound(domain)
    if math.isfinite(variance_bound):
        bounds["trivial"] = closed_forms.trivial(
            variance_bound=variance_bound, n=n, noise_variance=noise_variance
        )
        rank = kernel.feature_count(domain.dimension)
        if domain.points is not None:
            rank = min(rank, len(domain.points))
        if math.isfinite(rank):
            bounds["finite rank"] = closed_forms.finite_rank(
                rank=int(rank),
                variance_bound=variance_bound,
                n=n,
                noise_variance=noise_variance,
            )
    cells = kernel.cell_count if kernel.indicator else None
    if cells is not None:
        cells = cells if domain.points is None else min(cells, len(domain.points))
        bounds["one-hot (exact)"] = closed_forms.one_hot(
            cells=cells, n=n, noise_variance=noise_variance
        )
    if not domain.finite:
        bounds.update(expansion_bounds(kernel, domain, n, noise_variance))
    return bounds


# Structured gains: all outputs are observed at each of the n points.


@_upper.register
def _of_coregionalised(
    kernel: Coregionalised, domain: Domain, n: int, noise_variance: float, designs: bool
) -> dict[str, float]:
    scales = _scales(kernel)
    by_scale = {
        b: _best(upper_bounds(kernel.kernel, domain, n, noise_variance / b, designs=designs))
        for b in set(scales)
    }
    total = sum(by_scale[b][1] for b in scales)
    bounds = {f"structured: {'/'.join(sorted({name for name, _ in by_scale.values()}))}": total}
    if designs and len(set(scales)) > 1 and dual_certificates.is_certifiable(kernel.kernel, domain):
        # The sum above lets every output have its own design. In truth all outputs share one,
        # which makes this bound tighter.
        ladder = dual_certificates.ladder(kernel.kernel, domain, scales)
        bounds["structured dual"] = ladder.bound(n / noise_variance)
    return bounds


@_upper.register
def _of_independent(
    kernel: Independent, domain: Domain, n: int, noise_variance: float, designs: bool
) -> dict[str, float]:
    best_bounds = [
        _best(upper_bounds(k, domain, n, noise_variance, designs=designs)) for k in kernel.kernels
    ]
    names = "/".join(sorted({name for name, _ in best_bounds}))
    return {f"independent: {names}": sum(value for _, value in best_bounds)}


@_upper.register
def _of_output_sum(
    kernel: OutputSum, domain: Domain, n: int, noise_variance: float, designs: bool
) -> dict[str, float]:
    (first_name, first_bound), (second_name, second_bound) = (
        _best(upper_bounds(term, domain, n, noise_variance, designs=designs))
        for term in kernel.terms()
    )
    return {
        f"sum rule: {first_name} + {second_name}": closed_forms.sum_rule(first_bound, second_bound)
    }


def _scales(kernel: Coregionalised) -> tuple[float, ...]:
    """Factor b_j of every independent output of k ⊗ B."""
    split = kernel.decompose(same_noise=True)
    assert split is not None
    return tuple(part.scale for part in split.parts for _ in range(part.copies))


@functools.singledispatch
def _lower(kernel: Any, domain: Domain, n: int, noise_variance: float) -> float:
    """Gain of a good design: a rounded dual design, or the best design for a single part."""
    # A design for one part gains at least as much from the whole kernel.
    return max(_lower(part, domain, n, noise_variance) for part in kernel.parts())


@_lower.register
def _lower_of_kernel(kernel: Kernel, domain: Domain, n: int, noise_variance: float) -> float:
    return dual_certificates.ladder(kernel, domain).lower(n, noise_variance)


@_lower.register
def _lower_of_coregionalised(
    kernel: Coregionalised, domain: Domain, n: int, noise_variance: float
) -> float:
    scales = _scales(kernel)
    if len(set(scales)) == 1:  # Then the same design is best for every output.
        return len(scales) * _lower(kernel.kernel, domain, n, noise_variance / scales[0])
    return dual_certificates.ladder(kernel.kernel, domain, scales).lower(n, noise_variance)


@_lower.register
def _lower_of_sum(kernel: OutputSum, domain: Domain, n: int, noise_variance: float) -> float:
    return max(_lower(term, domain, n, noise_variance) for term in kernel.terms())
