"""Read the rows of a run while it is being played."""

import pathlib

from kernelmdp.experiments.run_files import EPISODES_FILE


class CSVFollower:
    """Reads ``episodes.csv`` of a folder repeatedly. Every call returns the new rows only.

    Args:
        folder: The run's folder. It need not exist yet.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.path = folder / EPISODES_FILE
        #: The number of episodes read so far.
        self.count = 0
        self._bytes_read = 0
        self._columns: list[str] = []

    def read_new(self) -> list[dict[str, float]]:
        """Return complete rows that were not there before.

        Returns:
            The new rows. If the file was rewritten and is shorter than before, all its rows.
        """
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            if size == self._bytes_read:
                return []
            # A crash removed rows. Those that are played again are the same, so read all again.
            if size < self._bytes_read:
                self.count = self._bytes_read = 0
            file.seek(self._bytes_read)
            content = file.read()
        complete = content[: content.rfind(b"\n") + 1]
        self._bytes_read += len(complete)
        rows = []
        for line in complete.decode(errors="replace").splitlines():
            cells = line.split(",")
            if cells[0] == "episode":
                self._columns = cells
            # A torn line has too few cells or no number.
            elif len(cells) == len(self._columns) and cells[0].isdigit():
                rows.append(dict(zip(self._columns, map(float, cells), strict=True)))
        self.count += len(rows)
        return rows
