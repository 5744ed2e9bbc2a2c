"""Kernels that fit themselves: lengthscales, signal and noise by penalised marginal likelihood.

For outputs measured in units of their own size, and inputs in units of the width of their axis, one
prior has served everywhere it was tried: lengthscales log-normal about 0.2 √d, noise about a
hundredth of the signal. Bounds keep a flat episode from making a function certain everywhere, or
short lengthscales from making it unknown for ever.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.gp.inducing import Shape, gram
from kernelmdp.numerics.factor import cholesky, solve_lower
from kernelmdp.numerics.modules import Module, jit
from kernelmdp.types import Key

#: Steps of the search, each one evaluation of the likelihood and its slope.
STEPS = 25
#: A step of the search is at most so long, in logarithms of odds within the bounds.
LONGEST = 2.0
#: Deviation of a trend's slopes: in units of the target's size, over the width of an axis.
STEEP = 10.0


class Belief(NamedTuple):
    """A log-normal prior within bounds: median, standard deviation of the logarithm, ends."""

    median: float
    spread: float
    low: float
    high: float


class Habits(Module):
    """What is believed of kernels before any data, in units of axes and of the outputs' size."""

    lengthscale: Belief
    signal: Belief
    noise: Belief

    def rows(self, dimension: int) -> Float[np.ndarray, "k 4"]:
        """One row a parameter: lengthscales, signal, noise."""
        own = self.lengthscale
        each = own._replace(median=own.median * math.sqrt(dimension))
        return np.array([each] * dimension + [self.signal, self.noise])


DYNAMICS = Habits(
    lengthscale=Belief(0.205, math.sqrt(3), 0.05, 20.0),
    signal=Belief(1.0, 1.0, 0.1, 10.0),
    noise=Belief(0.01, 2.0, 1e-3, 1.0),
)
#: Rewards are often flat where one has been and not where one has not: none is taken for smooth
#: over more than half the width of an axis.
REWARD = Habits(
    lengthscale=Belief(0.205, math.sqrt(3), 0.05, 0.5),
    signal=Belief(1.0, 1.0, 0.5, 10.0),
    noise=Belief(0.01, 2.0, 1e-3, 1.0),
)

#: Where no reward has been seen to depend on the state, nothing is known of where it does.
SPARSE = eqx.tree_at(
    lambda habits: habits.lengthscale, REWARD, Belief(0.205, math.sqrt(3), 0.05, 0.3)
)

#: An end is one thing or the other, and steep: noise is what a smooth function cannot follow.
ENDINGS = Habits(
    lengthscale=Belief(0.205, math.sqrt(3), 0.05, 20.0),
    signal=Belief(1.0, 1.0, 0.5, 3.0),
    noise=Belief(0.15, 1.0, 0.1, 1.0),
)


class Units(Module):
    """The width of every axis, and the size of every output."""

    widths: Float[Array, " d"]
    sizes: Float[Array, " m"]
    turns: Float[Array, " d"]
    angles: tuple[int, ...] = eqx.field(static=True)

    def shape(self, logs: Float[Array, "m k"]) -> Shape:
        """From logarithms of parameters in these units."""
        d = self.widths.shape[0]
        values = jnp.exp(logs)
        return Shape(
            lengthscales=values[:, :d] * self.widths[None, :],
            signal=values[:, d] * self.sizes,
            noise=values[:, d + 1] * self.sizes,
            turns=self.turns,
            angles=self.angles,
        )


def usual(units: Units, habits: Habits) -> Float[np.ndarray, "m k"]:
    """Logarithms of the medians: parameters before any data."""
    rows = habits.rows(units.widths.shape[0])
    return np.tile(np.log(rows[:, 0])[None, :], (units.sizes.shape[0], 1))


def fit(
    units: Units,
    habits: Habits,
    points: Float[Array, "b n d"],
    targets: Float[Array, "b n m"],
    counted: Float[Array, "b n"],
    start: Float[np.ndarray, "m k"],
) -> Float[np.ndarray, "m k"]:
    """Logarithms of the parameters that explain the rows where ``counted`` is 1.

    Rows come in blocks, each taken as if it were of a function of its own: four times the rows for
    four times the work, where one block of them all would take 64 times. The better of two
    searches: from ``start``, and from the medians. One output after another: so one program serves
    all, whatever their number.
    """
    rows = jnp.asarray(habits.rows(units.widths.shape[0]))
    starts = np.stack([np.asarray(start), usual(units, habits)], axis=1)
    found = []
    for output, both in enumerate(starts):
        own = Units(units.widths, units.sizes[output][None], units.turns, units.angles)
        logs = _fit(own, points, targets[:, :, output], counted, jnp.asarray(both), rows)
        found.append(np.asarray(logs))
    return np.stack(found)


@jit
def _fit(
    units: Units, points: Array, target: Array, counted: Array, starts: Array, rows: Array
) -> Array:
    low, high = jnp.log(rows[:, 2]), jnp.log(rows[:, 3])
    blocks = (points, target, counted)

    def bounded(free: Array) -> Array:
        return low + (high - low) * jax.nn.sigmoid(free)

    def loss(free: Array) -> Array:
        found = bounded(free)
        penalty = 0.5 * jnp.sum(((found - jnp.log(rows[:, 0])) / rows[:, 1]) ** 2)
        shape = units.shape(found[None, :])
        return penalty - jnp.sum(jax.lax.map(lambda block: worth(shape, *block), blocks))

    def worth(shape: Shape, x: Array, y: Array, count: Array) -> Array:
        # Of data that are few the later blocks are empty, and should cost nothing.
        return jax.lax.cond(
            jnp.any(count > 0), lambda: likelihood(shape, x, y, count), lambda: jnp.zeros(())
        )

    def search(logs: Array) -> tuple[Array, Array]:
        share = jnp.clip((logs - low) / (high - low), 0.02, 0.98)
        free, value = descend(loss, jnp.log(share) - jnp.log1p(-share))
        return bounded(free), value

    found, values = jax.lax.map(search, starts)
    values = jnp.where(jnp.isfinite(values), values, jnp.inf)
    return jnp.where(values[0] <= values[1], found[0], found[1])


def likelihood(
    shape: Shape,
    points: Float[Array, "n d"],
    targets: Float[Array, " n"],
    counted: Float[Array, " n"],
) -> Float[Array, ""]:
    """ln p(y) of one output, with its slope; rows that do not count change nothing.

    The slope is ½ tr((ααᵀ − K⁻¹) dK), α = K⁻¹y, written out: to go back through the factorisation
    would take several times as long.
    """
    x = shape.embed(points)
    pairs = counted[:, None] * counted[None, :]
    inside = gram(shape, x, x)[0] * pairs
    noise = shape.noise[0] ** 2 + 1e-9 * shape.signal[0] ** 2
    matrix = inside + jnp.diag(jnp.where(counted > 0, noise, 1.0))
    fixed = jax.lax.stop_gradient(matrix)
    factor = cholesky(fixed)
    half = solve_lower(factor, jnp.eye(fixed.shape[0], dtype=fixed.dtype))
    inverse = half.T @ half
    y = counted * targets
    alpha = inverse @ y
    size = jnp.sum(jnp.log(jnp.diagonal(factor)))
    value = -0.5 * y @ alpha - size - 0.5 * jnp.sum(counted) * math.log(2 * math.pi)
    slope = jnp.sum(0.5 * (jnp.outer(alpha, alpha) - inverse) * (matrix - fixed))
    return value + slope


def descend(loss: Any, start: Float[Array, " k"]) -> tuple[Float[Array, " k"], Float[Array, ""]]:
    """A minimum by BFGS: one evaluation a step; a step that does not descend is tried shorter."""
    value_and_slope = jax.value_and_grad(loss)
    identity = jnp.eye(start.shape[0], dtype=start.dtype)

    def one(carry: tuple[Any, ...], _: None) -> tuple[Any, None]:
        here, value, slope, inverse, size = carry
        direction = -inverse @ slope
        # A model of curvature that points uphill is forgotten.
        lost = ~(slope @ direction < 0)
        direction = jnp.where(lost, -slope, direction)
        # No step is longer than LONGEST: a slope far from the minimum may be of any size.
        length = jnp.linalg.norm(direction)
        direction = direction * jnp.minimum(1.0, LONGEST / jnp.maximum(length, 1e-12))
        step = size * direction
        there = here + step
        found, tilt = value_and_slope(there)
        sound = jnp.isfinite(found) & jnp.all(jnp.isfinite(tilt))
        good = sound & (found <= value + 1e-4 * slope @ step)
        change = jnp.where(good, tilt - slope, 0.0)
        along = step @ change
        curved = good & (along > 1e-10)
        rho = 1 / jnp.where(curved, along, 1.0)
        left = identity - rho * jnp.outer(step, change)
        updated = left @ inverse @ left.T + rho * jnp.outer(step, step)
        inverse = jnp.where(curved, updated, jnp.where(lost, identity, inverse))
        after = (
            jnp.where(good, there, here),
            jnp.where(good, found, value),
            jnp.where(good, tilt, slope),
            inverse,
            jnp.where(good, 1.0, 0.3 * size),
        )
        return after, None

    value, slope = value_and_slope(start)
    begin = (start, value, slope, identity, jnp.ones(()))
    (best, value, *_), _ = jax.lax.scan(one, begin, None, length=STEPS)
    return best, value


def affine(
    points: Float[np.ndarray, "n d"], targets: Float[np.ndarray, "n m"]
) -> Float[np.ndarray, "d1 m"]:
    """Levels and slopes of a Bayesian linear regression, for points in units of their axes.

    Slopes are normal with deviation ``STEEP``, in units of the target's size; the variance of what
    they do not explain is found with them.
    """
    rows = np.concatenate([np.ones((len(points), 1)), points], axis=1)
    found = np.zeros((rows.shape[1], targets.shape[1]))
    gram, identity = rows.T @ rows, np.eye(rows.shape[1])
    for output, target in enumerate(targets.T):
        size = max(float(np.sqrt(np.mean(target**2))), 1e-12)
        variance = 1.0
        for _ in range(10):
            weights = np.linalg.solve(gram + variance / STEEP**2 * identity, rows.T @ target / size)
            variance = max(float(np.mean((target / size - rows @ weights) ** 2)), 1e-6)
        found[:, output] = size * weights
    return found


def in_blocks(
    points: Float[np.ndarray, "n d"],
    targets: Float[np.ndarray, "n m"],
    *,
    most: int,
    blocks: int,
    key: Key,
) -> tuple[Float[Array, "b r d"], Float[Array, "b r m"], Float[Array, "b r"]]:
    """Rows for ``fit``: blocks of ``most`` rows from all over the data, or all and padding."""
    full = min(max(-(-len(points) // most), 1), blocks)
    rows = some_rows(len(points), full * most, key=key)
    places = np.arange(len(rows)) % full, np.arange(len(rows)) // full
    found = []
    for each in (points, targets, np.ones(len(points))):
        room = np.zeros((blocks, most, *each.shape[1:]))
        room[places] = each[rows]
        found.append(jnp.asarray(room))
    return found[0], found[1], found[2]


def some_rows(count: int, most: int, *, key: Key) -> np.ndarray:
    """At most so many of ``count`` rows, the last one among them, in order."""
    if count <= most:
        return np.arange(count)
    # NumPy's: JAX would compile a program for every count.
    draws = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    return np.append(np.sort(draws.choice(count - 1, most - 1, replace=False)), count - 1)
