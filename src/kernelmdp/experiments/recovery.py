"""What a run's folder holds, read back after any kind of end (``folder`` says what is in it)."""

import csv
import dataclasses
import json
import math
import pathlib
from typing import Any

import numpy as np

from kernelmdp.agents import Agent, checkpoint
from kernelmdp.agents.base import Told
from kernelmdp.agents.records import COLUMNS
from kernelmdp.errors import CheckpointError

ROWS, JOURNAL, CHECKPOINT = "episodes.csv", "journal", "checkpoint"
HEADER = ",".join(COLUMNS) + "\r\n"
#: What was told of an episode.
DATA = ("states", "actions", "rewards", "outcomes")


@dataclasses.dataclass(frozen=True)
class Kept:
    """What a folder holds of a run: the episodes that have both a row and their data."""

    history: list[Told]
    #: Rows as they are written, with the ends of their lines.
    lines: list[str]
    regret: float
    #: What had to be mended; empty after an orderly end.
    note: str = ""


def read_kept(place: pathlib.Path, agent: Agent) -> Kept:
    """The episodes on disk, from checkpoint and journal; nothing is changed."""
    history, regret = _read_checkpoint(place / CHECKPOINT, agent)
    lines = _read_lines(place / ROWS)
    records, torn = _read_journal(place / JOURNAL)
    notes = []
    if len(lines) < len(history):
        notes.append(f"{ROWS} has {len(lines)} rows of {len(history)}")
        history = history[: len(lines)]
        regret = float(lines[-1].split(",")[COLUMNS.index("cumulative_regret")]) if lines else 0.0
        regret = 0.0 if math.isnan(regret) else regret  # no optimum is known
    saved, found = len(history), len(lines)
    lines = lines[:saved]
    for record in records:
        if record["episode"] == len(history) + 1:
            history.append(Told(*(record[name] for name in DATA), terminated=record["terminated"]))
            lines.append(record["row"])
            regret = record["regret"]
    if torn:
        notes.append("the last line of the journal was cut short")
    if found != len(lines):
        notes.append(f"{ROWS} had {found} whole rows")
    elif len(history) > saved:
        notes.append("the last process had been ended in the middle")
    return Kept(history, lines, regret, "; ".join(notes))


def as_line(row: dict[str, Any]) -> str:
    """A row as it is written; all its values are numbers."""
    return ",".join([str(row.get(name, "nan")) for name in COLUMNS]) + "\r\n"


def as_record(episode: int, line: str, regret: float, told: Told) -> str:
    """A line of the journal: JSON, put together by hand as this is done after every episode."""
    data = ", ".join([f'"{name}": {as_text(getattr(told, name))}' for name in DATA])
    row, total, ended = (json.dumps(word) for word in (line, float(regret), told.terminated))
    head = f'"episode": {episode}, "row": {row}, "regret": {total}'
    return f'{{{head}, {data}, "terminated": {ended}}}\n'


def as_text(array: np.ndarray) -> str:
    """Shape and bytes: far faster than digits, and the same in all bits."""
    return f'[{list(array.shape)}, "{array.astype("<f8", copy=False).tobytes().hex()}"]'


def from_text(given: list[Any]) -> np.ndarray:
    """The array of ``as_text``, out of its JSON."""
    shape, text = given
    return np.frombuffer(bytes.fromhex(text), "<f8").reshape(shape).astype(float)


def read_rows(path: pathlib.Path) -> list[dict[str, Any]]:
    """Rows on disk; a last one cut short by a crash is left out."""
    if not path.exists():
        return []
    rows = list(csv.DictReader(_texts(path)))
    whole = []
    for row in rows:
        try:
            # A column that an older version did not write is not a row cut short.
            numbers = {name: float(row.get(name, "nan")) for name in COLUMNS}
            whole.append(numbers | {"episode": int(float(row["episode"]))})
        except (KeyError, TypeError, ValueError):
            break
    return whole


def _read_checkpoint(path: pathlib.Path, agent: Agent) -> tuple[list[Told], float]:
    if not path.exists():
        return [], 0.0
    description, arrays = checkpoint.read(path)
    name, seed = description.get("agent"), description.get("seed")
    if (name, seed) != (agent.name, agent.seed):
        raise CheckpointError(f"{path}: holds {name} with seed {seed}, not this run")
    if description.get("problem") != json.loads(json.dumps(agent.problem.summary())):
        raise CheckpointError(f"{path}: saved for another problem than this run's")
    if len({len(array) for array in arrays.values()}) > 1:
        raise CheckpointError(f"{path}: arrays of different numbers of episodes")
    return Told.all_of(arrays), float(description["cumulative_regret"])


def _read_journal(path: pathlib.Path) -> tuple[list[dict[str, Any]], bool]:
    """Its records up to the first that is not whole, and whether there was one."""
    found: list[dict[str, Any]] = []
    if not path.exists():
        return found, False
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            record = json.loads(line.decode())
            for name in DATA:
                record[name] = from_text(record[name])
            whole = line.endswith(b"\n") and _parsed(record["row"], record["episode"])
            record["regret"], record["terminated"] = float(record["regret"]), record["terminated"]
        except (KeyError, TypeError, ValueError):
            whole = False
        if not whole:
            return found, True
        found.append(record)
    return found, False


def _read_lines(path: pathlib.Path) -> list[str]:
    """Rows as text, up to the first that is not whole."""
    if not path.exists():
        return []
    lines = _texts(path)
    if not lines or lines[0].rstrip("\r\n") != HEADER.rstrip("\r\n"):
        return [as_line(row) for row in read_rows(path)]  # of an older version
    found: list[str] = []
    for line in lines[1:]:
        if not (line.endswith("\n") and _parsed(line, len(found) + 1)):
            break
        found.append(line)
    return found


def _texts(path: pathlib.Path) -> list[str]:
    """Lines; what a crash left that is no text is none of a number either."""
    with path.open(newline="", errors="replace") as file:
        return [line.replace("\0", "?") for line in file]


def _parsed(line: str, episode: int) -> bool:
    """Whether a line is the row of this episode."""
    try:
        numbers = [float(text) for text in line.rstrip("\r\n").split(",")]
    except ValueError:
        return False
    return len(numbers) == len(COLUMNS) and numbers[0] == episode
