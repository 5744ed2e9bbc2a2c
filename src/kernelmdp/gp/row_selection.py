"""Selection of rows of data where there are more than a computation can use."""

import jax
import numpy as np
from jaxtyping import Float

from kernelmdp.types import Key

#: Cells of each axis among which rows are spread. Kernels hardly vary within an eighth of an axis.
CELLS = 8


def spread_rows(points: Float[np.ndarray, "n d"], most: int, *, key: Key) -> np.ndarray:
    """Choose rows at random, such that dense regions do not displace the others.

    The box around the points is divided into cells. Every cell that has points has the same total
    weight. A system that is held in one place fills its cell with thousands of rows. What was
    observed elsewhere must not be forgotten for them.

    Args:
        points: The points, (n, d).
        most: The largest number of rows to choose.
        key: Decides the choice.

    Returns:
        Indices in increasing order, the last row among them.

    >>> held = np.concatenate([[0.0, 0.2, 0.4, 0.8, 1.0], np.full(995, 0.5)])[:, None]
    >>> rows = spread_rows(held, 50, key=jax.random.key(0))
    >>> len(rows), rows[:5].tolist()
    (50, [0, 1, 2, 3, 4])
    """
    if len(points) <= most:
        return np.arange(len(points))
    low, width = points.min(axis=0), np.ptp(points, axis=0)
    shares = (points - low) / np.where(width > 0, width, 1.0)
    cells = np.minimum((CELLS * shares).astype(int), CELLS - 1)
    cell_of = np.zeros(len(points), int)
    for column in cells.T:  # numbers of cells stay below the number of points
        _, cell_of = np.unique(CELLS * cell_of + column, return_inverse=True)
    sizes = np.bincount(cell_of)
    # The rows with the smallest arrival times of exponential clocks are a weighted sample.
    # NumPy's generator, because JAX would compile a program for every number of rows.
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    arrivals = rng.exponential(size=len(points)) * sizes[cell_of]
    arrivals[-1] = 0.0
    return np.sort(np.argpartition(arrivals, most)[:most])
