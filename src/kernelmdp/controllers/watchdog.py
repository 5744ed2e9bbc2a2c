"""A watchdog: it notices when nobody has asked for an action for too long."""

import threading
import time
from collections.abc import Callable

from kernelmdp.numerics.checks import positive_number


class Watchdog:
    """Calls a function once if it is not fed for some seconds.

    It is armed by the first ``feed``. ``check`` looks at the clock, and a thread does so too, so
    that the function is called even if the loop of the machine hangs.

    Args:
        seconds: The longest time between two feeds.
        on_stale: What is called, in the thread that notices it first.
        clock: Returns the time in seconds.

    >>> seconds, calls = [0.0], []
    >>> watchdog = Watchdog(1.0, lambda: calls.append("stale"), clock=lambda: seconds[0])
    >>> watchdog.feed()
    >>> seconds[0] = 2.0
    >>> watchdog.check(), calls
    (True, ['stale'])
    >>> watchdog.close()
    """

    def __init__(
        self,
        seconds: float,
        on_stale: Callable[[], object],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.seconds = positive_number("watchdog", seconds)
        self._on_stale, self._clock = on_stale, clock
        self._deadline: float | None = None
        self._stale = self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def feed(self) -> None:
        """Begin to count anew. A stale watchdog is no longer stale."""
        with self._changed:
            self._deadline, self._stale = self._clock() + self.seconds, False
            self._changed.notify_all()

    def check(self) -> bool:
        """Look at the clock.

        Returns:
            Whether the watchdog is stale.
        """
        with self._changed:
            late = self._deadline is not None and self._clock() > self._deadline
            first = late and not self._stale
            self._stale = self._stale or late
        if first:
            self._on_stale()
        return self._stale

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _watch(self) -> None:
        while not self._closed:
            self.check()
            with self._changed:
                waits = self._deadline is None or self._stale
                remaining = None if waits else self._deadline - self._clock()  # type: ignore[operator]
                if not self._closed and (remaining is None or remaining >= 0):
                    self._changed.wait(remaining)
