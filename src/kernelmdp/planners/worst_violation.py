"""The worst probability of a violation over every plausible MDP, rounded up.

For a table W̄ of the next period, which bounds the probability of a violation from each cell on,

    W_h(s, a) = sup over plausible p of E W̄_{h+1}(Π_S(p + ε)),

or 1 where (s, a) breaks a constraint itself. The cells of states that break a constraint have
W̄ = 1. A whole cell is bounded from its node: if the truth is Lipschitz in the state, the mean next
state of another state of the cell is not farther away than ``inflation``.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.constraints import Constraint, Violation
from kernelmdp.mdp.fallback import Fallback
from kernelmdp.mdp.model import Prediction
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.planners.optimism import SimplexBound
from kernelmdp.planners.optimistic_backup import OptimisticBackup
from kernelmdp.planners.state_cells import PARTS, StateCells
from kernelmdp.planners.upper_bound import (
    NodeRanges,
    block_maxima,
    covering_boxes,
    half_extents,
    range_maximum,
)


@dataclasses.dataclass(frozen=True)
class CellBound(OptimisticBackup):
    """A box of states: an upper bound of sup_p E W̄(Π_S(p + ε)) over the plausible means.

    Attributes:
        cells: The cells of the table, and the boxes of means.
    """

    cells: StateCells

    def locate(self, prediction: Prediction, sizes: Array, lipschitz: Array) -> NodeRanges:
        """Find the boxes of means that the plausible sets touch.

        Args:
            prediction: Predictions at n points.
            sizes: The inflation: half the sides of a box by which every set is widened, (m,).
            lipschitz: Not used.

        Returns:
            The boxes, for ``read``.
        """
        count, m = prediction.state.shape
        low = high = jnp.zeros((1, count, m))
        if not prediction.certain:
            extents, angles = half_extents(prediction, self.metric)
            if angles is None or m == 1:
                low, high = -extents[None], extents[None]
            else:
                low, high = (side * extents[None] for side in covering_boxes(angles))
        wider = sizes[None, None, :]
        return self.cells.ranges(prediction.state, low - wider, high + wider)

    def prepare(self, table: Float[Array, " N"], sizes: Array) -> Array:
        return block_maxima(self.cells.expected(table))

    def read(self, prepared: Array, positions: NodeRanges) -> Float[Array, " n"]:
        shape = tuple(n * t for n, t in zip(self.cells.shape, self.cells.turns, strict=True))

        def with_box(best: Array, ranges: NodeRanges) -> tuple[Array, None]:
            return jnp.maximum(best, range_maximum(prepared, ranges, shape)), None

        lowest = jnp.zeros(positions.first.shape[1])
        return jax.lax.scan(with_box, lowest, positions)[0]


@dataclasses.dataclass(frozen=True)
class TableBound(OptimisticBackup):
    """A table: an upper bound of sup_p ⟨p, W̄⟩ over the plausible distributions.

    Attributes:
        cells: One cell for each state.
    """

    cells: StateCells

    def locate(self, prediction: Prediction, sizes: Array, lipschitz: Array) -> Any:
        radius = jnp.zeros(prediction.state.shape[0])
        plausible = prediction._replace(radius=radius if prediction.certain else prediction.radius)
        return SimplexBound(self.grid, self.metric).locate(plausible, sizes, lipschitz)

    def prepare(self, table: Float[Array, " N"], sizes: Array) -> Array:
        return table

    def read(self, prepared: Array, positions: PyTree) -> Float[Array, " n"]:
        return SimplexBound(self.grid, self.metric).read(prepared, positions)


def violation_bound(grid: StateGrid, metric: tuple[float, ...]) -> CellBound | TableBound:
    """Choose how the worst probability is bounded.

    Args:
        grid: The grid of states.
        metric: The metric of the MDP, one number for each axis of the mean next state.

    Returns:
        The bound.

    Raises:
        ArgumentError: If the states are a finite set that is no table, or have too many axes.
    """
    m = grid.states.dimension
    if grid.noise.categorical:
        return TableBound(grid, metric, StateCells(grid, 1))
    if grid.states.finite or m not in PARTS:
        expected = f"a box of at most {max(PARTS)} coordinates, or a table, for plans on a grid"
        raise ArgumentError("constraints", expected, grid.states)
    return CellBound(grid, metric, StateCells(grid, PARTS[m]))


class CellFacts(NamedTuple):
    """What is known of every cell before learning.

    Attributes:
        broken: Whether some state of the cell may break a constraint, (N,).
        inside: Whether all of the cell is trusted, (N,).
        touched: Whether some of the cell is trusted, (N,).
    """

    broken: Bool[Array, " N"]
    inside: Bool[Array, " N"]
    touched: Bool[Array, " N"]


@functools.lru_cache(maxsize=16)
def cell_facts(cells: StateCells, violation: Violation, fallback: Fallback | None) -> CellFacts:
    """Find which cells break constraints, and which are trusted.

    Args:
        cells: The cells.
        violation: The constraints.
        fallback: The fallback with its trusted set, or None.

    Returns:
        The facts. A constraint without a slope, and a trusted set that is a function, are tried at
        the centre and the corners of a cell.
    """
    corners = jnp.asarray(cells.corners)
    rows = corners.reshape(-1, corners.shape[2])
    broken = jnp.zeros(corners.shape[1], bool)
    for constraint in violation.constraints:
        if not constraint.on_actions:
            values = constraint.values(rows, None)
            broken = broken | (_largest(constraint, values.reshape(corners.shape[:2]), cells) > 0)
    nothing = jnp.zeros(corners.shape[1], bool)
    if fallback is None or fallback.trusted is None:
        return CellFacts(broken, nothing, nothing)
    inside, touched = (
        fallback.trusted.covers(cells.corners),
        fallback.trusted.touches(cells.corners),
    )
    return CellFacts(broken, jnp.asarray(inside), jnp.asarray(touched))


def broken_points(
    cells: StateCells, violation: Violation, actions: Float[Array, "A q"]
) -> Bool[Array, "N A"]:
    """Find pairs of a cell and an action that may break a constraint on both.

    Args:
        cells: The cells.
        violation: The constraints.
        actions: The actions, (A, q).

    Returns:
        Whether some state of the cell may break a constraint with the action, (N, A).
    """
    corners = jnp.asarray(cells.corners)
    kinds, count, m = corners.shape
    broken = jnp.zeros((count, actions.shape[0]), bool)
    for constraint in violation.constraints:
        if constraint.on_actions:
            states = jnp.repeat(corners.reshape(-1, m), actions.shape[0], axis=0)
            tiled = jnp.tile(actions, (kinds * count, 1))
            values = constraint.values(states, tiled).reshape(kinds, -1)
            largest = _largest(constraint, values, cells).reshape(count, -1)
            broken = broken | (largest > 0)
    return broken


def _largest(
    constraint: Constraint, values: Float[Array, "k n"], cells: StateCells
) -> Float[Array, " n"]:
    """The largest value in each cell, from those at its centre and its corners."""
    if constraint.slope is None or constraint.is_limit:
        return jnp.max(values, axis=0)
    # The slope holds on each side of a seam, and the function may jump there. A state beyond the
    # seam is as near to a corner of its part as other states are to the centre.
    beyond = jnp.repeat(
        jnp.asarray(cells.beyond_seam), values.shape[1] // cells.corners.shape[1], axis=1
    )
    largest = jnp.maximum(values[0], jnp.max(jnp.where(beyond, values, -jnp.inf), axis=0))
    return largest + constraint.slope * float(np.linalg.norm(cells.half_sides))
