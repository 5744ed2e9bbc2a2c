"""The best plausible next state: the maximum of U over the set of plausible ones (note D1).

Each backup has three steps. ``locate`` finds, once an episode for all state-action pairs, where to
read tables of the lattice. ``prepare`` turns U of one period into a table. ``read`` reads that
table at those places. No step depends on how the widths were computed.

- ``PlainBackup``: no width; U at the mean.
- ``IntervalBackup``: one dimension; the exact maximum of the piecewise linear U over an interval,
  by a sparse table of range maxima.
- ``BallBackup``: two dimensions or more; U dilated by balls of several radii, interpolated in place
  and radius. At a node, for one of the radii, it is the maximum over all chords through nodes.
- ``BoxBackup``: two dimensions or more; U dilated along one axis after the other, for several
  sides.
- ``EllipsoidBackup``: an ellipsoid in two dimensions or more; the best of finitely many members.
- ``SimplexBackup``: tables; the best distribution in the ball, by Newton's method in a bracket.
- ``BonusBackup``: U at the mean plus L times the radius (note D3), an upper bound without a search.
- ``TableBonusBackup``: the same for tables.

- ``UpperBound``: two dimensions or more; a guaranteed upper bound of the maximum on the lattice.

The searched maxima over balls, boxes and ellipsoids are accurate up to the lattice and not rounded
up, so plans can be short of optimism. With the optimism "upper" they cannot.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.model import Prediction
from kernelmdp.mdp.noise import onto_simplex
from kernelmdp.mdp.state_grid import StateGrid, Stencil, TablePositions
from kernelmdp.planners.dilation import BallBackup, BoxBackup
from kernelmdp.planners.divergence_backup import DivergenceBackup
from kernelmdp.planners.optimistic_backup import OptimisticBackup, running_maxima
from kernelmdp.planners.upper_bound import UpperBound

#: Iterations that narrow the bracket of the multiplier in ``SimplexBackup``. More are more exact.
MULTIPLIER_ITERATIONS = 16
#: Largest multiplier in ``SimplexBackup``, for values scaled to [0, 1]. Its inverse is the least.
LARGEST_MULTIPLIER = 1e6
#: Lower limit of denominators, so that none is 0. It is below all numbers that occur otherwise.
TINY = 1e-300
#: Directions of the members of an ellipsoid: all of them in two dimensions, as many for each axis
#: in more. More directions find better members and take longer.
DIRECTIONS = 16
#: Distances of these members from the centre, as shares of the way to the surface.
SHELLS = (0.5, 1.0)


class PlainBackup(OptimisticBackup):
    """There is one plausible next state only."""

    def locate(self, prediction: Prediction, sizes: Array, lipschitz: Array) -> TablePositions:
        return self.grid.stencil(prediction.state)

    def prepare(self, table: Float[Array, " M"], sizes: Array) -> Array:
        return table

    def read(self, prepared: Array, positions: TablePositions) -> Float[Array, " n"]:
        return positions.read(prepared)


class BonusBackup(OptimisticBackup):
    """Adds a bonus for the radius ρ: W(Π μ) + L ρ."""

    def locate(
        self, prediction: Prediction, sizes: Array, lipschitz: Array
    ) -> tuple[TablePositions, Array]:
        assert prediction.radius is not None
        bonus = jnp.where(prediction.radius > 0, lipschitz * prediction.radius, 0.0)
        return self.grid.stencil(prediction.state), bonus

    def prepare(self, table: Float[Array, " M"], sizes: Array) -> Array:
        return table

    def read(self, prepared: Array, positions: tuple[TablePositions, Array]) -> Float[Array, " n"]:
        return positions[0].read(prepared) + positions[1]


class TableBonusBackup(OptimisticBackup):
    """Tables: ⟨p, V⟩ + ρ|V − mean(V)|, at most max V.

    This is the maximum over the ball without the constraint that probabilities are ≥ 0. So it is an
    upper bound of ``SimplexBackup``, for tables that are too large for a search.
    """

    def locate(self, prediction: Prediction, sizes: Array, lipschitz: Array) -> tuple[Array, Array]:
        assert prediction.radius is not None
        return onto_simplex(prediction.state), prediction.radius * self.metric[0]

    def prepare(self, table: Float[Array, " M"], sizes: Array) -> tuple[Array, Array]:
        return table, jnp.linalg.norm(table - jnp.mean(table))

    def read(
        self, prepared: tuple[Array, Array], positions: tuple[Array, Array]
    ) -> Float[Array, " n"]:
        (table, slope), (means, radius) = prepared, positions
        bonus = jnp.where(slope > 0, radius * slope, 0.0)
        return jnp.minimum(means @ table + bonus, jnp.max(table))


class _IntervalPositions(NamedTuple):
    """Where to read: both ends, and the nodes between them as two windows of 2^level nodes."""

    ends: Stencil  # of both ends, (n, 4)
    first: Array
    last: Array
    level: Array
    empty: Array


class IntervalBackup(OptimisticBackup):
    """One dimension: the largest value at the two ends and at the nodes between them."""

    def locate(self, prediction: Prediction, sizes: Array, lipschitz: Array) -> _IntervalPositions:
        assert prediction.radius is not None
        count, step = self.grid.lattice_shape[0], float(self.grid.spacing[0])
        origin = float(self.grid.lattice[0, 0])
        centre = (prediction.state[:, 0] - origin) / step
        reach = prediction.radius * self.metric[0] / step
        top = count - 1
        # A circle is unrolled to three turns. An interval of half a turn each way covers it.
        if self.grid.states.periodic:
            centre, reach, top = (
                jnp.mod(centre, count) + count,
                jnp.minimum(reach, count / 2),
                (3 * count - 1),
            )
        low, high = (jnp.clip(centre + sign * reach, 0, top) for sign in (-1, 1))
        first, last = jnp.ceil(low).astype(jnp.int32), jnp.floor(high).astype(jnp.int32)
        length = jnp.maximum(last - first + 1, 1)
        level = jnp.floor(jnp.log2(length.astype(centre.dtype)) + 1e-9).astype(jnp.int32)
        index, weight = [], []
        for end in (low, high):
            base = jnp.clip(jnp.floor(end), 0, top - 1)
            fraction = end - base
            index += [base.astype(jnp.int32), base.astype(jnp.int32) + 1]
            weight += [1 - fraction, fraction]
        ends = Stencil(jnp.stack(index, axis=1), jnp.stack(weight, axis=1))
        first = jnp.minimum(first, top)
        return _IntervalPositions(ends, first, jnp.maximum(last, 0), level, last < first)

    def prepare(self, table: Float[Array, " M"], sizes: Array) -> Float[Array, "levels K"]:
        """Compute running maxima S[k, i] = max U[i .. i + 2^k − 1].

        Args:
            table: U on the lattice, (M,).
            sizes: Not used.

        Returns:
            S, with K = M, or K = 3M on a circle.
        """
        row = jnp.tile(table, 3) if self.grid.states.periodic else table
        return running_maxima(row, row.shape[0])

    def read(
        self, prepared: Float[Array, "levels M"], positions: _IntervalPositions
    ) -> Float[Array, " n"]:
        ends = prepared[0][positions.ends.indices] * positions.ends.weights
        best = jnp.maximum(ends[:, 0] + ends[:, 1], ends[:, 2] + ends[:, 3])
        second_window = positions.last - (1 << positions.level) + 1
        inside = jnp.maximum(
            prepared[positions.level, positions.first],
            prepared[positions.level, jnp.maximum(second_window, 0)],
        )
        return jnp.where(positions.empty, best, jnp.maximum(best, inside))


class EllipsoidBackup(OptimisticBackup):
    """An ellipsoid mean + root·(unit ball): the best of finitely many members."""

    def locate(self, prediction: Prediction, sizes: Array, lipschitz: Array) -> tuple[Array, Array]:
        assert prediction.root is not None
        return prediction.state, prediction.root

    def prepare(self, table: Float[Array, " M"], sizes: Array) -> Array:
        return table

    def read(self, prepared: Array, positions: tuple[Array, Array]) -> Float[Array, " n"]:
        means, roots = positions

        def try_member(best: Array, unit: Array) -> tuple[Array, None]:
            member = means + jnp.einsum("nij,j->ni", roots, unit)
            return jnp.maximum(best, self.grid.stencil(member).read(prepared)), None

        start = self.grid.stencil(means).read(prepared)
        return lax.scan(try_member, start, jnp.asarray(self._unit_members()))[0]

    def _unit_members(self) -> np.ndarray:
        """Members of the unit ball, (k, m)."""
        m = self.grid.states.dimension
        if m == 2:
            angles = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
            sphere = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        else:
            normal = np.random.default_rng(0).normal(size=(DIRECTIONS * m, m))
            sphere = np.concatenate([np.eye(m), -np.eye(m), normal])
            sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
        return np.concatenate([shell * sphere for shell in SHELLS])


class SimplexBackup(OptimisticBackup):
    """Tables: the best distribution p in the ball around the mean, max ⟨p, V⟩ (note D4).

    With the multiplier x of the ball's constraint the best p is the nearest distribution to
    μ + x V. Its distance from μ grows with x. Newton steps inside a bracket find the x at which p
    reaches the surface of the ball.
    """

    def locate(self, prediction: Prediction, sizes: Array, lipschitz: Array) -> tuple[Array, Array]:
        assert prediction.radius is not None
        # The nearest distribution is no farther from the truth than the mean itself (note B14).
        return onto_simplex(prediction.state), prediction.radius * self.metric[0]

    def prepare(self, table: Float[Array, " M"], sizes: Array) -> Array:
        return table

    def read(self, prepared: Array, positions: tuple[Array, Array]) -> Float[Array, " n"]:
        means, radius = positions
        inner, outer, distance = self._bracket(prepared, positions)
        # The upper end of the bracket lies outside the ball. It is moved back to the surface.
        on_surface = means + jnp.minimum(1.0, radius / jnp.maximum(distance, TINY))[:, None] * (
            outer - means
        )
        best = jnp.maximum(on_surface @ prepared, inner @ prepared)
        return jnp.where(jnp.isfinite(radius), best, jnp.max(prepared))

    def _bracket(self, prepared: Array, positions: tuple[Array, Array]) -> tuple[Array, ...]:
        """Distributions at both ends of the bracket, and the distance of the outer one."""
        means, radius = positions
        low, high = jnp.min(prepared), jnp.max(prepared)
        span = jnp.maximum(high - low, TINY)
        scaled_values = ((prepared - low) / span)[None, :]

        def at(multiplier: Array) -> tuple[Array, Array, Array]:
            """p for a multiplier, its distance from the mean, and the derivative of that."""
            point = onto_simplex(means + multiplier[:, None] * scaled_values)
            difference = point - means
            positive = point > 0
            mean_value = jnp.sum(jnp.where(positive, scaled_values, 0.0), axis=1) / jnp.sum(
                positive.astype(scaled_values.dtype), axis=1
            )
            derivative = jnp.where(positive, scaled_values - mean_value[:, None], 0.0)
            distance = jnp.linalg.norm(difference, axis=1)
            return (
                point,
                distance,
                jnp.sum(difference * derivative, axis=1) / jnp.maximum(distance, TINY),
            )

        def narrow(_: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            below, above, guess = state
            _, distance, growth = at(guess)
            inside = distance <= radius
            below, above = jnp.where(inside, guess, below), jnp.where(inside, above, guess)
            newton = guess + (radius - distance) / jnp.maximum(growth, TINY)
            in_bracket = (newton > below) & (newton < above)
            return below, above, jnp.where(in_bracket, newton, jnp.sqrt(below * above))

        start = (
            jnp.full_like(radius, 1 / LARGEST_MULTIPLIER),
            jnp.full_like(radius, LARGEST_MULTIPLIER),
            radius,
        )
        below, above, _ = lax.fori_loop(0, MULTIPLIER_ITERATIONS, narrow, start)
        outer, distance, _ = at(above)
        return at(below)[0], outer, distance


class SimplexBound(SimplexBackup):
    """Tables: an upper bound of ``SimplexBackup``, which is close to it and never below.

    The distribution at the outer end of the bracket is the best one of a larger ball.
    """

    def read(self, prepared: Array, positions: tuple[Array, Array]) -> Float[Array, " n"]:
        means, radius = positions
        _, outer, distance = self._bracket(prepared, positions)
        top = jnp.max(prepared)
        # Without the constraint that probabilities are at least 0, the slope is this norm.
        slope = jnp.linalg.norm(prepared - jnp.mean(prepared))
        bonus = jnp.where(slope > 0, radius * slope, 0.0)
        bound = jnp.minimum(means @ prepared + bonus, top)
        return jnp.where(distance > radius, jnp.minimum(outer @ prepared, bound), bound)


def backup_for(
    optimism: str, grid: StateGrid, metric: tuple[float, ...], prediction: Prediction
) -> OptimisticBackup:
    """Choose the backup for the widths that a prediction has.

    Args:
        optimism: "ball" to search the set of plausible next states, "upper" for an upper bound of
            that search, "bonus" for a bonus instead.
        grid: The nodes of the values and the lattice of U.
        metric: The metric of the MDP, one number for each axis.
        prediction: A prediction, or its shapes.

    Returns:
        The backup.

    Raises:
        ArgumentError: If the optimism does not suit the widths or the states.
    """
    if prediction.certain:
        return PlainBackup(grid, metric)
    if grid.noise.categorical:
        if prediction.radius is None:
            raise ArgumentError("shape", "'trace' or 'lmax' for a table", "another")
        if optimism == "bonus":
            return TableBonusBackup(grid, metric)
        searched = SimplexBackup if prediction.divergence is None else DivergenceBackup
        return searched(grid, metric)
    if optimism == "bonus":
        if prediction.radius is None:
            raise ArgumentError("optimism", "'ball' for ellipsoids and boxes", "'bonus'")
        return BonusBackup(grid, metric)
    if grid.states.finite:
        raise ArgumentError("optimism", "'bonus' for a finite set of states", repr(optimism))
    if optimism == "upper" and grid.states.dimension > 1:
        return UpperBound(grid, metric)
    if prediction.root is not None:
        return EllipsoidBackup(grid, metric)
    if prediction.sides is not None:
        return BoxBackup(grid, metric)
    return IntervalBackup(grid, metric) if grid.states.dimension == 1 else BallBackup(grid, metric)


def with_radius(prediction: Prediction, metric: tuple[float, ...]) -> Prediction:
    """Replace ellipsoids and boxes by intervals in one dimension, where they are the same.

    Args:
        prediction: Predictions at n points.
        metric: The metric of the MDP, one number for each axis.

    Returns:
        The predictions with a radius. In more dimensions they are unchanged.
    """
    if prediction.state.shape[1] > 1 or prediction.certain or prediction.radius is not None:
        return prediction
    if prediction.sides is not None:
        half_width = prediction.sides[:, 0]
    else:
        assert prediction.root is not None
        half_width = jnp.abs(prediction.root[:, 0, 0])
    return prediction._replace(radius=half_width / metric[0], root=None, sides=None)
