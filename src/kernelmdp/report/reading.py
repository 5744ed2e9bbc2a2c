"""Read stored runs into data frames: one row an episode, one row a trial."""

import dataclasses
import functools
import json
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.run_files import (
    BOUND_FILE,
    CONFIG_FILE,
    EPISODES_FILE,
    RunDescription,
    read_description,
)
from kernelmdp.experiments.run_tables import Frame, read_tables
from kernelmdp.report.statistics import slope
from kernelmdp.report.studies import MANIFEST_FILE, StoredStudy, read_study
from kernelmdp.settings import flatten

#: Columns that identify a trial. Both frames have them.
TRIAL_COLUMNS = ("run", "env", "agent", "setting", "seed")
#: Columns of episodes from which the numbers of trials and figures are computed.
EPISODE_COLUMNS = (
    "return",
    "optimal_value",
    "cumulative_regret",
    "covered_reward",
    "covered_transition",
    "gain_reward",
    "gain_transition",
    "width_reward",
    "width_transition",
    "plan_seconds",
    "update_seconds",
)
#: First episodes, which are left out of times because they compile programs.
COMPILING_EPISODES = 2


@dataclasses.dataclass(frozen=True)
class Runs:
    """Stored runs as data frames.

    Attributes:
        episodes: One row an episode, with the columns of ``episodes.csv``.
        trials: One row a run, also for runs without an episode.
        bounds: The points of the bounds, with the columns of ``bound.csv``.
        notes: What was incomplete in the files.
        studies: The studies that were read.

    >>> import tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "random"), folder, episodes=2)
    ...     runs = read(folder)
    >>> runs.envs, len(runs.episodes)
    (['riverswim'], 2)
    """

    episodes: Frame
    trials: Frame
    bounds: Frame
    notes: tuple[str, ...] = ()
    studies: tuple[StoredStudy, ...] = ()

    @property
    def envs(self) -> list[str]:
        """The environments with their options, sorted."""
        return sorted(set(self.trials["env"]))

    def select(self, env: str) -> "Runs":
        """Select the runs of one environment.

        Args:
            env: One of ``envs``.

        Returns:
            The runs.

        Raises:
            ArgumentError: If there is no such environment.
        """
        if env not in self.envs:
            raise ArgumentError("env", "one of " + ", ".join(self.envs), env)
        episodes, trials, bounds = (
            frame[frame["env"] == env] for frame in (self.episodes, self.trials, self.bounds)
        )
        return Runs(episodes, trials, bounds, self.notes, self.studies)

    @functools.cached_property
    def contenders(self) -> dict[str, Frame]:
        """The trials of each contender, by its name. A contender is an agent with its settings."""
        groups = self.trials.groupby(["label", "agent", "setting"], sort=True)
        return {_contender_name(*names): group for names, group in groups}

    def curves(self, column: str) -> dict[str, np.ndarray]:
        """Return a column of the episodes for each contender.

        Args:
            column: The name of the column.

        Returns:
            Arrays (seeds, episodes) by contender. Episodes that a trial has not reached are NaN.
        """
        # One pass over all rows: a selection for every trial would take seconds.
        values, curves = self.episodes[column].to_numpy(float), {}
        for name, trials in self.contenders.items():
            spans = [self._spans.get(run, (0, 0)) for run in trials["run"]]
            longest = max(end - start for start, end in spans)
            curves[name] = np.full((len(spans), longest), np.nan)
            for row, (start, end) in zip(curves[name], spans, strict=True):
                row[: end - start] = values[start:end]
        return curves

    @functools.cached_property
    def _spans(self) -> dict[str, tuple[int, int]]:
        """Where the rows of each run start and end. The rows of a run are contiguous."""
        codes = self.episodes["run"].cat.codes.to_numpy()
        starts = np.flatnonzero(np.r_[len(codes) > 0, codes[1:] != codes[:-1]])
        names = self.episodes["run"].cat.categories[codes[starts]]
        ends = [*starts[1:].tolist(), len(codes)]
        return dict(zip(names, zip(starts.tolist(), ends[: len(starts)], strict=True), strict=True))


def read(*folders: Any, labels: Sequence[str] | None = None) -> Runs:
    r"""Read the runs in folders, and in all folders inside them.

    Args:
        *folders: Folders of runs or studies, or folders that contain them.
        labels: One name for each folder, to compare folders that hold the same trials, such as
            a study before and after a change. Agents are then named by label too.

    Returns:
        The runs.

    Raises:
        ArgumentError: If there is not one label for each folder, or a run is in two of them.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "config.toml").write_text('[run]\nenv = "line"\nagent = "psrl"\nseed = 3')
    >>> _ = (folder / "episodes.csv").write_text("episode,return\n1,0.5\n2,0.75\n")
    >>> runs = read(folder)
    >>> runs.episodes[["agent", "seed", "episode", "return"]].values.tolist()
    [['psrl', 3, 1, 0.5], ['psrl', 3, 2, 0.75]]
    >>> int(runs.trials["episodes"].iloc[0])
    2
    """
    import pandas as pd

    paths, studies = find_runs(folders)
    names, labelled = _short_names(paths), _labels(folders, labels, len(paths))
    descriptions = [read_description(path) for path in paths]
    trials = pd.DataFrame(
        [_trial_row(*run) for run in zip(paths, names, labelled, descriptions, strict=True)]
    )
    _require_different(trials)
    notes: list[str] = []
    episodes = _join(read_tables([path / EPISODES_FILE for path in paths], notes), trials)
    bounds = _join(read_tables([path / BOUND_FILE for path in paths], notes), trials)
    _require_order(episodes, trials)
    _add_trial_numbers(episodes, trials)
    if "maximum_gain_reward" in bounds:
        total_gain = bounds["maximum_gain_reward"] + bounds["maximum_gain_transition"]
        bounds["maximum_gain"] = total_gain
    trials["bound_value"] = trials["run"].map(bounds.groupby("run")["bound"].last()).astype(float)
    trials["planned"] = trials.groupby("env")["episodes"].transform("max")
    for study in studies:
        inside = [study.folder.resolve() in path.resolve().parents for path in paths]
        trials.loc[inside, "planned"] = study.episodes
        if not_begun := study.not_begun(paths):
            count = f"{len(not_begun)} of {len(study.trials)}"
            notes.append(f"study {study.name}: {count} trials have not begun: {_some(not_begun)}")
    empty = trials[trials["episodes"] == 0]["run"]
    if len(empty):
        notes.append(f"no episode yet in {_some(empty)}")
    return Runs(episodes, trials, bounds, tuple(notes), tuple(studies))


def read_columns(folder: Any) -> dict[str, np.ndarray]:
    """Read ``episodes.csv`` of one run.

    Args:
        folder: The run's folder.

    Returns:
        Arrays (E,) by column; empty if there is no episode.

    Raises:
        ArgumentError: If the folder has no ``episodes.csv``.

    >>> import tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "oracle"), folder, episodes=2)
    ...     read_columns(folder)["cumulative_regret"]
    array([0., 0.])
    """
    if not (pathlib.Path(folder) / EPISODES_FILE).is_file():
        raise ArgumentError("folder", "the folder of a run, with episodes.csv", str(folder))
    (table,) = read_tables([pathlib.Path(folder) / EPISODES_FILE], [])
    return {} if not len(table) else {name: table[name].to_numpy(float) for name in table}


def read_bound(folder: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Read the curve of a theorem's regret bound from a run's folder.

    Args:
        folder: The run's folder.

    Returns:
        Numbers of episodes and the bound after each, (n,) each; None if there is no bound.

    >>> import tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "random"), folder, episodes=1)
    ...     read_bound(folder) is None  # no theorem is about random actions
    True
    """
    path = pathlib.Path(folder) / BOUND_FILE
    if not path.is_file():
        return None
    (table,) = read_tables([path], [])
    return table["episode"].to_numpy(float), table["bound"].to_numpy(float)


def find_runs(folders: Sequence[Any]) -> tuple[list[pathlib.Path], list[StoredStudy]]:
    """Find the runs and studies in folders, and in all folders inside them.

    Args:
        folders: The folders.

    Returns:
        The folders of the runs, and the studies; each of them once.

    Raises:
        ArgumentError: If a folder does not exist, or has no run.
    """
    if not folders:
        raise ArgumentError("folders", "at least one folder", "none")
    runs: dict[str, pathlib.Path] = {}
    studies: dict[str, StoredStudy] = {}
    for folder in folders:
        if not pathlib.Path(folder).is_dir():
            raise ArgumentError("folder", "a folder of runs", f"{folder}, which is none")
        count = 0
        for path, subfolders, files in os.walk(folder):
            subfolders.sort()
            if CONFIG_FILE in files and _is_run(pathlib.Path(path), files):
                runs.setdefault(os.path.realpath(path), pathlib.Path(path))
                subfolders.clear()
                count += 1
            elif MANIFEST_FILE in files and (
                study := read_study(pathlib.Path(path) / MANIFEST_FILE)
            ):
                studies.setdefault(os.path.realpath(path), study)
        if count == 0:
            expected = "the folder of a run, with episodes.csv and config.toml, or one of runs"
            raise ArgumentError("folder", expected, str(folder))
    return list(runs.values()), list(studies.values())


def _is_run(folder: pathlib.Path, files: list[str]) -> bool:
    """Return whether a folder is that of a run, even of one killed before its first episode."""
    return EPISODES_FILE in files or b"[run]" in (folder / CONFIG_FILE).read_bytes()


def _short_names(paths: list[pathlib.Path]) -> list[str]:
    """Return paths relative to the folder that all runs have in common."""
    real_paths = [os.path.realpath(path) for path in paths]
    if len(real_paths) == 1:
        return [os.path.basename(real_paths[0])]
    common = os.path.commonpath(real_paths)
    return [os.path.relpath(path, common) for path in real_paths]


def _labels(folders: Sequence[Any], labels: Sequence[str] | None, count: int) -> list[str]:
    """Return the label of each run; empty without labels."""
    if labels is None:
        return [""] * count
    if len(labels) != len(folders) or len(set(labels)) < len(labels):
        expected = f"{len(folders)} different names, one for each folder"
        raise ArgumentError("labels", expected, ", ".join(map(repr, labels)) or "none")
    counts = [len(find_runs([folder])[0]) for folder in folders]
    if sum(counts) != count:
        raise ArgumentError("labels", "folders that have no run in common", f"{sum(counts)} runs")
    return [label for label, n in zip(labels, counts, strict=True) for _ in range(n)]


def _trial_row(
    path: pathlib.Path, name: str, label: str, description: RunDescription
) -> dict[str, Any]:
    """Return a row of the table of trials."""
    run = description.run
    options, settings = _as_text(run["env_options"]), flatten(run["settings"])
    return {
        "run": name,
        "env": run["env"] + (f" [{options}]" if options else ""),
        "label": label,
        "agent": run["agent"],
        "setting": _as_text(settings),
        "seed": run["seed"],
        "folder": str(path),
        "coverage": str(description.coverage),
        "bound": description.bound,
        "bounded": description.bounded,
        "env_name": run["env"],
        "env_options": run["env_options"],
        "settings": settings,
        "versions": description.versions,
    }


def _as_text(settings: dict[str, Any]) -> str:
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in settings.items()}
    return ", ".join(f"{name}={text}" for name, text in sorted(texts.items()))


def _contender_name(label: str, agent: str, setting: str) -> str:
    name = f"{agent} ({setting})" if setting else agent
    return f"{label}: {name}" if label else name


def _require_different(trials: Frame) -> None:
    """Refuse trials that occur twice. A seed that counts twice makes intervals too narrow."""
    for _, group in trials.groupby(["env", "label", "agent", "setting", "seed"], sort=False):
        if len(group) > 1:
            got = f"the same trial in {_some(group['run'])}"
            expected = "every trial once, or a label for each folder (--label, labels=[...])"
            raise ArgumentError("folders", expected, got)


def _some(names: Iterable[str], most: int = 3) -> str:
    texts = list(names)
    rest = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + rest


def _join(tables: list[Frame], trials: Frame) -> Frame:
    """Join tables into one. Every row gets the columns that identify its trial."""
    import pandas as pd

    counts = [len(table) for table in tables]
    filled = [table for table in tables if len(table)]
    if filled:
        joined = pd.concat(filled, ignore_index=True)
    else:
        joined = pd.DataFrame(columns=["episode", "bound"], dtype=float)
    names = {
        name: pd.Categorical(trials[name].repeat(counts))
        if name != "seed"
        else trials[name].repeat(counts).to_numpy()
        for name in TRIAL_COLUMNS
    }
    frame = pd.concat([pd.DataFrame(names), joined], axis=1)
    return frame.astype({"episode": int})


def _require_order(episodes: Frame, trials: Frame) -> None:
    """Check that every run has episodes 1, 2, …. Two processes may have written to one file."""
    expected_numbers = episodes.groupby("run", observed=True, sort=False).cumcount() + 1
    wrong = episodes[episodes["episode"].to_numpy() != expected_numbers.to_numpy()]
    if len(wrong):
        run, number = wrong["run"].iloc[0], wrong["episode"].iloc[0]
        folder = trials.set_index("run")["folder"][run]
        expected = f"episodes in their order, {expected_numbers[wrong.index[0]]} next"
        raise ArgumentError("folder", expected, f"{number} in {folder}/episodes.csv")


def _add_trial_numbers(episodes: Frame, trials: Frame) -> None:
    """Add the numbers of each trial as columns; NaN if a run does not store them."""
    for column in EPISODE_COLUMNS:
        if column not in episodes:
            episodes[column] = np.nan
    episodes["return_gap"] = episodes["return"] - episodes["optimal_value"]
    episodes["gain"] = episodes["gain_reward"] + episodes["gain_transition"]
    episodes["seconds"] = episodes["plan_seconds"] + episodes["update_seconds"]
    # Whether both sets contain the truth. The minimum keeps NaN.
    episodes["covered"] = np.minimum(episodes["covered_reward"], episodes["covered_transition"])
    runs = episodes.groupby("run", observed=True, sort=False)
    compiled = episodes[episodes["episode"] > COMPILING_EPISODES]
    compiled_runs = compiled.groupby("run", observed=True, sort=False)
    slopes = {
        run: slope(group["episode"].to_numpy(), group["cumulative_regret"].to_numpy())
        for run, group in runs[["episode", "cumulative_regret"]]
    }
    numbers = {
        "episodes": runs.size(),
        "regret": runs["cumulative_regret"].last(skipna=False),
        "slope": slopes,
        "last_return": runs["return"].last(skipna=False),
        "mean_return": runs["return"].mean(),
        "coverage": runs["covered"].mean(),
        "seconds": compiled_runs["seconds"].median(),
    }
    for name, by_run in numbers.items():
        trials[name] = trials["run"].map(by_run).astype(float)
    trials["episodes"] = trials["episodes"].fillna(0).astype(int)
