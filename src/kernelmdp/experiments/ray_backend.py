"""Trials on a Ray cluster. Workers need no disk of the driver's: they send what they have.

A worker plays in a folder of its own and sends the files that changed every few seconds. The
driver writes them, and starts a trial whose worker died again from what it has.
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
from kernelmdp.experiments.local_backend import DEATHS, DIED, LOOK
from kernelmdp.experiments.run_config import RunConfig
from kernelmdp.experiments.run_files import CHECKPOINT, JOURNAL, ROWS
from kernelmdp.experiments.run_folder import storage_errors
from kernelmdp.experiments.study_file import Trial
from kernelmdp.experiments.trial_worker import (
    Outcome,
    play_trial,
    single_core_environment,
    use_compilation_cache,
)

#: Seconds between two messages of a worker.
PAUSE = 1.0
#: In the order in which they are read: a checkpoint that is newer than the journal beside it loses
#: nothing, an older one would; and where there is no journal any more the rest is final.
FILES = ("config.toml", JOURNAL, ROWS, CHECKPOINT, "bound.csv")

Files = dict[str, bytes | None]


def play_on_cluster(
    trials: Sequence[Trial],
    place: pathlib.Path,
    *,
    episodes: int,
    jobs: int,
    address: str | None,
    look: Callable[[], None],
    ended: Callable[[Outcome], None],
) -> None:
    """Play trials on the cluster at an address, or on one of ``jobs`` workers started here."""
    ray = _ray()
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
        _play(ray, trials, place, episodes, look, ended)
    finally:
        ray.shutdown()


def _play(
    ray: Any,
    trials: Sequence[Trial],
    place: pathlib.Path,
    episodes: int,
    look: Callable[[], None],
    ended: Callable[[Outcome], None],
) -> None:
    remote = ray.remote(
        num_cpus=1,
        max_retries=0,  # the driver starts it again, from what it has
        num_returns="streaming",
        runtime_env={"env_vars": single_core_environment()},
    )(play_remotely)
    cache = jax.config.values["jax_compilation_cache_dir"]

    def start(trial: Trial) -> Any:
        files = read_files(place / trial.name)
        return remote.remote(trial.name, trial.config, files, episodes, cache)

    under_way = {start(trial): trial for trial in trials}
    deaths = dict.fromkeys((trial.name for trial in trials), 0)
    while under_way:
        ready, _ = ray.wait(list(under_way), timeout=LOOK)
        for stream in ready:
            trial = under_way[stream]
            try:
                message = ray.get(next(stream))
            except StopIteration:
                del under_way[stream]
            except ray.exceptions.RayError:
                del under_way[stream]
                deaths[trial.name] += 1
                if deaths[trial.name] == DEATHS:
                    ended(Outcome(trial.name, DIED))
                else:
                    under_way[start(trial)] = trial
            else:
                if isinstance(message, Outcome):
                    ended(message)
                else:
                    if ROWS in message:
                        deaths[trial.name] = 0
                    write_files(place / trial.name, message)
        look()


def play_remotely(
    name: str, config: RunConfig, files: Files, episodes: int, cache: str | None
) -> Iterator[Files | Outcome]:
    """Play a trial from the files given; send those that changed, and at last how it ended."""
    use_compilation_cache(cache)
    with tempfile.TemporaryDirectory() as home:
        place = pathlib.Path(home) / "run"
        if files:
            write_files(place, files)
        sent = dict(files)
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            playing = thread.submit(play_trial, name, config, place, episodes)
            over = False
            while not over:
                over = bool(concurrent.futures.wait([playing], timeout=PAUSE).done)
                now = read_files(place)
                changed: Files = {n: c for n, c in now.items() if sent.get(n) != c}
                changed |= dict.fromkeys(set(sent) - set(now))
                if changed:
                    yield changed
                sent = now
            yield playing.result()


def read_files(place: pathlib.Path) -> Files:
    """The files of a run, as far as there are any."""
    found: Files = {}
    for name in FILES:
        with contextlib.suppress(FileNotFoundError):  # a journal may go at any moment
            found[name] = (place / name).read_bytes()
    return found


def write_files(place: pathlib.Path, files: Files) -> None:
    """Each as a whole or not at all; None is a file that is no more."""
    with storage_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            if name not in FILES:
                raise ArgumentError("files", "those of a run", repr(name))
            if content is None:
                (place / name).unlink(missing_ok=True)
            else:
                archive.write_atomically(place / name, content)


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        expected = "Ray to be installed for it (pip install 'kernelmdp[ray]')"
        raise ArgumentError("backend", expected, "'ray' without it") from None
    return ray
