"""Run an exported controller with NumPy alone.

This file imports nothing else. Copy it to where the controller runs, beside the ``.npz`` file.
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np


class NumpyController:
    """A controller as arrays: from an observation and a period to an action.

    Args:
        arrays: The arrays of an exported ``.npz`` file.

    Attributes:
        arrays: The arrays.
        description: The task, the inputs with their limits, the actions and the version.

    >>> import os, tempfile, kernelmdp as km
    >>> agent = km.Greedy("lqr-1d", seed=0, planner="riccati")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "controller.npz")
    ...     export = agent.export(path)
    ...     controller = NumpyController.load(path)
    >>> controller([0.5], period=0).shape, controller.self_check() < 1e-6
    ((1,), True)
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = dict(arrays)
        self.description: dict[str, Any] = json.loads(str(self.arrays["description"]))

    @classmethod
    def load(cls, path: str | pathlib.Path) -> "NumpyController":
        """Load a controller from a file.

        Args:
            path: The file, which ends in ``.npz``.

        Returns:
            The controller.
        """
        with np.load(path) as archive:
            return cls(archive)

    def __call__(self, observation: Any, period: int | np.integer = 0) -> np.ndarray:
        """Choose the action of one period.

        Args:
            observation: The observation, (k,), in the order of ``description["inputs"]``.
            period: The period, counted from 0. Periods beyond the horizon count as the last one.

        Returns:
            The action, (q,).
        """
        arrays = self.arrays
        row = int(arrays["rows"][min(max(int(period), 0), len(arrays["rows"]) - 1)])
        state = self.state(observation)
        kind = self.description["kind"]
        if kind == "linear":
            action = arrays["offsets"][row] - arrays["gains"][row] @ state
        elif kind == "points":
            nearest = np.argmin(np.sum((arrays["nodes"] - state) ** 2, axis=1))
            action = self._actions_at(row, nearest)
        elif kind == "network":
            action = self._from_network(state, min(max(int(period), 0), len(arrays["rows"]) - 1))
        else:
            action = self._from_grid(state, row, nearest=kind == "nearest")
        return np.clip(action, arrays["action_low"], arrays["action_high"])

    def state(self, observation: Any) -> np.ndarray:
        """Convert an observation to a state: angles from cosines and sines, then the limits.

        Args:
            observation: The observation, (k,).

        Returns:
            The state, (m,).

        Raises:
            ValueError: If there are more or fewer numbers, or one is not finite.
        """
        arrays = self.arrays
        vector = np.atleast_1d(np.asarray(observation, float))
        names = self.description["inputs"]
        if vector.shape != (len(names),):
            expected = f"{len(names)} numbers ({', '.join(names)})"
            raise ValueError(f"observation: expected {expected}, got shape {vector.shape}")
        if not np.isfinite(vector).all():
            missing = names[int(np.argmin(np.isfinite(vector)))]
            raise ValueError(f"observation: expected finite numbers, got {vector} ({missing})")
        vector = vector - arrays["shift"]
        pairs = arrays["angle_pairs"]
        for first, second in pairs:
            vector[first] = np.arctan2(vector[second], vector[first])
        state = np.delete(vector, pairs[:, 1])
        low, high = arrays["state_low"], arrays["state_high"]
        for axis in np.flatnonzero(arrays["periodic"]):
            state[axis] = low[axis] + np.mod(state[axis] - low[axis], high[axis] - low[axis])
        return np.clip(state, low, high)

    def self_check(self) -> float:
        """Compare the controller with the actions that are stored in the file.

        Returns:
            The largest difference of an action.
        """
        rows = zip(self.arrays["check_observations"], self.arrays["check_periods"], strict=True)
        actions = np.array([self(observation, period) for observation, period in rows])
        return float(np.max(np.abs(actions - self.arrays["check_actions"])))

    def _actions_at(self, row: int, node: Any) -> np.ndarray:
        """The action of a node. Finite actions are stored by their number."""
        entry = self.arrays["table"][row, node]
        choices = self.arrays.get("choices")
        return entry.astype(float) if choices is None else choices[entry]

    def _from_network(self, state: np.ndarray, period: int) -> np.ndarray:
        """Evaluate layers of tanh. Angles enter as cosines, and as sines behind all coordinates."""
        arrays, layer = self.arrays, 0
        angular = arrays.get("angular", np.zeros(len(state)))
        angles = angular * state
        cosines, sines = np.where(angular > 0, np.cos(angles), state), np.sin(angles[angular > 0])
        values = np.concatenate([cosines, sines, [period / len(arrays["rows"])]])
        values = values[: arrays["weights0"].shape[1]]  # the period is no input of every network
        while f"weights{layer + 1}" in arrays:
            values = np.tanh(self._layer(layer, values))
            layer += 1
        outputs = self._layer(layer, values)
        return arrays["choices"][np.argmax(outputs)] if "choices" in arrays else outputs

    def _layer(self, layer: int, values: np.ndarray) -> np.ndarray:
        weights, biases = self.arrays[f"weights{layer}"], self.arrays[f"biases{layer}"]
        return weights.astype(float) @ values + biases

    def _from_grid(self, state: np.ndarray, row: int, *, nearest: bool) -> np.ndarray:
        """Read a table at the nearest node, or between the nodes around a state."""
        counts, periodic = self.arrays["counts"], self.arrays["periodic"]
        position = (state - self.arrays["first"]) / self.arrays["spacing"]
        if nearest:
            index = np.floor(position + 0.5).astype(int)
            index = np.where(periodic, index % counts, np.clip(index, 0, counts - 1))
            return self._actions_at(row, np.ravel_multi_index(tuple(index), tuple(counts)))
        last = np.where(periodic, counts - 1, counts - 2)
        base = np.clip(np.floor(position), 0, last).astype(int)
        fraction = np.clip(position - base, 0.0, 1.0)
        action = np.zeros(len(self.arrays["action_low"]))
        for corner in np.ndindex(*(2,) * len(counts)):
            side = np.array(corner)
            index = (base + side) % counts
            weight = np.prod(np.where(side == 1, fraction, 1 - fraction))
            node = np.ravel_multi_index(tuple(index), tuple(counts))
            action += weight * self._actions_at(row, node)
        return action
