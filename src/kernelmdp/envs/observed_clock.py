"""Observe the time: a wrapper that adds the number of steps to the observations."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

#: The name of the coordinate.
CLOCK = "clock"


class ObservedClock(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds the number of steps since the start to the observations of an environment.

    Where set points, tariffs or demands follow a schedule, reward and motion depend on the time.
    With the time in the state they are functions of the state, and plans prepare for what comes.

    Observations become a Dict. Its last part is ``clock``.

    Args:
        env: The environment.
        steps: The largest number of steps of an episode.

    >>> env = ObservedClock(gymnasium.make("CartPole-v1"), steps=500)
    >>> env.reset(seed=0)[0]["clock"], env.step(1)[0]["clock"]
    (0.0, 1.0)
    """

    def __init__(self, env: gymnasium.Env[Any, Any], steps: int) -> None:
        super().__init__(env)
        whole, self._has_parts = env.observation_space, False
        parts: dict[str, spaces.Space[Any]] = {"observation": whole}
        if isinstance(whole, spaces.Dict):
            parts, self._has_parts = dict(whole.items()), True
        clock = spaces.Box(0.0, float(steps), (), np.float64)
        # Pairs keep their order. A dict would be sorted.
        self.observation_space = spaces.Dict([*parts.items(), (CLOCK, clock)])
        self._steps = 0

    def reset(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode, at time 0.

        Args:
            **options: Seed and options of the environment.

        Returns:
            The first observation with the clock, and the environment's information.
        """
        observation, info = self.env.reset(**options)
        self._steps = 0
        return self._with_clock(observation), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Take a step.

        Args:
            action: The action.

        Returns:
            What the environment returns, with the clock in the observation.
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        return self._with_clock(observation), reward, terminated, truncated, info

    def _with_clock(self, observation: Any) -> dict[str, Any]:
        parts = observation if self._has_parts else {"observation": observation}
        return {**parts, CLOCK: float(self._steps)}
