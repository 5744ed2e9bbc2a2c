"""A thread that brings a file to disk while the next episodes are played."""

import math
import os
import queue
import threading
import time


class FsyncThread:
    """One ``fsync`` at a time: ``start_sync`` it, do something else, ``wait`` for it.

    A thread and two queues: a pool with futures costs several times as much an episode.
    """

    def __init__(self, file: int) -> None:
        self.file = file
        #: Whether there is anything to wait for.
        self.busy = False
        #: What the last one took; 0 before there was one.
        self.seconds = 0.0
        #: When it began.
        self.begun = -math.inf
        self._asked: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[float | OSError] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def start_sync(self) -> None:
        """Bring what was written so far to disk."""
        self.busy = True
        self.begun = time.monotonic()
        self._asked.put(True)

    def wait(self) -> None:
        """Until it is there; what the disk complains of is raised here."""
        if self.busy:
            self.busy = False
            answer = self._done.get()
            if isinstance(answer, OSError):
                raise answer
            self.seconds = answer

    def close(self) -> None:
        """End the thread."""
        self._asked.put(False)
        self._thread.join()

    def _serve(self) -> None:
        while self._asked.get():
            start_sync = time.monotonic()
            try:
                os.fsync(self.file)
                self._done.put(time.monotonic() - start_sync)
            except OSError as error:
                self._done.put(error)
