"""What was observed while a task was played: steps of the environment, and notable coordinates."""

import warnings
from collections.abc import Sequence

import numpy as np

from kernelmdp.domains import Box
from kernelmdp.domains.base import OUTSIDE_TOLERANCE
from kernelmdp.envs.observation_spaces import PROVISIONAL_BOUND
from kernelmdp.envs.redundancy import constant_coordinates, relation, repeated_coordinates
from kernelmdp.errors import ObservationWarning

#: Episodes before coordinates are compared. A goal may be constant within one episode.
LEAST_EPISODES = 2
#: Observations before coordinates are compared. In fewer they may be alike by chance.
LEAST_OBSERVATIONS = 20


class PlayRecord:
    """Counts the steps of an environment, and warns once of coordinates that need attention.

    Attributes:
        environment_steps: How often ``step`` of the environment was called.

    >>> record = PlayRecord()
    >>> record.add_observations(["x"], [np.zeros(1), np.ones(1)], Box([0], [1]))  # nothing to say
    >>> record.environment_steps
    0
    """

    def __init__(self) -> None:
        self.environment_steps = 0
        self._episodes: list[np.ndarray] = []
        self._compared = False
        self._clipped: set[str] = set()

    def add_observations(
        self, names: Sequence[str], observations: Sequence[np.ndarray], states: Box
    ) -> None:
        """Look at the observations of an episode. Coordinates are compared once, with enough data.

        An ``ObservationWarning`` names a coordinate that never changed, that repeated another one,
        or that was beyond its bounds.

        Args:
            names: The names of the coordinates, m of them.
            observations: The coordinates at every decision, each (m,).
            states: The state space.
        """
        rows = np.stack(observations)
        self._find_clipped(names, rows, states)
        if self._compared:
            return
        self._episodes.append(rows)
        rows = np.concatenate(self._episodes)
        if len(self._episodes) >= LEAST_EPISODES and len(rows) >= LEAST_OBSERVATIONS:
            self._compared, self._episodes = True, []
            _compare(names, rows)

    def _find_clipped(self, names: Sequence[str], rows: np.ndarray, states: Box) -> None:
        low, high = states.bounds
        distances = states.distance_outside(rows)
        outside = distances > OUTSIDE_TOLERANCE * np.maximum(high - low, 1.0)
        for axis in map(int, np.flatnonzero(outside.any(axis=0))):
            if names[axis] in self._clipped:
                continue
            self._clipped.add(names[axis])
            value = rows[distances[:, axis].argmax(), axis]
            bound = high[axis] if value > high[axis] else low[axis]
            if abs(bound) >= PROVISIONAL_BOUND:
                _warn(
                    f"{names[axis]} was {value:g}. It has no bounds, and "
                    f"its state is clipped at {PROVISIONAL_BOUND:g}: what is learned of it is "
                    "wrong. Pass states=Box(low, high), or observe it in larger units."
                )
            else:
                _warn(
                    f"{names[axis]} was {value:g}, beyond its bounds {low[axis]:g} to "
                    f"{high[axis]:g}. Its state is clipped. If it is often outside, pass "
                    "states=Box(low, high) with wider bounds."
                )


def _compare(names: Sequence[str], rows: np.ndarray) -> None:
    for axis in constant_coordinates(rows):
        _warn(
            f"{names[axis]} did not change in {len(rows)} observations. The agent keeps it and "
            "predicts no motion of it. Leave it out of the observation if it never changes."
        )
    for i, j, factor, constant in repeated_coordinates(rows):
        _warn(
            f"{names[i]} was always {relation(names[j], factor, constant)}, in {len(rows)} "
            "observations. The agent learns the motion of both. Leave one of them out of the "
            "observation to learn faster."
        )


def _warn(sentences: str) -> None:
    warnings.warn(sentences, ObservationWarning, stacklevel=5)
