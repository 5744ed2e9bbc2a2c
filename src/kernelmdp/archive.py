"""Files on disk: written whole or not at all; and a zip of JSON and plain arrays for agents.

Reading a file never runs code from it. The file of an agent holds how it was made and everything it
was told, episode by episode. Loading makes the agent anew and tells it all again, which on the same
machine gives the same numbers.
"""

import io
import json
import os
import pathlib
import zipfile
from typing import Any

import numpy as np

from kernelmdp.errors import CheckpointError

FORMAT, VERSION = "kernelmdp agent", 3
ARRAYS = ("states", "actions", "rewards", "outcomes", "terminated")


#: What zipfile, json and NumPy raise on files that are cut, foreign or meant to harm.
UNREADABLE = (
    zipfile.BadZipFile,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)


#: The date of every part of a file: the same agent gives the same bytes.
DATE = (1980, 1, 1, 0, 0, 0)


def write_atomically(path: Any, content: bytes) -> None:
    """Write beside the place, then rename: a crash leaves the old file or the new one.

    When this comes back the file is on disk; where it fails the old one is as it was.
    """
    target = pathlib.Path(path)
    beside = target.with_name(target.name + ".part")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: pathlib.Path) -> None:
    """Names on disk as well as contents."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(place)
    finally:
        os.close(place)


def write(path: Any, description: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write an agent; the same one always as the same bytes."""
    text = json.dumps({"format": FORMAT, "version": VERSION, **description}, indent=1)
    parts = {"agent.json": text.encode()}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        parts[f"{name}.npy"] = buffer.getvalue()
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name, DATE), content)
    write_atomically(path, whole.getvalue())


def read(path: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The description and the arrays, or a CheckpointError that says what is wrong."""
    place = pathlib.Path(path)
    if not place.is_file():
        raise CheckpointError(f"{place}: there is no such file")
    try:
        with zipfile.ZipFile(place) as archive:
            description = json.loads(archive.read("agent.json"))
            arrays = {
                name: np.load(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)
                for name in ARRAYS
            }
    except UNREADABLE as error:
        raise CheckpointError(f"{place}: not a saved agent of kernelmdp ({error})") from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise CheckpointError(f"{place}: not a saved agent of kernelmdp")
    if description.get("version") != VERSION:
        raise CheckpointError(
            f"{place}: saved in format {description.get('version')}, this library reads {VERSION}"
        )
    if len({len(array) for array in arrays.values()}) > 1:
        raise CheckpointError(f"{place}: arrays of different numbers of episodes")
    return description, arrays
