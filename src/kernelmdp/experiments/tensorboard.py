"""A run for TensorBoard: every number of every episode, mirrored from ``episodes.csv``."""

import importlib
import math
import pathlib
import shutil
from typing import Any

from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.csv_follower import CSVFollower

FOLDER = "tensorboard"


def require_tensorboard() -> Any:
    """The library that writes event files, or one sentence on how to get it."""
    try:
        return importlib.import_module("tensorboardX")
    except ImportError:
        expected = "tensorboardX to be installed for it (pip install 'kernelmdp[tensorboard]')"
        raise ArgumentError("tensorboard", expected, "none") from None


class TensorBoardWriter:
    """The event files of a run's folder; written anew from the first row when a run goes on."""

    def __init__(self, place: pathlib.Path) -> None:
        self.place, self.tail = place / FOLDER, CSVFollower(place)
        self.writer: Any = None

    def update(self) -> None:
        """Write what is new."""
        rows = self.tail.new()
        if rows and self.writer is None:
            shutil.rmtree(self.place, ignore_errors=True)
            self.writer = require_tensorboard().SummaryWriter(str(self.place))
        for row in rows:
            step = int(row.pop("episode"))
            for name, value in row.items():
                if math.isfinite(value):
                    self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write the rest and close the file."""
        self.update()
        if self.writer is not None:
            self.writer.close()
