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

from kernelmdp.agents import Agent, Result, Table, load
from kernelmdp.agents.learning import interact
from kernelmdp.errors import ArgumentError, CheckpointError
from kernelmdp.experiments.bounds import run_bound, write_curve
from kernelmdp.experiments.config import RunConfig, read_config, write_config
from kernelmdp.experiments.folder import LOCK, RunFolder, lock, restore, storage
from kernelmdp.experiments.recovery import CHECKPOINT, JOURNAL, ROWS, read_kept, read_rows


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
    _require_own(config, place)
    with contextlib.ExitStack() as held:
        if place.exists():
            held.enter_context(lock(place))
            agent = config.make_agent()
        else:
            agent = config.make_agent()  # what is wrong with it leaves no folder behind
            held.enter_context(lock(place))
            _require_own(config, place)  # another process may have been here meanwhile
        if not (place / "config.toml").exists():
            with storage(place):
                write_config(config, place, agent)
        kept = read_kept(place, agent)
        restore(place, kept)
        for told in kept.history:
            agent.relive(told)
        agent.cumulative_regret = kept.regret
        rows = read_rows(place / ROWS)
        left = max(0, episodes - agent.episode)
        finished = not left and is_finished(place, episodes)
        bound: tuple[str, tuple[np.ndarray, np.ndarray] | None]
        if finished:
            bound = _bounded(agent, len(rows), place)
        else:
            files = RunFolder(place, agent)
            held.callback(files.close)
            try:
                played = files.record(interact(agent, agent.task, left))
                rows.extend(watch(played, left, agent))
                bound = _bounded(agent, len(rows), place)
            except BaseException:
                files.save()
                raise
            files.finish()
    return Result(agent.problem.name, agent.name, agent.covered, Table(rows), *bound)


def is_finished(folder: Any, episodes: int) -> bool:
    """Whether a run has that many episodes and came to an orderly end."""
    place = pathlib.Path(folder)
    return (
        (place / CHECKPOINT).exists()
        and not (place / JOURNAL).exists()
        and len(read_rows(place / ROWS)) >= episodes
    )


def load_run(config: RunConfig, place: pathlib.Path) -> Agent:
    """The agent of a run's folder, as its checkpoint has it."""
    file = place / CHECKPOINT
    words = {k: v for k, v in config.words.items() if k == "noise"}
    agent = load(file, task=config.task(), **words)
    if agent.name != config.agent or agent.seed != config.seed:
        raise CheckpointError(f"{file}: holds {agent.name} with seed {agent.seed}, not this run")
    return agent


def _require_own(config: RunConfig, place: pathlib.Path) -> None:
    """The folder is new, empty or this run's."""
    if (place / "config.toml").exists():
        if (saved := read_config(place)) != config:
            raise ArgumentError(
                "out", "a folder of the same run, or a new one", f"{place}, which holds {saved}"
            )
    elif place.exists() and (
        not place.is_dir() or {path.name for path in place.iterdir()} - {LOCK, "config.toml.part"}
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
    with storage(place):
        write_curve(curve, place / "bound.csv", found.gains)
    text = found.text + ("; vacuous so far" if curve[-1].vacuous else "")
    return text, (np.array([b.episodes for b in curve]), np.array([b.value for b in curve]))
