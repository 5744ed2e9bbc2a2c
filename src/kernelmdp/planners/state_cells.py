"""Cells around the nodes of a grid, and what noisy next states are worth at most.

A table W̄ has one number for each cell: an upper bound of a function W ≥ 0 over the whole cell. For
a mean next state p, E W(Π_S(p + ε)) ≤ Σ_c W̄(c) P(Π_S(p + ε) ∈ c). Means are sorted into small
boxes I, and along each axis P(p + ε ∈ c) is replaced by its largest value over p ∈ I. For symmetric
unimodal noise that is at the p nearest to the centre of the cell. So nothing is rounded down.
"""

import dataclasses
import functools
import itertools
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelmdp.mdp.state_grid import LATTICE_MARGIN, StateGrid
from kernelmdp.planners.upper_bound import NodeRanges

#: Parts into which a cell is cut along each axis to sort means, by the number of axes. With more
#: parts less is rounded up, and tables are larger.
PARTS = {1: 8, 2: 2, 3: 1}
#: Sets are widened by this share of a part, which allows for round-off.
ROUNDING = 1e-9


@dataclasses.dataclass(frozen=True)
class StateCells:
    """Cells around the nodes of a grid over a box, and boxes of mean next states.

    Attributes:
        grid: The grid. Its noise is that of the next state.
        parts: The number of parts of a cell along each axis, into which means are sorted.
    """

    grid: StateGrid
    parts: int

    @property
    def half_sides(self) -> np.ndarray:
        """Half the sides of a cell, (m,). Cells of a finite set have no extent."""
        m = self.grid.states.dimension
        return np.zeros(m) if self.grid.states.finite else self.grid.spacing / 2

    @functools.cached_property
    def corners(self) -> np.ndarray:
        """The centre and the corners of every cell inside the state space, (1 + c, N, m).

        A cell that crosses the seam of a periodic axis has two parts, one at each end of the axis.
        The corners are those of both. So c is 2 for each axis, or 4 for a periodic one, multiplied.
        """
        nodes = self.grid.nodes
        if self.grid.states.finite:
            return nodes[None]
        ends = [self._axis_ends(j) for j in range(nodes.shape[1])]
        return np.stack([nodes, *(np.stack(each, axis=1) for each in itertools.product(*ends))])

    def _axis_ends(self, j: int) -> list[np.ndarray]:
        """Coordinates of the corners of all cells along an axis, each (N,)."""
        low, high = (float(bound[j]) for bound in self.grid.states.bounds)
        first, last = (self.grid.nodes[:, j] + sign * self.half_sides[j] for sign in (-1, 1))
        if j not in self.grid.states.periodic:
            return [np.maximum(first, low), np.minimum(last, high)]
        below, above = first < low, last > high
        first = np.where(below, first + (high - low), first)
        last = np.where(above, last - (high - low), last)
        crosses = below | above
        return [first, last, np.where(crosses, low, first), np.where(crosses, high, last)]

    @functools.cached_property
    def beyond_seam(self) -> np.ndarray:
        """Which of the corners are beyond a seam, as seen from the centre, (1 + c, N)."""
        distances = np.abs(self.corners - self.corners[:1])
        return np.asarray((distances > self.half_sides * (1 + ROUNDING)).any(axis=2))

    def index(self, states: Float[Array, "n m"]) -> Int[Array, " n"]:
        """Find the cells of states.

        Args:
            states: The states, (n, m).

        Returns:
            The numbers of the cells, (n,).
        """
        if self.grid.states.finite:
            nodes = jnp.asarray(self.grid.nodes)
            distances = jnp.sum((states[:, None, :] - nodes[None]) ** 2, axis=2)
            return jnp.argmin(distances, axis=1).astype(jnp.int32)
        flat = jnp.zeros(states.shape[0], jnp.int32)
        for j, (axis, count) in enumerate(zip(self.grid.axes, self.grid.counts, strict=True)):
            place = jnp.floor((states[:, j] - axis[0]) / float(self.grid.spacing[j]) + 0.5)
            place = place.astype(jnp.int32)
            periodic = j in self.grid.states.periodic
            flat = flat * count + (place % count if periodic else jnp.clip(place, 0, count - 1))
        return flat

    @functools.cached_property
    def edges(self) -> list[np.ndarray]:
        """Edges of the boxes of means along each axis. Beyond them a box has no end."""
        deviations = self.grid.noise.standard_deviations(self.grid.states.dimension)
        edges = []
        for j, (axis, step) in enumerate(zip(self.grid.axes, self.grid.spacing, strict=True)):
            margin = min(math.ceil(LATTICE_MARGIN * deviations[j] / step), len(axis))
            pad = 0 if j in self.grid.states.periodic else margin
            count = (len(axis) + 2 * pad) * self.parts
            edges.append(axis[0] - step / 2 - pad * step + step / self.parts * np.arange(count + 1))
        return edges

    @functools.cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of boxes of means along each axis. Periodic axes have no boxes without end."""
        periodic = self.grid.states.periodic
        return tuple(len(e) - 1 if j in periodic else len(e) + 1 for j, e in enumerate(self.edges))

    @functools.cached_property
    def turns(self) -> tuple[int, ...]:
        """How often a table is repeated along each axis: three times around a circle."""
        return tuple(3 if j in self.grid.states.periodic else 1 for j in range(len(self.shape)))

    @functools.cached_property
    def probabilities(self) -> list[np.ndarray]:
        """For each axis the largest P(p + ε ∈ c) over boxes of means, (boxes, cells)."""
        sizes = self.grid.noise.axis_sizes(self.grid.states.dimension)
        return [self._axis_probabilities(j, float(size)) for j, size in enumerate(sizes)]

    def _axis_probabilities(self, j: int, size: float) -> np.ndarray:
        axis, step, edges = self.grid.axes[j], float(self.grid.spacing[j]), self.edges[j]
        low, high = edges[:-1, None], edges[1:, None]
        if j in self.grid.states.periodic:
            circle = step * len(axis)
            reach = math.ceil((circle + LATTICE_MARGIN * size) / circle) + 1 if size else 1
            turns = circle * np.arange(-reach, reach + 1)
            by_turn = [self._interval(axis + turn, step, low, high, size) for turn in turns]
            if size:
                # Turns that are farther away: all of their probability, in every cell.
                beyond = 2 * self.grid.noise.distribution(np.array(-(reach - 0.5) * circle / size))
                by_turn.append(np.full_like(by_turn[0], float(beyond)))
            return np.minimum(np.sum(by_turn, axis=0), 1.0)
        low = np.concatenate([[[-np.inf]], edges[:, None]])
        high = np.concatenate([edges[:, None], [[np.inf]]])
        shares = self._interval(axis, step, low, high, size)
        # Outcomes beyond the box are clipped into its first and last cells.
        first, last = axis[0] + step / 2, axis[-1] - step / 2
        if size:
            shares[:, 0] = self.grid.noise.distribution((first - low[:, 0]) / size)
            shares[:, -1] = self.grid.noise.distribution((high[:, 0] - last) / size)
        else:
            shares[:, 0], shares[:, -1] = low[:, 0] < first - step / 4 / self.parts, 0.0
            shares[:, -1] = high[:, 0] > last + step / 4 / self.parts
        return shares

    def _interval(
        self, centres: np.ndarray, step: float, low: np.ndarray, high: np.ndarray, size: float
    ) -> np.ndarray:
        """The largest P(p + ε ∈ centre ± step/2) over p between low and high."""
        if not size:  # a box of means lies inside one cell
            slack = step / 4 / self.parts
            return np.asarray(
                (low > centres - step / 2 - slack) & (high < centres + step / 2 + slack), float
            )
        nearest = np.clip(centres[None, :], low, high)
        distance = np.abs(centres[None, :] - nearest)
        # Both ends are on the side of the smaller tail, where differences lose no digits.
        upper = self.grid.noise.distribution((step / 2 - distance) / size)
        return np.asarray(upper - self.grid.noise.distribution((-step / 2 - distance) / size))

    def expected(self, table: Float[Array, " N"]) -> Float[Array, "..."]:
        """Bound E W̄(Π_S(p + ε)) over each box of means.

        Args:
            table: W̄ of the cells, at least 0, (N,).

        Returns:
            The bounds, with the ``shape`` and ``turns`` of the boxes.
        """
        lowest, highest = jnp.min(table), jnp.max(table)
        bound = (table - lowest).reshape(self.grid.counts)
        for j, matrix in enumerate(self.probabilities):
            product = jnp.tensordot(jnp.asarray(matrix, table.dtype), bound, axes=(1, j))
            bound = jnp.moveaxis(product, 0, j)
        return jnp.tile(jnp.minimum(lowest + bound, highest), self.turns)

    def ranges(
        self, centres: Float[Array, "n m"], low: Float[Array, "K n m"], high: Float[Array, "K n m"]
    ) -> NodeRanges:
        """Find the boxes of means that sets touch.

        Args:
            centres: The centres of the sets, (n, m).
            low: Lower ends of the K boxes that cover each set, relative to its centre.
            high: Their upper ends.

        Returns:
            The first and the last box along each axis, (K, n, m).
        """
        first, last = [], []
        for j, edges in enumerate(self.edges):
            count, step = len(edges) - 1, float(edges[1] - edges[0])
            place = ((centres[:, j] - edges[0]) / step)[None, :]
            below, above = low[:, :, j] / step - ROUNDING, high[:, :, j] / step + ROUNDING
            if j in self.grid.states.periodic:
                place = jnp.mod(place, count) + count
                below, above = (jnp.clip(end, -count / 2, count / 2) for end in (below, above))
                top = 3 * count - 1
            else:
                place, top = place + 1, count + 1  # the box without end comes first
            first.append(jnp.clip(jnp.floor(place + below), 0, top))
            last.append(jnp.clip(jnp.floor(place + above), 0, top))
        return NodeRanges(*(jnp.stack(side, axis=-1).astype(jnp.int32) for side in (first, last)))
