"""Write the folder of a run so that no counted episode is lost, whatever ends the process.

``checkpoint`` holds the first episodes, and ``journal`` those since it was written. The journal has
one line of JSON an episode: its row, its data and the regret so far. A line is on disk before the
episode counts. ``episodes.csv`` has the same rows. If a crash destroyed some, they are restored
from the journal. The journal exists while the run is not finished. At the end, the checkpoint holds
all episodes.
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
from kernelmdp.experiments.run_files import (
    CHECKPOINT_FILE,
    EPISODES_FILE,
    JOURNAL_FILE,
    as_line,
    header,
)

try:
    import fcntl
except ImportError:  # On Windows, two processes in one folder are not detected.
    fcntl = None  # type: ignore[assignment]

#: Seconds between checkpoints. Writing one takes longer with every episode; the journal grows
#: meanwhile.
CHECKPOINT_SECONDS = 10.0
#: Least seconds between two syncs of the journal. One sync serves all episodes played meanwhile.
SYNC_SECONDS = 0.1
#: The loop waits for the disk after an episode that took this many times as long as a sync, and at
#: least ``SYNC_SECONDS``. After shorter episodes, the disk works while the next ones are played.
WAIT_RATIO = 50.0
#: The file that a process locks while it writes to the folder.
LOCK_FILE = ".lock"


@contextlib.contextmanager
def storage_errors(folder: pathlib.Path) -> Iterator[None]:
    """Turn an error of the disk into a ``StorageError`` that says what to do.

    Args:
        folder: The folder that is written to.

    Yields:
        Nothing.

    Raises:
        StorageError: If the disk refuses to write.
    """
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{folder} cannot be written to ({error.strerror or error}); counted episodes are "
            "safe, and the same command continues once there is room and permission to write"
        ) from None


@contextlib.contextmanager
def lock(folder: pathlib.Path) -> Iterator[None]:
    """Keep other processes out of a folder. The system releases the lock when the process ends.

    Args:
        folder: The folder. It is made if there is none.

    Yields:
        Nothing.

    Raises:
        ArgumentError: If another process holds the lock.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK_FILE).open("a")
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                expected = "a folder that no other process is writing to"
                raise ArgumentError("out", expected, f"{folder}, where one is") from None
        yield


def restore_rows(folder: pathlib.Path, recovered: RecoveredRun, agent: Agent) -> None:
    """Rewrite ``episodes.csv`` from what was recovered, and warn if anything was missing.

    Args:
        folder: The run's folder.
        recovered: The episodes that were recovered.
        agent: The agent of the run.

    Warns:
        RecoveryWarning: If the last process did not end in order.
    """
    content = (header(columns_of(agent)) + "".join(recovered.lines)).encode()
    path = folder / EPISODES_FILE
    with storage_errors(folder):
        if not path.exists() or path.read_bytes() != content:
            archive.write_atomically(path, content)
    if recovered.note:
        text = f"{folder}: {recovered.note}; the run continues after episode {len(recovered.lines)}"
        warnings.warn(text, RecoveryWarning, stacklevel=2)


class RunFolder:
    """The open files of a run, to which episodes are appended.

    Args:
        folder: The run's folder.
        agent: The agent. Its episodes so far are on disk.

    Attributes:
        columns: The columns of the run.
        count: The number of episodes that are on disk, or being written.
        totals: Running sums after these episodes.
    """

    def __init__(self, folder: pathlib.Path, agent: Agent) -> None:
        self.folder, self.agent = folder, agent
        self.columns = columns_of(agent)
        self.count, self.totals = agent.episode, dict(agent.totals)
        self._broken = False
        self._saved_at = time.monotonic()
        with storage_errors(folder):
            self._journal = (folder / JOURNAL_FILE).open("ab", buffering=0)
            self._rows = (folder / EPISODES_FILE).open("ab", buffering=0)
            archive.sync_folder(folder)
        self._disk = FsyncThread(self._journal.fileno())
        if os.fstat(self._journal.fileno()).st_size:
            # Put the recovered episodes into the checkpoint and empty the journal. Its last line
            # may be incomplete, and no line may follow it.
            self.save()

    def record(self, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Write rows and their episodes, and pass on every row once it is on disk.

        Args:
            rows: Rows of the table, each after the agent learned from its episode.

        Yields:
            The rows.
        """
        written: list[dict[str, Any]] = []  # rows since the last sync started
        syncing: list[dict[str, Any]] = []  # rows that this sync brings to disk
        start = time.monotonic()
        for row in rows:
            seconds = time.monotonic() - start
            self._wait()
            yield from syncing
            syncing = []
            self._write(row)
            written.append(row)
            now = time.monotonic()
            if now - self._saved_at > CHECKPOINT_SECONDS and self.save():
                yield from written
                written = []
            elif now - self._disk.started_at >= SYNC_SECONDS:
                self._disk.start_sync()
                syncing, written = written, []
                if seconds >= max(SYNC_SECONDS, WAIT_RATIO * self._disk.duration):
                    self._wait()
                    yield from syncing
                    syncing = []
            start = time.monotonic()
        self._wait()
        yield from syncing
        if written:
            self._disk.start_sync()
            self._wait()
            yield from written

    def save(self) -> bool:
        """Write all counted episodes into the checkpoint, and empty the journal.

        Nothing is written after a failure, or while the agent has an episode that is not counted.
        The counted episodes are then in the journal.

        Returns:
            Whether the checkpoint was written.
        """
        if self._broken or self.agent.episode != self.count:
            return False
        self._wait()
        self.agent.totals = dict(self.totals)  # without the episode that is being played
        with storage_errors(self.folder):
            os.fsync(self._rows.fileno())
            self.agent.save(self.folder / CHECKPOINT_FILE)
            self._journal.truncate(0)
        self._saved_at = time.monotonic()
        return True

    def finish(self) -> None:
        """Write the last checkpoint and delete the journal. The run has all its episodes."""
        if self.save():
            with storage_errors(self.folder):
                (self.folder / JOURNAL_FILE).unlink()

    def close(self) -> None:
        """Close the files."""
        self._disk.close()
        self._journal.close()
        self._rows.close()

    def _write(self, row: dict[str, Any]) -> None:
        line, totals = as_line(row, self.columns), dict(self.agent.totals)
        record = journal_record(row["episode"], line, totals, self.agent.history[-1])
        try:
            with storage_errors(self.folder):
                _append(self._journal, record.encode())
                _append(self._rows, line.encode())
        except StorageError:
            self._broken = True
            raise
        self.count, self.totals = row["episode"], totals

    def _wait(self) -> None:
        with storage_errors(self.folder):
            self._disk.wait()


def _append(file: BinaryIO, content: bytes) -> None:
    """Append all of the content, or nothing if the disk refuses."""
    written = 0
    try:
        while written < len(content):
            written += file.write(content[written:])
    except OSError:
        file.truncate(os.fstat(file.fileno()).st_size - written)
        raise
