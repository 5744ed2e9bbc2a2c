"""The journal of a server: one file an episode, one line of JSON for each thing that happened.

The files stay. They are the log of the machine: times, observations, actions and where they came
from.
"""

import json
import os
import pathlib
from typing import Any

from kernelmdp import archive
from kernelmdp.errors import StorageError
from kernelmdp.experiments.fsync import FsyncThread
from kernelmdp.experiments.run_folder import storage_errors


class Journal:
    """Appends to the file of the episode under way.

    A line is in the file once ``append`` returns. It is then safe from the end of this process,
    also by ``kill -9``. It is safe from a loss of power once a ``sync`` that began later is done.

    Args:
        folder: The folder of the files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(pathlib.Path(folder))
    ...     journal.open(1)
    ...     journal.append({"event": "ask", "observation": [20.0]})
    ...     journal.close()
    ...     journal.events(1)
    [{'event': 'ask', 'observation': [20.0]}]
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._file: Any = None
        self._disk: FsyncThread | None = None
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            archive.sync_folder(folder.parent)

    def numbers(self) -> list[int]:
        """Return the numbers of the episodes that have a file.

        Returns:
            The numbers, sorted.
        """
        return sorted(int(path.stem) for path in self.folder.glob("*.jsonl"))

    def events(self, number: int) -> list[dict[str, Any]]:
        """Read the file of an episode. A last line that was cut short is left out.

        Args:
            number: The number of the episode.

        Returns:
            What happened.

        Raises:
            StorageError: If another line than the last one is damaged.
        """
        path = self._path(number)
        lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        try:
            return [json.loads(line) for line in lines]
        except ValueError as error:
            raise StorageError(f"{path} is damaged ({error}); move it away to go on") from None

    def open(self, number: int) -> None:
        """Open the file of an episode, and close the one before.

        Args:
            number: The number of the episode.
        """
        self.close()
        path = self._path(number)
        with storage_errors(self.folder):
            complete = path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0
            self._file = path.open("ab", buffering=0)
            self._file.truncate(complete)
            archive.sync_folder(self.folder)
        self._disk = FsyncThread(self._file.fileno())

    def append(self, event: dict[str, Any]) -> None:
        """Write one line, or nothing if the disk refuses.

        Args:
            event: What happened, as JSON holds it.

        Raises:
            StorageError: If the disk refuses to write.
        """
        line = json.dumps(event, allow_nan=False).encode() + b"\n"
        with storage_errors(self.folder):
            size = os.fstat(self._file.fileno()).st_size
            written = self._file.write(line)
            if written < len(line):
                self._file.truncate(size)
                raise StorageError(f"{self.folder}: {written} of {len(line)} bytes were written")

    def start_sync(self) -> None:
        """Begin to bring all lines to disk. A sync that is still under way is left to end."""
        assert self._disk is not None
        if self._disk.pending and not self._disk.done:
            return
        self.wait()
        self._disk.start_sync()

    def wait(self) -> None:
        """Wait until a sync that was begun is done."""
        assert self._disk is not None
        with storage_errors(self.folder):
            self._disk.wait()

    def sync(self) -> None:
        """Bring all lines to disk."""
        self.wait()
        self.start_sync()
        self.wait()

    def close(self) -> None:
        """Bring all lines to disk, and close the file."""
        if self._disk is None:
            return
        self.sync()
        self._disk.close()
        self._file.close()
        self._disk = None

    def _path(self, number: int) -> pathlib.Path:
        # Six digits keep the files of a million episodes in order.
        return self.folder / f"{number:06d}.jsonl"
