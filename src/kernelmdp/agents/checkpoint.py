"""Agents on disk: a zip of JSON and plain arrays. Reading one never runs code from it.

The file holds how the agent was made and everything it was told, episode by episode. Loading
makes the agent anew and tells it all again, which on the same machine gives the same numbers.
"""

import io
import json
import os
import pathlib
import zipfile
from typing import Any

import numpy as np

from kernelmdp.errors import CheckpointError

FORMAT, VERSION = "kernelmdp agent", 2
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


def write(path: Any, description: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write beside the place, then rename: a crash leaves the old file or the new one."""
    target = pathlib.Path(path)
    beside = target.with_name(target.name + ".part")
    text = json.dumps({"format": FORMAT, "version": VERSION, **description}, indent=1)
    with zipfile.ZipFile(beside, "w") as archive:
        archive.writestr("agent.json", text)
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getvalue())
    with beside.open("rb+") as file:
        os.fsync(file.fileno())
    beside.replace(target)


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
    return description, arrays
