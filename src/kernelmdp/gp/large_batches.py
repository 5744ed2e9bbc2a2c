"""The factor of a large batch of rows, in memory for little more than the factor.

Compiled programs need several matrices of its size. So one array of NumPy is filled with the lower
triangle of the kernel matrix, tile by tile, and factorised in place. JAX then uses it as it is.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.kernels import Kernel
from kernelmdp.kernels.base import gram
from kernelmdp.numerics.factorisation import cholesky_in_place
from kernelmdp.numerics.modules import jit

#: A first batch of so many rows is conditioned on in place. A program would need gigabytes.
LARGE_BATCH = 8192
#: Rows and columns of the kernel matrix that are computed at once: 8 MB.
TILE = 1024
#: JAX shares arrays of NumPy whose address is a multiple of this number of bytes, without a copy.
ALIGNMENT = 64


def kernel_factor(
    kernel: Kernel, points: Float[Array, "h d"], noise: Float[Array, " h"], capacity: int
) -> Float[Array, "c c"]:
    """Compute the Cholesky factor of K(X, X) + Λ.

    Args:
        kernel: k.
        points: X, (h, d).
        noise: The diagonal of Λ, (h,).
        capacity: The number of rows of the result. Rows of padding are those of an identity.

    Returns:
        The factor, or NaN on its diagonal if the matrix is not positive definite.
    """
    rows = points.shape[0]
    matrix = _aligned_zeros(capacity, points.dtype)
    tiles = -(-rows // TILE)
    index = np.minimum(np.arange(tiles * TILE), rows - 1)  # fills the last tile
    places = [slice(i * TILE, min((i + 1) * TILE, rows)) for i in range(tiles)]
    parts = np.asarray(points)[index].reshape(tiles, TILE, -1)
    for i, place in enumerate(places):
        for j, other in enumerate(places[: i + 1]):
            block = matrix[place, other]
            block[:] = np.asarray(_tile(kernel, parts[i], parts[j]))[: len(block), : block.shape[1]]
    diagonal = np.einsum("ii->i", matrix)
    diagonal[:rows] += np.asarray(noise)
    diagonal[rows:] = 1
    if not cholesky_in_place(matrix):
        diagonal[:] = np.nan
    for place in places:  # tiles on the diagonal were filled whole
        matrix[place, place] = np.tril(matrix[place, place])
    return jax.dlpack.from_dlpack(matrix)


@jit
def _tile(kernel: Kernel, x: Array, y: Array) -> Array:
    return gram(kernel, x, y)


def _aligned_zeros(size: int, dtype: Any) -> np.ndarray:
    """A square array at an address that JAX accepts as it is."""
    width = jnp.dtype(dtype).itemsize
    flat = np.zeros(size * size + ALIGNMENT // width, dtype)
    start = -flat.ctypes.data % ALIGNMENT // width
    return flat[start : start + size * size].reshape(size, size)
