"""Event files for TensorBoard: every number of every episode, copied from ``episodes.csv``."""

import importlib
import math
import pathlib
import shutil
from typing import Any

from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.csv_follower import CSVFollower

#: The folder of the event files, inside the folder of a run.
FOLDER = "tensorboard"


def require_tensorboard() -> Any:
    """Import the library that writes event files.

    Returns:
        The module ``tensorboardX``.

    Raises:
        ArgumentError: If it is not installed. The message says how to install it.
    """
    try:
        return importlib.import_module("tensorboardX")
    except ImportError:
        expected = "tensorboardX to be installed for it (pip install 'kernelmdp[tensorboard]')"
        raise ArgumentError("tensorboard", expected, "none") from None


class TensorBoardWriter:
    """Writes the event files of a run. A resumed run writes them again from the first row.

    Args:
        folder: The run's folder.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder, self.follower = folder / FOLDER, CSVFollower(folder)
        self.writer: Any = None

    def update(self) -> None:
        """Write the new rows."""
        rows = self.follower.read_new()
        if rows and self.writer is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.writer = require_tensorboard().SummaryWriter(str(self.folder))
        for row in rows:
            step = int(row.pop("episode"))
            for name, value in row.items():
                if math.isfinite(value):
                    self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write the remaining rows and close the file."""
        self.update()
        if self.writer is not None:
            self.writer.close()
