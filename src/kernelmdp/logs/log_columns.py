"""Which columns of a table are states, actions and rewards."""

import dataclasses
from collections.abc import Iterable, Sequence
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

        Raises:
            ArgumentError: If states or actions are no names.
        """
        names = {}
        for argument, given in (("states", states), ("actions", actions)):
            several = (given,) if isinstance(given, str) else given
            if not isinstance(several, Iterable):
                raise ArgumentError(argument, "the name of a column, or several", repr(given))
            names[argument] = tuple(several)
        return LogColumns(names["states"], names["actions"], reward, episode, terminated)

    def require(self, frame: Table, source: str) -> None:
        """Check that a table has the columns, and that they hold numbers.

        Args:
            frame: The table.
            source: Where it comes from, for error messages.

        Raises:
            ArgumentError: If the table is no data frame, or a column is missing, is there twice, or
                holds something else than it should.
        """
        import pandas as pd  # only here: its import takes half a second

        if not isinstance(frame, pd.DataFrame):
            raise ArgumentError("frame", "a data frame of pandas", type(frame).__name__)
        labels = (self.reward, self.episode, self.terminated)
        named = (*self.states, *self.actions, *(name for name in labels if name is not None))
        for name in named:
            if name not in frame.columns:
                columns = ", ".join(map(str, frame.columns))
                raise ArgumentError("columns", f"names among {columns} ({source})", repr(name))
            if frame[name].ndim > 1:
                raise ArgumentError("columns", f"different names ({source})", f"{name!r} twice")
        for name in self.numbers:
            is_time = frame[name].dtype.kind in "mM"
            numbers = frame[name].where(False) if is_time else frame[name]
            numbers = pd.to_numeric(numbers, errors="coerce")
            self._require(name, numbers.notna() | frame[name].isna(), frame, "numbers", source)
        if self.terminated is not None:
            valid = frame[self.terminated].isin([True, False]) | frame[self.terminated].isna()
            self._require(self.terminated, valid, frame, "true or false", source)
        if self.episode is not None:
            # Rows without a state are gaps, and belong to no episode.
            valid = frame[self.episode].notna() | frame[list(self.states)].isna().any(axis=1)
            self._require(self.episode, valid, frame, "a value in rows with a state", source)

    @staticmethod
    def _require(name: str, valid: Any, frame: Table, expected: str, source: str) -> None:
        if not valid.all():
            row = int(np.argmin(valid.to_numpy()))
            value = frame[name].iloc[row]
            got = f"{str(value)!r} in row {row + 1}"
            raise ArgumentError(f"column {name!r}", f"{expected} ({source})", got)

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
        return frame[self.terminated].isin([True]).to_numpy()
