"""Play the trials of a study on this machine, in worker processes of one core each."""

import itertools
import os
import pathlib
from collections.abc import Callable, Sequence

import jax
from joblib.externals.loky import FIRST_COMPLETED, BrokenProcessPool, ProcessPoolExecutor, wait

from kernelmdp.experiments.run_files import EPISODES_FILE
from kernelmdp.experiments.study_file import Trial
from kernelmdp.experiments.trial_worker import (
    TrialResult,
    play_trials,
    prepare_worker,
    single_core_environment,
)
from kernelmdp.experiments.vectorised_trials import groups_of, play_group

#: How often workers may die in a row without a new episode. Then their trials are given up. A
#: trial that is too large for the memory would otherwise be restarted forever.
MAX_DEATHS = 3
#: Seconds between two calls of ``on_poll``: how often the shown progress is refreshed.
POLL_SECONDS = 0.5
#: The error of a trial that was given up.
WORKER_DIED = "its worker process died again and again (out of memory?)"


def play_locally(
    trials: Sequence[Trial],
    folder: pathlib.Path,
    *,
    episodes: int,
    jobs: int,
    vectorise: bool = False,
    on_poll: Callable[[], None],
    on_end: Callable[[TrialResult], None],
) -> None:
    """Play trials in worker processes.

    A worker that dies breaks its whole pool. A new pool then resumes all unfinished trials.

    Args:
        trials: The trials.
        folder: Where their folders are. Each is named after its trial.
        episodes: The number of episodes of each trial.
        jobs: The largest number of worker processes.
        vectorise: Whether trials that differ in numbers only are played in one program.
        on_poll: Called every half second, with nothing.
        on_end: Called when a trial ends.
    """
    remaining = {trial.name: trial for trial in trials}
    deaths, last_size = 0, -1
    while remaining:
        cache = jax.config.values["jax_compilation_cache_dir"]
        pool = ProcessPoolExecutor(
            max_workers=min(jobs, len(remaining)),
            env=single_core_environment(),
            initializer=prepare_worker,
            initargs=(os.getpid(), cache),
        )
        try:
            tasks: list[tuple[Trial, ...]] = [(trial,) for trial in remaining.values()]
            if vectorise:
                tasks = groups_of(tuple(remaining.values()), jobs)
            play = play_group if vectorise else play_trials
            waiting = {pool.submit(play, task, folder, episodes) for task in tasks}
            while waiting:
                done, waiting = wait(waiting, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for result in itertools.chain.from_iterable(each.result() for each in done):
                    remaining.pop(result.name)
                    on_end(result)
                on_poll()
        except BrokenProcessPool:
            size = sum(_file_size(folder / name / EPISODES_FILE) for name in remaining)
            deaths = 1 if size != last_size else deaths + 1
            last_size = size
            if deaths == MAX_DEATHS:
                for name in remaining:
                    on_end(TrialResult(name, WORKER_DIED))
                return
        finally:
            pool.shutdown(wait=True, kill_workers=True)


def _file_size(path: pathlib.Path) -> int:
    return path.stat().st_size if path.exists() else 0
