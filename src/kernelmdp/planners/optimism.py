"""The best plausible next state: max of U over the set of plausible ones (math D1).

Each way is a pair of steps. ``locate`` is done once an episode for all state-action pairs: where
to read, in tables of the lattice. ``prepare`` turns U of one period into the table that ``read``
then reads at those places. Nothing here depends on how the widths came about.

- Plain: no width; U at the mean.
- Interval: one dimension; the exact maximum of the piecewise linear U over an interval, by a
  sparse table of range maxima.
- Discs: two dimensions or more; U dilated by balls of a ladder of radii, read by interpolation in
  place and radius. Around a node, with a radius of the ladder, it is the maximum over all chords
  through nodes; between nodes and rungs it is linear.
- Boxes: two dimensions or more; U dilated along one axis after the other, for a ladder of sides.
- Candidates: an ellipsoid in two dimensions or more; the best of finitely many members.
- Simplex: tables; the best distribution in the ball, by bisection.
- Bonus: U at the mean plus L times the radius (math D3), an upper bound without a search.
The maxima of Discs, Boxes and Candidates are up to the lattice, not rounded up: no certificate.
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
from kernelmdp.planners.dilation import Boxes, Discs
from kernelmdp.planners.optimistic_backup import OptimisticBackup, running_maxima

NARROWINGS, FAR = 16, 1e6  # of the ball in the simplex, and its largest multiplier
TINY = 1e-300
DIRECTIONS, SHELLS = 16, (0.5, 1.0)  # of candidates in an ellipsoid


class PlainBackup(OptimisticBackup):
    """There is nothing to choose."""

    def locate(self, prediction: Prediction, ladder: Array, lipschitz: Array) -> TablePositions:
        return self.grid.stencil(prediction.state)

    def prepare(self, table: Float[Array, " M"], ladder: Array) -> Array:
        return table

    def read(self, prepared: Array, places: TablePositions) -> Float[Array, " n"]:
        return places.read(prepared)


class BonusBackup(OptimisticBackup):
    """W(Π μ) + L ρ."""

    def locate(
        self, prediction: Prediction, ladder: Array, lipschitz: Array
    ) -> tuple[TablePositions, Array]:
        assert prediction.radius is not None
        bonus = jnp.where(prediction.radius > 0, lipschitz * prediction.radius, 0.0)
        return self.grid.stencil(prediction.state), bonus

    def prepare(self, table: Float[Array, " M"], ladder: Array) -> Array:
        return table

    def read(self, prepared: Array, places: tuple[TablePositions, Array]) -> Float[Array, " n"]:
        return places[0].read(prepared) + places[1]


class TableBonusBackup(OptimisticBackup):
    """Tables: ⟨p, V⟩ + ρ|V − mean(V)|, at most max V: the ball without "probabilities ≥ 0".

    An upper bound of what ``SimplexBackup`` finds, for tables too large for a search.
    """

    def locate(
        self, prediction: Prediction, ladder: Array, lipschitz: Array
    ) -> tuple[Array, Array]:
        assert prediction.radius is not None
        return onto_simplex(prediction.state), prediction.radius * self.metric[0]

    def prepare(self, table: Float[Array, " M"], ladder: Array) -> tuple[Array, Array]:
        return table, jnp.linalg.norm(table - jnp.mean(table))

    def read(
        self, prepared: tuple[Array, Array], places: tuple[Array, Array]
    ) -> Float[Array, " n"]:
        (table, slope), (means, radius) = prepared, places
        bonus = jnp.where(slope > 0, radius * slope, 0.0)
        return jnp.minimum(means @ table + bonus, jnp.max(table))


class _Range(NamedTuple):
    ends: Stencil  # of both ends, (n, 4)
    first: Array
    last: Array
    level: Array
    empty: Array


class IntervalBackup(OptimisticBackup):
    """One dimension: the larger of both ends and of the nodes between them."""

    def locate(self, prediction: Prediction, ladder: Array, lipschitz: Array) -> _Range:
        assert prediction.radius is not None
        count, step = self.grid.lattice_shape[0], float(self.grid.spacing[0])
        origin = float(self.grid.lattice[0, 0])
        place = (prediction.state[:, 0] - origin) / step
        reach = prediction.radius * self.metric[0] / step
        top = count - 1
        if self.grid.states.periodic:  # three turns side by side; half a turn reaches everything
            place, reach, top = (
                jnp.mod(place, count) + count,
                jnp.minimum(reach, count / 2),
                (3 * count - 1),
            )
        low, high = (jnp.clip(place + sign * reach, 0, top) for sign in (-1, 1))
        first, last = jnp.ceil(low).astype(jnp.int32), jnp.floor(high).astype(jnp.int32)
        length = jnp.maximum(last - first + 1, 1)
        level = jnp.floor(jnp.log2(length.astype(place.dtype)) + 1e-9).astype(jnp.int32)
        index, weight = [], []
        for end in (low, high):
            base = jnp.clip(jnp.floor(end), 0, top - 1)
            share = end - base
            index += [base.astype(jnp.int32), base.astype(jnp.int32) + 1]
            weight += [1 - share, share]
        ends = Stencil(jnp.stack(index, axis=1), jnp.stack(weight, axis=1))
        first = jnp.minimum(first, top)
        return _Range(ends, first, jnp.maximum(last, 0), level, last < first)

    def prepare(self, table: Float[Array, " M"], ladder: Array) -> Float[Array, "levels K"]:
        """S[k, i] = max U[i .. i + 2^k − 1]."""
        row = jnp.tile(table, 3) if self.grid.states.periodic else table
        return running_maxima(row, row.shape[0])

    def read(self, prepared: Float[Array, "levels M"], places: _Range) -> Float[Array, " n"]:
        ends = prepared[0][places.ends.where] * places.ends.weight
        best = jnp.maximum(ends[:, 0] + ends[:, 1], ends[:, 2] + ends[:, 3])
        back = places.last - (1 << places.level) + 1
        inside = jnp.maximum(
            prepared[places.level, places.first], prepared[places.level, jnp.maximum(back, 0)]
        )
        return jnp.where(places.empty, best, jnp.maximum(best, inside))


class EllipsoidBackup(OptimisticBackup):
    """An ellipsoid mean + root·(unit ball): the best of members spread over it."""

    def locate(
        self, prediction: Prediction, ladder: Array, lipschitz: Array
    ) -> tuple[Array, Array]:
        assert prediction.root is not None
        return prediction.state, prediction.root

    def prepare(self, table: Float[Array, " M"], ladder: Array) -> Array:
        return table

    def read(self, prepared: Array, places: tuple[Array, Array]) -> Float[Array, " n"]:
        means, roots = places

        def one(best: Array, unit: Array) -> tuple[Array, None]:
            member = means + jnp.einsum("nij,j->ni", roots, unit)
            return jnp.maximum(best, self.grid.stencil(member).read(prepared)), None

        start = self.grid.stencil(means).read(prepared)
        return lax.scan(one, start, jnp.asarray(self._units()))[0]

    def _units(self) -> np.ndarray:
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
    """Tables: the best distribution p in the ball around the mean, max ⟨p, V⟩ (math D4).

    With the multiplier x of the ball's constraint the best p is the nearest distribution to
    μ + x V, whose distance from μ grows with x: Newton's steps, kept inside a bracket, find
    where the ball ends.
    """

    def locate(
        self, prediction: Prediction, ladder: Array, lipschitz: Array
    ) -> tuple[Array, Array]:
        assert prediction.radius is not None
        # The nearest distribution is no farther from the truth than the mean itself (math B14).
        return onto_simplex(prediction.state), prediction.radius * self.metric[0]

    def prepare(self, table: Float[Array, " M"], ladder: Array) -> Array:
        return table

    def read(self, prepared: Array, places: tuple[Array, Array]) -> Float[Array, " n"]:
        means, radius = places
        low, high = jnp.min(prepared), jnp.max(prepared)
        span = jnp.maximum(high - low, TINY)
        slopes = ((prepared - low) / span)[None, :]

        def at(amount: Array) -> tuple[Array, Array, Array]:
            """p for a multiplier, its distance from the mean, and how fast that grows."""
            point = onto_simplex(means + amount[:, None] * slopes)
            apart = point - means
            free = point > 0
            share = jnp.sum(jnp.where(free, slopes, 0.0), axis=1) / jnp.sum(
                free.astype(slopes.dtype), axis=1
            )
            along = jnp.where(free, slopes - share[:, None], 0.0)
            length = jnp.linalg.norm(apart, axis=1)
            return point, length, jnp.sum(apart * along, axis=1) / jnp.maximum(length, TINY)

        def narrow(_: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            below, above, guess = state
            _, length, growth = at(guess)
            inside = length <= radius
            below, above = jnp.where(inside, guess, below), jnp.where(inside, above, guess)
            newton = guess + (radius - length) / jnp.maximum(growth, TINY)
            safe = (newton > below) & (newton < above)
            return below, above, jnp.where(safe, newton, jnp.sqrt(below * above))

        start = (jnp.full_like(radius, 1 / FAR), jnp.full_like(radius, FAR), radius)
        below, above, _ = lax.fori_loop(0, NARROWINGS, narrow, start)
        # What is left of the bracket: from its outer end back to the surface of the ball.
        outer, length, _ = at(above)
        drawn = means + jnp.minimum(1.0, radius / jnp.maximum(length, TINY))[:, None] * (
            outer - means
        )
        best = jnp.maximum(drawn @ prepared, at(below)[0] @ prepared)
        return jnp.where(jnp.isfinite(radius), best, high)


def backup_for(
    optimism: str, grid: StateGrid, metric: tuple[float, ...], prediction: Prediction
) -> OptimisticBackup:
    """The way to choose, from what the outlook (or its shapes) has and the word given."""
    if prediction.certain:
        return PlainBackup(grid, metric)
    if grid.noise.categorical:
        if prediction.radius is None:
            raise ArgumentError("shape", "'trace' or 'lmax' for a table", "another")
        return (
            TableBonusBackup(grid, metric) if optimism == "bonus" else SimplexBackup(grid, metric)
        )
    if optimism == "bonus":
        if prediction.radius is None:
            raise ArgumentError("optimism", "'ball' for ellipsoids and boxes", "'bonus'")
        return BonusBackup(grid, metric)
    if grid.states.finite:
        raise ArgumentError("optimism", "'bonus' for a finite set of states", repr(optimism))
    if prediction.root is not None:
        return EllipsoidBackup(grid, metric)
    if prediction.sides is not None:
        return Boxes(grid, metric)
    return IntervalBackup(grid, metric) if grid.states.dimension == 1 else Discs(grid, metric)


def with_radius(prediction: Prediction, metric: tuple[float, ...]) -> Prediction:
    """In one dimension an ellipsoid or a box is an interval."""
    if prediction.state.shape[1] > 1 or prediction.certain or prediction.radius is not None:
        return prediction
    if prediction.sides is not None:
        half = prediction.sides[:, 0]
    else:
        assert prediction.root is not None
        half = jnp.abs(prediction.root[:, 0, 0])
    return prediction._replace(radius=half / metric[0], root=None, sides=None)
