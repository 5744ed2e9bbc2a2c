"""Which columns of a table are states, actions and rewards."""

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from kernelmdp.errors import ArgumentError

#: A data frame of pandas.
Table: TypeAlias = Any


@dataclasses.dataclass(frozen=True)
class LogColumns:
    """The columns of a log by their names.

    A row holds the state, the action that was taken in it, and the reward of that action. The next
    row holds the next state.

    Attributes:
        states: The columns of the state, in the order of its coordinates.
        actions: The columns of the action.
        reward: The column of the reward. None if the reward is known.
        episode: The column that tells episodes apart, by any value. None if all rows are one.
        terminated: The column that is true in a row whose state ended the episode. None if no
            episode ended by itself.

    >>> LogColumns(("temperature",), ("power",)).reward is None
    True
    """

    states: tuple[str, ...]
    actions: tuple[str, ...]
    reward: str | None = None
    episode: str | None = None
    terminated: str | None = None

    @staticmethod
    def of(
        states: str | Sequence[str],
        actions: str | Sequence[str],
        reward: str | None,
        episode: str | None,
        terminated: str | None,
    ) -> "LogColumns":
        """Make the columns from what a user names.

        Args:
            states: One name, or several.
            actions: One name, or several.
            reward: The column of the reward, or None.
            episode: The column that tells episodes apart, or None.
            terminated: The column that is true where an episode ended by itself, or None.

        Returns:
            The columns.
        """
        state_names, action_names = (
            (each,) if isinstance(each, str) else tuple(each) for each in (states, actions)
        )
        return LogColumns(state_names, action_names, reward, episode, terminated)

    def require(self, frame: Table, source: str) -> None:
        """Check that a table has the columns, and that they hold numbers.

        Args:
            frame: The table.
            source: Where it comes from, for error messages.

        Raises:
            ArgumentError: If a column is missing, or holds something else than numbers.
        """
        labels = (self.reward, self.episode, self.terminated)
        named = (*self.states, *self.actions, *(name for name in labels if name is not None))
        for name in named:
            if name not in frame.columns:
                columns = ", ".join(map(str, frame.columns))
                raise ArgumentError("columns", f"names among {columns} ({source})", repr(name))
        import pandas as pd  # only here: its import takes half a second

        for name in self.numbers:
            if not pd.api.types.is_numeric_dtype(frame[name]):
                example = next((repr(v) for v in frame[name] if isinstance(v, str)), "no number")
                raise ArgumentError(f"column {name!r}", f"numbers ({source})", example)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that hold numbers."""
        return (*self.states, *self.actions, *([] if self.reward is None else [self.reward]))

    def parts(self, frame: Table) -> list[Table]:
        """Cut a table into its episodes, in the order of their first rows.

        Args:
            frame: The table.

        Returns:
            The rows of each episode.
        """
        if self.episode is None:
            return [frame]
        return [part for _, part in frame.groupby(self.episode, sort=False)]

    def ends(self, frame: Table) -> np.ndarray:
        """Return which rows hold a state that ended an episode.

        Args:
            frame: The rows of an episode.

        Returns:
            True where it is so, (n,).
        """
        if self.terminated is None:
            return np.zeros(len(frame), bool)
        return frame[self.terminated].fillna(False).to_numpy().astype(bool)
