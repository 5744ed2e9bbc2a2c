"""The rows of a run that grows, as they come."""

import pathlib

from kernelmdp.experiments.run_files import ROWS


class CSVFollower:
    """Reads ``episodes.csv`` of a folder again and again, each time what is new."""

    def __init__(self, place: pathlib.Path) -> None:
        self.path = place / ROWS
        #: Episodes read so far.
        self.count = 0
        self._read = 0
        self._columns: list[str] = []

    def new(self) -> list[dict[str, float]]:
        """Whole rows that were not there before; all of them after the file was made anew."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            if size == self._read:
                return []
            if size < self._read:  # a crash took some; those that come again are the same
                self.count = self._read = 0
            file.seek(self._read)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._read += len(whole)
        rows = []
        for line in whole.decode(errors="replace").splitlines():
            cells = line.split(",")
            if cells[0] == "episode":
                self._columns = cells
            elif len(cells) == len(self._columns) and cells[0].isdigit():  # not torn
                rows.append(dict(zip(self._columns, map(float, cells), strict=True)))
        self.count += len(rows)
        return rows
