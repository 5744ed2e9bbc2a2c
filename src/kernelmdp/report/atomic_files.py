"""Writing so that a crash leaves the old file or the new one, never half of one."""

import os
import pathlib

from kernelmdp.errors import ArgumentError


def write_beside(path: pathlib.Path, content: bytes) -> None:
    """Write to a file beside the place, then rename it."""
    beside = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            file.write(content)
        beside.replace(path)
    except OSError as error:
        _remove(beside)
        raise ArgumentError("out", "a place that can be written", f"{path} ({error})") from None


def require_writable(path: pathlib.Path) -> None:
    """Try it before the work: nothing is written to the place itself."""
    beside = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.touch()
    except OSError as error:
        raise ArgumentError("out", "a place that can be written", f"{path} ({error})") from None
    _remove(beside)


def _remove(path: pathlib.Path) -> None:
    if os.path.lexists(path):
        path.unlink()
