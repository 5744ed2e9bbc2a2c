"""Run an exported prediction model with NumPy alone.

This file imports nothing else. Copy it to where the model runs, beside the ``.npz`` file.
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np


class NumpyModel:
    """A learned model as arrays: from states and actions to predictions.

    Args:
        arrays: The arrays of an exported ``.npz`` file.

    Attributes:
        arrays: The arrays.
        description: The task, the names of states and actions, and the version.

    >>> import os, tempfile, kernelmdp as km
    >>> agent = km.Greedy("lqr-1d", seed=0, kernel="auto", planner="riccati")
    >>> result = agent.learn(1, progress=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.npz")
    ...     export = agent.export(path, of="model")
    ...     model = NumpyModel.load(path)
    >>> [prediction.shape for prediction in model([[0.5]], [[0.1]])]
    [(1, 1), (1, 1), (1,), (1,)]
    """

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = dict(arrays)
        self.description: dict[str, Any] = json.loads(str(self.arrays["description"]))

    @classmethod
    def load(cls, path: str | pathlib.Path) -> "NumpyModel":
        """Load a model from a file.

        Args:
            path: The file, which ends in ``.npz``.

        Returns:
            The model.
        """
        with np.load(path) as archive:
            return cls(archive)

    def __call__(self, states: Any, actions: Any) -> tuple[np.ndarray, ...]:
        """Predict next states and rewards.

        Args:
            states: The states, (n, m). Angles are angles here, not cosines and sines.
            actions: The actions, (n, q).

        Returns:
            Mean next states and their standard deviations (n, m), and, unless the reward was a
            known function, mean rewards and their standard deviations (n,). No noise is included.
        """
        points = np.concatenate([np.asarray(states, float), np.asarray(actions, float)], axis=1)
        mean, deviation = self._posterior("transition", points)
        if "reward_level" not in self.arrays:
            return mean, deviation
        reward, reward_deviation = self._posterior("reward", points)
        return mean, deviation, reward[:, 0], reward_deviation[:, 0]

    def self_check(self) -> float:
        """Compare the model with the predictions that are stored in the file.

        Returns:
            The largest difference, relative to the size of each prediction.
        """
        points = self.arrays["check_points"]
        m = len(self.arrays["transition_level"])
        predictions = self(points[:, :m], points[:, m:])
        rows = [each.reshape(len(points), -1) for each in predictions]
        stored = self.arrays["check_predictions"]
        difference = np.abs(np.concatenate(rows, axis=1) - stored)
        return float((difference / (1e-12 + np.abs(stored).max(axis=0))).max())

    def _posterior(self, name: str, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and standard deviations; ``export/kernel_sums.py`` has the formula."""
        given = {
            key.removeprefix(f"{name}_"): values
            for key, values in self.arrays.items()
            if key.startswith(f"{name}_")
        }
        angles = points * given["angular"]
        embedded = np.concatenate([points, np.cos(angles), np.sin(angles)], axis=1)
        mean = given["level"] + points @ given["slopes"].T
        variance = np.zeros_like(mean)
        for e, precisions in enumerate(given["precisions"]):
            differences = embedded[:, None, :] - given["centres"][e]
            values = np.exp(-0.5 * (differences**2 @ precisions))
            mean = mean + values @ given["weights"][:, e].T
            square = np.sum((values @ given["roots"][e]) ** 2, axis=1)
            part = np.maximum(given["prior"][e] + given["sign"][e] * square, 0.0)
            variance = variance + part[:, None] * given["shares"][:, e]
        return mean, np.sqrt(variance)
