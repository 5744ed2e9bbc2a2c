"""The best plausible next state: max of U over a ball or ellipsoid around the mean (math D1).

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

import abc
import dataclasses
import itertools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from kernelmdp.domains import Box
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.grid import Places, StateGrid, Stencil
from kernelmdp.mdp.model import Outlook
from kernelmdp.mdp.noise import Categorical, onto_simplex
from kernelmdp.planners.envelope import offsets_by_length, padded

RUNGS = 6  # of the ladder of radii
NARROWINGS, FAR = 16, 1e6  # of the ball in the simplex, and its largest multiplier
TINY = 1e-300
SIDE_RUNGS = 5  # of the ladders of two sides; more sides have fewer
DIRECTIONS, SHELLS = 16, (0.5, 1.0)  # of candidates in an ellipsoid


@dataclasses.dataclass(frozen=True)
class Choice(abc.ABC):
    """How the next state is chosen among the plausible ones; see the module's text."""

    grid: StateGrid
    metric: tuple[float, ...]

    @abc.abstractmethod
    def locate(self, outlook: Outlook, ladder: Array, lipschitz: Array) -> Any:
        """Where to read for n points; ``ladder`` from ``ladder_for`` all points of the episode."""

    @abc.abstractmethod
    def prepare(self, table: Float[Array, " M"], ladder: Array) -> Any:
        """The table of one period, from U on the lattice."""

    @abc.abstractmethod
    def read(self, prepared: Any, places: Any) -> Float[Array, " n"]:
        """The best expected value at n points."""

    def ladder_for(self, outlook: Outlook) -> Array:
        """Radii in metric units for which tables are prepared."""
        return jnp.zeros(1)

    @property
    def _periodic(self) -> tuple[int, ...]:
        return self.grid.states.periodic if isinstance(self.grid.states, Box) else ()


class Plain(Choice):
    """There is nothing to choose."""

    def locate(self, outlook: Outlook, ladder: Array, lipschitz: Array) -> Places:
        return self.grid.stencil(outlook.state)

    def prepare(self, table: Float[Array, " M"], ladder: Array) -> Array:
        return table

    def read(self, prepared: Array, places: Places) -> Float[Array, " n"]:
        return places.read(prepared)


class Bonus(Choice):
    """W(Π μ) + L ρ."""

    def locate(self, outlook: Outlook, ladder: Array, lipschitz: Array) -> tuple[Places, Array]:
        assert outlook.radius is not None
        bonus = jnp.where(outlook.radius > 0, lipschitz * outlook.radius, 0.0)
        return self.grid.stencil(outlook.state), bonus

    def prepare(self, table: Float[Array, " M"], ladder: Array) -> Array:
        return table

    def read(self, prepared: Array, places: tuple[Places, Array]) -> Float[Array, " n"]:
        return places[0].read(prepared) + places[1]


class TableBonus(Choice):
    """Tables: ⟨p, V⟩ + ρ|V − mean(V)|, at most max V: the ball without "probabilities ≥ 0".

    An upper bound of what ``Simplex`` finds, for tables too large for a search.
    """

    def locate(self, outlook: Outlook, ladder: Array, lipschitz: Array) -> tuple[Array, Array]:
        assert outlook.radius is not None
        return onto_simplex(outlook.state), outlook.radius * self.metric[0]

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


class Interval(Choice):
    """One dimension: the larger of both ends and of the nodes between them."""

    def locate(self, outlook: Outlook, ladder: Array, lipschitz: Array) -> _Range:
        assert outlook.radius is not None
        count, step = self.grid.lattice_shape[0], float(self.grid.spacing[0])
        origin = float(self.grid.lattice[0, 0])
        place = (outlook.state[:, 0] - origin) / step
        reach = outlook.radius * self.metric[0] / step
        top = count - 1
        if self._periodic:  # three turns side by side; half a turn reaches everything
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
        row = jnp.tile(table, 3) if self._periodic else table
        rows = [row]
        for k in range(int(math.log2(row.shape[0]))):
            rows.append(jnp.maximum(rows[-1], jnp.roll(rows[-1], -(2**k))))
        return jnp.stack(rows)

    def read(self, prepared: Float[Array, "levels M"], places: _Range) -> Float[Array, " n"]:
        ends = prepared[0][places.ends.where] * places.ends.weight
        best = jnp.maximum(ends[:, 0] + ends[:, 1], ends[:, 2] + ends[:, 3])
        back = places.last - (1 << places.level) + 1
        inside = jnp.maximum(
            prepared[places.level, places.first], prepared[places.level, jnp.maximum(back, 0)]
        )
        return jnp.where(places.empty, best, jnp.maximum(best, inside))


class _Rung(NamedTuple):
    stencil: Any
    rung: Array
    share: Array


class Discs(Choice):
    """Two dimensions or more: U dilated by balls, for a ladder of radii."""

    def ladder_for(self, outlook: Outlook) -> Array:
        assert outlook.radius is not None
        low, high = self.grid.states.bounds
        diameter = float(np.linalg.norm((high - low) / np.array(self.metric)))
        largest = jnp.minimum(jnp.max(outlook.radius), diameter)
        return largest * (jnp.arange(RUNGS + 1) / RUNGS) ** 2

    def locate(self, outlook: Outlook, ladder: Array, lipschitz: Array) -> _Rung:
        assert outlook.radius is not None
        rung = jnp.clip(jnp.searchsorted(ladder, outlook.radius) - 1, 0, ladder.shape[0] - 2)
        gap = ladder[rung + 1] - ladder[rung]
        share = (outlook.radius - ladder[rung]) / jnp.where(gap > 0, gap, 1.0)
        return _Rung(
            self.grid.stencil(outlook.state), rung.astype(jnp.int32), jnp.clip(share, 0.0, 1.0)
        )

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
        rows = [values]
        for k in range(int(math.log2(self.grid.lattice_shape[-1] * 2 + 1))):
            rows.append(jnp.maximum(rows[-1], jnp.roll(rows[-1], -(2**k), axis=-1)))
        return jnp.stack(rows), pads

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


class Boxes(Choice):
    """Two dimensions or more: U dilated by boxes whose sides are on a ladder of their own.

    Along one axis the maximum over an interval of the piecewise linear U is exact; between nodes
    and rungs it is linear. A table for every combination of rungs is too much to keep for every
    period, so U is kept and dilated as it is read.
    """

    @property
    def _rungs(self) -> int:
        return max(2, round(SIDE_RUNGS ** (2 / self.grid.states.dimension)))

    def ladder_for(self, outlook: Outlook) -> Float[Array, "m K"]:
        assert outlook.sides is not None
        low, high = self.grid.states.bounds
        largest = jnp.minimum(jnp.max(outlook.sides, axis=0), jnp.asarray(high - low))
        return largest[:, None] * (jnp.arange(self._rungs + 1) / self._rungs)[None, :] ** 2

    def locate(self, outlook: Outlook, ladder: Array, lipschitz: Array) -> _Sides:
        assert outlook.sides is not None
        rungs, shares = [], []
        for rows, sides in zip(ladder, outlook.sides.T, strict=True):
            rung = jnp.clip(jnp.searchsorted(rows, sides) - 1, 0, rows.shape[0] - 2)
            gap = rows[rung + 1] - rows[rung]
            rungs.append(rung.astype(jnp.int32))
            shares.append(jnp.clip((sides - rows[rung]) / jnp.where(gap > 0, gap, 1.0), 0, 1))
        return _Sides(
            self.grid.stencil(outlook.state),
            jnp.stack(rungs, axis=1),
            jnp.stack(shares, axis=1),
            ladder,
        )

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
        around = axis in self._periodic
        pad = count // 2 if around else count - 1
        rows = jnp.moveaxis(tables, axis + 1, -1)
        widths = [(0, 0)] * (rows.ndim - 1) + [(pad, pad)]
        wide = jnp.pad(rows, widths, mode="wrap" if around else "edge")
        levels = [wide]
        for k in range(int(math.log2(2 * pad + 1))):
            levels.append(jnp.maximum(levels[-1], jnp.roll(levels[-1], -(2**k), axis=-1)))
        maxima = jnp.stack(levels)

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


class Candidates(Choice):
    """An ellipsoid mean + root·(unit ball): the best of members spread over it."""

    def locate(self, outlook: Outlook, ladder: Array, lipschitz: Array) -> tuple[Array, Array]:
        assert outlook.root is not None
        return outlook.state, outlook.root

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


class Simplex(Choice):
    """Tables: the best distribution p in the ball around the mean, max ⟨p, V⟩ (math D4).

    With the multiplier x of the ball's constraint the best p is the nearest distribution to
    μ + x V, whose distance from μ grows with x: Newton's steps, kept inside a bracket, find
    where the ball ends.
    """

    def locate(self, outlook: Outlook, ladder: Array, lipschitz: Array) -> tuple[Array, Array]:
        assert outlook.radius is not None
        # The nearest distribution is no farther from the truth than the mean itself (math B14).
        return onto_simplex(outlook.state), outlook.radius * self.metric[0]

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


def choice_for(optimism: str, grid: StateGrid, metric: tuple[float, ...], outlook: Any) -> Choice:
    """The way to choose, from what the outlook (or its shapes) has and the word given."""
    if outlook.certain:
        return Plain(grid, metric)
    if isinstance(grid.noise, Categorical):
        if outlook.radius is None:
            raise ArgumentError("shape", "'trace' or 'lmax' for a table", "another")
        return TableBonus(grid, metric) if optimism == "bonus" else Simplex(grid, metric)
    if optimism == "bonus":
        if outlook.radius is None:
            raise ArgumentError("optimism", "'ball' for ellipsoids and boxes", "'bonus'")
        return Bonus(grid, metric)
    if not isinstance(grid.states, Box):
        raise ArgumentError("optimism", "'bonus' for a finite set of states", repr(optimism))
    if outlook.root is not None:
        return Candidates(grid, metric)
    if outlook.sides is not None:
        return Boxes(grid, metric)
    return Interval(grid, metric) if grid.states.dimension == 1 else Discs(grid, metric)


def with_radius(outlook: Outlook, metric: tuple[float, ...]) -> Outlook:
    """In one dimension an ellipsoid or a box is an interval."""
    if outlook.state.shape[1] > 1 or outlook.certain or outlook.radius is not None:
        return outlook
    if outlook.sides is not None:
        half = outlook.sides[:, 0]
    else:
        assert outlook.root is not None
        half = jnp.abs(outlook.root[:, 0, 0])
    return outlook._replace(radius=half / metric[0], root=None, sides=None)
