"""Write files atomically: a crash leaves the old file or the new one, never half of one."""

import os
import pathlib

from kernelmdp.errors import ArgumentError


def write_file(path: pathlib.Path, content: bytes) -> None:
    """Write a temporary file in the same folder, then rename it.

    Args:
        path: The file to write. Its folder is made if there is none.
        content: Its content.

    Raises:
        ArgumentError: If the file cannot be written.
    """
    temporary = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(content)
        temporary.replace(path)
    except OSError as error:
        _remove(temporary)
        raise ArgumentError("out", "a place that can be written", f"{path} ({error})") from None


def require_writable(path: pathlib.Path) -> None:
    """Check that a file can be written, before any long computation. The file stays unchanged.

    Args:
        path: The file. Its folder is made if there is none.

    Raises:
        ArgumentError: If the file cannot be written.
    """
    temporary = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
    except OSError as error:
        raise ArgumentError("out", "a place that can be written", f"{path} ({error})") from None
    _remove(temporary)


def _remove(path: pathlib.Path) -> None:
    if os.path.lexists(path):
        path.unlink()
