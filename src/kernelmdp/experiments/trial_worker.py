"""Play one trial in a worker process of one core. Errors become part of the result."""

import dataclasses
import os
import pathlib
import signal
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import jax

from kernelmdp.agents import Agent
from kernelmdp.errors import KernelMDPError, RecoveryWarning
from kernelmdp.experiments.run import run
from kernelmdp.experiments.run_config import RunConfig
from kernelmdp.experiments.study_file import Trial

#: Environment variables that limit XLA, its matrix products and LAPACK to one thread. Several
#: threads add sums in another order. With one thread, numbers do not depend on where a trial runs
#: and what runs beside it.
SINGLE_CORE_VARIABLES = {
    "NPROC": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class DriverLostError(BaseException):
    """The process that started this worker has ended."""


@dataclasses.dataclass(frozen=True)
class TrialResult:
    """How a trial ended.

    Attributes:
        name: The name of the trial.
        error: Why it failed, in one sentence; empty if it did not.
        details: The traceback of an unexpected error; empty otherwise.
        notes: Warnings about files that had to be repaired.
    """

    name: str
    error: str = ""
    details: str = ""
    notes: tuple[str, ...] = ()


def single_core_environment() -> dict[str, str]:
    """Return the environment variables of a worker process. The user's XLA flags are kept.

    Returns:
        Variables by name.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} {SINGLE_CORE_VARIABLES['XLA_FLAGS']}".strip()
    return SINGLE_CORE_VARIABLES | {"XLA_FLAGS": flags}


def prepare_worker(driver: int, cache: str | None) -> None:
    """Prepare a new worker process. It leaves Ctrl-C to the driver and shares its cache.

    Args:
        driver: The process id of the driver.
        cache: The folder of compiled programs, or None.
    """
    global _driver
    _driver = driver
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_compilation_cache(cache)


def use_compilation_cache(cache: str | None) -> None:
    """Keep compiled programs in a folder.

    Args:
        cache: The folder. None changes nothing.
    """
    if cache is not None:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


#: The process id of the driver; None if this process was not started by one.
_driver: int | None = None


def play_trial(name: str, config: RunConfig, folder: Any, episodes: int) -> TrialResult:
    """Play a trial in its folder, or continue it. Errors are returned and not raised.

    Args:
        name: The name of the trial.
        config: The configuration of the run.
        folder: The folder of the run.
        episodes: The number of episodes of the whole run.

    Returns:
        How the trial ended.
    """
    message = details = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RecoveryWarning)
        try:
            run(config, pathlib.Path(folder), episodes=episodes, track=_stop_without_driver)
        except KernelMDPError as error:
            message = str(error)
        except DriverLostError:
            # Everything is on disk. Exit at once: the pool would wait for its driver forever.
            os._exit(1)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            details = traceback.format_exc()
    notes = []
    for warning in caught:
        if issubclass(warning.category, RecoveryWarning):
            notes.append(str(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return TrialResult(name, message, details, tuple(notes))


def play_trials(trials: Sequence[Trial], folder: pathlib.Path, episodes: int) -> list[TrialResult]:
    """Play trials one after the other.

    Args:
        trials: The trials.
        folder: Where their folders are. Each is named after its trial.
        episodes: The number of episodes of each.

    Returns:
        How they ended.
    """
    return [play_trial(each.name, each.config, folder / each.name, episodes) for each in trials]


def _stop_without_driver(rows: Any, total: int, agent: Agent) -> Iterator[dict[str, Any]]:
    """Pass rows on while the driver lives. Nobody else would stop this process."""
    for row in rows:
        if _is_driver_lost():
            raise DriverLostError
        yield row


def exit_without_driver() -> None:
    """End this process at once if the process that started it has ended."""
    if _is_driver_lost():
        os._exit(1)


def _is_driver_lost() -> bool:
    return _driver is not None and os.getppid() != _driver
