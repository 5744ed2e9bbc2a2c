"""A progress line for a terminal, with what is happening and the time left."""

import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
)
from rich.text import Text

from kernelmdp.numerics.compiled_programs import COMPILATIONS

#: What is happening is shown when it has taken this many seconds.
SHOWN_SECONDS = 1.0
#: The time left is estimated from this many last episodes. Episodes change while an agent learns.
TIMED_EPISODES = 10
#: Episodes that compile most programs. Later ones compile few.
COMPILING_EPISODES = 2
#: How long the first episodes may take. On one core, large plans with fitted kernels take longest.
FIRST_EPISODES = (
    "the first two episodes compile programs: seconds on a grid, up to a minute with MPC and "
    "fitted kernels"
)


def describe(row: dict[str, Any]) -> str:
    """Format the main numbers of an episode: return, cumulative regret, information gain.

    Args:
        row: A row of the run's table.

    Returns:
        The text. Unknown numbers are left out.
    """
    parts = [f"return {row['return']:.4g}"]
    regret = row.get("cumulative_regret", math.nan)
    if math.isfinite(regret):
        parts.append(f"regret {regret:.4g}")
    gain = row.get("gain_reward", 0.0) + row.get("gain_transition", math.nan)
    if math.isfinite(gain):
        parts.append(f"gain {gain:.4g}")
    return ", ".join(parts)


class CompilationColumn(ProgressColumn):
    """Says for how long a program has been compiled, if it takes more than a moment."""

    def render(self, task: Task) -> Text:
        """Return the text of the column.

        Args:
            task: Not used.

        Returns:
            The text, which is empty if nothing is compiled.
        """
        seconds = COMPILATIONS.current_seconds
        return Text(f"compiling {seconds:.0f} s" if seconds >= SHOWN_SECONDS else "")


class ActivityColumn(CompilationColumn):
    """Shows the numbers of the last episode, or what is happening and for how long.

    Args:
        activity: Returns what is happening, such as "planning".
        pace: Knows when the last episode ended.
    """

    def __init__(self, activity: Callable[[], str], pace: "EpisodePace") -> None:
        super().__init__()
        self.activity, self.pace = activity, pace

    def render(self, task: Task) -> Text:
        """Return the text of the column.

        Args:
            task: The task of the progress line.

        Returns:
            The numbers while episodes take less than a moment.
        """
        seconds = self.pace.seconds_waited
        if seconds < SHOWN_SECONDS or task.finished:
            return Text(task.fields["numbers"])
        activity = super().render(task).plain or f"{self.activity()} {seconds:.0f} s"
        return Text(f"episode {int(task.completed) + 1}: {activity}")


class EpisodePace:
    """Times episodes without compilation, and estimates the time left.

    Args:
        total: The number of episodes to expect.
    """

    def __init__(self, total: int) -> None:
        self.remaining = total
        self._seconds: list[float] = []
        self._ended_at, self._compiled = time.monotonic(), _compilation_seconds()

    def end_episode(self) -> None:
        """Take note that an episode has ended now."""
        now, compiled = time.monotonic(), _compilation_seconds()
        spent = now - self._ended_at - (compiled - self._compiled)
        self._seconds.append(max(0.0, spent))
        self._ended_at, self._compiled = now, compiled
        self.remaining -= 1

    @property
    def seconds_waited(self) -> float:
        """Seconds since the last episode ended."""
        return time.monotonic() - self._ended_at

    @property
    def seconds_left(self) -> float:
        """Seconds that the remaining episodes take; NaN before an episode without compilation."""
        timed = self._seconds[COMPILING_EPISODES:][-TIMED_EPISODES:]
        return self.remaining * statistics.median(timed) if timed else math.nan


def _compilation_seconds() -> float:
    return COMPILATIONS.seconds + COMPILATIONS.tracing_seconds


def track(
    rows: Iterable[dict[str, Any]],
    *,
    total: int,
    agent: str,
    activity: Callable[[], str] = lambda: "planning",
    lines: int = 0,
) -> Iterator[dict[str, Any]]:
    """Pass rows through, and show a progress bar with the latest numbers and the time left.

    Args:
        rows: Rows of a run's table, as they are produced.
        total: The number of rows to expect.
        agent: The name of the agent, which is shown.
        activity: Returns what is happening in the episode under way.
        lines: The number of plain lines that are printed where there is no terminal.

    Yields:
        The rows, unchanged.
    """
    console = Console(file=sys.stderr)
    pace = EpisodePace(total)
    columns = (
        TextColumn("{task.fields[agent]:<8}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        ActivityColumn(activity, pace),
        TextColumn("{task.fields[left]}"),
    )
    every = max(1, total // lines) if lines and not console.is_terminal else 0
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        line = bar.add_task("", total=total, agent=agent, numbers="", left="")
        for row in rows:
            pace.end_episode()
            left = f"{duration(pace.seconds_left)} left" if pace.seconds_left > 0 else ""
            bar.update(line, advance=1, numbers=describe(row), left=left)
            if every and row["episode"] % every == 0:
                text = f"episode {row['episode']}: {describe(row)}"
                print(f"{text}, {left}" if left else text, file=sys.stderr, flush=True)
            yield row


def duration(seconds: float) -> str:
    """Format a duration in hours, minutes or seconds.

    Args:
        seconds: The duration.

    Returns:
        The text; empty if the duration is not finite.

    >>> duration(4000.0)
    '1 h 7 min'
    """
    if not math.isfinite(seconds):
        return ""
    minutes = round(seconds / 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min" if seconds >= 90 else f"{seconds:.0f} s"
