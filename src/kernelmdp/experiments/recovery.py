"""What a run's folder holds, read back after any kind of end (``folder`` says what is in it)."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelmdp import archive
from kernelmdp.agents import Agent
from kernelmdp.errors import CheckpointError
from kernelmdp.experiments.learning_loop import columns_of
from kernelmdp.experiments.run_config import RunConfig
from kernelmdp.experiments.run_files import (
    CHECKPOINT,
    JOURNAL,
    ROWS,
    as_line,
    header,
    read_history,
    read_lines,
    read_rows,
)
from kernelmdp.mdp import Episode

#: What was told of an episode.
DATA = ("states", "actions", "rewards", "outcomes")


@dataclasses.dataclass(frozen=True)
class RecoveredRun:
    """What a folder holds of a run: the episodes that have both a row and their data."""

    history: list[Episode]
    #: Rows as they are written, with the ends of their lines.
    lines: list[str]
    totals: dict[str, float]
    #: What had to be mended; empty after an orderly end.
    note: str = ""


def recover_run(place: pathlib.Path, agent: Agent, config: RunConfig) -> RecoveredRun:
    """The episodes on disk, from checkpoint and journal; nothing is changed."""
    columns = columns_of(agent)
    history, totals = _read_checkpoint(place, agent, config)
    lines = _read_whole_rows(place, columns)
    records, torn = _read_journal(place / JOURNAL, columns)
    notes = []
    if len(lines) < len(history):
        notes.append(f"{ROWS} has {len(lines)} rows of {len(history)}")
        history = history[: len(lines)]
        place_of = columns.index("cumulative_regret")
        regret = float(lines[-1].split(",")[place_of]) if lines else 0.0
        totals = {} if math.isnan(regret) else {"regret": regret}  # NaN: no optimum is known
    saved, found = len(history), len(lines)
    lines = lines[:saved]
    for record in records:
        if record["episode"] == len(history) + 1:
            data = (record[name] for name in DATA)
            history.append(Episode(*data, terminated=record["terminated"]))
            lines.append(record["row"])
            totals = record["totals"]
    if torn:
        notes.append("the last line of the journal was cut short")
    if found != len(lines):
        notes.append(f"{ROWS} had {found} whole rows")
    elif len(history) > saved:
        notes.append("the last process had been ended in the middle")
    return RecoveredRun(history, lines, totals, "; ".join(notes))


def journal_record(episode: int, line: str, totals: dict[str, float], data: Episode) -> str:
    """A line of the journal: JSON, put together by hand as this is done after every episode."""
    arrays = ", ".join([f'"{name}": {encode_array(getattr(data, name))}' for name in DATA])
    row, sums, ended = (json.dumps(part) for part in (line, totals, data.terminated))
    head = f'"episode": {episode}, "row": {row}, "totals": {sums}'
    return f'{{{head}, {arrays}, "terminated": {ended}}}\n'


def encode_array(array: np.ndarray) -> str:
    """Shape and bytes: far faster than digits, and the same in all bits."""
    return f'[{list(array.shape)}, "{array.astype("<f8", copy=False).tobytes().hex()}"]'


def decode_array(given: list[Any]) -> np.ndarray:
    """The array of ``encode_array``, out of its JSON."""
    shape, text = given
    return np.frombuffer(bytes.fromhex(text), "<f8").reshape(shape).astype(float)


def _read_checkpoint(
    place: pathlib.Path, agent: Agent, config: RunConfig
) -> tuple[list[Episode], dict[str, float]]:
    if not (place / CHECKPOINT).exists():
        return [], {}
    history, totals = read_history(place, config)
    problem = archive.read(place / CHECKPOINT)[0].get("problem")
    if problem != json.loads(json.dumps(agent.problem.summary())):
        raise CheckpointError(f"{place / CHECKPOINT}: saved for another problem than this run's")
    return history, totals


def _read_journal(path: pathlib.Path, columns: Sequence[str]) -> tuple[list[dict[str, Any]], bool]:
    """Its records up to the first that is not whole, and whether there was one."""
    found: list[dict[str, Any]] = []
    if not path.exists():
        return found, False
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            record = json.loads(line.decode())
            for name in DATA:
                record[name] = decode_array(record[name])
            whole = line.endswith(b"\n") and _parsed(record["row"], record["episode"], columns)
            record["totals"] = {name: float(sum_) for name, sum_ in record["totals"].items()}
            record["terminated"] = bool(record["terminated"])
        except (AttributeError, KeyError, TypeError, ValueError):
            whole = False
        if not whole:
            return found, True
        found.append(record)
    return found, False


def _read_whole_rows(place: pathlib.Path, columns: Sequence[str]) -> list[str]:
    """Rows as text, up to the first that is not whole."""
    lines = read_lines(place / ROWS)
    if not lines or lines[0].rstrip("\r\n") != header(columns).rstrip("\r\n"):
        # Of an older version: a column that it did not write is not a row cut short.
        return [as_line(row, columns) for row in read_rows(place)]
    whole: list[str] = []
    for line in lines[1:]:
        if not (line.endswith("\n") and _parsed(line, len(whole) + 1, columns)):
            break
        whole.append(line)
    return whole


def _parsed(line: str, episode: int, columns: Sequence[str]) -> bool:
    """Whether a line is the row of this episode."""
    try:
        numbers = [float(text) for text in line.rstrip("\r\n").split(",")]
    except ValueError:
        return False
    return len(numbers) == len(columns) and numbers[0] == episode
