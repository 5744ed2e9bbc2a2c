"""U dilated by balls or boxes of several sizes, for two dimensions or more.

A dilated table holds the maximum of U over the ball or box around each place. It gives the best
plausible next state (see ``optimism``).
"""

import itertools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from kernelmdp.mdp.model import Prediction
from kernelmdp.mdp.state_grid import Stencil
from kernelmdp.planners.lipschitz_envelope import offsets_by_length, padded
from kernelmdp.planners.optimistic_backup import OptimisticBackup, running_maxima

#: Number of radii above 0 for which U is dilated by balls. More radii interpolate better and take
#: more time and memory.
RADIUS_STEPS = 6
#: Number of sides above 0 along each of two axes. With m axes it is this to the power 2/m, so that
#: the number of combinations stays about the same.
SIDE_STEPS = 5
#: Balls that reach less than this many cells from their centre are treated in smaller tables. After
#: a few episodes all balls do. Tables for all balls would be mostly padding then.
NEAR_CELLS = 8


class _BallPositions(NamedTuple):
    """Where to read the dilated tables: places for the radius below and above, and the way."""

    below: Stencil
    above: Stencil
    fraction: Array


class BallBackup(OptimisticBackup):
    """Two dimensions or more: U dilated by balls of several radii."""

    def dilation_sizes(self, prediction: Prediction) -> Array:
        assert prediction.radius is not None
        low, high = self.grid.states.bounds
        diameter = float(np.linalg.norm((high - low) / np.array(self.metric)))
        largest = jnp.minimum(jnp.max(prediction.radius), diameter)
        return largest * (jnp.arange(RADIUS_STEPS + 1) / RADIUS_STEPS) ** 2

    def locate(self, prediction: Prediction, sizes: Array, lipschitz: Array) -> _BallPositions:
        assert prediction.radius is not None
        places = self.grid.stencil(prediction.state)
        assert isinstance(places, Stencil)
        size_index, fraction = _interpolated_size(sizes, prediction.radius)
        table_size = math.prod(self.grid.lattice_shape)
        # Tables of all radii are read as one, so that a place is one number.
        below = places.indices + (size_index * table_size)[:, None]
        return _BallPositions(
            Stencil(below, places.weights), Stencil(below + table_size, places.weights), fraction
        )

    def prepare(self, table: Float[Array, " M"], sizes: Array) -> Float[Array, "K M"]:
        steps = self.grid.spacing / np.array(self.metric)
        return lax.cond(
            sizes[-1] < NEAR_CELLS * float(np.min(steps)),
            lambda u: self._dilated(u, sizes, NEAR_CELLS),
            lambda u: self._dilated(u, sizes, None),
            table,
        )

    def read(self, prepared: Float[Array, "K M"], positions: _BallPositions) -> Float[Array, " n"]:
        flat = prepared.reshape(-1)
        low, high = positions.below.read(flat), positions.above.read(flat)
        return low + positions.fraction * (high - low)

    def _dilated(self, table: Array, radii: Array, cells: int | None) -> Array:
        """max of U over balls, as unions of chords along the last axis through nodes.

        On a chord U is piecewise linear, so its maximum is at a node or at an end of the chord.
        Both are read, and so are the ball's outermost points along the other axes. One loop over
        chords, nearest first, treats all radii. It stops when the largest ball has no more chords.
        No ball reaches as far as ``cells`` cells.
        """
        values, pads = padded(table, self.grid, cells)
        maxima = running_maxima(values, 2 * pads[-1] + 1)
        shape = self.grid.lattice_shape
        steps = self.grid.spacing / np.array(self.metric)
        offsets, lengths = offsets_by_length(pads[:-1], steps[:-1])
        ball_indices, last = range(radii.shape[0]), len(shape) - 1
        zero = jnp.zeros((), jnp.int32)

        def shifted(level: Array, offset: list[Array]) -> Array:
            starts = [jnp.asarray(pad, jnp.int32) + o for pad, o in zip(pads, offset, strict=True)]
            return lax.dynamic_slice(maxima, (level, *starts), (1, *shape))[0]

        def at_end(offset: list[Array], axis: int, reach: Array, sign: int) -> Array:
            """U between two nodes, ``reach`` cells from the offset along an axis."""
            cells = jnp.minimum(jnp.floor(reach), pads[axis] - 1)
            fraction = jnp.minimum(reach - cells, 1.0)
            near, far = list(offset), list(offset)
            near[axis] = offset[axis] + sign * cells.astype(jnp.int32)
            far[axis] = near[axis] + sign
            return (1 - fraction) * shifted(zero, near) + fraction * shifted(zero, far)

        def with_chord(i: Array, radius: Array, best: Array) -> Array:
            column = [offsets[i, j] for j in range(last)]
            half_length = jnp.sqrt(jnp.maximum(radius**2 - lengths[i] ** 2, 0.0)) / steps[-1]
            half_cells = jnp.minimum(jnp.floor(half_length), pads[-1]).astype(jnp.int32)
            level = jnp.floor(jnp.log2((2 * half_cells + 1).astype(half_length.dtype)) + 1e-9)
            level = level.astype(jnp.int32)
            inside = jnp.maximum(
                shifted(level, [*column, -half_cells]),
                shifted(level, [*column, half_cells + 1 - (1 << level)]),
            )
            ends = jnp.maximum(
                at_end([*column, zero], last, half_length, -1),
                at_end([*column, zero], last, half_length, 1),
            )
            improved = jnp.maximum(best, jnp.maximum(inside, ends))
            return jnp.where(lengths[i] <= radius, improved, best)

        def outermost(radius: Array) -> Array:
            best = shifted(zero, [zero] * len(shape))
            for axis in range(last):
                for sign in (-1, 1):
                    best = jnp.maximum(
                        best, at_end([zero] * len(shape), axis, radius / steps[axis], sign)
                    )
            return best

        def next_chord(state: tuple[Array, tuple[Array, ...]]) -> tuple[Array, tuple[Array, ...]]:
            i, best = state
            return i + 1, tuple(with_chord(i, radii[k], best[k]) for k in ball_indices)

        def has_chords(state: tuple[Array, tuple[Array, ...]]) -> Array:
            i = state[0]
            within = lengths[jnp.minimum(i, len(lengths) - 1)] <= radii[-1]
            return (i < len(lengths)) & within

        start = (zero, tuple(outermost(radii[k]) for k in ball_indices))
        dilated = lax.while_loop(has_chords, next_chord, start)[1]
        return jnp.stack(dilated).reshape(len(dilated), -1)


class _BoxPositions(NamedTuple):
    """Where to read: places; for each axis the side below and the way to the next; all sides."""

    stencil: Any
    size_indices: Array  # (n, m)
    fractions: Array  # (n, m)
    sizes: Array


class BoxBackup(OptimisticBackup):
    """Two dimensions or more: U dilated by boxes, with several sides for each axis.

    Along one axis the maximum over an interval of the piecewise linear U is exact. Between nodes
    and between sizes it is linear. A table for every combination of sides would take too much
    memory for all periods. So U is stored, and dilated when it is read.
    """

    @property
    def _side_steps(self) -> int:
        return max(2, round(SIDE_STEPS ** (2 / self.grid.states.dimension)))

    def dilation_sizes(self, prediction: Prediction) -> Float[Array, "m K"]:
        assert prediction.sides is not None
        low, high = self.grid.states.bounds
        largest = jnp.minimum(jnp.max(prediction.sides, axis=0), jnp.asarray(high - low))
        return (
            largest[:, None] * (jnp.arange(self._side_steps + 1) / self._side_steps)[None, :] ** 2
        )

    def locate(self, prediction: Prediction, sizes: Array, lipschitz: Array) -> _BoxPositions:
        assert prediction.sides is not None
        pairs = [_interpolated_size(*axis) for axis in zip(sizes, prediction.sides.T, strict=True)]
        indices, fractions = (jnp.stack(columns, axis=1) for columns in zip(*pairs, strict=True))
        return _BoxPositions(self.grid.stencil(prediction.state), indices, fractions, sizes)

    def prepare(self, table: Float[Array, " M"], sizes: Array) -> Array:
        return table

    def read(self, prepared: Float[Array, " M"], positions: _BoxPositions) -> Float[Array, " n"]:
        dilated = prepared.reshape(1, *self.grid.lattice_shape)
        for axis in range(positions.sizes.shape[0]):
            dilated = self._dilated_along(dilated, axis, positions.sizes[axis])
        flat, table_size = dilated.reshape(-1), prepared.shape[0]
        count, m = self._side_steps + 1, positions.sizes.shape[0]
        total = jnp.zeros(positions.size_indices.shape[0], prepared.dtype)
        for corner in itertools.product((0, 1), repeat=m):
            table = jnp.zeros_like(positions.size_indices[:, 0])
            weight = jnp.ones_like(total)
            for j, side in enumerate(corner):
                table = table * count + positions.size_indices[:, j] + side
                weight = weight * (
                    positions.fractions[:, j] if side else 1 - positions.fractions[:, j]
                )
            index = positions.stencil.indices + (table * table_size)[:, None]
            total = total + weight * Stencil(index, positions.stencil.weights).read(flat)
        return total

    def _dilated_along(self, tables: Array, axis: int, sides: Array) -> Array:
        """Tables (T, *lattice) dilated along an axis by every side: (T·K, *lattice)."""
        count, step = tables.shape[axis + 1], float(self.grid.spacing[axis])
        periodic = axis in self.grid.states.periodic
        pad = count // 2 if periodic else count - 1
        rows = jnp.moveaxis(tables, axis + 1, -1)
        pad_widths = [(0, 0)] * (rows.ndim - 1) + [(pad, pad)]
        padded_rows = jnp.pad(rows, pad_widths, mode="wrap" if periodic else "edge")
        maxima = running_maxima(padded_rows, 2 * pad + 1)

        def shifted(level: Array, offset: Array) -> Array:
            zero = jnp.zeros((), jnp.int32)
            starts = (level, *[zero] * (rows.ndim - 1), jnp.asarray(pad, jnp.int32) + offset)
            return lax.dynamic_slice(maxima, starts, (1, *rows.shape))[0]

        def dilate(side: Array) -> Array:
            reach = jnp.minimum(side / step, float(pad))
            cells = jnp.floor(reach)
            half_cells = cells.astype(jnp.int32)
            level = jnp.floor(jnp.log2(2 * cells + 1) + 1e-9).astype(jnp.int32)
            best = jnp.maximum(
                shifted(level, -half_cells), shifted(level, half_cells + 1 - (1 << level))
            )
            fraction, zero = reach - cells, jnp.zeros((), jnp.int32)
            next_cells = jnp.minimum(half_cells + 1, pad)
            for sign in (-1, 1):
                near, far = shifted(zero, sign * half_cells), shifted(zero, sign * next_cells)
                best = jnp.maximum(best, (1 - fraction) * near + fraction * far)
            return jnp.moveaxis(best, -1, axis + 1)

        dilated = jnp.stack([dilate(side) for side in sides], axis=1)
        return dilated.reshape(-1, *tables.shape[1:])


def _interpolated_size(
    sizes: Float[Array, " K"], values: Float[Array, " n"]
) -> tuple[Array, Array]:
    """The index of the size below each value, and the fraction of the way to the next size."""
    index = jnp.clip(jnp.searchsorted(sizes, values) - 1, 0, sizes.shape[0] - 2)
    gap = sizes[index + 1] - sizes[index]
    fraction = (values - sizes[index]) / jnp.where(gap > 0, gap, 1.0)
    return index.astype(jnp.int32), jnp.clip(fraction, 0.0, 1.0)
