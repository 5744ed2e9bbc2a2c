"""A guaranteed upper bound of U over a set of plausible next states, for two dimensions or more.

The searches of ``optimism`` can miss the best plausible state by a part of a cell. ``UpperBound``
cannot. On the lattice, U is multilinear in each cell, so two numbers bound its maximum over a set:

- The set is covered by boxes, and each box is rounded outwards to whole cells. The maximum over
  whole cells is at a node. A table of maxima over blocks of 2^k nodes gives it in a few reads.
- U at the centre, plus the half-extents of the set times the steepest slopes of U in the cells that
  the set touches. This is close for small sets, and exact for a single point.

The smaller one is used. The price is optimism about up to one cell more along each axis, and more
for a ball that a few boxes cover. It vanishes with the width of the set.
"""

import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelmdp.mdp.model import Prediction
from kernelmdp.planners.optimistic_backup import OptimisticBackup, running_maxima

#: Boxes that cover a ball or an ellipsoid: slabs along the first axis. With eight of them a corner
#: of a box lies at most 18 % outside a disc. More boxes fit better and take longer.
COVERING_BOXES = 8


class NodeRanges(NamedTuple):
    """First and last node of boxes along each axis.

    Attributes:
        first: Indices of the first nodes, (..., m).
        last: Indices of the last nodes, (..., m).
    """

    first: Int[Array, "*b m"]
    last: Int[Array, "*b m"]


class UpperBoundPositions(NamedTuple):
    """Where to read.

    Attributes:
        centre: The stencil of the centres.
        boxes: Node ranges of the covering boxes, (K, n, m).
        bounding: Node ranges of the bounding boxes, (n, m).
        extents: Half-extents of the sets along each axis, in cells, (n, m).
        round: Whether the sets are balls, so that slopes add up as a Euclidean norm.
    """

    centre: Any
    boxes: NodeRanges
    bounding: NodeRanges
    extents: Float[Array, "n m"]
    round: Array


class UpperBound(OptimisticBackup):
    """An upper bound of the maximum of U over balls, ellipsoids or boxes."""

    def locate(self, prediction: Prediction, sizes: Array, lipschitz: Array) -> UpperBoundPositions:
        extents, angles = half_extents(prediction, self.metric)
        if angles is None:
            low, high = -jnp.ones((1, *extents.shape)), jnp.ones((1, *extents.shape))
        else:
            low, high = covering_boxes(angles)
        scaled = extents[None, :, :]
        boxes = self._node_ranges(prediction.state, low * scaled, high * scaled)
        bounding = self._node_ranges(prediction.state, -scaled, scaled)
        return UpperBoundPositions(
            self.grid.stencil(prediction.state),
            boxes,
            jax.tree.map(lambda leaf: leaf[0], bounding),
            extents / jnp.asarray(self.grid.spacing)[None, :],
            jnp.asarray(prediction.radius is not None),
        )

    def prepare(self, table: Float[Array, " M"], sizes: Array) -> Float[Array, " M"]:
        return table

    def read(
        self, prepared: Float[Array, " M"], positions: UpperBoundPositions
    ) -> Float[Array, " n"]:
        values = self._unrolled(prepared)
        maxima = block_maxima(values)

        def with_box(best: Array, ranges: NodeRanges) -> tuple[Array, None]:
            return jnp.maximum(best, range_maximum(maxima, ranges, values.shape)), None

        lowest = jnp.full(positions.extents.shape[0], -jnp.inf, prepared.dtype)
        over_boxes, _ = jax.lax.scan(with_box, lowest, positions.boxes)
        rises = [
            range_maximum(block_maxima(_steepest(values, j)), positions.bounding, values.shape)
            for j in range(values.ndim)
        ]
        changes = positions.extents * jnp.stack(rises, axis=1)
        change = jnp.where(
            positions.round, jnp.linalg.norm(changes, axis=1), jnp.sum(changes, axis=1)
        )
        return jnp.minimum(over_boxes, positions.centre.read(prepared) + change)

    def _node_ranges(self, centres: Array, low: Array, high: Array) -> NodeRanges:
        """Nodes of all cells that boxes (K, n, m) around the centres (n, m) touch."""
        origin, spacing = self.grid.lattice[0], self.grid.spacing
        first, last = [], []
        for j, count in enumerate(self.grid.lattice_shape):
            centre = ((centres[:, j] - origin[j]) / spacing[j])[None, :]
            ends = [offset[:, :, j] / spacing[j] for offset in (low, high)]
            if j in self.grid.states.periodic:
                # A circle is unrolled to three turns. Half a turn each way covers it.
                centre = jnp.mod(centre, count) + count
                ends = [jnp.clip(end, -count / 2, count / 2) for end in ends]
                top = 3 * count - 1
            else:
                top = count - 1
            first.append(jnp.clip(jnp.floor(centre + ends[0]), 0, top))
            last.append(jnp.clip(jnp.ceil(centre + ends[1]), 0, top))
        return NodeRanges(*(jnp.stack(side, axis=-1).astype(jnp.int32) for side in (first, last)))

    def _unrolled(self, table: Float[Array, " M"]) -> Array:
        """The table with one axis for each axis of the states, periodic ones three times."""
        turns = [
            3 if j in self.grid.states.periodic else 1 for j in range(len(self.grid.lattice_shape))
        ]
        return jnp.tile(table.reshape(self.grid.lattice_shape), turns)


def half_extents(
    prediction: Prediction, metric: tuple[float, ...]
) -> tuple[Float[Array, "n m"], Float[Array, "n k"] | None]:
    """Return the half-extents of sets of plausible next states, and how they lean.

    Args:
        prediction: Predictions at n points, with a width.
        metric: The metric of the MDP, one number for each axis.

    Returns:
        Half-extents (n, m), and angles φ_j, (n, m − 1), with cos φ_j the correlation of axes 0 and
        j. Boxes have no angles.
    """
    axes = jnp.asarray(metric)[None, :]
    if prediction.sides is not None:
        return prediction.sides, None
    if prediction.radius is not None:
        extents = prediction.radius[:, None] * axes
        return extents, jnp.full_like(extents[:, 1:], np.pi / 2)
    assert prediction.root is not None
    extents = jnp.linalg.norm(prediction.root, axis=2)
    products = jnp.einsum("nk,njk->nj", prediction.root[:, 0], prediction.root[:, 1:])
    lengths = extents[:, :1] * extents[:, 1:]
    cosines = jnp.where(lengths > 0, products / jnp.where(lengths > 0, lengths, 1.0), 0.0)
    return extents, jnp.arccos(jnp.clip(cosines, -1.0, 1.0))


def covering_boxes(angles: Float[Array, "n k"]) -> tuple[Array, Array]:
    """Cover ellipsoids by boxes, slab by slab along the first axis.

    A point of an ellipsoid with half-extents a has x_0 = a_0 cos θ. Then x_j/a_j lies between
    cos(θ + φ_j) and cos(θ − φ_j), where cos φ_j is the correlation of axes 0 and j. Slab i has θ
    between π i/K and π (i + 1)/K.

    Args:
        angles: φ_j for axes j = 1, 2, …, (n, m − 1).

    Returns:
        Lower and upper ends of the boxes in units of the half-extents, (K, n, m) each.

    >>> low, high = covering_boxes(jnp.full((1, 1), jnp.pi / 2))  # a disc
    >>> bool((high[:, 0, 0] > low[:, 0, 0]).all()), low.shape
    (True, (8, 1, 2))
    """
    edges = np.pi * np.arange(COVERING_BOXES + 1) / COVERING_BOXES
    start, end = (jnp.asarray(e)[:, None, None] for e in (edges[:-1], edges[1:]))
    phi = angles[None, :, :]
    highest = jnp.maximum(jnp.cos(start - phi), jnp.cos(end - phi))
    high = jnp.where((start <= phi) & (phi <= end), 1.0, highest)
    lowest = jnp.minimum(jnp.cos(start + phi), jnp.cos(end + phi))
    low = jnp.where((start <= np.pi - phi) & (np.pi - phi <= end), -1.0, lowest)
    shape = (COVERING_BOXES, angles.shape[0], 1)
    first = [jnp.broadcast_to(jnp.cos(edge), shape) for edge in (end, start)]
    return (
        jnp.concatenate([first[0], low], axis=2),
        jnp.concatenate([first[1], high], axis=2),
    )


def block_maxima(values: Array) -> Array:
    """Compute maxima over all blocks of 2^k_1 × … × 2^k_m nodes.

    Args:
        values: Values at the nodes, (n_1, …, n_m).

    Returns:
        Maxima, (K_1, …, K_m, n_1, …, n_m). Blocks are counted from their first node.
    """
    maxima = values
    for axis in range(values.ndim):
        rows = jnp.moveaxis(maxima, axis - values.ndim, -1)
        levels = running_maxima(rows, values.shape[axis])  # (K, ..., n)
        maxima = jnp.moveaxis(jnp.moveaxis(levels, 0, axis), -1, 2 * axis + 1)
    return maxima


def range_maximum(maxima: Array, ranges: NodeRanges, shape: tuple[int, ...]) -> Float[Array, " n"]:
    """Compute the maximum over ranges of nodes, as the maximum of 2^m blocks that cover each.

    Args:
        maxima: The maxima of ``block_maxima``.
        ranges: Ranges of n boxes.
        shape: Number of nodes along each axis.

    Returns:
        The maxima, (n,).
    """
    lengths = (ranges.last - ranges.first + 1).astype(maxima.dtype)
    levels = jnp.floor(jnp.log2(lengths) + 1e-9).astype(jnp.int32)
    starts = (ranges.first, ranges.last - (1 << levels) + 1)
    flat, m = maxima.reshape(-1), len(shape)
    best = jnp.full(lengths.shape[0], -jnp.inf, maxima.dtype)
    for corner in itertools.product((0, 1), repeat=m):
        index = jnp.zeros(lengths.shape[0], jnp.int32)
        for j in range(m):
            index = index * maxima.shape[j] + levels[:, j]
        for j, side in enumerate(corner):
            index = index * shape[j] + starts[side][:, j]
        best = jnp.maximum(best, flat[index])
    return best


def _steepest(values: Array, axis: int) -> Array:
    """For each node the steepest rise along an axis, per cell, on the edges at the node.

    A derivative along the axis is a mean of the rises on parallel edges of the cell. Each of them
    has its ends among the cell's nodes.
    """
    rises = jnp.abs(jnp.diff(values, axis=axis))
    zero = jnp.zeros_like(jax.lax.slice_in_dim(values, 0, 1, axis=axis))
    before = jnp.concatenate([zero, rises], axis=axis)
    after = jnp.concatenate([rises, zero], axis=axis)
    return jnp.maximum(before, after)
