"""Write a controller as an ``.npz`` file, which NumPy alone can run."""

import io

import numpy as np

from kernelmdp.export.controller_table import ControllerTable
from kernelmdp.export.self_check import SelfCheck


def numpy_archive(table: ControllerTable, check: SelfCheck) -> bytes:
    """Write a controller as arrays.

    Args:
        table: The controller.
        check: Its self-check, which the file carries.

    Returns:
        The content of the file. It has no pickled objects.

    >>> import kernelmdp as km
    >>> from kernelmdp.export import controller_of
    >>> export = controller_of(km.Greedy("lqr-1d", seed=0, planner="riccati"))
    >>> sorted(np.load(io.BytesIO(numpy_archive(export.table, export.check))))[:2]
    ['action_high', 'action_low']
    """
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **table.arrays(), **check.arrays())  # type: ignore[arg-type]
    return buffer.getvalue()
