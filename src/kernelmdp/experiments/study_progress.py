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
from kernelmdp.experiments.progress import COMPILING_EPISODES, duration
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
        first: The number of episodes when the study was started.
        timed_from: When the new episodes that compile had ended, and the number of episodes then;
            None before.
        ended: Whether the trial has ended.
        error: Why it failed; empty if it did not.
    """

    follower: CSVFollower
    regret: float = math.nan
    first: int = 0
    timed_from: tuple[float, int] | None = None
    ended: bool = False
    error: str = ""

    def seconds_left(self, episodes: int) -> float:
        """Estimate the remaining time from the mean time of the episodes without compilation.

        Args:
            episodes: The number of episodes of the trial.

        Returns:
            Seconds; NaN before an episode without compilation has ended.
        """
        return self.seconds_each * (episodes - self.follower.count)

    @property
    def seconds_each(self) -> float:
        """Mean seconds of an episode without compilation; NaN before there is one."""
        if self.timed_from is None or self.follower.count <= self.timed_from[1]:
            return math.nan
        return (time.monotonic() - self.timed_from[0]) / (self.follower.count - self.timed_from[1])

    @property
    def running(self) -> bool:
        """Whether the trial is being played, as far as its files show."""
        has_new_rows = self.timed_from is not None or self.follower.count > self.first
        is_new = self.first == 0 and self.follower.path.exists()
        return not self.ended and (has_new_rows or is_new)


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
            trial.first = trial.follower.count
        #: When the study was started, by ``time.monotonic``.
        self.started_at = time.monotonic()
        self._printed_at = time.monotonic()
        self.console = Console(file=sys.stderr)
        self.live: Live | None = None
        if show and self.console.is_terminal:
            self.live = Live(console=self.console, auto_refresh=False, transient=True)

    def __enter__(self) -> "StudyProgress":
        if self.live is not None:
            self.live.start()
        total, played = len(self.plan.trials), len(self.trials)
        begun = sum(trial.first > 0 for trial in self.trials.values())
        if played and (played < total or begun):
            counts = f"{total - played} of {total} trials are finished"
            self._print(f"{counts}, and {begun} of the others have begun")
        return self

    def __exit__(self, *error: Any) -> None:
        if self.live is not None:
            self.live.stop()
        if any(error):
            unfinished = sum(not trial.ended for trial in self.trials.values())
            self._print(f"{unfinished} of {len(self.plan.trials)} trials are not finished")
        for writer in self.writers.values():
            writer.close()

    def refresh(self) -> None:
        """Read new rows and show them. Call it as often as you like."""
        for name, trial in self.trials.items():
            if not trial.ended:
                compiled = trial.first + COMPILING_EPISODES
                if self._read(trial) and trial.timed_from is None:
                    if trial.follower.count >= compiled:
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
        ended = sum(trial.ended for trial in self.trials.values())
        timed = [trial.seconds_each for trial in self._running if trial.seconds_each > 0]
        left = ""
        if timed:  # the trials under way are played at the same time
            each = sum(timed) / len(timed) / len(self._running)
            left = f", about {duration(each * (total - count))} left"
        return f"{ended} of {len(self.trials)} trials, {count} of {total} episodes{left}"

    def table(self) -> Group:
        """Make the live table.

        Returns:
            The trials that are being played, a summary, and a progress bar of the study.
        """
        table = Table("trial", "episode", "regret", "left", box=None)
        running = {name: trial for name, trial in self.trials.items() if trial in self._running}
        for name, trial in list(running.items())[:MAX_ROWS]:
            regret = "" if math.isnan(trial.regret) else f"{trial.regret:.4g}"
            left = duration(trial.seconds_left(self.plan.episodes))
            left = left if trial.timed_from else "compiling"
            episode = f"{trial.follower.count}/{self.plan.episodes}"
            table.add_row(Text(name), episode, regret, left)
        if len(running) > MAX_ROWS:
            table.add_row(f"and {len(running) - MAX_ROWS} more")
        count = sum(trial.follower.count for trial in self.trials.values())
        total = len(self.trials) * self.plan.episodes
        # The bar comes last, because it does not end its line.
        return Group(table, self.summary(), ProgressBar(total=total, completed=count, width=60))

    @property
    def _running(self) -> list[TrialProgress]:
        """The trials that are being played."""
        return [trial for trial in self.trials.values() if trial.running]

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
