"""Cut logged rows into episodes: at gaps, at ends, and after H steps."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kernelmdp.logs.log_columns import LogColumns, Table


class LoggedEpisode(NamedTuple):
    """A piece of a log without gaps, of at most H steps.

    Attributes:
        states: (n + 1, m). Rows that only tell the past come first.
        actions: (n, q).
        rewards: (n,), or None if the log has none.
        terminated: Whether the episode ended by itself.

    >>> LoggedEpisode(np.zeros((3, 1)), np.zeros((2, 1)), np.zeros(2), False).rewards.shape
    (2,)
    """

    states: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray | None
    terminated: bool


def logged_episodes(
    frame: Table, columns: LogColumns, *, horizon: int, past: int = 0
) -> Iterator[LoggedEpisode]:
    """Cut the rows of a table into episodes.

    A row whose state is not finite is a gap: what is before and after it are two episodes. A row
    whose action or reward is missing ends a piece: its state is the last one. Pieces longer than H
    are cut. A piece of a single row tells nothing, and is left out.

    Args:
        frame: The table.
        columns: Its columns.
        horizon: H.
        past: The number of steps that each piece has before its own, because states tell the past.
            After a gap, the first steps are only the past of others.

    Yields:
        The episodes.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": [0.0, 1.0, None, 3.0, 4.0, 5.0], "u": 0.5, "r": 1.0})
    >>> columns = LogColumns(("x",), ("u",), "r")
    >>> [each.states.ravel().tolist() for each in logged_episodes(frame, columns, horizon=2)]
    [[0.0, 1.0], [3.0, 4.0, 5.0]]
    """
    for part in columns.parts(frame):
        states = part[list(columns.states)].to_numpy(float)
        actions = part[list(columns.actions)].to_numpy(float)
        rewards = None if columns.reward is None else part[columns.reward].to_numpy(float)
        seen = np.isfinite(states).all(axis=1)
        steps = seen & np.isfinite(actions).all(axis=1) & ~columns.ends(part)
        if rewards is not None:
            steps &= np.isfinite(rewards)
        # A step is a row with an action whose next row has a state.
        steps &= np.append(seen[1:], False)
        ends = columns.ends(part)
        start = after_gap = 0
        while start < len(part):
            if not steps[start]:
                start = after_gap = start + 1
                continue
            stop = start
            while stop < len(part) and steps[stop] and stop - start < horizon:
                stop += 1
            first = max(start - past, after_gap)
            if stop - first > past:
                yield LoggedEpisode(
                    states[first : stop + 1],
                    actions[first:stop],
                    None if rewards is None else rewards[first:stop],
                    bool(ends[stop]),
                )
            start = stop
