"""What every way to choose among plausible next states has in common."""

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
    """How the next state is chosen among the plausible ones; see ``optimism``."""

    grid: StateGrid
    metric: tuple[float, ...]

    @abc.abstractmethod
    def locate(self, prediction: Prediction, ladder: Array, lipschitz: Array) -> Any:
        """Where to read for n points; ``ladder`` from ``ladder_for`` all points of the episode."""

    @abc.abstractmethod
    def prepare(self, table: Float[Array, " M"], ladder: Array) -> Any:
        """The table of one period, from U on the lattice."""

    @abc.abstractmethod
    def read(self, prepared: PyTree, places: PyTree) -> Float[Array, " n"]:
        """The best expected value at n points."""

    def ladder_for(self, prediction: Prediction) -> Array:
        """Radii in metric units for which tables are prepared."""
        return jnp.zeros(1)


def running_maxima(rows: Array, longest: int) -> Array:
    """S[k, ..., i] = max of rows[..., i .. i + 2^k − 1], for windows up to ``longest``."""
    levels = [rows]
    for k in range(int(math.log2(longest))):
        levels.append(jnp.maximum(levels[-1], jnp.roll(levels[-1], -(2**k), axis=-1)))
    return jnp.stack(levels)
