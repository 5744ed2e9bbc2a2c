"""Compilation of a kernel of infinite rank to finite rank on a domain, with an error bound.

Greedy pivoted Cholesky chooses centres u_1, u_2, ... where the residual k(x, x) − k_r(x, x) is
largest, with k_r(x, y) = k_U(x)ᵀ K_UU⁻¹ k_U(y). The residual k − k_r is itself a kernel, so
|k(x, y) − k_r(x, y)| ≤ sup_x (k − k_r)(x, x) for all x, y. The supremum is measured on a fine net
and extended to the whole domain by ``KernelConstants.supremum``; the error is then "certified".
With more than four coordinates, or without smoothness constants, the error is the maximum over a
dense low-discrepancy set, and is labelled "empirical".
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.domains import Domain
from kernelmdp.domains.sets import cartesian
from kernelmdp.errors import CompilationError
from kernelmdp.kernels import Kernel
from kernelmdp.kernels.base import gram, variances
from kernelmdp.kernels.constants import KernelConstants
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.numerics.factorisation import checked_cholesky, solve_lower, solve_lower_transposed
from kernelmdp.numerics.modules import jit, split_into_chunks

#: Number of points among which centres are chosen. Cost and memory are proportional to it.
CANDIDATES = 8192
#: Number of points on which the residual is measured: 21 for each axis in four dimensions.
NET = 200_000
#: Number of points of a second net, where the first is too coarse to certify the tolerance.
FINE_NET = 800_000
#: The first net is too coarse if the certified error is this multiple of the measured one.
COARSE = 4.0
#: Number of these points treated at once, so that intermediate arrays fit into cache.
CHUNK = 512
#: Largest dimension in which a net is fine enough to certify the error.
CERTIFIED_DIMENSION = 4
#: Allowance for rounding in the residual, as a share of κ, and the smallest tolerance.
ROUNDING = 1e-13


@dataclasses.dataclass(frozen=True)
class Compilation:
    """A kernel of finite rank close to a given kernel.

    Attributes:
        kernel: The given kernel k.
        domain: The domain.
        centres: The centres U, (r, d).
        root: A matrix with root rootᵀ = K_UU⁻¹.
        error: A bound of |k(x, y) − k_r(x, y)| over the domain.
        kind: "certified" if the bound is proved, "empirical" if it was measured at many points.

    >>> import kernelmdp as km
    >>> compiled = compile_kernel(km.kernel("se(0.5)"), domain=km.Box([0.0], [1.0]), tolerance=1e-3)
    >>> compiled.kind, compiled.error <= 1e-3, len(compiled.centres)
    ('certified', True, 5)
    """

    kernel: Kernel
    domain: Domain
    centres: np.ndarray
    root: np.ndarray
    error: float
    kind: str

    @property
    def rank(self) -> int:
        """The number of centres."""
        return len(self.centres)

    def __repr__(self) -> str:
        return f"Compilation({self.kernel}, rank={self.rank}, error={self.error:.1e} {self.kind})"


def compile_kernel(
    kernel: Kernel, domain: Domain, *, tolerance: float = 1e-6, rank_limit: int = 1000
) -> Compilation:
    """Compile a kernel: add centres until the residual on candidates is at most the tolerance.

    Results are cached.

    Args:
        kernel: The kernel.
        domain: The domain.
        tolerance: The largest residual.
        rank_limit: The largest number of centres.

    Returns:
        The compiled kernel with its error.

    Raises:
        CompilationError: If more than ``rank_limit`` centres are needed.

    >>> from kernelmdp import Box, kernels
    >>> compile_kernel(kernels.SquaredExponential(0.5), Box([0.0], [1.0])).kind
    'certified'
    """
    tolerance = positive_number("tolerance", tolerance)
    rank_limit = integer("rank_limit", rank_limit, least=1)
    kernel = kernel.bind(domain.names)
    kernel.require_dimension(domain.dimension)
    leaves, structure = jax.tree.flatten(kernel)
    values = tuple((np.asarray(leaf).shape, np.asarray(leaf).tobytes()) for leaf in leaves)
    compiled = _compile((structure, values), _UnhashedKernel(kernel), domain, tolerance, rank_limit)
    if isinstance(compiled, str):
        raise CompilationError(compiled)
    return compiled


@dataclasses.dataclass(frozen=True)
class _UnhashedKernel:
    """Passes a kernel to a cached function whose key is the kernel's structure and numbers."""

    kernel: Kernel

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _UnhashedKernel)


@functools.lru_cache(maxsize=128)
def _compile(
    _key: Any, unhashed: _UnhashedKernel, domain: Domain, tolerance: float, rank_limit: int
) -> Compilation | str:
    """The compiled kernel, or why there is none. A failed search takes longest, so it is cached."""
    kernel = unhashed.kernel.astype(jnp.float64)
    use_net = domain.dimension < CERTIFIED_DIMENSION or domain.finite
    candidates = domain.net(CANDIDATES)[0] if use_net else domain.spread_points(CANDIDATES)
    chosen, residual = pivots(kernel, candidates, tolerance=tolerance, limit=rank_limit)
    if residual > tolerance and len(chosen) == rank_limit:
        return (
            f"{kernel} needs more than rank_limit = {rank_limit} centres for tolerance "
            f"{tolerance:g} (residual {residual:.1e}); use engine='exact', a larger rank_limit or "
            "a larger tolerance"
        )
    centres = candidates[chosen]
    factor = checked_cholesky(
        gram(kernel, jnp.asarray(centres), jnp.asarray(centres)),
        "the kernel matrix at the chosen centres",
        f"the tolerance {tolerance:g} is too small for this kernel",
    )
    constants = kernel.constants(domain)
    points, spacing = _net(domain, constants, NET)
    certified = domain.finite or (
        domain.dimension <= CERTIFIED_DIMENSION and math.isfinite(constants.modulus(spacing / 2))
    )
    if not certified:
        points = domain.spread_points(NET // 2)
    largest, prior = _largest_residual(kernel, jnp.asarray(centres), factor, jnp.asarray(points))
    measured = max(float(largest), 0.0) + ROUNDING * float(prior)
    error = constants.supremum(measured, spacing) if certified else measured
    if certified and not domain.finite and error > max(tolerance, COARSE * measured):
        points, spacing = _net(domain, constants, FINE_NET)
        largest, prior = _largest_residual(
            kernel, jnp.asarray(centres), factor, jnp.asarray(points)
        )
        measured = max(float(largest), 0.0) + ROUNDING * float(prior)
        error = min(error, constants.supremum(measured, spacing))
    return Compilation(
        kernel=kernel,
        domain=domain,
        centres=centres,
        root=np.asarray(solve_lower_transposed(factor, jnp.eye(len(centres)))),
        error=error,
        kind="certified" if certified else "empirical",
    )


def _net(domain: Domain, constants: KernelConstants, budget: int) -> tuple[np.ndarray, np.ndarray]:
    """A net with its spacing. On boxes, axes along which the kernel varies more get more points.

    The certified error grows with Σ_j h_j² Q_j, whose terms are equal at the best spacing.
    """
    points, spacing = domain.net(budget)
    curvature = np.asarray(constants.axis_curvature, float)
    usable = np.isfinite(curvature) & (curvature > 0) & (spacing > 0)
    if domain.dimension == 1 or not usable.all():
        return points, spacing
    low, high = domain.bounds
    lengths = (high - low) * np.sqrt(curvature)
    cells = lengths * (budget / np.prod(lengths)) ** (1 / len(lengths))
    for _ in lengths:  # axes with too few cells get one, and leave less to the others
        short = cells < 1
        rest = budget ** (1 / max(1, np.sum(~short))) / np.prod(lengths[~short]) ** (
            1 / max(1, np.sum(~short))
        )
        cells = np.where(short, 1.0, lengths * rest / 2 ** (np.sum(short) / max(1, np.sum(~short))))
    counts = np.maximum(2, cells.astype(int))
    axes = [np.linspace(a, b, n) for a, b, n in zip(low, high, counts, strict=True)]
    return cartesian(axes), (high - low) / (counts - 1)


def pivots(
    kernel: Kernel, candidates: np.ndarray, *, tolerance: float, limit: int
) -> tuple[list[int], float]:
    """Choose centres by pivoted Cholesky: each where the residual variance is largest.

    Args:
        kernel: The kernel.
        candidates: Points to choose from, (n, d).
        tolerance: Stop when the residual is at most this.
        limit: The largest number of centres.

    Returns:
        Indices of the centres, and the largest residual.
    """
    points = jnp.asarray(candidates)
    residual = np.array(variances(kernel, points))
    floor = max(tolerance, ROUNDING * float(residual.max()))
    columns = np.empty((len(candidates), min(limit, len(candidates))), order="F")
    chosen: list[int] = []
    while residual.max() > floor and len(chosen) < columns.shape[1]:
        rank, pivot = len(chosen), int(residual.argmax())
        column = np.array(gram(kernel, points, points[pivot : pivot + 1])[:, 0])
        column -= columns[:, :rank] @ columns[pivot, :rank]
        columns[:, rank] = column / math.sqrt(residual[pivot])
        residual = np.maximum(residual - columns[:, rank] ** 2, 0.0)
        residual[pivot] = 0.0
        chosen.append(pivot)
    return chosen, float(residual.max())


@jit
def _largest_residual(kernel: Kernel, centres: Any, factor: Any, points: Any) -> Any:
    """The maxima over points of k(x, x) − k_r(x, x) and of k(x, x)."""

    def largest(z: Any) -> Any:
        solved = solve_lower(factor, gram(kernel, centres, z))
        prior = variances(kernel, z)
        return jnp.max(prior - jnp.sum(solved**2, axis=0)), jnp.max(prior)

    residual, prior = jax.lax.map(largest, split_into_chunks(points, CHUNK))
    return jnp.max(residual), jnp.max(prior)
