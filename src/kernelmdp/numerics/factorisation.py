"""Matrix factorisations and triangular solves. No other module factorises a matrix.

JAX's Cholesky factorisation silently returns NaN if a matrix is not positive definite. Traced code
cannot raise an error, so callers pass its results through ``require_positive_definite`` once they
are outside it. Code that runs eagerly uses ``checked_cholesky``.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from kernelmdp.errors import PositiveDefiniteError
from kernelmdp.numerics.tracing import is_traced
from kernelmdp.types import Square

#: Number of columns that ``cholesky_in_place`` treats at once. Its memory is proportional to it.
PANEL = 512


def cholesky(matrix: Square) -> Square:
    """Return the lower Cholesky factor C with C Cᵀ = matrix.

    Its derivative along a symmetric direction D is C Φ(C⁻¹ D C⁻ᵀ), where Φ takes the lower triangle
    and half of the diagonal.

    Args:
        matrix: A symmetric matrix, (n, n). Only its lower triangle is read.

    Returns:
        The factor C, (n, n); NaN if the matrix is not positive definite.
    """
    return _cholesky(matrix)


@jax.custom_jvp
def _cholesky(matrix: Array) -> Array:
    return _one_cholesky(matrix)


@_cholesky.defjvp
def _cholesky_slope(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    factor = _cholesky(*primals)
    half = solve_lower(factor, solve_lower(factor, tangents[0]).mT).mT
    weights = jnp.tril(jnp.ones_like(half)) - 0.5 * jnp.eye(half.shape[0], dtype=half.dtype)
    return factor, factor @ (weights * half)


@jax.custom_batching.custom_vmap
def _one_cholesky(matrix: Array) -> Array:
    return jnp.linalg.cholesky(matrix, symmetrize_input=False)


@_one_cholesky.def_vmap
def _cholesky_batch(axis_size: int, in_batched: list[bool], matrices: Array) -> tuple[Array, bool]:
    """One matrix after the other, for the reason given in ``_one_by_one``."""
    return jax.lax.map(_one_cholesky, matrices), True


def cholesky_in_place(matrix: np.ndarray) -> bool:
    """Replace the lower triangle of a symmetric matrix by its Cholesky factor.

    It is for matrices so large that a copy may not fit into memory. Panels of columns are updated
    from those to the left of them. Besides the matrix, memory for some panels is needed.

    Args:
        matrix: A NumPy array stored by rows, (n, n). Its upper triangle is not read or changed,
            except near the diagonal, where it becomes 0.

    Returns:
        Whether the matrix is positive definite. If it is not, the array holds no factor.
    """
    for start in range(0, len(matrix), PANEL):
        stop = min(start + PANEL, len(matrix))
        left = matrix[start:stop, :start]
        panel = matrix[start:, start:stop]
        panel -= matrix[start:, :start] @ left.T
        try:
            corner = np.linalg.cholesky(panel[: stop - start])
        except np.linalg.LinAlgError:
            return False
        panel[: stop - start] = corner
        below = panel[stop - start :]
        below[:] = scipy.linalg.solve_triangular(corner, below.T, lower=True).T
    return True


def solve_lower(factor: Float[Array, "n n"], right: Float[Array, "n k"]) -> Float[Array, "n k"]:
    """Return C⁻¹ B by forward substitution.

    LAPACK reads matrices by columns, JAX stores them by rows. So the solver gets Cᵀ, which is C in
    LAPACK's order. This saves a transposed copy, which costs 15 times as much as one right-hand
    side at n = 2,500.

    Args:
        factor: Lower triangular C, (n, n).
        right: Right-hand sides B, (n, k).

    Returns:
        C⁻¹ B, (n, k).
    """
    return _solve(factor, right, transposed=False)


def solve_lower_transposed(
    factor: Float[Array, "n n"], right: Float[Array, "n k"]
) -> Float[Array, "n k"]:
    """Return C⁻ᵀ B by backward substitution.

    Args:
        factor: Lower triangular C, (n, n).
        right: Right-hand sides B, (n, k).

    Returns:
        C⁻ᵀ B, (n, k).
    """
    return _solve(factor, right, transposed=True)


def _solve(factor: Array, right: Array, *, transposed: bool) -> Array:
    """C⁻¹ B or C⁻ᵀ B, which can be differentiated and batched."""

    def solver(transposed: bool) -> Callable[[Any, Array], Array]:
        return lambda _, b: _SOLVERS[transposed](factor, b)

    def product(x: Array) -> Array:  # only derivatives use it
        lower = jnp.tril(factor)
        return (lower.mT if transposed else lower) @ x

    return jax.lax.custom_linear_solve(product, right, solver(transposed), solver(not transposed))


def _one_by_one(solve: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """Let a solver treat a batch of matrices one after the other.

    On a machine with two cores, two batches at once never end (jaxlib 0.10.2): each holds one of
    the two threads and needs another one.
    """
    batched = jax.custom_batching.custom_vmap(solve)

    @batched.def_vmap
    def solve_batch(
        axis_size: int, in_batched: list[bool], factor: Array, right: Array
    ) -> tuple[Array, bool]:
        if in_batched[0]:
            rights = right if in_batched[1] else jnp.broadcast_to(right, (axis_size, *right.shape))
            return jax.lax.map(lambda pair: batched(*pair), (factor, rights)), True
        # One matrix: all right-hand sides are columns of one.
        count, n, k = right.shape
        columns = jnp.moveaxis(right, 0, 1).reshape(n, count * k)
        return jnp.moveaxis(batched(factor, columns).reshape(n, count, k), 1, 0), True

    return batched


#: Solvers with C, and with Cᵀ.
_SOLVERS = {
    False: _one_by_one(lambda factor, b: solve_triangular(factor.mT, b, lower=False, trans=1)),
    True: _one_by_one(lambda factor, b: solve_triangular(factor.mT, b, lower=False)),
}


def inverse_from_factor(factor: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Return (C Cᵀ)⁻¹ for a lower triangular C, of a few hundred rows.

    With C = [[A, 0], [B, D]], C⁻¹ = [[A⁻¹, 0], [−D⁻¹BA⁻¹, D⁻¹]]. Its blocks skip most zeros, which
    halves the work of a substitution with the identity and a product.

    Args:
        factor: Lower triangular C, (n, n).

    Returns:
        The inverse, (n, n).
    """
    n = factor.shape[0]
    half = n // 2
    corner, last = (
        solve_lower(block, jnp.eye(block.shape[0], dtype=block.dtype))
        for block in (factor[:half, :half], factor[half:, half:])
    )
    below = -last @ (factor[half:, :half] @ corner)
    mixed = last.T @ below
    return jnp.block(
        [[corner.T @ corner + below.T @ below, mixed.T], [mixed, last.T @ last]],
    )


def triangular_root(root: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Return a lower triangular C with C Cᵀ = root rootᵀ.

    It comes from a QR factorisation of rootᵀ. The product root rootᵀ, which would square the
    condition number, is never formed.

    Args:
        root: Any square root of the matrix, (n, n).

    Returns:
        The lower triangular root C, (n, n). The signs of its columns are arbitrary.
    """
    return jnp.linalg.qr(root.T, mode="r").T


def orthonormal_span(columns: Float[np.ndarray, "n k"], share: float) -> Float[np.ndarray, "n r"]:
    """Return orthonormal directions that span the columns of a matrix.

    Args:
        columns: The matrix, (n, k), of NumPy.
        share: Directions are left out if their singular value is at most this share of the largest.

    Returns:
        The directions as columns, (n, r).
    """
    directions, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return directions[:, sizes > share * sizes[0]]


def product_squared_lengths(
    rows: Float[Array, "k n"], factor: Float[Array, "n n"], panels: int
) -> Float[Array, " k"]:
    """Return ‖rowᵀ C‖² for each row and a lower triangular C.

    C is processed in panels of columns. Each product leaves out the rows above its panel, so most
    of the zeros of C are skipped.

    Args:
        rows: The rows, (k, n).
        factor: Lower triangular C, (n, n).
        panels: Number of panels. More panels skip more zeros and make smaller products.

    Returns:
        The squared lengths, (k,).
    """
    width = -(-factor.shape[0] // panels)
    total = jnp.zeros(rows.shape[0], rows.dtype)
    for start in range(0, factor.shape[0], width):
        products = rows[:, start:] @ factor[start:, start : start + width]
        total = total + jnp.sum(products**2, axis=1)
    return total


def require_positive_definite(result: Any, indicator: Array, what: str, hint: str) -> Any:
    """Return a result unchanged if the factorisation behind it succeeded.

    If the indicator is traced, the check becomes part of the program. It then raises an error of
    Equinox when the program runs.

    Args:
        result: The result, any pytree.
        indicator: Numbers that are NaN if the factorisation failed, such as the factor.
        what: Name of the matrix, for the error message.
        hint: What the user can do about it, for the error message.

    Returns:
        The result.

    Raises:
        PositiveDefiniteError: If ``indicator`` is not finite.
    """
    message = f"{what} is not positive definite in {indicator.dtype}; {hint}"
    if is_traced(indicator):
        return eqx.error_if(result, ~jnp.all(jnp.isfinite(indicator)), message)
    if not np.isfinite(np.asarray(indicator)).all():
        raise PositiveDefiniteError(message)
    return result


def checked_cholesky(matrix: Square, what: str, hint: str) -> Square:
    """Return the lower Cholesky factor of a matrix, or raise if it is not positive definite.

    Args:
        matrix: A symmetric matrix, (n, n).
        what: Name of the matrix, for the error message.
        hint: What the user can do about it, for the error message.

    Returns:
        The factor C with C Cᵀ = matrix, (n, n).

    Raises:
        PositiveDefiniteError: If the matrix is not positive definite.
    """
    factor = cholesky(matrix)
    return require_positive_definite(factor, factor, what, hint)
