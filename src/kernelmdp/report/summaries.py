"""Runs summed up over seeds: one row for each agent and setting, and every pair compared.

Numbers are those after the same number of episodes for all trials of an environment: the largest
that all have reached, unless another is asked for. So no seed is left out, and none is ahead.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.report.reading import Frame, Runs
from kernelmdp.report.statistics import bootstrap, interquartile_mean, paired, regret_slope

#: What trials are measured by, and whether less of it is better.
MEASURES = {"cumulative regret": True, "mean return": False}
STATISTICS: dict[str, Callable[..., Any]] = {
    "mean": np.mean,
    "median": np.median,
    "iqm": interquartile_mean,
}


def episodes_of_all(runs: Runs) -> int:
    """How many episodes every trial has that has begun."""
    begun = runs.trials["episodes"][runs.trials["episodes"] > 0]
    return int(begun.min()) if len(begun) else 0


def measure(runs: Runs) -> str:
    """Regret where an optimum is known for all, else the mean return an episode."""
    known = np.isfinite(runs.episodes["cumulative_regret"]).all()
    return "cumulative regret" if known and len(runs.episodes) else "mean return"


def unfinished(runs: Runs) -> list[str]:
    """Sentences on trials with fewer episodes than their study plans, or than others have."""
    found = []
    for env in runs.envs:
        trials = runs.of(env).trials
        short = trials[trials["episodes"] < trials["planned"]]
        if len(short):
            rows = short.head(3).itertuples()
            had = ", ".join(f"{row.run} ({row.episodes} of {row.planned})" for row in rows)
            more = f" and {len(short) - 3} more" if len(short) > 3 else ""
            text = f"{env}: {len(short)} of {len(trials)} trials are not finished"
            found.append(f"{text}: {had}{more}")
    return found


def summary(runs: Runs, *, episodes: int | None = None, seed: int = 0) -> Frame:
    """One row for each environment, agent and setting: numbers over seeds with 95 % intervals.

    Trials with fewer than ``episodes`` episodes are counted in ``unfinished``, not averaged.

    >>> import tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> from kernelmdp.report import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "random"), folder, episodes=2)
    ...     table = summary(read(folder))
    >>> table["agent"].tolist()
    ['random']
    """
    import pandas as pd

    rows = []
    for env in runs.envs:
        own = runs.of(env)
        last = _last(own, episodes)
        name = measure(own)
        numbers, curves = _measured(own, last, name), own.curves("cumulative_regret")
        covered, seconds = own.curves("covered"), own.curves("seconds")
        for contender, trials in own.contenders.items():
            done = trials["episodes"].to_numpy() >= last
            values = numbers[contender][done]
            row: dict[str, Any] = {
                "environment": env,
                "agent": contender,
                "seeds": int(done.sum()),
                "unfinished": int((~done).sum()),
                "episodes": last,
                "measure": name,
            }
            for label, statistic in STATISTICS.items():
                row |= _columns(label, bootstrap(statistic, values, seed=seed) if last else None)
            known = name == "cumulative regret" and len(values) > 0
            cut = curves[contender][done, :last]
            row |= _columns("slope", regret_slope(cut, seed=seed) if known else None)
            row["coverage"] = _mean(covered[contender][:, :last])
            row["milliseconds"] = 1e3 * _median(seconds[contender][:, 2:last])
            rows.append(row)
    return pd.DataFrame(rows)


def comparisons(runs: Runs, *, episodes: int | None = None, seed: int = 0) -> Frame:
    """Every pair of agents (with their settings) in every environment, on their common seeds.

    >>> import tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> from kernelmdp.report import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for agent in ("random", "oracle"):
    ...         done = run(RunConfig("riverswim", agent), f"{folder}/{agent}", episodes=2)
    ...     table = comparisons(read(folder))
    >>> len(table)  # one pair
    1
    """
    import pandas as pd

    rows = []
    for env in runs.envs:
        own = runs.of(env)
        last = _last(own, episodes)
        name = measure(own)
        numbers = _measured(own, last, name)
        by_seed = {
            contender: dict(zip(trials["seed"], numbers[contender], strict=True))
            for contender, trials in own.contenders.items()
        }
        for first, second in itertools.combinations(by_seed, 2):
            one, other = by_seed[first], by_seed[second]
            both = [s for s in one if s in other and np.isfinite([one[s], other[s]]).all()]
            if not both or not last:
                continue
            values = (np.array([side[s] for s in both]) for side in (one, other))
            found = paired(*values, seed=seed)
            better = found.lower if MEASURES[name] else 1 - found.lower
            rows.append(
                {
                    "environment": env,
                    "first": first,
                    "second": second,
                    "common seeds": found.seeds,
                    "episodes": last,
                    "measure": name,
                    **_columns("difference", found.difference),
                    "first better": better,
                }
            )
    return pd.DataFrame(rows)


def _last(runs: Runs, episodes: int | None) -> int:
    if episodes is None:
        return episodes_of_all(runs)
    most = int(runs.trials["episodes"].max())
    if not 1 <= episodes <= most:
        got = f"{episodes} where {runs.envs[0]} has {most}"
        raise ArgumentError("episodes", "a number of episodes that was played", got)
    return episodes


def _measured(runs: Runs, last: int, name: str) -> dict[str, np.ndarray]:
    """One number a trial, (seeds,); NaN for one that has not come so far."""
    column = "cumulative_regret" if name == "cumulative regret" else "return"
    found = {}
    for contender, curves in runs.curves(column).items():
        if curves.shape[1] < last or last == 0:
            found[contender] = np.full(len(curves), math.nan)
        elif column == "return":
            found[contender] = np.mean(curves[:, :last], axis=1)
        else:
            found[contender] = curves[:, last - 1]
    return found


def _columns(label: str, estimate: Any) -> dict[str, float]:
    ends = (math.nan,) * 3 if estimate is None else (estimate.value, estimate.low, estimate.high)
    return dict(zip((label, f"{label} low", f"{label} high"), map(float, ends), strict=True))


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan


def _median(values: np.ndarray) -> float:
    return float(np.nanmedian(values)) if np.isfinite(values).any() else math.nan
