"""Play the trials of a study on a Ray cluster. Workers and driver need no shared disk.

A worker plays in a temporary folder of its own. Every second it sends the files that changed, and
the driver writes them. If a worker dies, the driver restarts the trial from the files it has.
"""

import concurrent.futures
import contextlib
import logging
import pathlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from kernelmdp import archive
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.local_backend import MAX_DEATHS, POLL_SECONDS, WORKER_DIED
from kernelmdp.experiments.run_config import RunConfig
from kernelmdp.experiments.run_files import CHECKPOINT_FILE, EPISODES_FILE, JOURNAL_FILE
from kernelmdp.experiments.run_folder import storage_errors
from kernelmdp.experiments.study_file import Trial
from kernelmdp.experiments.trial_worker import (
    TrialResult,
    play_trial,
    single_core_environment,
    use_compilation_cache,
)

#: Seconds between two messages of a worker. A worker that dies loses the episodes since its last
#: message. A shorter interval sends more data.
MESSAGE_SECONDS = 1.0
#: The files that are sent, in the order in which they are read. The journal is read before the
#: checkpoint: a checkpoint newer than the journal loses nothing, an older one would lose episodes.
#: If there is no journal, the run has ended and the other files are final.
FILES = ("config.toml", JOURNAL_FILE, EPISODES_FILE, CHECKPOINT_FILE, "bound.csv")

Files = dict[str, bytes | None]


def play_on_cluster(
    trials: Sequence[Trial],
    folder: pathlib.Path,
    *,
    episodes: int,
    jobs: int,
    address: str | None,
    on_poll: Callable[[], None],
    on_end: Callable[[TrialResult], None],
) -> None:
    """Play trials on a Ray cluster.

    Args:
        trials: The trials.
        folder: Where their folders are. Each is named after its trial.
        episodes: The number of episodes of each trial.
        jobs: The number of workers of a cluster that is started here.
        address: The address of a running cluster. None starts one on this machine.
        on_poll: Called at least every half second, with nothing.
        on_end: Called when a trial ends.

    Raises:
        ArgumentError: If there is no cluster at the address, or Ray is not installed.
    """
    ray = _import_ray()
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address is None:
            ray.init(address="local", num_cpus=jobs, include_dashboard=False, **quiet)
        else:
            ray.init(address=address, **quiet)
    except (ConnectionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise ArgumentError("address", "a Ray cluster", f"{address} ({reason})") from None
    try:
        _play(ray, trials, folder, episodes, on_poll, on_end)
    finally:
        ray.shutdown()


def _play(
    ray: Any,
    trials: Sequence[Trial],
    folder: pathlib.Path,
    episodes: int,
    on_poll: Callable[[], None],
    on_end: Callable[[TrialResult], None],
) -> None:
    remote = ray.remote(
        num_cpus=1,
        max_retries=0,  # The driver restarts the trial itself, from the files it has.
        num_returns="streaming",
        runtime_env={"env_vars": single_core_environment()},
    )(play_remotely)
    cache = jax.config.values["jax_compilation_cache_dir"]

    def start(trial: Trial) -> Any:
        files = read_files(folder / trial.name)
        return remote.remote(trial.name, trial.config, files, episodes, cache)

    running = {start(trial): trial for trial in trials}
    deaths = dict.fromkeys((trial.name for trial in trials), 0)
    while running:
        ready, _ = ray.wait(list(running), timeout=POLL_SECONDS)
        for stream in ready:
            trial = running[stream]
            try:
                message = ray.get(next(stream))
            except StopIteration:
                del running[stream]
            except ray.exceptions.RayError:
                del running[stream]
                deaths[trial.name] += 1
                if deaths[trial.name] == MAX_DEATHS:
                    on_end(TrialResult(trial.name, WORKER_DIED))
                else:
                    running[start(trial)] = trial
            else:
                if isinstance(message, TrialResult):
                    on_end(message)
                else:
                    if EPISODES_FILE in message:
                        deaths[trial.name] = 0
                    write_files(folder / trial.name, message)
        on_poll()


def play_remotely(
    name: str, config: RunConfig, files: Files, episodes: int, cache: str | None
) -> Iterator[Files | TrialResult]:
    """Play a trial in a worker of the cluster.

    Args:
        name: The trial's name.
        config: Its configuration.
        files: The files of the run so far, from which it resumes.
        episodes: The number of episodes of the trial.
        cache: A folder for compiled programs, or None.

    Yields:
        The files that changed, again and again. The last item is the trial's result.
    """
    use_compilation_cache(cache)
    with tempfile.TemporaryDirectory() as home:
        folder = pathlib.Path(home) / "run"
        if files:
            write_files(folder, files)
        sent = dict(files)
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            playing = thread.submit(play_trial, name, config, folder, episodes)
            over = False
            while not over:
                over = bool(concurrent.futures.wait([playing], timeout=MESSAGE_SECONDS).done)
                current = read_files(folder)
                changed: Files = {n: c for n, c in current.items() if sent.get(n) != c}
                changed |= dict.fromkeys(set(sent) - set(current))
                if changed:
                    yield changed
                sent = current
            yield playing.result()


def read_files(folder: pathlib.Path) -> Files:
    """Read the files of a run.

    Args:
        folder: The run's folder.

    Returns:
        The content of each file that exists, by name.
    """
    files: Files = {}
    for name in FILES:
        with contextlib.suppress(FileNotFoundError):  # A run that ends deletes its journal.
            files[name] = (folder / name).read_bytes()
    return files


def write_files(folder: pathlib.Path, files: Files) -> None:
    """Write files of a run, each of them atomically.

    Args:
        folder: The run's folder.
        files: The content of each file by name. None deletes the file.

    Raises:
        ArgumentError: If a name is not that of a run's file.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            if name not in FILES:
                raise ArgumentError("files", "those of a run", repr(name))
            if content is None:
                (folder / name).unlink(missing_ok=True)
            else:
                archive.write_atomically(folder / name, content)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        expected = "Ray to be installed for it (pip install 'kernelmdp[ray]')"
        raise ArgumentError("backend", expected, "'ray' without it") from None
    return ray
