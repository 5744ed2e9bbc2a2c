"""Let an agent learn from logged data: files or data frames."""

import pathlib
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.errors import ArgumentError, KernelMDPError
from kernelmdp.logs import LogColumns, LoggedEpisode, LogReport, Table, logged_episodes
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
    if several and not paths:
        raise ArgumentError("paths", "a file, or several", "none")
    tables = []
    for path in paths if several else [paths]:
        try:
            tables.append((pathlib.Path(path).name, pd.read_csv(path)))
        except (OSError, ValueError, TypeError) as error:
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
            expected = "one column" if count == 1 else f"{count} columns"
            raise ArgumentError(name, expected, ", ".join(map(str, chosen)))
    if columns.reward is None and problem.reward is None:
        raise ArgumentError("reward", "a column, as the agent does not know the reward", None)
    past = 0 if problem.memory is None else problem.memory.past_actions
    pieces: list[LoggedEpisode] = []
    episodes, horizon = [], problem.horizon
    for source, frame in tables:
        columns.require(frame, source)
        pieces += logged_episodes(frame, columns, horizon=horizon)
        if learn:
            with_past = logged_episodes(frame, columns, horizon=horizon, past=past)
            episodes += [
                _told(problem, piece, past, f"{source}, piece {number}")
                for number, piece in enumerate(with_past, 1)
            ]
    if not (episodes if learn else pieces):
        rows = past + 2 if learn else 2
        missing = "state and action" + (
            "" if columns.reward is None else ", and the reward between"
        )
        raise ArgumentError("rows", f"at least {rows} consecutive rows with {missing}", "none")
    axes = [axis for axis in problem.unbounded if axis < spaces.states.dimension]
    report = LogReport.of(
        pieces, columns.states, columns.actions, spaces.states, spaces.actions, axes
    )
    for episode in episodes:
        agent.replay(episode)
    return report


def _told(problem: Problem, piece: LoggedEpisode, past: int, where: str) -> Episode:
    """The episode of a piece, without steps that only tell its past. Errors say where it is."""
    rewards = np.zeros(len(piece.actions)) if piece.rewards is None else piece.rewards
    ending = {"terminated": piece.terminated, "truncated": not piece.terminated}
    states = piece.states
    try:
        if problem.memory is not None:
            problem.memory.states.require_inside("states", states)
            problem.memory.actions.require_inside("actions", piece.actions)
            states = problem.memory.later_states(states, piece.actions, past)
        data = (states, piece.actions[past:], rewards[past:])
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
