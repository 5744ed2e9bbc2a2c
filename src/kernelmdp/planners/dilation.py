"""U dilated by balls or boxes, for a ladder of sizes: the best plausible next state in two
dimensions or more (see ``optimism``)."""

import itertools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from kernelmdp.mdp.model import Prediction
from kernelmdp.planners.lipschitz_envelope import offsets_by_length, padded
from kernelmdp.planners.optimistic_backup import OptimisticBackup, running_maxima

RUNGS = 6  # of the ladder of radii
SIDE_RUNGS = 5  # of the ladders of two sides; more sides have fewer


class _Rung(NamedTuple):
    stencil: Any
    rung: Array
    share: Array


class Discs(OptimisticBackup):
    """Two dimensions or more: U dilated by balls, for a ladder of radii."""

    def ladder_for(self, prediction: Prediction) -> Array:
        assert prediction.radius is not None
        low, high = self.grid.states.bounds
        diameter = float(np.linalg.norm((high - low) / np.array(self.metric)))
        largest = jnp.minimum(jnp.max(prediction.radius), diameter)
        return largest * (jnp.arange(RUNGS + 1) / RUNGS) ** 2

    def locate(self, prediction: Prediction, ladder: Array, lipschitz: Array) -> _Rung:
        assert prediction.radius is not None
        return _Rung(self.grid.stencil(prediction.state), *_on_ladder(ladder, prediction.radius))

    def prepare(self, table: Float[Array, " M"], ladder: Array) -> Float[Array, "K M"]:
        levels, pads = self._range_maxima(table)
        return self._dilated(levels, pads, ladder)

    def read(self, prepared: Float[Array, "K M"], places: _Rung) -> Float[Array, " n"]:
        size = prepared.shape[1]
        flat = prepared.reshape(-1)
        index = places.stencil.where + (places.rung * size)[:, None]
        low = jnp.sum(flat[index] * places.stencil.weight, axis=1)
        high = jnp.sum(flat[index + size] * places.stencil.weight, axis=1)
        return low + places.share * (high - low)

    def _range_maxima(self, table: Array) -> tuple[Array, tuple[int, ...]]:
        """Running maxima over 2^k nodes of the last axis, of the padded table."""
        values, pads = padded(table, self.grid)
        return running_maxima(values, self.grid.lattice_shape[-1] * 2 + 1), pads

    def _dilated(self, levels: Array, pads: tuple[int, ...], ladder: Array) -> Array:
        """max of U over balls, as unions of chords along the last axis through nodes.

        On a chord U is piecewise linear: its maximum is at a node or at an end, both of which are
        looked at; so are the ball's outermost points along the other axes. All radii are treated
        in one loop over chords, nearest first, until the largest ball has no more.
        """
        shape = self.grid.lattice_shape
        steps = self.grid.spacing / np.array(self.metric)
        offsets, lengths = offsets_by_length(pads[:-1], steps[:-1])
        rungs, last = range(ladder.shape[0]), len(shape) - 1
        zero = jnp.zeros((), jnp.int32)

        def shifted(level: Array, offset: list[Array]) -> Array:
            starts = [jnp.asarray(pad, jnp.int32) + o for pad, o in zip(pads, offset, strict=True)]
            return lax.dynamic_slice(levels, (level, *starts), (1, *shape))[0]

        def end(offset: list[Array], axis: int, reach: Array, sign: int) -> Array:
            """U at a place between two nodes, ``reach`` cells from the offset along an axis."""
            whole = jnp.minimum(jnp.floor(reach), pads[axis] - 1)
            share = jnp.minimum(reach - whole, 1.0)
            near, far = list(offset), list(offset)
            near[axis] = offset[axis] + sign * whole.astype(jnp.int32)
            far[axis] = near[axis] + sign
            return (1 - share) * shifted(zero, near) + share * shifted(zero, far)

        def chord(i: Array, radius: Array, best: Array) -> Array:
            column = [offsets[i, j] for j in range(last)]
            left = jnp.sqrt(jnp.maximum(radius**2 - lengths[i] ** 2, 0.0)) / steps[-1]
            half = jnp.minimum(jnp.floor(left), pads[-1]).astype(jnp.int32)
            level = jnp.floor(jnp.log2((2 * half + 1).astype(left.dtype)) + 1e-9)
            level = level.astype(jnp.int32)
            inside = jnp.maximum(
                shifted(level, [*column, -half]), shifted(level, [*column, half + 1 - (1 << level)])
            )
            ends = jnp.maximum(
                end([*column, zero], last, left, -1), end([*column, zero], last, left, 1)
            )
            found = jnp.maximum(best, jnp.maximum(inside, ends))
            return jnp.where(lengths[i] <= radius, found, best)

        def outermost(radius: Array) -> Array:
            best = shifted(zero, [zero] * len(shape))
            for axis in range(last):
                for sign in (-1, 1):
                    best = jnp.maximum(
                        best, end([zero] * len(shape), axis, radius / steps[axis], sign)
                    )
            return best

        def one(state: tuple[Array, tuple[Array, ...]]) -> tuple[Array, tuple[Array, ...]]:
            i, found = state
            return i + 1, tuple(chord(i, ladder[k], found[k]) for k in rungs)

        def more(state: tuple[Array, tuple[Array, ...]]) -> Array:
            i = state[0]
            within = lengths[jnp.minimum(i, len(lengths) - 1)] <= ladder[-1]
            return (i < len(lengths)) & within

        begin = (zero, tuple(outermost(ladder[k]) for k in rungs))
        found = lax.while_loop(more, one, begin)[1]
        return jnp.stack(found).reshape(len(found), -1)


class _Sides(NamedTuple):
    stencil: Any
    rungs: Array  # (n, m)
    shares: Array  # (n, m)
    ladder: Array


class Boxes(OptimisticBackup):
    """Two dimensions or more: U dilated by boxes whose sides are on a ladder of their own.

    Along one axis the maximum over an interval of the piecewise linear U is exact; between nodes
    and rungs it is linear. A table for every combination of rungs is too much to keep for every
    period, so U is kept and dilated as it is read.
    """

    @property
    def _rungs(self) -> int:
        return max(2, round(SIDE_RUNGS ** (2 / self.grid.states.dimension)))

    def ladder_for(self, prediction: Prediction) -> Float[Array, "m K"]:
        assert prediction.sides is not None
        low, high = self.grid.states.bounds
        largest = jnp.minimum(jnp.max(prediction.sides, axis=0), jnp.asarray(high - low))
        return largest[:, None] * (jnp.arange(self._rungs + 1) / self._rungs)[None, :] ** 2

    def locate(self, prediction: Prediction, ladder: Array, lipschitz: Array) -> _Sides:
        assert prediction.sides is not None
        pairs = [_on_ladder(*own) for own in zip(ladder, prediction.sides.T, strict=True)]
        rungs, shares = (jnp.stack(own, axis=1) for own in zip(*pairs, strict=True))
        return _Sides(self.grid.stencil(prediction.state), rungs, shares, ladder)

    def prepare(self, table: Float[Array, " M"], ladder: Array) -> Array:
        return table

    def read(self, prepared: Float[Array, " M"], places: _Sides) -> Float[Array, " n"]:
        dilated = prepared.reshape(1, *self.grid.lattice_shape)
        for axis in range(places.ladder.shape[0]):
            dilated = self._along(dilated, axis, places.ladder[axis])
        flat, size = dilated.reshape(-1), prepared.shape[0]
        count, m = self._rungs + 1, places.ladder.shape[0]
        total = jnp.zeros(places.rungs.shape[0], prepared.dtype)
        for corner in itertools.product((0, 1), repeat=m):
            table = jnp.zeros_like(places.rungs[:, 0])
            share = jnp.ones_like(total)
            for j, side in enumerate(corner):
                table = table * count + places.rungs[:, j] + side
                share = share * (places.shares[:, j] if side else 1 - places.shares[:, j])
            index = places.stencil.where + (table * size)[:, None]
            total = total + share * jnp.sum(flat[index] * places.stencil.weight, axis=1)
        return total

    def _along(self, tables: Array, axis: int, ladder: Array) -> Array:
        """Tables (T, *lattice) dilated along an axis for every rung: (T·K, *lattice)."""
        count, step = tables.shape[axis + 1], float(self.grid.spacing[axis])
        around = axis in self.grid.states.periodic
        pad = count // 2 if around else count - 1
        rows = jnp.moveaxis(tables, axis + 1, -1)
        widths = [(0, 0)] * (rows.ndim - 1) + [(pad, pad)]
        wide = jnp.pad(rows, widths, mode="wrap" if around else "edge")
        maxima = running_maxima(wide, 2 * pad + 1)

        def shifted(level: Array, offset: Array) -> Array:
            zero = jnp.zeros((), jnp.int32)
            starts = (level, *[zero] * (rows.ndim - 1), jnp.asarray(pad, jnp.int32) + offset)
            return lax.dynamic_slice(maxima, starts, (1, *rows.shape))[0]

        def dilate(side: Array) -> Array:
            reach = jnp.minimum(side / step, float(pad))
            whole = jnp.floor(reach)
            half = whole.astype(jnp.int32)
            level = jnp.floor(jnp.log2(2 * whole + 1) + 1e-9).astype(jnp.int32)
            best = jnp.maximum(shifted(level, -half), shifted(level, half + 1 - (1 << level)))
            share, zero = reach - whole, jnp.zeros((), jnp.int32)
            farther = jnp.minimum(half + 1, pad)
            for sign in (-1, 1):
                near, far = shifted(zero, sign * half), shifted(zero, sign * farther)
                best = jnp.maximum(best, (1 - share) * near + share * far)
            return jnp.moveaxis(best, -1, axis + 1)

        found = jnp.stack([dilate(side) for side in ladder], axis=1)
        return found.reshape(-1, *tables.shape[1:])


def _on_ladder(ladder: Float[Array, " K"], sizes: Float[Array, " n"]) -> tuple[Array, Array]:
    """The rung below each size, and the share of the way to the next."""
    rung = jnp.clip(jnp.searchsorted(ladder, sizes) - 1, 0, ladder.shape[0] - 2)
    gap = ladder[rung + 1] - ladder[rung]
    share = (sizes - ladder[rung]) / jnp.where(gap > 0, gap, 1.0)
    return rung.astype(jnp.int32), jnp.clip(share, 0.0, 1.0)
