"""The one place that factorises a matrix.

JAX's Cholesky returns NaN and says nothing when a matrix is not positive definite. Inside traced
code nothing can be raised, so callers pass the result through ``require_positive_definite`` as
soon as they are back on the host; code that runs eagerly uses ``checked_cholesky``.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from kernelmdp.errors import PositiveDefiniteError
from kernelmdp.types import Square


def cholesky(matrix: Square) -> Square:
    """Lower factor C with C Cᵀ = matrix; NaN when the matrix is not positive definite."""
    return jnp.linalg.cholesky(matrix, symmetrize_input=False)


def solve_lower(factor: Float[Array, "n n"], right: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """C⁻¹ B by forward substitution.

    LAPACK wants columns one after the other, JAX keeps rows so. Handing over Cᵀ, which is C in that
    order, saves a transposed copy: 15 times the work of one right side at n = 2,500.
    """
    return solve_triangular(factor.mT, right, lower=False, trans=1)


def solve_lower_transposed(
    factor: Float[Array, "n n"], right: Float[Array, "n k"]
) -> Float[Array, "n k"]:
    """C⁻ᵀ B by backward substitution."""
    return solve_triangular(factor.mT, right, lower=False)


def lower_root(root: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """A lower triangular C with C Cᵀ = root rootᵀ, by QR: nothing is squared on the way."""
    return jnp.linalg.qr(root.T, mode="r").T


def squared_lengths(
    rows: Float[Array, "k n"], factor: Float[Array, "n n"], panels: int
) -> Float[Array, " k"]:
    """‖rowᵀ C‖² for each row and a lower triangular C, skipping most of its zeros by panels."""
    width = -(-factor.shape[0] // panels)
    total = jnp.zeros(rows.shape[0], rows.dtype)
    for start in range(0, factor.shape[0], width):
        part = rows[:, start:] @ factor[start:, start : start + width]
        total = total + jnp.sum(part**2, axis=1)
    return total


def is_traced(*values: object) -> bool:
    """Whether any array in these pytrees is being traced, so that its numbers are unknown."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(values))


def require_positive_definite(result: Any, indicator: Array, what: str, hint: str) -> Any:
    """The result itself, or a PositiveDefiniteError when the indicator holds NaN.

    Under tracing the check is compiled in and fires when the program runs.
    """
    message = f"{what} is not positive definite in {indicator.dtype}; {hint}"
    if is_traced(indicator):
        return eqx.error_if(result, ~jnp.all(jnp.isfinite(indicator)), message)
    if not np.isfinite(np.asarray(indicator)).all():
        raise PositiveDefiniteError(message)
    return result


def checked_cholesky(matrix: Square, what: str, hint: str) -> Square:
    """``cholesky`` that raises instead of returning NaN."""
    factor = cholesky(matrix)
    return require_positive_definite(factor, factor, what, hint)
