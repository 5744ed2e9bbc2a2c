"""How a study goes: a live table in a terminal, a line now and then elsewhere."""

import dataclasses
import math
import pathlib
import sys
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kernelmdp.experiments.csv_follower import CSVFollower
from kernelmdp.experiments.study_file import StudyPlan
from kernelmdp.experiments.tensorboard import FOLDER, TensorBoardWriter, require_tensorboard
from kernelmdp.experiments.trial_worker import Outcome

#: Rows of the table, and seconds between two plain lines.
SHOWN, PAUSE = 20, 30.0


@dataclasses.dataclass
class TrialProgress:
    """What is known of a trial."""

    tail: CSVFollower
    regret: float = math.nan
    #: When its first new episode ended, and how many there were then.
    since: tuple[float, int] | None = None
    ended: bool = False
    error: str = ""

    def seconds_left(self, episodes: int) -> float:
        """As long as the episodes so far; NaN before there are two."""
        if self.since is None or self.tail.count <= self.since[1]:
            return math.nan
        each = (time.monotonic() - self.since[0]) / (self.tail.count - self.since[1])
        return each * (episodes - self.tail.count)


class StudyProgress:
    """Looks at the folders of the trials; ``look`` as often as one likes."""

    def __init__(
        self,
        plan: StudyPlan,
        place: pathlib.Path,
        finished: Sequence[str],
        *,
        show: bool = True,
        tensorboard: bool = False,
    ) -> None:
        self.plan, self.show = plan, show
        names = [trial.name for trial in plan.trials if trial.name not in set(finished)]
        self.lines = {name: TrialProgress(CSVFollower(place / name)) for name in names}
        self.scalars = {}
        if tensorboard:
            require_tensorboard()
            without = [name for name in finished if not (place / name / FOLDER).exists()]
            self.scalars = {name: TensorBoardWriter(place / name) for name in [*names, *without]}
        for line in self.lines.values():
            self._read(line)
        self.begun = time.monotonic()
        self._before = sum(line.tail.count for line in self.lines.values())
        self._said = time.monotonic()
        self.console = Console(file=sys.stderr)
        self.live: Live | None = None
        if show and self.console.is_terminal:
            self.live = Live(console=self.console, auto_refresh=False, transient=True)

    def __enter__(self) -> "StudyProgress":
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.live is not None:
            self.live.stop()
        for scalars in self.scalars.values():
            scalars.close()

    def look(self) -> None:
        """Read what is new and show it."""
        for name, line in self.lines.items():
            if not line.ended:
                if self._read(line) and line.since is None:
                    line.since = (time.monotonic(), line.tail.count)
                if name in self.scalars:
                    self.scalars[name].update()
        if self.live is not None:
            self.live.update(self.table(), refresh=True)
        elif self.show and time.monotonic() - self._said > PAUSE:
            self._say(self.overall())

    def ended(self, outcome: Outcome) -> None:
        """A trial is over."""
        line = self.lines[outcome.name]
        self._read(line)
        line.ended, line.error = True, outcome.error
        for note in outcome.notes:
            self._say(note)
        done = sum(other.ended for other in self.lines.values())
        regret = "" if math.isnan(line.regret) else f", regret {line.regret:.4g}"
        how = f"failed: {outcome.error}" if outcome.error else f"finished{regret}"
        if self.live is None or outcome.error:
            self._say(f"{outcome.name} {how} ({done} of {len(self.lines)})")
        if outcome.details:
            self._say(outcome.details.rstrip())

    def overall(self) -> str:
        """The study in a line."""
        whole = len(self.lines) * self.plan.episodes
        now = sum(line.tail.count for line in self.lines.values())
        played, ended = now - self._before, sum(line.ended for line in self.lines.values())
        seconds = math.nan
        if played:
            seconds = (time.monotonic() - self.begun) / played * (whole - now)
        left = f", about {duration(seconds)} left" if math.isfinite(seconds) else ""
        return f"{ended} of {len(self.lines)} trials, {now} of {whole} episodes{left}"

    def table(self) -> Group:
        """Trials under way, and the whole."""
        table = Table("trial", "episode", "regret", "left", box=None)
        under_way = {n: own for n, own in self.lines.items() if own.since and not own.ended}
        for name, line in list(under_way.items())[:SHOWN]:
            regret = "" if math.isnan(line.regret) else f"{line.regret:.4g}"
            left = duration(line.seconds_left(self.plan.episodes))
            table.add_row(Text(name), f"{line.tail.count}/{self.plan.episodes}", regret, left)
        if len(under_way) > SHOWN:
            table.add_row(f"and {len(under_way) - SHOWN} more")
        now = sum(line.tail.count for line in self.lines.values())
        whole = len(self.lines) * self.plan.episodes
        # A bar does not end its line: it comes last.
        return Group(table, self.overall(), ProgressBar(total=whole, completed=now, width=60))

    def _read(self, line: TrialProgress) -> bool:
        """Whether there was anything new."""
        rows = line.tail.new()
        if rows:
            line.regret = rows[-1]["cumulative_regret"]
        return bool(rows)

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        if self.show:
            self.console.print(Text(text), soft_wrap=True)


def duration(seconds: float) -> str:
    """Hours, minutes or seconds; nothing when not known.

    >>> duration(4000.0)
    '1 h 7 min'
    """
    if not math.isfinite(seconds):
        return ""
    minutes = round(seconds / 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes} min" if seconds >= 90 else f"{seconds:.0f} s"
