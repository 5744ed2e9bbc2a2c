"""Show the progress of a study: a live table in a terminal, occasional lines elsewhere."""

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
from kernelmdp.experiments.trial_worker import TrialResult

#: Most rows of the live table, so that it fits into a terminal.
MAX_ROWS = 20
#: Seconds between two lines where there is no terminal. Lines in a log should be few.
LINE_SECONDS = 30.0


@dataclasses.dataclass
class TrialProgress:
    """The progress of one trial.

    Attributes:
        follower: Reads the rows of the trial.
        regret: Cumulative regret so far; NaN if unknown.
        timed_from: When the first new episode ended, and the number of episodes then; None before.
        ended: Whether the trial has ended.
        error: Why it failed; empty if it did not.
    """

    follower: CSVFollower
    regret: float = math.nan
    timed_from: tuple[float, int] | None = None
    ended: bool = False
    error: str = ""

    def seconds_left(self, episodes: int) -> float:
        """Estimate the remaining time from the mean time of the episodes so far.

        Args:
            episodes: The number of episodes of the trial.

        Returns:
            Seconds; NaN before two episodes have ended.
        """
        if self.timed_from is None or self.follower.count <= self.timed_from[1]:
            return math.nan
        played = self.follower.count - self.timed_from[1]
        seconds_each = (time.monotonic() - self.timed_from[0]) / played
        return seconds_each * (episodes - self.follower.count)


class StudyProgress:
    """Follows the folders of the trials and shows their progress. Use it as a context manager.

    Args:
        plan: The study.
        folder: Where the folders of the trials are.
        finished: Names of the trials that were finished before.
        show: Whether to show progress.
        tensorboard: Whether to write event files for TensorBoard.
    """

    def __init__(
        self,
        plan: StudyPlan,
        folder: pathlib.Path,
        finished: Sequence[str],
        *,
        show: bool = True,
        tensorboard: bool = False,
    ) -> None:
        self.plan, self.show = plan, show
        names = [trial.name for trial in plan.trials if trial.name not in set(finished)]
        #: The trials that are played, by name.
        self.trials = {name: TrialProgress(CSVFollower(folder / name)) for name in names}
        self.writers = {}
        if tensorboard:
            require_tensorboard()
            without = [name for name in finished if not (folder / name / FOLDER).exists()]
            self.writers = {name: TensorBoardWriter(folder / name) for name in [*names, *without]}
        for trial in self.trials.values():
            self._read(trial)
        #: When the study was started, by ``time.monotonic``.
        self.started_at = time.monotonic()
        self._episodes_before = sum(trial.follower.count for trial in self.trials.values())
        self._printed_at = time.monotonic()
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
        for writer in self.writers.values():
            writer.close()

    def refresh(self) -> None:
        """Read new rows and show them. Call it as often as you like."""
        for name, trial in self.trials.items():
            if not trial.ended:
                if self._read(trial) and trial.timed_from is None:
                    trial.timed_from = (time.monotonic(), trial.follower.count)
                if name in self.writers:
                    self.writers[name].update()
        if self.live is not None:
            self.live.update(self.table(), refresh=True)
        elif self.show and time.monotonic() - self._printed_at > LINE_SECONDS:
            self._print(self.summary())

    def end_trial(self, result: TrialResult) -> None:
        """Show that a trial has ended.

        Args:
            result: How it ended.
        """
        trial = self.trials[result.name]
        self._read(trial)
        trial.ended, trial.error = True, result.error
        for note in result.notes:
            self._print(note)
        ended = sum(trial.ended for trial in self.trials.values())
        regret = "" if math.isnan(trial.regret) else f", regret {trial.regret:.4g}"
        how = f"failed: {result.error}" if result.error else f"finished{regret}"
        if self.live is None or result.error:
            self._print(f"{result.name} {how} ({ended} of {len(self.trials)})")
        if result.details:
            self._print(result.details.rstrip())

    def summary(self) -> str:
        """Summarise the progress of the study in one line.

        Returns:
            The numbers of trials and episodes, and the time left.
        """
        total = len(self.trials) * self.plan.episodes
        count = sum(trial.follower.count for trial in self.trials.values())
        played = count - self._episodes_before
        ended = sum(trial.ended for trial in self.trials.values())
        seconds = math.nan
        if played:
            seconds = (time.monotonic() - self.started_at) / played * (total - count)
        left = f", about {duration(seconds)} left" if math.isfinite(seconds) else ""
        return f"{ended} of {len(self.trials)} trials, {count} of {total} episodes{left}"

    def table(self) -> Group:
        """Make the live table.

        Returns:
            The trials that are being played, a summary, and a progress bar of the study.
        """
        table = Table("trial", "episode", "regret", "left", box=None)
        running = {
            name: trial
            for name, trial in self.trials.items()
            if trial.timed_from and not trial.ended
        }
        for name, trial in list(running.items())[:MAX_ROWS]:
            regret = "" if math.isnan(trial.regret) else f"{trial.regret:.4g}"
            left = duration(trial.seconds_left(self.plan.episodes))
            episode = f"{trial.follower.count}/{self.plan.episodes}"
            table.add_row(Text(name), episode, regret, left)
        if len(running) > MAX_ROWS:
            table.add_row(f"and {len(running) - MAX_ROWS} more")
        count = sum(trial.follower.count for trial in self.trials.values())
        total = len(self.trials) * self.plan.episodes
        # The bar comes last, because it does not end its line.
        return Group(table, self.summary(), ProgressBar(total=total, completed=count, width=60))

    def _read(self, trial: TrialProgress) -> bool:
        """Read new rows, and return whether there were any."""
        rows = trial.follower.read_new()
        if rows:
            trial.regret = rows[-1]["cumulative_regret"]
        return bool(rows)

    def _print(self, text: str) -> None:
        self._printed_at = time.monotonic()
        if self.show:
            self.console.print(Text(text), soft_wrap=True)


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
