"""One run in one folder: an agent, an environment and a seed.

The folder holds these files:

- ``config.toml``: everything that is needed to repeat the run.
- ``episodes.csv``: one row an episode.
- ``checkpoint``: the saved agent.
- ``journal``: the latest episodes, only while the run is not finished.
- ``bound.csv``: the regret bound, if a theorem covers the run.

Call ``run`` again to continue a run that was stopped. Everything random depends on the seed and the
number of the episode only, so an interrupted episode is repeated with the same numbers.
"""

import contextlib
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp import archive
from kernelmdp.agents import Agent
from kernelmdp.agents.saving import learn_again
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.learning_loop import columns_of, final_model, interact
from kernelmdp.experiments.recovery import recover_run
from kernelmdp.experiments.results import PlayedRun, Result, Table
from kernelmdp.experiments.run_bounds import run_bound, write_curve
from kernelmdp.experiments.run_config import RunConfig
from kernelmdp.experiments.run_files import (
    BOUND_FILE,
    CHECKPOINT_FILE,
    CONFIG_FILE,
    EPISODES_FILE,
    JOURNAL_FILE,
    as_line,
    header,
    read_config,
    read_history,
    read_rows,
    write_config,
)
from kernelmdp.experiments.run_folder import (
    LOCK_FILE,
    RunFolder,
    lock,
    restore_rows,
    storage_errors,
)


def run(
    config: RunConfig,
    folder: Any,
    *,
    episodes: int,
    track: Callable[[Any, int, Agent], Any] = lambda rows, total, agent: rows,
) -> Result:
    """Play until the folder holds this many episodes.

    Args:
        config: What to run.
        folder: The run's folder. It is made if there is none.
        episodes: The number of episodes of the whole run. If the folder has some, the run resumes.
        track: A function ``track(rows, total, agent)`` that passes on an iterator of rows. It may
            show progress. The rows that it receives are on disk. ``total`` is the number of
            episodes that are still to be played.

    Returns:
        The table of all episodes, and the regret bound where a theorem covers the run.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = run(RunConfig("riverswim", "random"), folder, episodes=1)
    ...     both = run(RunConfig("riverswim", "random"), folder, episodes=2)  # resumes
    >>> len(both.episodes)
    2
    """
    path = pathlib.Path(folder)
    _require_same_run(config, path)
    with contextlib.ExitStack() as resources:
        if path.exists():
            resources.enter_context(lock(path))
            agent = config.make_agent()
        else:
            # The agent is made first: an invalid configuration then leaves no folder behind.
            agent = config.make_agent()
            resources.enter_context(lock(path))
            _require_same_run(config, path)  # Another process may have used the folder meanwhile.
        if not (path / CONFIG_FILE).exists():
            with storage_errors(path):
                write_config(config, path, agent)
        recovered = recover_run(path, agent, config)
        restore_rows(path, recovered, agent)
        recovered.give_to(agent, path / CHECKPOINT_FILE)
        rows = read_rows(path)
        remaining = max(0, episodes - agent.episode)
        finished = not remaining and is_finished(path, episodes)
        bound: tuple[str, tuple[np.ndarray, np.ndarray] | None]
        if finished:
            bound = _regret_bound(agent, len(rows), path)
        else:
            files = RunFolder(path, agent)
            resources.callback(files.close)
            try:
                played = files.record(interact(agent, remaining))
                rows.extend(track(played, remaining, agent))
                bound = _regret_bound(agent, len(rows), path)
            except BaseException:
                files.save()
                raise
            files.finish()
    table = Table(rows, columns_of(agent))
    done = (agent.problem.name, agent.name, agent.coverage, table)
    return Result(*done, *bound, final_model(agent))


def record_run(config: RunConfig, folder: Any, agent: Agent, played: PlayedRun) -> None:
    """Write the folder of a run that was played elsewhere, as ``run`` would have left it.

    Args:
        config: The configuration of the run.
        folder: The run's folder, which does not exist yet.
        agent: The agent of the run, before its first episode. It takes over the episodes.
        played: Rows, episodes, the learner's state and running sums.
    """
    path = pathlib.Path(folder)
    _require_same_run(config, path)
    with lock(path):
        agent.restore(played.history, played.state, played.state)
        agent.totals = dict(played.totals)
        columns = columns_of(agent)
        lines = "".join(as_line(row, columns) for row in played.rows)
        with storage_errors(path):
            write_config(config, path, agent)
            archive.write_atomically(path / EPISODES_FILE, (header(columns) + lines).encode())
        _regret_bound(agent, len(played.rows), path)
        with storage_errors(path):
            agent.save(path / CHECKPOINT_FILE)  # it is last: a run with a checkpoint is finished


def is_finished(folder: Any, episodes: int) -> bool:
    """Return whether a run has this many episodes and ended in order.

    Args:
        folder: The run's folder.
        episodes: The number of episodes.

    Returns:
        True if it has all of them in its checkpoint.
    """
    path = pathlib.Path(folder)
    return (
        (path / CHECKPOINT_FILE).exists()
        and not (path / JOURNAL_FILE).exists()
        and len(read_rows(path)) >= episodes
    )


def load_agent_of_run(config: RunConfig, folder: pathlib.Path) -> Agent:
    """Load the agent of a run from its checkpoint.

    Args:
        config: The run's configuration.
        folder: Its folder.

    Returns:
        The agent, which has learned from the episodes of the checkpoint.
    """
    history, totals, states = read_history(folder, config)
    agent = config.make_agent()
    learn_again(agent, folder / CHECKPOINT_FILE, history, states)
    agent.totals = totals
    return agent


def _require_same_run(config: RunConfig, folder: pathlib.Path) -> None:
    """Raise an error unless the folder is new, empty or of this run."""
    if (folder / CONFIG_FILE).exists():
        if (saved := read_config(folder)) != config:
            raise ArgumentError(
                "out", "a folder of the same run, or a new one", f"{folder}, which holds {saved}"
            )
    elif folder.exists() and (
        not folder.is_dir()
        or {path.name for path in folder.iterdir()} - {LOCK_FILE, CONFIG_FILE + ".part"}
    ):
        raise ArgumentError("out", "an empty or new folder, or one of a run", str(folder))


def _regret_bound(
    agent: Agent, episodes: int, folder: pathlib.Path
) -> tuple[str, tuple[np.ndarray, np.ndarray] | None]:
    """Compute the theorem's bound and its curve, and write the curve.

    This is done at the end, because information gains take seconds to compute. The bound depends on
    the number of episodes and not on the data.
    """
    bound = run_bound(agent)
    curve = bound.curve(episodes) if episodes else []
    if not curve:
        return bound.text, None
    with storage_errors(folder):
        write_curve(curve, folder / BOUND_FILE, bound.gains)
    text = bound.text + ("; vacuous so far" if curve[-1].vacuous else "")
    return text, (np.array([b.episodes for b in curve]), np.array([b.value for b in curve]))
