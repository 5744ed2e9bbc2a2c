"""Compile a kernel of infinite rank to finite rank on a domain, with a bound on the sup error.

Greedy pivoted Cholesky chooses centres u_1, u_2, ... where the residual k(x, x) − k_r(x, x) is
largest; k_r(x, y) = k_U(x)ᵀ K_UU⁻¹ k_U(y). The residual k − k_r is itself a kernel, so
|k(x, y) − k_r(x, y)| ≤ sup_x (k − k_r)(x, x) for all x, y: one supremum bounds every entry. It is
taken over a fine net and carried to the continuum by ``KernelConstants.supremum``: then the error is
"certified". With more than four coordinates, or a kernel without smoothness constants, it is the
maximum over a dense low-discrepancy set and labelled "empirical".
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.domains import Domain
from kernelmdp.errors import CompilationError
from kernelmdp.kernels import Kernel
from kernelmdp.kernels.base import gram, variances
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.numerics.factorisation import checked_cholesky, solve_lower, solve_lower_transposed
from kernelmdp.numerics.modules import chunked, jit

CANDIDATES = 8192  # points among which centres are chosen
NET = 200_000  # points on which the residual is measured
CHUNK = 512  # of which so many at a time
CERTIFIED_DIMENSION = 4
ROUNDING = 1e-13  # of κ: allowance for rounding in the residual, and the smallest tolerance


@dataclasses.dataclass(frozen=True)
class Compilation:
    """A kernel of finite rank close to the one asked for.

    ``error`` bounds |k(x, y) − k_r(x, y)| over the domain: by proof when ``kind`` is "certified",
    by measurement on many points when it is "empirical".

    >>> import kernelmdp as km
    >>> compiled = compile_kernel(km.kernel("se(0.5)"), domain=km.Box([0.0], [1.0]), tolerance=1e-3)
    >>> compiled.kind, compiled.error <= 1e-3, len(compiled.centres)
    ('certified', True, 5)
    """

    kernel: Kernel
    domain: Domain
    centres: np.ndarray
    root: np.ndarray  # root rootᵀ = K_UU⁻¹
    error: float
    kind: str

    @property
    def rank(self) -> int:
        """Number of centres."""
        return len(self.centres)

    def __repr__(self) -> str:
        return f"Compilation({self.kernel}, rank={self.rank}, error={self.error:.1e} {self.kind})"


def compile_kernel(
    kernel: Kernel, domain: Domain, *, tolerance: float = 1e-6, rank_limit: int = 1000
) -> Compilation:
    """Centres until the residual on the candidates is at most ``tolerance``.

    CompilationError when that needs more than ``rank_limit`` centres. Results are remembered.

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
    return _compile((structure, values), _UnhashedKernel(kernel), domain, tolerance, rank_limit)


@dataclasses.dataclass(frozen=True)
class _UnhashedKernel:
    """Carries a kernel past the cache, whose key is its structure and numbers."""

    kernel: Kernel

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _UnhashedKernel)


@functools.lru_cache(maxsize=128)
def _compile(
    _key: Any, held: _UnhashedKernel, domain: Domain, tolerance: float, rank_limit: int
) -> Compilation:
    kernel = held.kernel.astype(jnp.float64)
    small = domain.dimension < CERTIFIED_DIMENSION or domain.finite
    candidates = domain.net(CANDIDATES)[0] if small else domain.spread(CANDIDATES)
    chosen, left = pivots(kernel, candidates, tolerance=tolerance, limit=rank_limit)
    if left > tolerance and len(chosen) == rank_limit:
        raise CompilationError(
            f"{kernel} needs more than rank_limit = {rank_limit} centres for tolerance "
            f"{tolerance:g} (residual {left:.1e}); use engine='exact', a larger rank_limit or a "
            "larger tolerance"
        )
    centres = candidates[chosen]
    factor = checked_cholesky(
        gram(kernel, jnp.asarray(centres), jnp.asarray(centres)),
        "the kernel matrix at the chosen centres",
        f"the tolerance {tolerance:g} is too small for this kernel",
    )
    constants = kernel.constants(domain)
    points, spacing = domain.net(NET)
    certified = domain.finite or (
        domain.dimension <= CERTIFIED_DIMENSION and math.isfinite(constants.modulus(spacing / 2))
    )
    if not certified:
        points = domain.spread(NET // 2)
    largest, prior = _largest_residual(kernel, jnp.asarray(centres), factor, jnp.asarray(points))
    measured = max(float(largest), 0.0) + ROUNDING * float(prior)
    return Compilation(
        kernel=kernel,
        domain=domain,
        centres=centres,
        root=np.asarray(solve_lower_transposed(factor, jnp.eye(len(centres)))),
        error=constants.supremum(measured, spacing) if certified else measured,
        kind="certified" if certified else "empirical",
    )


def pivots(
    kernel: Kernel, candidates: np.ndarray, *, tolerance: float, limit: int
) -> tuple[list[int], float]:
    """Indices of centres, each where the residual variance given those before is largest, until
    it is at most ``tolerance`` or there are ``limit`` of them; and the residual that is left."""
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
    """max over the points of k(x, x) − k_r(x, x), and of k(x, x)."""

    def largest(z: Any) -> Any:
        solved = solve_lower(factor, gram(kernel, centres, z))
        prior = variances(kernel, z)
        return jnp.max(prior - jnp.sum(solved**2, axis=0)), jnp.max(prior)

    residual, prior = jax.lax.map(largest, chunked(points, CHUNK))
    return jnp.max(residual), jnp.max(prior)
