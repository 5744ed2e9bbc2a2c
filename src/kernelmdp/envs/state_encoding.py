"""Convert observations to states: vectors of checked numbers, with angles instead of cosines."""

import dataclasses
from typing import Any

import numpy as np

from kernelmdp.domains import Box, FiniteSet
from kernelmdp.envs.angles import AnglePairs
from kernelmdp.envs.flat_spaces import FlatSpace
from kernelmdp.errors import DataError


@dataclasses.dataclass(frozen=True, eq=False)
class StateEncoding:
    """Converts the observations of an environment to states.

    Attributes:
        space: The observation space.
        states: The state space. Its rows are numbered from 0 if it is a table.
        unbounded: Axes whose bounds are provisional.
        angle_pairs: Coordinates of an observation that are a cosine and a sine.
        given_bounds: Whether bounds were given by the user. An observation beyond them is an error.
            The bounds that an environment declares are often left by a little: the state is then
            clipped.

    >>> from gymnasium import spaces
    >>> from kernelmdp.envs.flat_spaces import flat_space
    >>> space = flat_space(spaces.Box(-1, 1, (2,)), "observation")
    >>> encoding = StateEncoding(space, Box([-4], [4], periodic=[0]), (), AnglePairs(((0, 1),)))
    >>> encoding.names, encoding.observed([0.0, 1.0], "at the start").round(4).tolist()
    (('angle(observation[0], observation[1])',), [1.5708])
    """

    space: FlatSpace
    states: Box | FiniteSet
    unbounded: tuple[int, ...]
    angle_pairs: AnglePairs
    given_bounds: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the coordinates of a state."""
        names = self.space.names
        angles = {i: f"angle({names[i]}, {names[j]})" for i, j in self.angle_pairs.pairs}
        axes = self.angle_pairs.observation_axes(len(names))
        return tuple(angles.get(axis, names[axis]) for axis in axes)

    def observed(self, observation: Any, where: str) -> np.ndarray:
        """Convert an observation to the coordinates of a state, and check them.

        Angles are wrapped. Other coordinates are not clipped.

        Args:
            observation: In the form of the environment's observations.
            where: When it came, for error messages.

        Returns:
            The coordinates, (m,).

        Raises:
            DataError: If a number is not finite.
            ShapeError: If it has another form.
            DomainError: If it lies outside a table, or beyond bounds that the user gave.
        """
        vector = self.space.to_vector(observation, where)
        if not np.isfinite(vector).all():
            axis = int(np.argmin(np.isfinite(vector)))
            got = f"{vector[axis]} in {self.space.names[axis]} {where}".strip()
            raise DataError("observation", "finite numbers", got)
        if self.states.finite:
            return vector - self.space.low
        state = self.angle_pairs(vector)
        nearest, periodic = self.nearest(state), list(self.states.periodic)
        state[periodic] = nearest[periodic]
        if self.given_bounds:
            inside = state.copy()
            inside[list(self.unbounded)] = nearest[list(self.unbounded)]
            self.states.require_inside(f"observation {where}".strip(), inside[None, :])
        return state

    def state(self, observed: np.ndarray) -> np.ndarray:
        """Bring coordinates between the bounds of the state space.

        Args:
            observed: The coordinates, (m,).

        Returns:
            The state, (m,).
        """
        return observed if self.states.finite else self.nearest(observed)

    def nearest(self, state: np.ndarray) -> np.ndarray:
        """Return the nearest state, as ``Box.nearest``. For a few numbers, NumPy is faster.

        Args:
            state: The coordinates, (m,).

        Returns:
            The coordinates, wrapped along periodic axes and clipped along all others.
        """
        low, high = self.states.bounds
        periodic = np.isin(np.arange(len(low)), self.states.periodic)
        return np.where(periodic, low + np.mod(state - low, high - low), np.clip(state, low, high))

    def unwrapped(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Undo the wrapping of angles: a jump from one end to the other is no motion.

        Args:
            before: The coordinates before a step, (m,).
            after: The coordinates after it, (m,).

        Returns:
            The second, with angles that are nearest to the first.
        """
        low, high = self.states.bounds
        outcome = after.copy()
        for axis in self.states.periodic:
            turn = high[axis] - low[axis]
            outcome[axis] -= turn * np.round((after[axis] - before[axis]) / turn)
        return outcome
