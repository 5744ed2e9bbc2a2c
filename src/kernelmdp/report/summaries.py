"""Summarise runs over seeds: one row for each agent and setting, and comparisons of all pairs.

All trials of an environment are measured after the same number of episodes. The default is the
largest number that all of them have reached. So no seed is left out, and none is ahead.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.report.reading import Frame, Runs
from kernelmdp.report.statistics import bootstrap, interquartile_mean, paired, regret_slope

#: Measures of trials, and whether a lower value is better.
MEASURES = {"cumulative regret": True, "mean return": False}
#: Statistics over seeds, by the name of their column.
STATISTICS: dict[str, Callable[..., Any]] = {
    "mean": np.mean,
    "median": np.median,
    "iqm": interquartile_mean,
}


def common_episodes(runs: Runs) -> int:
    """Return the number of episodes that all trials have.

    Args:
        runs: The runs of one environment.

    Returns:
        The number. Trials without an episode are left out; 0 if there are no others.
    """
    begun = runs.trials["episodes"][runs.trials["episodes"] > 0]
    return int(begun.min()) if len(begun) else 0


def measure(runs: Runs) -> str:
    """Return the measure of trials.

    Args:
        runs: The runs of one environment.

    Returns:
        "cumulative regret" if the optimum is known for all trials, else "mean return".
    """
    known = np.isfinite(runs.episodes["cumulative_regret"]).all()
    return "cumulative regret" if known and len(runs.episodes) else "mean return"


def unfinished_notes(runs: Runs) -> list[str]:
    """Write notes on trials with fewer episodes than their study plans, or than others have.

    Args:
        runs: The runs.

    Returns:
        One note for each environment with such trials.
    """
    notes = []
    for env in runs.envs:
        trials = runs.select(env).trials
        unfinished = trials[trials["episodes"] < trials["planned"]]
        if len(unfinished):
            rows = unfinished.head(3).itertuples()
            examples = ", ".join(f"{row.run} ({row.episodes} of {row.planned})" for row in rows)
            rest = f" and {len(unfinished) - 3} more" if len(unfinished) > 3 else ""
            text = f"{env}: {len(unfinished)} of {len(trials)} trials are not finished"
            notes.append(f"{text}: {examples}{rest}")
    return notes


def summary(runs: Runs, *, episodes: int | None = None, seed: int = 0) -> Frame:
    """Summarise runs: one row for each environment, agent and setting, with 95 % intervals.

    Args:
        runs: The runs.
        episodes: After how many episodes trials are measured. Trials with fewer are counted in the
            column "unfinished" and not averaged. None means as many as all trials of an
            environment have.
        seed: The seed of the bootstrap.

    Returns:
        The table.

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
        env_runs = runs.select(env)
        last = _last_episode(env_runs, episodes)
        name = measure(env_runs)
        numbers = _trial_numbers(env_runs, last, name)
        curves = env_runs.curves("cumulative_regret")
        covered, seconds = env_runs.curves("covered"), env_runs.curves("seconds")
        for contender, trials in env_runs.contenders.items():
            finished = trials["episodes"].to_numpy() >= last
            values = numbers[contender][finished]
            row: dict[str, Any] = {
                "environment": env,
                "agent": contender,
                "seeds": int(finished.sum()),
                "unfinished": int((~finished).sum()),
                "episodes": last,
                "measure": name,
            }
            for label, statistic in STATISTICS.items():
                row |= _columns(label, bootstrap(statistic, values, seed=seed) if last else None)
            known = name == "cumulative regret" and len(values) > 0
            regrets = curves[contender][finished, :last]
            row |= _columns("slope", regret_slope(regrets, seed=seed) if known else None)
            row["coverage"] = _mean(covered[contender][:, :last])
            row["milliseconds"] = 1e3 * _median(seconds[contender][:, 2:last])
            rows.append(row)
    return pd.DataFrame(rows)


def comparisons(runs: Runs, *, episodes: int | None = None, seed: int = 0) -> Frame:
    """Compare every pair of agents, with their settings, on the seeds that both have.

    Args:
        runs: The runs.
        episodes: After how many episodes trials are measured. None means as many as all trials of
            an environment have.
        seed: The seed of the bootstrap.

    Returns:
        The table: one row for each environment and pair.

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
        env_runs = runs.select(env)
        last = _last_episode(env_runs, episodes)
        name = measure(env_runs)
        numbers = _trial_numbers(env_runs, last, name)
        by_seed = {
            contender: dict(zip(trials["seed"], numbers[contender], strict=True))
            for contender, trials in env_runs.contenders.items()
        }
        for first, second in itertools.combinations(by_seed, 2):
            left, right = by_seed[first], by_seed[second]
            common = [s for s in left if s in right and np.isfinite([left[s], right[s]]).all()]
            if not common or not last:
                continue
            values = (np.array([side[s] for s in common]) for side in (left, right))
            comparison = paired(*values, seed=seed)
            better = comparison.lower if MEASURES[name] else 1 - comparison.lower
            rows.append(
                {
                    "environment": env,
                    "first": first,
                    "second": second,
                    "common seeds": comparison.seeds,
                    "episodes": last,
                    "measure": name,
                    **_columns("difference", comparison.difference),
                    "first better": better,
                }
            )
    return pd.DataFrame(rows)


def _last_episode(runs: Runs, episodes: int | None) -> int:
    if episodes is None:
        return common_episodes(runs)
    most = int(runs.trials["episodes"].max())
    if not 1 <= episodes <= most:
        got = f"{episodes} where {runs.envs[0]} has {most}"
        raise ArgumentError("episodes", "a number of episodes that was played", got)
    return episodes


def _trial_numbers(runs: Runs, last: int, name: str) -> dict[str, np.ndarray]:
    """Return one number for each trial, (seeds,); NaN for trials with fewer episodes."""
    column = "cumulative_regret" if name == "cumulative regret" else "return"
    numbers = {}
    for contender, curves in runs.curves(column).items():
        if curves.shape[1] < last or last == 0:
            numbers[contender] = np.full(len(curves), math.nan)
        elif column == "return":
            numbers[contender] = np.mean(curves[:, :last], axis=1)
        else:
            numbers[contender] = curves[:, last - 1]
    return numbers


def _columns(label: str, estimate: Any) -> dict[str, float]:
    ends = (math.nan,) * 3 if estimate is None else (estimate.value, estimate.low, estimate.high)
    return dict(zip((label, f"{label} low", f"{label} high"), map(float, ends), strict=True))


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else math.nan


def _median(values: np.ndarray) -> float:
    return float(np.nanmedian(values)) if np.isfinite(values).any() else math.nan
