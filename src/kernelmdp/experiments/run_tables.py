"""Tables of numbers in many files, read fast: all files with the same header in one go."""

import csv
import io
import pathlib
from typing import Any

from kernelmdp.errors import ArgumentError

#: A pandas.DataFrame. Pandas is imported where frames are made: it takes a while.
Frame = Any


def read_tables(paths: list[pathlib.Path], notes: list[str]) -> list[Frame]:
    """Tables of numbers, all files with the same header in one go: many files are read fast."""
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
        whole = text[: text.rfind(b"\n") + 1]
        if len(whole) < len(text):
            notes.append(f"{path}: the last line is half-written and was left out")
        header, _, body = whole.partition(b"\n")
        columns = header.decode(errors="replace").strip().split(",")
        if body and "episode" not in columns:
            raise ArgumentError("folder", "a table with the column episode", path)
        if body.count(b",") != (len(columns) - 1) * body.count(b"\n"):
            raise ArgumentError("folder", f"{len(columns)} numbers in every line", path)
        bodies.setdefault(header.strip(), []).append((number, body, body.count(b"\n")))
    for header, files in bodies.items():
        columns = header.decode(errors="replace").split(",")
        try:
            frame = _numbers([body for _, body, _ in files], columns)
        except ValueError:
            for number, body, _ in files:  # which of them?
                try:
                    _numbers([body], columns)
                except ValueError as error:
                    raise ArgumentError(
                        "folder", "numbers in every line", f"{paths[number]} ({error})"
                    ) from None
            raise
        start_sync = 0
        for number, _, count in files:
            tables[number] = frame.iloc[start_sync : start_sync + count]
            start_sync += count
    return tables


def _numbers(bodies: list[bytes], columns: list[str]) -> Frame:
    import pandas as pd

    if not any(bodies):
        return pd.DataFrame(columns=columns, dtype=float)
    text = io.BytesIO(b"".join(bodies))
    options: dict[str, Any] = {"header": None, "names": columns, "quoting": csv.QUOTE_NONE}
    return pd.read_csv(text, dtype=float, **options)
