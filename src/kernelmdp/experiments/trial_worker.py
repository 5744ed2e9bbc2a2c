"""One trial in a process of its own: one core, and an answer whatever happens."""

import dataclasses
import os
import pathlib
import signal
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import jax

from kernelmdp.agents import Agent
from kernelmdp.errors import KernelMDPError, RecoveryWarning
from kernelmdp.experiments.run import run
from kernelmdp.experiments.run_config import RunConfig

#: One thread for XLA, its matrix products and LAPACK. Sums are added in another order by several
#: threads: with one, numbers do not depend on where and beside what a trial runs.
ONE_CORE = {
    "NPROC": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class DriverLostError(BaseException):
    """The driver is gone."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a trial ended."""

    name: str
    #: What went wrong, in a sentence; empty when nothing did.
    error: str = ""
    #: Where, when it was not foreseen.
    details: str = ""
    notes: tuple[str, ...] = ()


def single_core_environment() -> dict[str, str]:
    """The environment of a worker process; the user's own flags of XLA stay."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} {ONE_CORE['XLA_FLAGS']}".strip()
    return ONE_CORE | {"XLA_FLAGS": flags}


def prepare(driver: int, cache: str | None) -> None:
    """In a new worker: leave Ctrl-C to the driver, and keep compiled programs where it does."""
    global _driver
    _driver = driver
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_compilation_cache(cache)


def use_compilation_cache(cache: str | None) -> None:
    """Keep compiled programs in this folder."""
    if cache is not None:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


#: The process that started this worker; None where it is no child of the driver.
_driver: int | None = None


def play_trial(name: str, config: RunConfig, folder: Any, episodes: int) -> Outcome:
    """Run a trial in its folder, from wherever it stands; errors are part of the answer."""
    error = details = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RecoveryWarning)
        try:
            run(config, pathlib.Path(folder), episodes=episodes, watch=_while_driven)
        except KernelMDPError as found:
            error = str(found)
        except DriverLostError:
            os._exit(1)  # all is on disk; the pool would wait for its driver for ever
        except Exception as found:
            error = f"{type(found).__name__}: {found}"
            details = traceback.format_exc()
    notes = []
    for each in caught:
        if issubclass(each.category, RecoveryWarning):
            notes.append(str(each.message))
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return Outcome(name, error, details, tuple(notes))


def _while_driven(rows: Any, total: int, agent: Agent) -> Iterator[dict[str, Any]]:
    """Stop when the driver is gone: nobody would stop this process otherwise."""
    for row in rows:
        if _driver is not None and os.getppid() != _driver:
            raise DriverLostError
        yield row
