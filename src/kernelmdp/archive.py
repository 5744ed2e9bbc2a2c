"""Atomic writing of files, and the file format of saved agents.

A saved agent is a zip file of JSON and NumPy arrays. It holds the agent's settings and its
observations, episode by episode, and the state of its learner. Loading constructs the agent again.
If the file holds no state, all observations are replayed. Reading a file never runs code from it.
"""

import io
import json
import os
import pathlib
import zipfile
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from kernelmdp.errors import CheckpointError

#: Marks a file as a saved agent.
FORMAT = "kernelmdp agent"
#: Version of the file format. ``read`` refuses all others; raise it when the format changes.
VERSION = 3
#: The name of the saved agent in the folder of a run.
RUN_CHECKPOINT = "checkpoint"
#: Names of the arrays of observations. The first axis of each counts episodes.
ARRAYS = ("states", "actions", "rewards", "outcomes", "terminated")


#: Errors of zipfile, json and NumPy on files that are truncated, of another format or malicious.
READ_ERRORS = (
    zipfile.BadZipFile,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)


#: Date of every member of the zip file, the earliest that zip allows. It is constant, so that the
#: same agent always gives the same bytes.
DATE = (1980, 1, 1, 0, 0, 0)


def write_atomically(path: Any, content: bytes) -> None:
    """Write a file atomically: a crash leaves either the old file or the new one.

    The content goes into a temporary file in the same folder, which is then renamed. The file is on
    disk when the function returns. If writing fails, the old file is unchanged.

    Args:
        path: Path of the file.
        content: Its new content.

    Raises:
        OSError: If the file cannot be written.
    """
    target = pathlib.Path(path)
    temporary = target.with_name(target.name + ".part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: pathlib.Path) -> None:
    """Make sure that the names of a folder's files are on disk.

    Syncing a file only writes its content. On systems other than POSIX a folder cannot be opened,
    and this does nothing.

    Args:
        folder: Path of the folder.
    """
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(
    path: Any,
    description: dict[str, Any],
    arrays: dict[str, np.ndarray],
    states: Mapping[str, Mapping[str, np.ndarray]] = MappingProxyType({}),
) -> None:
    """Write a saved agent. The same agent always gives the same bytes.

    Args:
        path: Path of the file.
        description: The agent's settings and problem, of types that JSON holds.
        arrays: The observations, by the names in ``ARRAYS``; the first axis counts episodes.
        states: Arrays of states of the learner, by the name of the state and of the array.
    """
    text = json.dumps({"format": FORMAT, "version": VERSION, **description}, indent=1)
    members = {"agent.json": text.encode()}
    named = {f"{label}/{name}": array for label in states for name, array in states[label].items()}
    for name, array in (arrays | named).items():
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        members[f"{name}.npy"] = buffer.getvalue()
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, DATE), content)
    write_atomically(path, zipped.getvalue())


def read(
    path: Any,
) -> tuple[dict[str, Any], dict[str, np.ndarray], dict[str, dict[str, np.ndarray]]]:
    """Read a saved agent.

    Args:
        path: Path of the file, or of the folder of a run.

    Returns:
        Description, arrays and states, as ``write`` took them. Older files have no states.

    Raises:
        CheckpointError: If there is no such file, it is no saved agent, it has another version of
            the format, or its arrays differ in their number of episodes.
    """
    file = pathlib.Path(path)
    if file.is_dir() and not (file / RUN_CHECKPOINT).is_file():
        raise CheckpointError(f"{file}: a folder without a file {RUN_CHECKPOINT!r}, so no run")
    if file.is_dir():
        file /= RUN_CHECKPOINT
    if not file.is_file():
        raise CheckpointError(f"{file}: there is no such file")
    try:
        with zipfile.ZipFile(file) as archive:
            description = json.loads(archive.read("agent.json"))
            arrays = {name: _array(archive, name) for name in ARRAYS}
            states: dict[str, dict[str, np.ndarray]] = {}
            for member in archive.namelist():
                label, slash, name = member.removesuffix(".npy").partition("/")
                if slash:
                    states.setdefault(label, {})[name] = _array(archive, f"{label}/{name}")
    except READ_ERRORS as error:
        raise CheckpointError(f"{file}: not a saved agent of kernelmdp ({error})") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise CheckpointError(f"{file}: not a saved agent of kernelmdp")
    if description.get("version") != VERSION:
        raise CheckpointError(
            f"{file}: saved in format {description.get('version')}, this library reads {VERSION}"
        )
    if len({len(array) for array in arrays.values()}) > 1:
        raise CheckpointError(f"{file}: arrays of different numbers of episodes")
    return description, arrays, states


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    return np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)
