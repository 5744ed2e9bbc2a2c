"""Observe what a step was measured to cost: a wrapper that adds the cost to the observations."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from kernelmdp.errors import DataError
from kernelmdp.mdp.measured_cost import COST

#: The number of values that ``step`` returns where the cost is one of them.
VALUES_WITH_COST = 6


class ObservedCost(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds the measured cost of the last step to the observations of an environment.

    The cost is ``info["cost"]``. Or ``step`` returns six values, with the cost after the reward, as
    Safety-Gymnasium does. At the start it is what ``reset`` says in its info, or 0.

    Observations become a Dict. Its last part is ``cost``.

    Args:
        env: The environment.

    >>> class Heater(gymnasium.Env):
    ...     observation_space = spaces.Box(0, 1, (1,))
    ...     action_space = spaces.Box(0, 1, (1,))
    ...     def reset(self, *, seed=None, options=None):
    ...         return np.zeros(1), {}
    ...     def step(self, action):
    ...         return np.zeros(1), 0.0, False, False, {"cost": 0.5}
    >>> env = ObservedCost(Heater())
    >>> env.reset()[0]["cost"], env.step([1.0])[0]["cost"]
    (0.0, 0.5)
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        whole, self._has_parts = env.observation_space, False
        parts: dict[str, spaces.Space[Any]] = {"observation": whole}
        if isinstance(whole, spaces.Dict):
            parts, self._has_parts = dict(whole.items()), True
        self._names = {*parts, COST}
        cost = spaces.Box(-np.inf, np.inf, (), np.float64)
        # Pairs keep their order. A dict would be sorted.
        self.observation_space = spaces.Dict([*parts.items(), (COST, cost)])

    def reset(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode.

        Args:
            **options: Seed and options of the environment.

        Returns:
            The first observation with the cost, and the environment's information.
        """
        observation, info = self.env.reset(**options)
        return self.completed(observation, _checked(info.get(COST, 0.0))), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Take a step.

        Args:
            action: The action.

        Returns:
            What the environment returns, with the cost in the observation.

        Raises:
            DataError: If the environment reports no cost, or one that is not finite.
        """
        values: Any = self.env.step(action)
        if len(values) == VALUES_WITH_COST:
            observation, reward, cost, terminated, truncated, info = values
        else:
            observation, reward, terminated, truncated, info = values
            if COST not in info:
                reported = ", ".join(map(repr, info)) or "nothing"
                expected = "the measured cost of the step as info['cost'], as a constraint names it"
                raise DataError("info", expected, reported)
            cost = info[COST]
        completed = self.completed(observation, _checked(cost))
        return completed, reward, terminated, truncated, info

    def completed(self, observation: Any, cost: float = 0.0) -> dict[str, Any]:
        """Add a cost to an observation.

        Args:
            observation: An observation of the environment. One that has the cost is not changed.
            cost: The cost.

        Returns:
            The observation with the cost.
        """
        if isinstance(observation, dict) and set(observation) == self._names:
            return observation
        parts = observation if self._has_parts else {"observation": observation}
        return {**parts, COST: cost}


def _checked(cost: Any) -> float:
    try:
        number = np.asarray(cost, dtype=float).item()
    except (TypeError, ValueError):
        raise DataError("info['cost']", "one number", repr(cost)) from None
    if not np.isfinite(number):
        raise DataError("info['cost']", "a finite number", number)
    return number
