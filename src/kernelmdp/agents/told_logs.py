"""Let an agent learn from logged data: files or data frames."""

import pathlib
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.errors import ArgumentError, KernelMDPError
from kernelmdp.logs import LogColumns, LogReport, Table, logged_episodes
from kernelmdp.mdp import Episode, Problem
from kernelmdp.mdp.model import reward_values
from kernelmdp.mdp.told_data import told_episode
from kernelmdp.numerics.modules import replace_fields


def read_tables(paths: Any) -> list[tuple[str, Table]]:
    """Read files of comma-separated values.

    Args:
        paths: A path, or several.

    Returns:
        The name of each file, and its table.

    Raises:
        ArgumentError: If a file cannot be read as a table.
    """
    import pandas as pd  # only here: its import takes half a second

    several = isinstance(paths, Sequence) and not isinstance(paths, str | bytes)
    tables = []
    for path in paths if several else [paths]:
        try:
            tables.append((pathlib.Path(path).name, pd.read_csv(path)))
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise ArgumentError("paths", "files of comma-separated values", reason) from None
    return tables


def tell_tables(
    agent: Any, tables: list[tuple[str, Table]], columns: LogColumns, *, learn: bool
) -> LogReport:
    """Let an agent learn from tables. If an error is raised, it has learned nothing.

    Args:
        agent: The agent.
        tables: The name of each source, and its rows.
        columns: The columns.
        learn: Whether to learn, or only to report.

    Returns:
        What is in the tables.

    Raises:
        ArgumentError: If the number of columns does not fit the problem, rewards are missing, or no
            step is in the tables.
    """
    problem: Problem = agent.problem
    spaces: Any = problem if problem.memory is None else problem.memory
    for name, chosen, count in (
        ("states", columns.states, spaces.states.dimension),
        ("actions", columns.actions, spaces.actions.dimension),
    ):
        if len(chosen) != count:
            raise ArgumentError(name, f"{count} columns", ", ".join(chosen))
    if columns.reward is None and problem.reward is None:
        raise ArgumentError("reward", "a column, as the agent does not know the reward", None)
    pieces, episodes = [], []
    for source, frame in tables:
        columns.require(frame, source)
        for number, piece in enumerate(logged_episodes(frame, columns, horizon=problem.horizon)):
            pieces.append(piece)
            if learn:
                episodes.append(_told(problem, piece, f"{source}, piece {number + 1}"))
    if not pieces:
        raise ArgumentError("rows", "two rows in a row with state and action", "none")
    axes = [axis for axis in problem.unbounded if axis < spaces.states.dimension]
    report = LogReport.of(
        pieces, columns.states, columns.actions, spaces.states, spaces.actions, axes
    )
    for episode in episodes:
        agent.replay(episode)
    return report


def _told(problem: Problem, piece: Any, where: str) -> Episode:
    """The episode of a piece. Errors say where it is from."""
    rewards = np.zeros(len(piece.actions)) if piece.rewards is None else piece.rewards
    ending = {"terminated": piece.terminated, "truncated": not piece.terminated}
    try:
        data = (piece.states, piece.actions, rewards)
        episode = told_episode(*data, problem=problem, **ending)
    except ArgumentError as error:
        raise type(error)(f"{error.argument} ({where})", error.expected, error.got) from None
    except KernelMDPError as error:
        raise ArgumentError(where, "an episode of the problem", error) from None
    if piece.rewards is None:
        points = jnp.asarray(episode.points)
        known: Any = problem.reward
        episode = replace_fields(episode, rewards=np.asarray(reward_values(known, points)))
    return episode
