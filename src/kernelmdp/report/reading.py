"""Stored runs as data frames: one row an episode, one row a trial."""

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
from kernelmdp.report.studies import NAME as STUDY
from kernelmdp.report.studies import StoredStudy, read_study
from kernelmdp.settings import flat

#: What names a trial: columns of both frames.
NAMES = ("run", "env", "agent", "setting", "seed")
#: Columns of episodes that trials are summed up by.
COUNTED = (
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
#: Episodes at the start whose time is that of compilation.
COLD = 2


@dataclasses.dataclass(frozen=True)
class Runs:
    """What was read: data frames, and notes on what was not as it should be.

    ``episodes`` has the columns of every ``episodes.csv``, ``bounds`` those of every
    ``bound.csv``; ``trials`` has a row for every run, also for those without an episode.

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
        """Environments, with their options."""
        return sorted(set(self.trials["env"]))

    def of(self, env: str) -> "Runs":
        """Those of one environment."""
        if env not in self.envs:
            raise ArgumentError("env", "one of " + ", ".join(self.envs), env)
        episodes, trials, bounds = (
            frame[frame["env"] == env] for frame in (self.episodes, self.trials, self.bounds)
        )
        return Runs(episodes, trials, bounds, self.notes, self.studies)

    @functools.cached_property
    def contenders(self) -> dict[str, Frame]:
        """Trials by agent and setting: what is compared, each with all its seeds."""
        groups = self.trials.groupby(["agent", "setting"], sort=True)
        return {_contender(*names): group for names, group in groups}

    def curves(self, column: str) -> dict[str, np.ndarray]:
        """A column by contender, (seeds, episodes); NaN where a trial has not come so far."""
        # One pass over all rows: a selection for every trial would take seconds.
        values, found = self.episodes[column].to_numpy(float), {}
        for name, trials in self.contenders.items():
            spans = [self._spans.get(run, (0, 0)) for run in trials["run"]]
            longest = max(end - begin for begin, end in spans)
            found[name] = np.full((len(spans), longest), np.nan)
            for row, (begin, end) in zip(found[name], spans, strict=True):
                row[: end - begin] = values[begin:end]
        return found

    @functools.cached_property
    def _spans(self) -> dict[str, tuple[int, int]]:
        """Where the rows of each run begin and end: they lie together."""
        codes = self.episodes["run"].cat.codes.to_numpy()
        begins = np.flatnonzero(np.r_[len(codes) > 0, codes[1:] != codes[:-1]])
        names = self.episodes["run"].cat.categories[codes[begins]]
        ends = [*begins[1:].tolist(), len(codes)]
        return dict(zip(names, zip(begins.tolist(), ends[: len(begins)], strict=True), strict=True))


def read(*folders: Any) -> Runs:
    """The runs in these folders, and in folders below them.

    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "config.toml").write_text('[run]\\nenv = "line"\\nagent = "psrl"\\nseed = 3')
    >>> _ = (folder / "episodes.csv").write_text("episode,return\\n1,0.5\\n2,0.75\\n")
    >>> runs = read(folder)
    >>> runs.episodes[["agent", "seed", "episode", "return"]].values.tolist()
    [['psrl', 3, 1, 0.5], ['psrl', 3, 2, 0.75]]
    >>> int(runs.trials["episodes"].iloc[0])
    2
    """
    import pandas as pd

    places, studies = find(folders)
    names = _names(places)
    configs = [read_description(place) for place in places]
    trials = pd.DataFrame([_described(*each) for each in zip(places, names, configs, strict=True)])
    _require_different(trials)
    notes: list[str] = []
    episodes = _joined(read_tables([place / EPISODES_FILE for place in places], notes), trials)
    bounds = _joined(read_tables([place / BOUND_FILE for place in places], notes), trials)
    _require_order(episodes, trials)
    _count(episodes, trials)
    if "maximum_gain_reward" in bounds:
        both = bounds["maximum_gain_reward"] + bounds["maximum_gain_transition"]
        bounds["maximum_gain"] = both
    trials["bound_value"] = trials["run"].map(bounds.groupby("run")["bound"].last()).astype(float)
    trials["planned"] = trials.groupby("env")["episodes"].transform("max")
    for study in studies:
        inside = [study.folder.resolve() in place.resolve().parents for place in places]
        trials.loc[inside, "planned"] = study.episodes
        if waiting := study.waiting(places):
            count = f"{len(waiting)} of {len(study.trials)}"
            notes.append(f"study {study.name}: {count} trials have not begun: {_some(waiting)}")
    empty = trials[trials["episodes"] == 0]["run"]
    if len(empty):
        notes.append(f"no episode yet in {_some(empty)}")
    return Runs(episodes, trials, bounds, tuple(notes), tuple(studies))


def read_columns(folder: Any) -> dict[str, np.ndarray]:
    """The columns of one run's ``episodes.csv``.

    >>> import tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "oracle"), folder, episodes=2)
    ...     read_columns(folder)["cumulative_regret"]
    array([0., 0.])
    """
    if not (pathlib.Path(folder) / EPISODES_FILE).is_file():
        raise ArgumentError("folder", "the folder of a run, with episodes.csv", str(folder))
    (found,) = read_tables([pathlib.Path(folder) / EPISODES_FILE], [])
    return {} if not len(found) else {name: found[name].to_numpy(float) for name in found}


def read_bound(folder: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """A theorem's curve beside a run: numbers of episodes and the bound after each.

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
    (found,) = read_tables([path], [])
    return found["episode"].to_numpy(float), found["bound"].to_numpy(float)


def find(folders: Sequence[Any]) -> tuple[list[pathlib.Path], list[StoredStudy]]:
    """Runs and studies, those that are given or that lie below; each once."""
    if not folders:
        raise ArgumentError("folders", "at least one folder", "none")
    found: dict[str, pathlib.Path] = {}
    studies: dict[str, StoredStudy] = {}
    for folder in folders:
        if not pathlib.Path(folder).is_dir():
            raise ArgumentError("folder", "a folder of runs", f"{folder}, which is none")
        count = 0
        for place, below, files in os.walk(folder):
            below.sort()
            if CONFIG_FILE in files and _is_run(pathlib.Path(place), files):
                found.setdefault(os.path.realpath(place), pathlib.Path(place))
                below.clear()
                count += 1
            elif STUDY in files and (study := read_study(pathlib.Path(place) / STUDY)):
                studies.setdefault(os.path.realpath(place), study)
        if count == 0:
            expected = "the folder of a run, with episodes.csv and config.toml, or one of runs"
            raise ArgumentError("folder", expected, str(folder))
    return list(found.values()), list(studies.values())


def _is_run(place: pathlib.Path, files: list[str]) -> bool:
    """Also one that was killed before its first episode."""
    return EPISODES_FILE in files or b"[run]" in (place / CONFIG_FILE).read_bytes()


def _names(places: list[pathlib.Path]) -> list[str]:
    """Short names: paths from the folder that all runs have in common."""
    paths = [os.path.realpath(place) for place in places]
    if len(paths) == 1:
        return [os.path.basename(paths[0])]
    common = os.path.commonpath(paths)
    return [os.path.relpath(path, common) for path in paths]


def _described(place: pathlib.Path, name: str, description: RunDescription) -> dict[str, Any]:
    """A row of the table of trials."""
    run = description.run
    options, settings = _pairs(run["env_options"]), flat(run["settings"])
    return {
        "run": name,
        "env": run["env"] + (f" [{options}]" if options else ""),
        "agent": run["agent"],
        "setting": _pairs(settings),
        "seed": run["seed"],
        "folder": str(place),
        "coverage": str(description.coverage),
        "bound": description.bound,
        "bounded": description.bounded,
        "env_name": run["env"],
        "env_options": run["env_options"],
        "settings": settings,
        "versions": description.versions,
    }


def _pairs(settings: dict[str, Any]) -> str:
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in settings.items()}
    return ", ".join(f"{name}={text}" for name, text in sorted(texts.items()))


def _contender(agent: str, setting: str) -> str:
    return f"{agent} ({setting})" if setting else agent


def _require_different(trials: Frame) -> None:
    """A seed that counts twice would make every interval too narrow."""
    for _, same in trials.groupby(["env", "agent", "setting", "seed"], sort=False):
        if len(same) > 1:
            got = f"the same trial in {_some(same['run'])}"
            raise ArgumentError("folders", "every trial once", got)


def _some(names: Iterable[str], most: int = 3) -> str:
    texts = list(names)
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def _joined(tables: list[Frame], trials: Frame) -> Frame:
    """All tables in one, each row with the names of its trial."""
    import pandas as pd

    counts = [len(table) for table in tables]
    kept = [table for table in tables if len(table)]
    if kept:
        joined = pd.concat(kept, ignore_index=True)
    else:
        joined = pd.DataFrame(columns=["episode", "bound"], dtype=float)
    names = {
        name: pd.Categorical(trials[name].repeat(counts))
        if name != "seed"
        else trials[name].repeat(counts).to_numpy()
        for name in NAMES
    }
    found = pd.concat([pd.DataFrame(names), joined], axis=1)
    return found.astype({"episode": int})


def _require_order(episodes: Frame, trials: Frame) -> None:
    """Episodes 1, 2, ... of every run: a file that two programs wrote to is not read as one."""
    place = episodes.groupby("run", observed=True, sort=False).cumcount() + 1
    wrong = episodes[episodes["episode"].to_numpy() != place.to_numpy()]
    if len(wrong):
        run, found = wrong["run"].iloc[0], wrong["episode"].iloc[0]
        folder = trials.set_index("run")["folder"][run]
        expected = f"episodes in their order, {place[wrong.index[0]]} next"
        raise ArgumentError("folder", expected, f"{found} in {folder}/episodes.csv")


def _count(episodes: Frame, trials: Frame) -> None:
    """Numbers of each trial, as columns; NaN where a run does not store them."""
    for column in COUNTED:
        if column not in episodes:
            episodes[column] = np.nan
    episodes["gain"] = episodes["gain_reward"] + episodes["gain_transition"]
    episodes["seconds"] = episodes["plan_seconds"] + episodes["update_seconds"]
    # Minimum, where NaN stays NaN: both sets held the truth.
    episodes["covered"] = np.minimum(episodes["covered_reward"], episodes["covered_transition"])
    runs = episodes.groupby("run", observed=True, sort=False)
    warm = episodes[episodes["episode"] > COLD].groupby("run", observed=True, sort=False)
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
        "seconds": warm["seconds"].median(),
    }
    for name, found in numbers.items():
        trials[name] = trials["run"].map(found).astype(float)
    trials["episodes"] = trials["episodes"].fillna(0).astype(int)
