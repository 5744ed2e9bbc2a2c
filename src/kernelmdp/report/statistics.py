"""Numbers over seeds, with intervals: pure functions of arrays.

Intervals are percentile bootstraps over seeds (axis 0); their own seed is an argument, so that the
same results give the same table. One seed has no interval, which is then NaN.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import integer

#: Resamples of the seeds, and the probability an interval is meant to have.
RESAMPLES, LEVEL = 2000, 0.95


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number with the ends of its interval; all three may be arrays."""

    value: Any
    low: Any
    high: Any


def interquartile_mean(values: np.ndarray, axis: int = 0) -> Any:
    """Mean of the middle half: a quarter of the seeds, rounded down, is cut at either end.

    >>> float(interquartile_mean(np.array([-100.0, 1.0, 2.0, 900.0])))
    1.5
    """
    ordered = np.sort(values, axis=axis)
    count = values.shape[axis]
    cut = count // 4
    return np.mean(np.take(ordered, range(cut, count - cut), axis=axis), axis=axis)


def slope(episodes: np.ndarray, cumulative: np.ndarray) -> float:
    """Of log cumulative regret against log episode over the last half; 1 is linear growth.

    >>> round(slope(np.arange(1, 101), 3 * np.sqrt(np.arange(1, 101))), 6)
    0.5
    """
    return float(_slopes(np.asarray(episodes, float), np.asarray(cumulative, float)[None, :])[0])


def _slopes(episodes: np.ndarray, cumulative: np.ndarray) -> np.ndarray:
    """Of curves (n, E) at once; NaN where fewer than two of its numbers are positive."""
    half = len(episodes) // 2
    x, y = np.log(episodes[half:])[None, :], cumulative[:, half:]
    good = y > 0
    count = good.sum(axis=1, keepdims=True)
    logs = np.log(np.where(good, y, 1.0))
    centred = np.where(good, x - np.sum(x * good, axis=1, keepdims=True) / np.maximum(count, 1), 0)
    spread = np.sum(centred**2, axis=1)
    enough = (count[:, 0] >= 2) & (spread > 0)
    return np.where(enough, np.sum(centred * logs, axis=1) / np.where(enough, spread, 1), math.nan)


def bootstrap(
    statistic: Callable[..., Any],
    values: np.ndarray,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Estimate:
    """A statistic of one number a seed, (n,), with its interval.

    ``statistic`` takes values and ``axis``, as ``np.mean`` and ``interquartile_mean`` do.

    >>> found = bootstrap(np.median, np.array([1.0, 2.0, 3.0, 4.0, 50.0]), seed=0)
    >>> float(found.low), float(found.value), float(found.high)
    (1.0, 3.0, 50.0)
    """
    values = _values(values, dimensions=1)
    value = float(statistic(values, axis=0))
    if len(values) == 1:
        return Estimate(value, math.nan, math.nan)
    generator = np.random.default_rng(integer("seed", seed, least=0))
    chosen = generator.integers(
        len(values), size=(integer("resamples", resamples, least=1), len(values))
    )
    low, high = _ends(statistic(values[chosen], axis=1), level)
    return Estimate(value, float(low), float(high))


def band(
    curves: np.ndarray, *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL
) -> Estimate:
    """The mean of curves (n, E) at every episode, with its interval at each."""
    curves = _values(curves, dimensions=2)
    mean = curves.mean(axis=0)
    if len(curves) == 1:
        return Estimate(mean, np.full(mean.shape, math.nan), np.full(mean.shape, math.nan))
    return Estimate(mean, *_ends(_resampled_means(curves, seed, resamples), level))


def regret_slope(
    curves: np.ndarray, *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL
) -> Estimate:
    """The slope of the mean of cumulative regrets (n, E), with its interval over seeds."""
    curves = _values(curves, dimensions=2)
    episodes = np.arange(1, curves.shape[1] + 1)
    value = slope(episodes, curves.mean(axis=0))
    if len(curves) == 1:
        return Estimate(value, math.nan, math.nan)
    found = _slopes(episodes, _resampled_means(curves, seed, resamples))
    return Estimate(value, *map(float, _ends(found, level)))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One agent against another, on the seeds that both have."""

    seeds: int
    #: Mean of first minus second.
    difference: Estimate
    #: Share of seeds on which the first is lower; a tie counts as half.
    lower: float


def paired(
    first: np.ndarray,
    second: np.ndarray,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Comparison:
    """Compare numbers of two agents, seed by seed: agents with one seed meet the same noise.

    >>> found = paired(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 5.0]), seed=0)
    >>> float(found.difference.value), round(found.lower, 3)
    (-1.0, 0.833)
    """
    apart = _values(first, dimensions=1) - _values(second, dimensions=1)
    options: dict[str, Any] = {"seed": seed, "resamples": resamples, "level": level}
    lower = float(np.mean((apart < 0) + 0.5 * (apart == 0)))
    return Comparison(len(apart), bootstrap(np.mean, apart, **options), lower)


def _resampled_means(curves: np.ndarray, seed: int, resamples: int) -> np.ndarray:
    """(resamples, E), in one product whatever the size."""
    return _shares(len(curves), seed, resamples) @ curves


@functools.lru_cache(maxsize=8)
def _shares(count: int, seed: int, resamples: int) -> np.ndarray:
    """How often each of so many seeds was drawn, (resamples, count)."""
    generator = np.random.default_rng(integer("seed", seed, least=0))
    size = integer("resamples", resamples, least=1)
    return generator.multinomial(count, np.full(count, 1 / count), size=size) / count


def _ends(values: np.ndarray, level: float) -> tuple[Any, Any]:
    if not 0 < level < 1:
        raise ArgumentError("level", "a probability between 0 and 1", level)
    tail = (1 - level) / 2
    low, high = np.quantile(values, [tail, 1 - tail], axis=0)
    return low, high


def _values(values: Any, *, dimensions: int) -> np.ndarray:
    """Every seed counts: a number that is not there is an error, not a seed less."""
    array = np.asarray(values, float)
    if array.ndim != dimensions or array.size == 0:
        expected = f"an array with {dimensions} axes, seeds along the first"
        raise ArgumentError("values", expected, f"shape {array.shape}")
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise ArgumentError("values", "finite numbers for every seed", f"none in row {row}")
    return array
