"""Compiled programs: kept in a folder of the user, and counted.

JAX compiles a program when a function is first called with new shapes. Compiled programs are kept
in the user's cache folder, so the next process reads them. JAX chooses the names of the files by
the content of the programs and by its version, so several processes can share the folder.
"""

import contextlib
import hashlib
import os
import pathlib
import platform
import time

import jax

#: The environment variable that names another folder, or "off".
FOLDER_VARIABLE = "KERNELMDP_PROGRAMS"
#: Most bytes in the folder. A system with ten coordinates needs about 10 MB.
FOLDER_SIZE = 1 << 30
#: Share of ``FOLDER_SIZE`` that is left when programs are deleted, so that it is done seldom.
SHARE_LEFT = 0.75
#: Shortest compilation whose program is kept, in seconds. To read one takes a few milliseconds.
LEAST_SECONDS = 0.005

# JAX's name of the event that a program was compiled, or read from the folder.
_COMPILING = "/jax/core/compile/backend_compile_duration"
# Events that a function was traced, and that the result was turned into a program.
_TRACING = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
)
# The event that a program was read from the folder.
_READ = "/jax/compilation_cache/cache_hits"


class Compilations:
    """What was compiled in this process so far.

    Attributes:
        programs: The number of programs, including those that were read from the folder.
        read: The number of programs that were read from the folder.
        seconds: Seconds spent on compiling or reading programs.
        tracing_seconds: Seconds spent on turning Python functions into programs.

    >>> before = COMPILATIONS.programs
    >>> float(jax.jit(lambda x: x + 1)(1.0)), COMPILATIONS.programs > before
    (2.0, True)
    """

    def __init__(self) -> None:
        self.programs = 0
        self.read = 0
        self.seconds = 0.0
        self.tracing_seconds = 0.0
        self._began: float | None = None
        jax.monitoring.register_scalar_listener(self._begin)
        jax.monitoring.register_event_duration_secs_listener(self._end)
        jax.monitoring.register_event_listener(self._count)

    @property
    def current_seconds(self) -> float:
        """For how long a program has been compiled now; 0 if none is."""
        began = self._began
        return 0.0 if began is None else time.time() - began

    def count_read(self) -> None:
        """Count a program that was read without JAX's help."""
        self.programs += 1
        self.read += 1

    def _begin(self, event: str, value: float, **_: object) -> None:
        if event == _COMPILING:
            self._began = value

    def _end(self, event: str, duration_secs: float, **_: str | int) -> None:
        if event == _COMPILING:
            self._began = None
            self.programs += 1
            self.seconds += duration_secs
        elif event in _TRACING:
            self.tracing_seconds += duration_secs

    def _count(self, event: str, **_: object) -> None:
        self.read += event == _READ


#: What was compiled in this process.
COMPILATIONS = Compilations()


def keep_compiled_programs() -> pathlib.Path | None:
    """Keep compiled programs in the user's cache folder, unless the user decided otherwise.

    The folder is ``kernelmdp/programs-…`` in ``$XDG_CACHE_HOME`` or ``~/.cache``. It has one
    subfolder for each kind of processor. The environment variable ``KERNELMDP_PROGRAMS`` names
    another folder, or is "off". A folder that was set in JAX's configuration stays. When the folder
    holds more than ``FOLDER_SIZE``, programs that were not used for the longest time are deleted.

    Returns:
        The folder, or None if programs are not kept: it is off, or the folder cannot be written to.
    """
    configured = jax.config.values["jax_compilation_cache_dir"]
    if configured is not None:
        return pathlib.Path(configured)
    chosen = os.environ.get(FOLDER_VARIABLE, "")
    if chosen == "off":
        return None
    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = pathlib.Path(chosen or home / "kernelmdp") / f"programs-{processor_name()}"
    if not _is_writable(folder):
        return None
    _delete_oldest(folder)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    return folder


def processor_name() -> str:
    """Return a short name of the kind of processor: programs for one may not run on another.

    Returns:
        Eight hexadecimal digits.
    """
    description = platform.machine() + platform.processor()
    information = pathlib.Path("/proc/cpuinfo")
    if information.exists():
        lines = information.read_text().splitlines()
        description += next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return hashlib.sha256(description.encode()).hexdigest()[:8]


def _is_writable(folder: pathlib.Path) -> bool:
    """Make a folder if it is missing and its nearest existing parent can be written to."""
    parent = folder
    while not parent.exists():
        parent = parent.parent
    if not (parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    return True


def _delete_oldest(folder: pathlib.Path) -> None:
    """Delete the programs that were not used for the longest time, if there are too many."""
    files = []
    with os.scandir(folder) as entries:
        for entry in entries:
            # Another process may delete a file, or give it its name, at any time.
            with contextlib.suppress(FileNotFoundError):
                files.append((entry.stat(), entry.path))
    size = sum(stat.st_size for stat, _ in files)
    if size <= FOLDER_SIZE:
        return
    files.sort(key=lambda file: max(file[0].st_atime, file[0].st_mtime))
    for stat, path in files:
        if size <= SHARE_LEFT * FOLDER_SIZE:
            return
        pathlib.Path(path).unlink(missing_ok=True)  # another process may have deleted it
        size -= stat.st_size
