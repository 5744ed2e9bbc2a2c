"""Variances from the directions that matter: a root of fewer columns for each output.

An engine with R inducing points spends its time in |k(z, U) W|² (``InducingEngine``). Most kernels
that are fitted to data need fewer than R columns. With A = Q diag(a) Qᵀ, the columns of

    W = L⁻ᵀ Q diag(√(1 − 1/a))

are sorted by what the data know of them: over the rows seen so far, the squares of column i sum to
(1 − 1/a_i) λ (a_i − 1). The last columns are left out. This can only enlarge a variance.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelmdp.numerics.factorisation import solve_lower_transposed
from kernelmdp.numerics.modules import Module

#: Ranks that an output may have, as shares of the number of inducing points. Shapes are static, so
#: a program has one branch for each rank.
SHARES = (1 / 12, 1 / 4, 1 / 2, 3 / 4, 1.0)


class TruncatedRoot(Module):
    """A root W of each output with as many columns as it needs.

    Attributes:
        columns: For each output and each rank, the first columns of W.
        ranks: The number of the rank of each output.
    """

    columns: tuple[tuple[Float[Array, "R _"], ...], ...]
    ranks: Int[Array, " m"]

    def squared_norms(self, rows: Float[Array, "m n R"]) -> Float[Array, "m n"]:
        """Compute |k W|² with the rank of each output.

        Args:
            rows: Rows k of each output.

        Returns:
            The squared norms.
        """

        def branch(number: int) -> Callable[[Array, tuple[Array, ...]], Array]:
            # Each rank has an array of its own: a slice would be copied at every step of a plan.
            return lambda row, columns: jnp.sum((row @ columns[number]) ** 2, axis=1)

        branches = [branch(number) for number in range(len(SHARES))]
        norms = [
            jax.lax.switch(self.ranks[output], branches, rows[output], columns)
            for output, columns in enumerate(self.columns)
        ]
        return jnp.stack(norms)


def truncated_root(
    root: Float[Array, "m R R"],
    precision: Float[Array, "m R R"],
    used: Float[Array, " R"],
    *,
    energy: Float[Array, " m"],
    largest: Float[Array, " m"],
) -> tuple[Float[Array, "m R R"], TruncatedRoot]:
    """Leave out directions of which the data know little.

    Args:
        root: L.
        precision: A.
        used: 1 for each inducing point in use, else 0.
        energy: λ/n for each output: the mean square of column i over the data is this number times
            (1 − 1/a_i)(a_i − 1).
        largest: The largest mean of what is added to a variance, over the data, for each output.

    Returns:
        W with zeros in the columns that are left out (m, R, R), and the same by ranks.
    """
    count = root.shape[1]
    sizes = np.array([max(1, round(share * count)) for share in SHARES])

    def one_output(
        root: Array, precision: Array, energy: Array, largest: Array
    ) -> tuple[Array, Array]:
        values, vectors = jnp.linalg.eigh(precision)
        values, vectors = values[::-1], vectors[:, ::-1]
        learned = jnp.maximum(1 - 1 / values, 0.0)
        squares = energy * learned * (values - 1)
        left_out = jnp.cumsum(squares[::-1])[::-1]  # by column i and those after it
        rank = jnp.sum(left_out > largest)
        number = jnp.sum(rank > sizes[:-1])
        columns = solve_lower_transposed(root, vectors * jnp.sqrt(learned)[None, :])
        in_use = (jnp.arange(count) < jnp.asarray(sizes)[number]).astype(columns.dtype)
        return columns * used[:, None] * in_use[None, :], number

    roots, ranks = jax.vmap(one_output)(root, precision, energy, largest)
    columns = tuple(tuple(each[:, :size] for size in sizes) for each in roots)
    return roots, TruncatedRoot(columns, ranks)
