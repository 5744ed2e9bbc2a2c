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
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True) if beside.parent.is_dir() else None
        raise ArgumentError("out", "a place that can be written", f"{path} ({error})") from None
