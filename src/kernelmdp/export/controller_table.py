"""An exported controller as pure data: its inputs, its limits, and a table or gains.

All formats are written from this data, so they differ by rounding only.
"""

import dataclasses
import json
from typing import Any

import numpy as np

from kernelmdp.export.numpy_controller import NumpyController


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """How an observation becomes a state, in the order of these fields.

    Attributes:
        names: The names of the k coordinates of an observation.
        shift: What is subtracted from an observation, (k,). It is not 0 where the numbers of a
            table do not begin with 0.
        angle_pairs: Coordinates of an observation that are a cosine and a sine, (p, 2). Each pair
            becomes one angle, in the place of the first.
        low: Lowest value of each coordinate of the state, (m,). Lower values are clipped.
        high: Highest value of each coordinate, (m,).
        periodic: Which coordinates are wrapped instead of clipped, (m,).

    >>> Inputs(("speed",), np.zeros(1), (), np.array([-1.0]), np.array([1.0])).angle_pairs
    ()
    """

    names: tuple[str, ...]
    shift: np.ndarray
    angle_pairs: tuple[tuple[int, int], ...]
    low: np.ndarray
    high: np.ndarray
    periodic: tuple[int, ...] = ()

    def arrays(self) -> dict[str, np.ndarray]:
        """Write the fields as arrays.

        Returns:
            The arrays by name.
        """
        return {
            "shift": self.shift,
            "angle_pairs": np.array(self.angle_pairs, dtype=int).reshape(-1, 2),
            "state_low": self.low,
            "state_high": self.high,
            "periodic": np.isin(np.arange(len(self.low)), self.periodic),
        }


@dataclasses.dataclass(frozen=True, eq=False)
class ControllerTable:
    """A controller without code: how an action follows from an observation and a period.

    Attributes:
        inputs: How an observation becomes a state.
        kind: "linear" (an offset minus gains times the state), "interpolated" or "nearest" (a
            table at the nodes of a regular grid), "points" (a table at listed states), or
            "network" (layers of tanh).
        law: The arrays of that kind by name.
        rows: The row of the law that each period uses, (H,). Equal periods share a row.
        action_names: The names of the q coordinates of an action.
        action_low: Lowest value of each coordinate of an action, (q,).
        action_high: Highest value of each coordinate, (q,).
        description: What the controller is: the task, the agent, the planner and the version.

    >>> inputs = Inputs(("position",), np.zeros(1), (), np.array([-9.0]), np.array([9.0]))
    >>> law = {"gains": np.full((1, 1, 1), 0.5), "offsets": np.zeros((1, 1))}
    >>> limits = np.array([-1.0]), np.array([1.0])
    >>> brake = ControllerTable(inputs, "linear", law, np.zeros(4, int), ("force",), *limits, {})
    >>> brake.numpy_controller()([1.0]), brake.horizon
    (array([-0.5]), 4)
    """

    inputs: Inputs
    kind: str
    law: dict[str, np.ndarray]
    rows: np.ndarray
    action_names: tuple[str, ...]
    action_low: np.ndarray
    action_high: np.ndarray
    description: dict[str, Any]

    @property
    def horizon(self) -> int:
        """The number of periods H."""
        return len(self.rows)

    def summary(self) -> dict[str, Any]:
        """Describe the controller for people and programs that read a file.

        Returns:
            Text and numbers by name, which JSON can hold. Infinite limits are None.
        """
        shown = {
            "kind": self.kind,
            "inputs": list(self.inputs.names),
            "units": "those of the task's observations and actions",
            "angle_pairs": [list(pair) for pair in self.inputs.angle_pairs],
            "state_low": _finite(self.inputs.low),
            "state_high": _finite(self.inputs.high),
            "periodic": list(self.inputs.periodic),
            "actions": list(self.action_names),
            "action_low": _finite(self.action_low),
            "action_high": _finite(self.action_high),
            "horizon": self.horizon,
            "periods": "counted from 0; lower ones count as 0, and later ones as the last one",
        }
        return self.description | shown

    def arrays(self) -> dict[str, np.ndarray]:
        """Write the controller as arrays.

        Returns:
            The arrays by name, with the description as JSON.
        """
        limits = {"action_low": self.action_low, "action_high": self.action_high}
        text = np.array(json.dumps(self.summary()))
        return {
            **self.inputs.arrays(),
            **self.law,
            **limits,
            "rows": self.rows,
            "description": text,
        }

    def numpy_controller(self) -> NumpyController:
        """Make the controller that NumPy runs.

        Returns:
            The controller.
        """
        return NumpyController(self.arrays())


def share_rows(*tables: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Keep each different row of some tables once.

    Args:
        *tables: Tables whose first axis counts periods, (H, ...).

    Returns:
        The row of each period (H,), and the tables with the different rows only.

    >>> rows, (short,) = share_rows(np.array([[1.0], [2.0], [1.0]]))
    >>> rows.tolist(), short.ravel().tolist()
    ([0, 1, 0], [1.0, 2.0])
    """
    numbers: dict[bytes, int] = {}
    rows = [
        numbers.setdefault(b"".join(np.ascontiguousarray(t[h]).tobytes() for t in tables), h)
        for h in range(len(tables[0]))
    ]
    first = sorted(set(rows))
    return np.searchsorted(first, rows), [table[first] for table in tables]


def _finite(numbers: np.ndarray) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in numbers]
