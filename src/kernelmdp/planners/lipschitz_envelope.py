"""The Lipschitz envelope W(p) = inf_p' [U(p') + L ‖p − p'‖] (math D2).

W is the largest L-Lipschitz function below U. It stays above every L-Lipschitz function that U is
above of, so planning with W instead of an optimistic U keeps optimism and enforces L_M ≤ L, which
choosing a plausible next state at each point separately would lose.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from kernelmdp.mdp.state_grid import StateGrid


def lipschitz_envelope(
    table: Float[Array, " M"],
    grid: StateGrid,
    metric: tuple[float, ...],
    lipschitz: Float[Array, ""],
) -> Float[Array, " M"]:
    """W on the lattice of U; distances are measured after division by the metric.

    Exact at the places of the lattice: in one dimension by two sweeps, else offset by offset
    while one can matter. Skipped when U is L-Lipschitz already.
    """
    slopes = _slopes(table, grid, metric)
    steps = [s / g for s, g in zip(grid.spacing, metric, strict=True)]
    around = bool(grid.states.periodic)

    def bend(u: Array) -> Array:
        if len(steps) == 1:
            return _sweeps(u, lipschitz * steps[0], periodic=around)
        return _all_offsets(u, grid, metric, lipschitz)

    steepest = jnp.sqrt(jnp.sum(slopes**2))
    return lax.cond(steepest <= lipschitz, lambda u: u, bend, table)


def _slopes(table: Array, grid: StateGrid, metric: tuple[float, ...]) -> Array:
    """The steepest slope along each axis; a multilinear function is no steeper than their norm."""
    values = table.reshape(grid.lattice_shape)
    found = []
    for j, (step, unit) in enumerate(zip(grid.spacing, metric, strict=True)):
        ends = j in grid.states.periodic
        rises = jnp.abs(values - jnp.roll(values, 1, axis=j))
        rises = rises if ends else lax.slice_in_dim(rises, 1, rises.shape[j], axis=j)
        found.append(jnp.max(rises) * unit / step)
    return jnp.stack(found)


def _sweeps(table: Array, rise: Array, *, periodic: bool) -> Array:
    """min_j [U_j + rise |i − j|]: the running minimum of U_j ∓ rise·j, from both sides."""
    count = table.shape[0]
    wide = jnp.tile(table, 3) if periodic else table
    place = rise * jnp.arange(wide.shape[0], dtype=table.dtype)
    from_left = lax.cummin(wide - place) + place
    from_right = lax.cummin(wide + place, reverse=True) - place
    low = jnp.minimum(from_left, from_right)
    return low[count : 2 * count] if periodic else low


def _all_offsets(
    table: Array, grid: StateGrid, metric: tuple[float, ...], lipschitz: Array
) -> Array:
    """min over offsets o of U(p + o) + L‖o‖, nearest first, until no farther one can matter."""
    shape = grid.lattice_shape
    values, pads = padded(table, grid)
    offsets, lengths = offsets_by_length(pads, grid.spacing / np.array(metric))
    span = jnp.max(table) - jnp.min(table)

    def one(state: tuple[Array, Array]) -> tuple[Array, Array]:
        i, best = state
        starts = [jnp.asarray(pad, jnp.int32) + offsets[i, j] for j, pad in enumerate(pads)]
        moved = lax.dynamic_slice(values, starts, shape)
        return i + 1, jnp.minimum(best, moved + lipschitz * lengths[i])

    def more(state: tuple[Array, Array]) -> Array:
        i = state[0]
        return (i < len(lengths)) & (lipschitz * lengths[jnp.minimum(i, len(lengths) - 1)] < span)

    start = (jnp.ones((), jnp.int32), table.reshape(shape))  # offset 0 is the table itself
    return lax.while_loop(more, one, start)[1].reshape(-1)


def padded(table: Array, grid: StateGrid) -> tuple[Array, tuple[int, ...]]:
    """A table of the lattice with room for every offset: half a turn, or a whole axis, each way.

    Beyond a border stands the value of the border, as where a state is projected: that place is
    nearer than the offset says, so it changes neither a maximum over a ball nor an envelope.
    """
    values = table.reshape(grid.lattice_shape)
    around = grid.states.periodic
    pads = tuple(n // 2 if j in around else n - 1 for j, n in enumerate(values.shape))
    for j, pad in enumerate(pads):
        widths = [(pad, pad) if i == j else (0, 0) for i in range(values.ndim)]
        values = jnp.pad(values, widths, mode="wrap" if j in around else "edge")
    return values, pads


def offsets_by_length(
    reaches: tuple[int, ...], steps: np.ndarray
) -> tuple[Int[Array, "K j"], Float[Array, " K"]]:
    """All whole offsets up to ``reaches`` along each axis, and their lengths, shortest first."""
    ranges = [np.arange(-reach, reach + 1) for reach in reaches]
    offsets = np.stack([g.ravel() for g in np.meshgrid(*ranges, indexing="ij")], axis=1)
    lengths = np.sqrt(np.sum((offsets * steps[None, :]) ** 2, axis=1))
    order = np.argsort(lengths, kind="stable")
    return jnp.asarray(offsets[order], jnp.int32), jnp.asarray(lengths[order])
