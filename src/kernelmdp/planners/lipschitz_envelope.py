"""The Lipschitz envelope W(p) = inf_p' [U(p') + L ‖p − p'‖] (note D2).

W is the largest L-Lipschitz function below U, and it stays above every L-Lipschitz function below
U. So planning with W instead of an optimistic U stays optimistic, and it enforces L_M ≤ L. Without
it L_M could exceed L, because a plausible next state is chosen at each point separately.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from kernelmdp.mdp.state_grid import StateGrid


def lower_lipschitz_envelope(
    table: Float[Array, " M"],
    grid: StateGrid,
    metric: tuple[float, ...],
    lipschitz: Float[Array, ""],
) -> Float[Array, " M"]:
    """Compute W on the lattice of U.

    It is exact at the places of the lattice. In one dimension it takes two sweeps. In more
    dimensions it goes through the offsets p' − p, until no farther one can matter. If U is
    L-Lipschitz already, nothing is computed.

    Args:
        table: U on the lattice, (M,).
        grid: The grid that defines the lattice.
        metric: One number for each axis. Distances are measured after division by it.
        lipschitz: The Lipschitz constant L, a scalar.

    Returns:
        W on the lattice, (M,).
    """
    slopes = _slopes(table, grid, metric)
    steps = [s / g for s, g in zip(grid.spacing, metric, strict=True)]
    periodic = bool(grid.states.periodic)

    def envelope(u: Array) -> Array:
        if len(steps) == 1:
            return _sweeps(u, lipschitz * steps[0], periodic=periodic)
        return _all_offsets(u, grid, metric, lipschitz)

    steepest = jnp.sqrt(jnp.sum(slopes**2))
    return lax.cond(steepest <= lipschitz, lambda u: u, envelope, table)


def _slopes(table: Array, grid: StateGrid, metric: tuple[float, ...]) -> Array:
    """The steepest slope along each axis. A multilinear function is no steeper than their norm."""
    values = table.reshape(grid.lattice_shape)
    slopes = []
    for j, (step, unit) in enumerate(zip(grid.spacing, metric, strict=True)):
        periodic = j in grid.states.periodic
        rises = jnp.abs(values - jnp.roll(values, 1, axis=j))
        rises = rises if periodic else lax.slice_in_dim(rises, 1, rises.shape[j], axis=j)
        slopes.append(jnp.max(rises) * unit / step)
    return jnp.stack(slopes)


def _sweeps(table: Array, rise: Array, *, periodic: bool) -> Array:
    """min_j [U_j + rise |i − j|]: the running minimum of U_j ∓ rise·j, from both sides."""
    count = table.shape[0]
    values = jnp.tile(table, 3) if periodic else table
    ramp = rise * jnp.arange(values.shape[0], dtype=table.dtype)
    from_left = lax.cummin(values - ramp) + ramp
    from_right = lax.cummin(values + ramp, reverse=True) - ramp
    lowest = jnp.minimum(from_left, from_right)
    return lowest[count : 2 * count] if periodic else lowest


def _all_offsets(
    table: Array, grid: StateGrid, metric: tuple[float, ...], lipschitz: Array
) -> Array:
    """min over offsets o of U(p + o) + L‖o‖, nearest first, until no farther one can matter."""
    shape = grid.lattice_shape
    values, pads = padded(table, grid)
    offsets, lengths = offsets_by_length(pads, grid.spacing / np.array(metric))
    span = jnp.max(table) - jnp.min(table)

    def next_offset(state: tuple[Array, Array]) -> tuple[Array, Array]:
        i, lowest = state
        starts = [jnp.asarray(pad, jnp.int32) + offsets[i, j] for j, pad in enumerate(pads)]
        shifted = lax.dynamic_slice(values, starts, shape)
        return i + 1, jnp.minimum(lowest, shifted + lipschitz * lengths[i])

    def can_matter(state: tuple[Array, Array]) -> Array:
        i = state[0]
        return (i < len(lengths)) & (lipschitz * lengths[jnp.minimum(i, len(lengths) - 1)] < span)

    start = (jnp.ones((), jnp.int32), table.reshape(shape))  # offset 0 is the table itself
    return lax.while_loop(can_matter, next_offset, start)[1].reshape(-1)


def padded(
    table: Array, grid: StateGrid, cells: int | None = None
) -> tuple[Array, tuple[int, ...]]:
    """Pad a table of the lattice so that every offset can be read as a slice.

    A periodic axis gets half a turn at each end, another axis its whole length. Beyond a border the
    table repeats the value of the border, because states are projected there. The border is nearer
    than the offset says, so this changes neither a maximum over a ball nor an envelope.

    Args:
        table: Values on the lattice, (M,).
        grid: The grid that defines the lattice.
        cells: Longest offset along an axis that is read. None means every offset.

    Returns:
        The padded table, with one axis for each axis of the states, and the pad of each axis.
    """
    values = table.reshape(grid.lattice_shape)
    periodic = grid.states.periodic
    pads = tuple(n // 2 if j in periodic else n - 1 for j, n in enumerate(values.shape))
    pads = pads if cells is None else tuple(min(pad, cells) for pad in pads)
    for j, pad in enumerate(pads):
        pad_widths = [(pad, pad) if i == j else (0, 0) for i in range(values.ndim)]
        values = jnp.pad(values, pad_widths, mode="wrap" if j in periodic else "edge")
    return values, pads


def offsets_by_length(
    reaches: tuple[int, ...], steps: np.ndarray
) -> tuple[Int[Array, "K j"], Float[Array, " K"]]:
    """List all integer offsets, shortest first.

    Args:
        reaches: The largest offset along each axis.
        steps: The length of a unit offset along each axis, (j,).

    Returns:
        The offsets (K, j) and their lengths (K,).
    """
    ranges = [np.arange(-reach, reach + 1) for reach in reaches]
    offsets = np.stack([g.ravel() for g in np.meshgrid(*ranges, indexing="ij")], axis=1)
    lengths = np.sqrt(np.sum((offsets * steps[None, :]) ** 2, axis=1))
    order = np.argsort(lengths, kind="stable")
    return jnp.asarray(offsets[order], jnp.int32), jnp.asarray(lengths[order])
