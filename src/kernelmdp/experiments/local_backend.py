"""Trials on this machine: so many worker processes, a core each."""

import os
import pathlib
from collections.abc import Callable, Sequence

import jax
from joblib.externals.loky import FIRST_COMPLETED, BrokenProcessPool, ProcessPoolExecutor, wait

from kernelmdp.experiments.run_files import ROWS
from kernelmdp.experiments.study_file import Trial
from kernelmdp.experiments.trial_worker import Outcome, play_trial, prepare, single_core_environment

#: How often workers may die without an episode in between before their trials are given up.
DEATHS = 3
#: Seconds between two looks at the folders.
LOOK = 0.5
DIED = "its worker process died again and again (out of memory?)"


def play_locally(
    trials: Sequence[Trial],
    place: pathlib.Path,
    *,
    episodes: int,
    jobs: int,
    look: Callable[[], None],
    ended: Callable[[Outcome], None],
) -> None:
    """Play trials into folders of ``place``; ``look`` is called all the while.

    A worker that dies takes the others of its pool with it; a new pool goes on with all of them.
    """
    left = {trial.name: trial for trial in trials}
    deaths, before = 0, -1
    while left:
        cache = jax.config.values["jax_compilation_cache_dir"]
        pool = ProcessPoolExecutor(
            max_workers=min(jobs, len(left)),
            env=single_core_environment(),
            initializer=prepare,
            initargs=(os.getpid(), cache),
        )
        try:
            waiting = {
                pool.submit(play_trial, name, trial.config, place / name, episodes)
                for name, trial in left.items()
            }
            while waiting:
                done, waiting = wait(waiting, timeout=LOOK, return_when=FIRST_COMPLETED)
                for future in done:
                    outcome = future.result()
                    left.pop(outcome.name)
                    ended(outcome)
                look()
        except BrokenProcessPool:
            bytes_now = sum(_size(place / name / ROWS) for name in left)
            deaths = 1 if bytes_now != before else deaths + 1
            before = bytes_now
            if deaths == DEATHS:
                for name in left:
                    ended(Outcome(name, DIED))
                return
        finally:
            pool.shutdown(wait=True, kill_workers=True)


def _size(path: pathlib.Path) -> int:
    return path.stat().st_size if path.exists() else 0
