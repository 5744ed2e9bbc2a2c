"""A progress line for a terminal. Without a terminal nothing is shown."""

import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from kernelmdp.numerics.compiled_programs import COMPILATIONS

#: A compilation is shown when it has taken this many seconds.
SHOWN_SECONDS = 1.0


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


def track(rows: Iterable[dict[str, Any]], *, total: int, agent: str) -> Iterator[dict[str, Any]]:
    """Pass rows through, and show a progress bar with the latest numbers and the time left.

    Args:
        rows: Rows of a run's table, as they are produced.
        total: The number of rows to expect.
        agent: The name of the agent, which is shown.

    Yields:
        The rows, unchanged.
    """
    console = Console(file=sys.stderr)
    columns = (
        TextColumn("{task.fields[agent]:<8}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[numbers]}"),
        CompilationColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        line = bar.add_task("", total=total, agent=agent, numbers="planning")
        for row in rows:
            bar.update(line, advance=1, numbers=describe(row))
            yield row
