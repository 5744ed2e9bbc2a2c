"""The base class of optimistic backups, which choose among plausible next states."""

import abc
import dataclasses
import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from kernelmdp.mdp.model import Prediction
from kernelmdp.mdp.state_grid import StateGrid


@dataclasses.dataclass(frozen=True)
class OptimisticBackup(abc.ABC):
    """How the next state is chosen among the plausible ones. See ``optimism`` for all ways.

    Attributes:
        grid: The nodes of the values and the lattice of U.
        metric: One number for each axis. Distances are measured after division by it.
    """

    grid: StateGrid
    metric: tuple[float, ...]

    @abc.abstractmethod
    def locate(self, prediction: Prediction, sizes: Array, lipschitz: Array) -> Any:
        """Find where to read the tables for n points.

        Args:
            prediction: Predictions at the points.
            sizes: Sizes from ``dilation_sizes``, for all points of the episode.
            lipschitz: The Lipschitz constant L of U, a scalar.

        Returns:
            Positions for ``read``, a pytree.
        """

    @abc.abstractmethod
    def prepare(self, table: Float[Array, " M"], sizes: Array) -> Any:
        """Prepare the table of one period.

        Args:
            table: U on the lattice, (M,).
            sizes: Sizes from ``dilation_sizes``.

        Returns:
            A table for ``read``, a pytree.
        """

    @abc.abstractmethod
    def read(self, prepared: PyTree, positions: PyTree) -> Float[Array, " n"]:
        """Read the best expected values at n points.

        Args:
            prepared: The table from ``prepare``.
            positions: The positions from ``locate``.

        Returns:
            The values, (n,).
        """

    def dilation_sizes(self, prediction: Prediction) -> Array:
        """Choose the sizes of plausible sets for which tables are prepared.

        Args:
            prediction: Predictions at all points of the episode.

        Returns:
            The sizes. The default is one size of 0, for backups that do not use them.
        """
        return jnp.zeros(1)


def running_maxima(rows: Array, longest: int) -> Array:
    """Compute the maxima of all windows of 2^k entries along the last axis.

    S[k, ..., i] = max of rows[..., i .. i + 2^k − 1].

    Args:
        rows: The values, (..., n).
        longest: The longest window that is needed.

    Returns:
        S, (K, ..., n). Windows that reach beyond the end continue at the beginning.
    """
    levels = [rows]
    for k in range(int(math.log2(longest))):
        levels.append(jnp.maximum(levels[-1], jnp.roll(levels[-1], -(2**k), axis=-1)))
    return jnp.stack(levels)
