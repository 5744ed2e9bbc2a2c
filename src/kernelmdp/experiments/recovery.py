"""Recover the episodes of a run from its folder, also after a crash.

``run_folder`` describes the files.
"""

import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelmdp import archive
from kernelmdp.agents import Agent
from kernelmdp.agents.saving import learn_again
from kernelmdp.errors import CheckpointError
from kernelmdp.experiments.learning_loop import columns_of
from kernelmdp.experiments.run_config import RunConfig
from kernelmdp.experiments.run_files import (
    CHECKPOINT_FILE,
    EPISODES_FILE,
    JOURNAL_FILE,
    as_line,
    header,
    read_history,
    read_lines,
    read_rows,
)
from kernelmdp.mdp import Episode

#: Arrays of an episode in the journal. They are the first fields of ``Episode``, in its order.
EPISODE_ARRAYS = ("states", "actions", "rewards", "outcomes")


@dataclasses.dataclass(frozen=True)
class RecoveredRun:
    """The episodes of a folder that have both a row and their data.

    Attributes:
        history: The episodes.
        lines: Their rows as lines of ``episodes.csv``, with line ends.
        totals: Running sums after the last episode, such as cumulative regret.
        note: What had to be repaired; empty after an orderly end.
        states: Arrays of the learner's states after the first ``learned`` episodes; empty if the
            checkpoint holds none.
        learned: The number of episodes after which these states were saved.
    """

    history: list[Episode]
    lines: list[str]
    totals: dict[str, float]
    note: str = ""
    states: Mapping[str, Mapping[str, np.ndarray]] = dataclasses.field(default_factory=dict)
    learned: int = 0

    def give_to(self, agent: Agent, path: object) -> None:
        """Give the episodes to an agent. It learns only from those after the checkpoint.

        Args:
            agent: A new agent of the run.
            path: The checkpoint, for error messages.
        """
        learn_again(agent, path, self.history[: self.learned], self.states)
        for episode in self.history[self.learned :]:
            agent.replay(episode)
        agent.totals = dict(self.totals)


def recover_run(folder: pathlib.Path, agent: Agent, config: RunConfig) -> RecoveredRun:
    """Read the episodes from checkpoint and journal. No file is changed.

    Args:
        folder: The run's folder.
        agent: A new agent of the run.
        config: The run's configuration.

    Returns:
        The episodes that have both a row and their data.
    """
    columns = columns_of(agent)
    history, totals, states = _read_checkpoint(folder, agent, config)
    lines = _read_complete_rows(folder, columns)
    records, torn = _read_journal(folder / JOURNAL_FILE, columns)
    notes = []
    if len(lines) < len(history):
        notes.append(f"{EPISODES_FILE} has {len(lines)} rows of {len(history)}")
        history, states = history[: len(lines)], {}
        position = columns.index("cumulative_regret")
        regret = float(lines[-1].split(",")[position]) if lines else 0.0
        totals = {} if math.isnan(regret) else {"regret": regret}  # NaN: no optimum is known.
    in_checkpoint, rows_on_disk = len(history), len(lines)
    lines = lines[:in_checkpoint]
    for record in records:
        if record["episode"] == len(history) + 1:
            arrays = (record[name] for name in EPISODE_ARRAYS)
            history.append(Episode(*arrays, terminated=record["terminated"]))
            lines.append(record["row"])
            totals = record["totals"]
    if torn:
        notes.append("the last line of the journal was cut short")
    if rows_on_disk != len(lines):
        notes.append(f"{EPISODES_FILE} had {rows_on_disk} complete rows")
    elif len(history) > in_checkpoint:
        notes.append("the last process was interrupted")
    return RecoveredRun(history, lines, totals, "; ".join(notes), states, in_checkpoint)


def journal_record(number: int, line: str, totals: dict[str, float], episode: Episode) -> str:
    """Write an episode as a line of the journal.

    The line is JSON. It is put together by hand, which is faster: this is done after every episode.

    Args:
        number: The number of the episode, counted from 1.
        line: Its row, as a line of ``episodes.csv``.
        totals: Running sums after the episode.
        episode: The episode.

    Returns:
        The line, with its end.
    """
    arrays = ", ".join(
        [f'"{name}": {encode_array(getattr(episode, name))}' for name in EPISODE_ARRAYS]
    )
    row, sums, terminated = (json.dumps(value) for value in (line, totals, episode.terminated))
    head = f'"episode": {number}, "row": {row}, "totals": {sums}'
    return f'{{{head}, {arrays}, "terminated": {terminated}}}\n'


def encode_array(array: np.ndarray) -> str:
    """Encode an array as JSON: its shape and its bytes in hexadecimal.

    This is much faster than decimal digits, and it keeps every bit.

    Args:
        array: The array, of any shape.

    Returns:
        The JSON text.
    """
    return f'[{list(array.shape)}, "{array.astype("<f8", copy=False).tobytes().hex()}"]'


def decode_array(encoded: list[Any]) -> np.ndarray:
    """Decode an array that ``encode_array`` encoded.

    Args:
        encoded: The parsed JSON: shape and hexadecimal bytes.

    Returns:
        The array.
    """
    shape, text = encoded
    return np.frombuffer(bytes.fromhex(text), "<f8").reshape(shape).astype(float)


def _read_checkpoint(
    folder: pathlib.Path, agent: Agent, config: RunConfig
) -> tuple[list[Episode], dict[str, float], Mapping[str, Mapping[str, np.ndarray]]]:
    path = folder / CHECKPOINT_FILE
    if not path.exists():
        return [], {}, {}
    history, totals, states = read_history(folder, config)
    problem = archive.read(path)[0].get("problem")
    if problem != json.loads(json.dumps(agent.problem.summary())):
        raise CheckpointError(f"{path}: saved for another problem than this run's")
    return history, totals, states


def _read_journal(path: pathlib.Path, columns: Sequence[str]) -> tuple[list[dict[str, Any]], bool]:
    """Return the records up to the first incomplete one, and whether there was one."""
    records: list[dict[str, Any]] = []
    if not path.exists():
        return records, False
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            record = json.loads(line.decode())
            for name in EPISODE_ARRAYS:
                record[name] = decode_array(record[name])
            complete = line.endswith(b"\n") and _is_row(record["row"], record["episode"], columns)
            record["totals"] = {name: float(total) for name, total in record["totals"].items()}
            record["terminated"] = bool(record["terminated"])
        except (AttributeError, KeyError, TypeError, ValueError):
            complete = False
        if not complete:
            return records, True
        records.append(record)
    return records, False


def _read_complete_rows(folder: pathlib.Path, columns: Sequence[str]) -> list[str]:
    """Return the rows as text, up to the first incomplete one."""
    lines = read_lines(folder / EPISODES_FILE)
    if not lines or lines[0].rstrip("\r\n") != header(columns).rstrip("\r\n"):
        # An older version wrote fewer columns. Its rows are complete, and get the missing columns.
        return [as_line(row, columns) for row in read_rows(folder)]
    complete: list[str] = []
    for line in lines[1:]:
        if not (line.endswith("\n") and _is_row(line, len(complete) + 1, columns)):
            break
        complete.append(line)
    return complete


def _is_row(line: str, episode: int, columns: Sequence[str]) -> bool:
    """Return whether a line is the complete row of this episode."""
    try:
        numbers = [float(text) for text in line.rstrip("\r\n").split(",")]
    except ValueError:
        return False
    return len(numbers) == len(columns) and numbers[0] == episode
