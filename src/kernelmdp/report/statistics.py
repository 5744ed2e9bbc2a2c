"""Statistics over seeds with intervals: pure functions of arrays.

Intervals are percentile bootstraps over seeds (axis 0). The seed of the bootstrap is an argument,
so the same results give the same table. A single seed has no interval: its ends are NaN.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.numerics.checks import integer

#: Default number of bootstrap resamples. More of them make the ends of intervals less random.
RESAMPLES = 2000
#: Default probability with which an interval should contain the true value.
LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number with its interval. All three may be arrays.

    Attributes:
        value: The number.
        low: The lower end of the interval.
        high: The upper end.
    """

    value: Any
    low: Any
    high: Any


def interquartile_mean(values: np.ndarray, axis: int = 0) -> Any:
    """Compute the mean of the middle half.

    A quarter of the values, rounded down, is removed at both ends.

    Args:
        values: The values.
        axis: The axis of the seeds.

    Returns:
        The mean along this axis.

    >>> float(interquartile_mean(np.array([-100.0, 1.0, 2.0, 900.0])))
    1.5
    """
    ordered = np.sort(values, axis=axis)
    count = values.shape[axis]
    cut = count // 4
    return np.mean(np.take(ordered, range(cut, count - cut), axis=axis), axis=axis)


def slope(episodes: np.ndarray, cumulative: np.ndarray) -> float:
    """Compute the slope of log cumulative regret against log episode, over the last half.

    Args:
        episodes: Numbers of episodes, (E,).
        cumulative: Cumulative regret, (E,).

    Returns:
        The slope: 1 is linear growth. NaN if fewer than two numbers are positive.

    >>> round(slope(np.arange(1, 101), 3 * np.sqrt(np.arange(1, 101))), 6)
    0.5
    """
    return float(_slopes(np.asarray(episodes, float), np.asarray(cumulative, float)[None, :])[0])


def _slopes(episodes: np.ndarray, cumulative: np.ndarray) -> np.ndarray:
    """Compute the slopes of curves (n, E); NaN if fewer than two numbers are positive."""
    half = len(episodes) // 2
    x, y = np.log(episodes[half:])[None, :], cumulative[:, half:]
    positive = y > 0
    count = positive.sum(axis=1, keepdims=True)
    logs = np.log(np.where(positive, y, 1.0))
    mean_x = np.sum(x * positive, axis=1, keepdims=True) / np.maximum(count, 1)
    centred = np.where(positive, x - mean_x, 0)
    squares = np.sum(centred**2, axis=1)
    enough = (count[:, 0] >= 2) & (squares > 0)
    return np.where(enough, np.sum(centred * logs, axis=1) / np.where(enough, squares, 1), math.nan)


def bootstrap(
    statistic: Callable[..., Any],
    values: np.ndarray,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Estimate:
    """Compute a statistic over seeds with its interval.

    Args:
        statistic: A function of values and ``axis``, such as ``np.mean``.
        values: One number for each seed, (n,).
        seed: The seed of the bootstrap.
        resamples: The number of resamples.
        level: The probability of the interval.

    Returns:
        The statistic with its interval.

    >>> median = bootstrap(np.median, np.array([1.0, 2.0, 3.0, 4.0, 50.0]), seed=0)
    >>> float(median.low), float(median.value), float(median.high)
    (1.0, 3.0, 50.0)
    """
    values = _values(values, dimensions=1)
    value = float(statistic(values, axis=0))
    if len(values) == 1:
        return Estimate(value, math.nan, math.nan)
    generator = np.random.default_rng(integer("seed", seed, least=0))
    indices = generator.integers(
        len(values), size=(integer("resamples", resamples, least=1), len(values))
    )
    low, high = _interval(statistic(values[indices], axis=1), level)
    return Estimate(value, float(low), float(high))


def confidence_band(
    curves: np.ndarray, *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL
) -> Estimate:
    """Compute the mean curve over seeds with an interval at every episode.

    Args:
        curves: A curve for each seed, (n, E).
        seed: The seed of the bootstrap.
        resamples: The number of resamples.
        level: The probability of each interval.

    Returns:
        The mean with its intervals, (E,) each.
    """
    curves = _values(curves, dimensions=2)
    mean = curves.mean(axis=0)
    if len(curves) == 1:
        return Estimate(mean, np.full(mean.shape, math.nan), np.full(mean.shape, math.nan))
    return Estimate(mean, *_interval(_resampled_means(curves, seed, resamples), level))


def regret_slope(
    curves: np.ndarray, *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL
) -> Estimate:
    """Compute the slope of the mean cumulative regret with its interval.

    Args:
        curves: Cumulative regret of each seed, (n, E).
        seed: The seed of the bootstrap.
        resamples: The number of resamples.
        level: The probability of the interval.

    Returns:
        The slope with its interval.
    """
    curves = _values(curves, dimensions=2)
    episodes = np.arange(1, curves.shape[1] + 1)
    value = slope(episodes, curves.mean(axis=0))
    if len(curves) == 1:
        return Estimate(value, math.nan, math.nan)
    slopes = _slopes(episodes, _resampled_means(curves, seed, resamples))
    return Estimate(value, *map(float, _interval(slopes, level)))


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A comparison of two agents on the seeds that both have.

    Attributes:
        seeds: The number of seeds.
        difference: The mean of first minus second, with its interval.
        lower: The share of seeds on which the first is lower. A tie counts as half.
    """

    seeds: int
    difference: Estimate
    lower: float


def paired(
    first: np.ndarray,
    second: np.ndarray,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Comparison:
    """Compare two agents seed by seed. Agents with the same seed meet the same noise.

    Args:
        first: Numbers of the first agent, one for each seed, (n,).
        second: Numbers of the second agent on the same seeds, (n,).
        seed: The seed of the bootstrap.
        resamples: The number of resamples.
        level: The probability of the interval.

    Returns:
        The comparison.

    >>> comparison = paired(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 5.0]), seed=0)
    >>> float(comparison.difference.value), round(comparison.lower, 3)
    (-1.0, 0.833)
    """
    differences = _values(first, dimensions=1) - _values(second, dimensions=1)
    options: dict[str, Any] = {"seed": seed, "resamples": resamples, "level": level}
    lower = float(np.mean((differences < 0) + 0.5 * (differences == 0)))
    return Comparison(len(differences), bootstrap(np.mean, differences, **options), lower)


def _resampled_means(curves: np.ndarray, seed: int, resamples: int) -> np.ndarray:
    """Return the mean curves of all resamples, (resamples, E), by one matrix product."""
    return _resample_weights(len(curves), seed, resamples) @ curves


@functools.lru_cache(maxsize=8)
def _resample_weights(count: int, seed: int, resamples: int) -> np.ndarray:
    """Return the share of each seed in each resample, (resamples, count)."""
    generator = np.random.default_rng(integer("seed", seed, least=0))
    size = integer("resamples", resamples, least=1)
    return generator.multinomial(count, np.full(count, 1 / count), size=size) / count


def _interval(values: np.ndarray, level: float) -> tuple[Any, Any]:
    if not 0 < level < 1:
        raise ArgumentError("level", "a probability between 0 and 1", level)
    tail = (1 - level) / 2
    low, high = np.quantile(values, [tail, 1 - tail], axis=0)
    return low, high


def _values(values: Any, *, dimensions: int) -> np.ndarray:
    """Check the values. A missing number is an error: no seed is left out silently."""
    array = np.asarray(values, float)
    if array.ndim != dimensions or array.size == 0:
        expected = f"an array with {dimensions} axes, seeds along the first"
        raise ArgumentError("values", expected, f"shape {array.shape}")
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        raise ArgumentError("values", "finite numbers for every seed", f"none in row {row}")
    return array
