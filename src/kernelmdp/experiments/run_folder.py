"""A run's folder: an episode that was counted is on disk, whatever ends the process.

``checkpoint`` holds the first episodes and ``journal`` those since it was written, one line of
JSON an episode: its row, its data and the regret so far. A line is on disk before the episode
counts. ``episodes.csv`` has the same rows, and is written again from the journal where a crash
took some. While there is a journal the run is under way; at its end all is in the checkpoint.
"""

import contextlib
import os
import pathlib
import time
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from kernelmdp import archive
from kernelmdp.agents import Agent
from kernelmdp.errors import ArgumentError, RecoveryWarning, StorageError
from kernelmdp.experiments.fsync import FsyncThread
from kernelmdp.experiments.learning_loop import columns_of
from kernelmdp.experiments.recovery import RecoveredRun, journal_record
from kernelmdp.experiments.run_files import CHECKPOINT, JOURNAL, ROWS, as_line, header

try:
    import fcntl
except ImportError:  # Windows, where two processes in one folder are not noticed
    fcntl = None  # type: ignore[assignment]

#: Seconds between checkpoints.
PAUSE = 10.0
#: Seconds between two fsyncs of the journal at least: one serves all episodes played meanwhile.
GROUP = 0.1
#: An episode longer than that, and this many times as long as bringing it to disk, waits for the
#: disk; after shorter ones it works while the next are played.
LONG = 50.0
LOCK = ".lock"


@contextlib.contextmanager
def storage_errors(place: pathlib.Path) -> Iterator[None]:
    """What a disk refuses, as one sentence."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{place} cannot be written to ({error.strerror or error}); what was counted is safe, "
            "and the same command goes on when there is room and leave to write"
        ) from None


@contextlib.contextmanager
def lock(place: pathlib.Path) -> Iterator[None]:
    """Keep other processes out of a folder; the system lets go when this one ends in any way."""
    with storage_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        file = (place / LOCK).open("a")
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                expected = "a folder that no other process is writing to"
                raise ArgumentError("out", expected, f"{place}, where one is") from None
        yield


def restore(place: pathlib.Path, kept: RecoveredRun, agent: Agent) -> None:
    """Make ``episodes.csv`` what was kept, and say so where anything was missing."""
    content = (header(columns_of(agent)) + "".join(kept.lines)).encode()
    path = place / ROWS
    with storage_errors(place):
        if not path.exists() or path.read_bytes() != content:
            archive.write_atomically(path, content)
    if kept.note:
        text = f"{place}: {kept.note}; the run goes on after episode {len(kept.lines)}"
        warnings.warn(text, RecoveryWarning, stacklevel=2)


class RunFolder:
    """The open files of a run, which grow by an episode at a time."""

    def __init__(self, place: pathlib.Path, agent: Agent) -> None:
        self.place, self.agent = place, agent
        self.columns = columns_of(agent)
        self.count, self.totals = agent.episode, dict(agent.totals)
        self._broken = False
        self._saved_at = time.monotonic()
        with storage_errors(place):
            self._journal = (place / JOURNAL).open("ab", buffering=0)
            self._rows = (place / ROWS).open("ab", buffering=0)
            archive.sync_folder(place)
        self._disk = FsyncThread(self._journal.fileno())
        if os.fstat(self._journal.fileno()).st_size:
            self.save()  # what was recovered; and no line may follow one that was cut short

    def record(self, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Pass rows on when they are on disk, with the data of their episodes."""
        written: list[dict[str, Any]] = []  # since the last fsync began
        coming: list[dict[str, Any]] = []  # which that one brings to disk
        start_sync = time.monotonic()
        for row in rows:
            seconds = time.monotonic() - start_sync
            self._wait()
            yield from coming
            coming = []
            self._write(row)
            written.append(row)
            now = time.monotonic()
            if now - self._saved_at > PAUSE and self.save():
                yield from written
                written = []
            elif now - self._disk.begun >= GROUP:
                self._disk.start_sync()
                coming, written = written, []
                if seconds >= max(GROUP, LONG * self._disk.seconds):
                    self._wait()
                    yield from coming
                    coming = []
            start_sync = time.monotonic()
        self._wait()
        yield from coming
        if written:
            self._disk.start_sync()
            self._wait()
            yield from written

    def save(self) -> bool:
        """Everything counted into the checkpoint; the journal begins anew.

        Not after a failure, and not while an episode is known to the agent alone: what was counted
        is in the journal.
        """
        if self._broken or self.agent.episode != self.count:
            return False
        self._wait()
        self.agent.totals = dict(self.totals)  # without the episode under way
        with storage_errors(self.place):
            os.fsync(self._rows.fileno())
            self.agent.save(self.place / CHECKPOINT)
            self._journal.truncate(0)
        self._saved_at = time.monotonic()
        return True

    def finish(self) -> None:
        """Save for the last time: the run has all its episodes."""
        if self.save():
            with storage_errors(self.place):
                (self.place / JOURNAL).unlink()

    def close(self) -> None:
        """Let go of the files."""
        self._disk.close()
        self._journal.close()
        self._rows.close()

    def _write(self, row: dict[str, Any]) -> None:
        line, totals = as_line(row, self.columns), dict(self.agent.totals)
        record = journal_record(row["episode"], line, totals, self.agent.history[-1])
        try:
            with storage_errors(self.place):
                _append(self._journal, record.encode())
                _append(self._rows, line.encode())
        except StorageError:
            self._broken = True
            raise
        self.count, self.totals = row["episode"], totals

    def _wait(self) -> None:
        with storage_errors(self.place):
            self._disk.wait()


def _append(file: BinaryIO, content: bytes) -> None:
    """All of it or nothing."""
    written = 0
    try:
        while written < len(content):
            written += file.write(content[written:])
    except OSError:
        file.truncate(os.fstat(file.fileno()).st_size - written)
        raise
