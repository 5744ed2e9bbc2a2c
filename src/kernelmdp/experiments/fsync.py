"""A thread that writes a file to disk while the next episodes are played."""

import math
import os
import queue
import threading
import time


class FsyncThread:
    """Runs one ``fsync`` at a time: call ``start_sync``, do something else, then ``wait``.

    It uses a thread and two queues. A pool with futures costs several times as much an episode.

    Args:
        file: The descriptor of the file.

    Attributes:
        pending: Whether a sync was started and not yet waited for.
        duration: Seconds that the last sync took; 0 before the first one.
        started_at: When the last sync started, by ``time.monotonic``; −∞ before the first one.
    """

    def __init__(self, file: int) -> None:
        self.file = file
        self.pending = False
        self.duration = 0.0
        self.started_at = -math.inf
        self._requests: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[float | OSError] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def start_sync(self) -> None:
        """Start to write the file's content to disk."""
        self.pending = True
        self.started_at = time.monotonic()
        self._requests.put(True)

    @property
    def done(self) -> bool:
        """Whether a result waits, so that ``wait`` returns at once."""
        return not self._results.empty()

    def wait(self) -> None:
        """Wait until the sync is done. An error of the disk is raised here."""
        if self.pending:
            self.pending = False
            result = self._results.get()
            if isinstance(result, OSError):
                raise result
            self.duration = result

    def close(self) -> None:
        """End the thread."""
        self._requests.put(False)
        self._thread.join()

    def _serve(self) -> None:
        while self._requests.get():
            start = time.monotonic()
            try:
                os.fsync(self.file)
                self._results.put(time.monotonic() - start)
            except OSError as error:
                self._results.put(error)
