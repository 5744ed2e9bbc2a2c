"""One run in one folder: an agent, an environment, a seed.

The folder holds ``config.toml`` (all that is needed to repeat the run), ``episodes.csv`` (one row
an episode, on disk when the episode ends) and ``checkpoint`` (the agent); where a theorem covers
the run also ``bound.csv`` (its regret bound), and ``journal`` while the run is under way. Running
again goes on where it stopped: everything random depends on seed and episode alone, so an episode
that was under way comes out the same again.
"""

import contextlib
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp.agents import Agent
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.learning_loop import columns_of, interact
from kernelmdp.experiments.recovery import recover_run
from kernelmdp.experiments.results import Result, Table
from kernelmdp.experiments.run_bounds import run_bound, write_curve
from kernelmdp.experiments.run_config import RunConfig
from kernelmdp.experiments.run_files import (
    BOUND,
    CHECKPOINT,
    CONFIG,
    JOURNAL,
    read_config,
    read_history,
    read_rows,
    write_config,
)
from kernelmdp.experiments.run_folder import LOCK, RunFolder, lock, restore, storage_errors


def run(
    config: RunConfig,
    folder: Any,
    *,
    episodes: int,
    watch: Callable[[Any, int, Agent], Any] = lambda rows, total, agent: rows,
) -> Result:
    """Play until the folder holds ``episodes`` episodes.

    ``watch`` may show rows as they come; those it sees are on disk.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = run(RunConfig("riverswim", "random"), folder, episodes=1)
    ...     both = run(RunConfig("riverswim", "random"), folder, episodes=2)  # goes on
    >>> len(both.episodes)
    2
    """
    place = pathlib.Path(folder)
    _require_same_run(config, place)
    with contextlib.ExitStack() as held:
        if place.exists():
            held.enter_context(lock(place))
            agent = config.make_agent()
        else:
            agent = config.make_agent()  # what is wrong with it leaves no folder behind
            held.enter_context(lock(place))
            _require_same_run(config, place)  # another process may have been here meanwhile
        if not (place / CONFIG).exists():
            with storage_errors(place):
                write_config(config, place, agent)
        kept = recover_run(place, agent, config)
        restore(place, kept, agent)
        for episode in kept.history:
            agent.replay(episode)
        agent.totals = dict(kept.totals)
        rows = read_rows(place)
        left = max(0, episodes - agent.episode)
        finished = not left and is_finished(place, episodes)
        bound: tuple[str, tuple[np.ndarray, np.ndarray] | None]
        if finished:
            bound = _bounded(agent, len(rows), place)
        else:
            files = RunFolder(place, agent)
            held.callback(files.close)
            try:
                played = files.record(interact(agent, left))
                rows.extend(watch(played, left, agent))
                bound = _bounded(agent, len(rows), place)
            except BaseException:
                files.save()
                raise
            files.finish()
    table = Table(rows, columns_of(agent))
    return Result(agent.problem.name, agent.name, agent.coverage, table, *bound)


def is_finished(folder: Any, episodes: int) -> bool:
    """Whether a run has that many episodes and came to an orderly end."""
    place = pathlib.Path(folder)
    return (
        (place / CHECKPOINT).exists()
        and not (place / JOURNAL).exists()
        and len(read_rows(place)) >= episodes
    )


def load_run(config: RunConfig, place: pathlib.Path) -> Agent:
    """The agent of a run's folder, as its checkpoint has it."""
    history, totals = read_history(place, config)
    agent = config.make_agent()
    for episode in history:
        agent.replay(episode)
    agent.totals = totals
    return agent


def _require_same_run(config: RunConfig, place: pathlib.Path) -> None:
    """The folder is new, empty or this run's."""
    if (place / CONFIG).exists():
        if (saved := read_config(place)) != config:
            raise ArgumentError(
                "out", "a folder of the same run, or a new one", f"{place}, which holds {saved}"
            )
    elif place.exists() and (
        not place.is_dir() or {path.name for path in place.iterdir()} - {LOCK, CONFIG + ".part"}
    ):
        raise ArgumentError("out", "an empty or new folder, or one of a run", str(place))


def _bounded(
    agent: Agent, episodes: int, place: pathlib.Path
) -> tuple[str, tuple[np.ndarray, np.ndarray] | None]:
    """What a theorem says of the run, and its curve.

    At the end, as gains take seconds; it depends on nothing but the number of episodes.
    """
    found = run_bound(agent)
    curve = found.curve(episodes) if episodes else []
    if not curve:
        return found.text, None
    with storage_errors(place):
        write_curve(curve, place / BOUND, found.gains)
    text = found.text + ("; vacuous so far" if curve[-1].vacuous else "")
    return text, (np.array([b.episodes for b in curve]), np.array([b.value for b in curve]))
