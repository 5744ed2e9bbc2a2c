"""The policy of a table: stored actions at nodes, read at the nearest node or between nodes."""

import dataclasses

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelmdp.domains import Domain
from kernelmdp.mdp.noise import NO_NOISE
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.types import Period


class TabulatedPolicy(Policy):
    """Stored actions of every node and period. Exports of grid policies follow it exactly.

    Between the nodes of a box of states, actions of a box are interpolated linearly along each
    axis. Otherwise the action of the nearest node is taken. States outside are first brought to the
    state space.

    Attributes:
        table: The actions at the nodes, (R, N, q).
        rows: The row of the table that each period uses, (H,).
        grid: The grid of N nodes.
        space: The action space, to which actions are limited.
        interpolated: Whether actions are interpolated between nodes.

    >>> import kernelmdp as km
    >>> grid = StateGrid(km.Box([0.0], [1.0]), (2,), NO_NOISE)
    >>> table = jnp.array([[[1.0], [3.0]]])
    >>> policy = TabulatedPolicy(table, jnp.zeros(5, int), grid, km.Box([0.0], [4.0]), True)
    >>> policy([0.25], period=4)
    array([1.5])
    """

    table: Float[Array, "R N q"]
    rows: Int[Array, " H"]
    grid: StateGrid = eqx.field(static=True)
    space: Domain = eqx.field(static=True)
    interpolated: bool = eqx.field(static=True)

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        table = self.table[self.rows[period]]
        inside = self.grid.states.nearest(states)
        if self.interpolated:
            stencil = dataclasses.replace(self.grid, noise=NO_NOISE).stencil(inside)
            read = [stencil.read(table[:, j]) for j in range(table.shape[1])]
            return self.space.nearest(jnp.stack(read, axis=1))
        if self.grid.states.finite:
            nodes = jnp.asarray(self.grid.nodes)
            squares = jnp.sum((inside[:, None, :] - nodes[None, :, :]) ** 2, axis=2)
            return table[jnp.argmin(squares, axis=1)]
        counts, flat = self.grid.counts, jnp.zeros(states.shape[0], int)
        low = self.grid.states.bounds[0]
        for axis, (n, spacing) in enumerate(zip(counts, self.grid.spacing, strict=True)):
            place = jnp.floor((inside[:, axis] - low[axis]) / spacing + 0.5).astype(int)
            periodic = axis in self.grid.states.periodic
            flat = flat * n + (place % n if periodic else jnp.clip(place, 0, n - 1))
        return table[flat]


def rounded(actions: np.ndarray) -> Float[np.ndarray, "H N q"]:
    """Round actions to single precision, in which tables are stored.

    Args:
        actions: The actions, (H, N, q).

    Returns:
        The rounded actions, as numbers of double precision.

    >>> float(rounded(np.array([[[0.1]]]))[0, 0, 0]) - 0.1 < 1e-8
    True
    """
    return np.asarray(actions).astype(np.float32).astype(float)
