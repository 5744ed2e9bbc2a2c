"""Read the tables of many runs fast: all files with the same header are parsed together."""

import csv
import io
import pathlib
from typing import Any

from kernelmdp.errors import ArgumentError

#: A pandas.DataFrame. Pandas is slow to import, so it is imported where frames are made.
Frame = Any


def read_tables(paths: list[pathlib.Path], notes: list[str]) -> list[Frame]:
    """Read CSV files of numbers. All files with the same header are parsed in one call.

    Args:
        paths: The files.
        notes: A list to which a note is added for each file whose last line is incomplete.

    Returns:
        A frame for each file; an empty one if there is no such file.

    Raises:
        ArgumentError: If a file cannot be read, or has a line that is not a row of numbers.
    """
    import pandas as pd

    tables: list[Frame] = [pd.DataFrame()] * len(paths)
    bodies: dict[bytes, list[tuple[int, bytes, int]]] = {}
    for number, path in enumerate(paths):
        if not path.is_file():
            continue
        try:
            text = path.read_bytes()
        except OSError as error:
            raise ArgumentError("folder", "files that can be read", f"{path} ({error})") from None
        complete = text[: text.rfind(b"\n") + 1]
        if len(complete) < len(text):
            notes.append(f"{path}: the last line is half-written and was left out")
        header, _, body = complete.partition(b"\n")
        columns = header.decode(errors="replace").strip().split(",")
        if body and "episode" not in columns:
            raise ArgumentError("folder", "a table with the column episode", path)
        if body.count(b",") != (len(columns) - 1) * body.count(b"\n"):
            raise ArgumentError("folder", f"{len(columns)} numbers in every line", path)
        bodies.setdefault(header.strip(), []).append((number, body, body.count(b"\n")))
    for header, files in bodies.items():
        columns = header.decode(errors="replace").split(",")
        try:
            frame = _parse([body for _, body, _ in files], columns)
        except ValueError:
            # Parse the files one by one to name the one with the error.
            for number, body, _ in files:
                try:
                    _parse([body], columns)
                except ValueError as error:
                    raise ArgumentError(
                        "folder", "numbers in every line", f"{paths[number]} ({error})"
                    ) from None
            raise
        start = 0
        for number, _, count in files:
            tables[number] = frame.iloc[start : start + count]
            start += count
    return tables


def _parse(bodies: list[bytes], columns: list[str]) -> Frame:
    import pandas as pd

    if not any(bodies):
        return pd.DataFrame(columns=columns, dtype=float)
    text = io.BytesIO(b"".join(bodies))
    options: dict[str, Any] = {"header": None, "names": columns, "quoting": csv.QUOTE_NONE}
    return pd.read_csv(text, dtype=float, **options)
