"""What acts where a controller has no plan: a fixed action, or a fallback controller."""

from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.fallback import Fallback, as_fallback
from kernelmdp.mdp.policy import PolicyPlayer, player_of
from kernelmdp.mdp.problem import Problem
from kernelmdp.mdp.told_data import first_state
from kernelmdp.numerics.checks import float_array


class FallbackAction:
    """The action of a fallback, without and with an observation.

    Args:
        fallback: A fixed action (q,), such as "heater off", or what the setting ``fallback`` of an
            agent takes. It acts on states. None is the fallback of the problem, if it has one.
        problem: The problem.

    Raises:
        ArgumentError: If a fixed action is not in the action space.

    >>> from kernelmdp.domains import Box
    >>> heater = Problem.from_spaces(states=Box([0], [99]), actions=Box([0], [1]), horizon=9)
    >>> FallbackAction([0.0], heater).at(None, 0)
    array([0.])
    """

    def __init__(self, fallback: Any, problem: Problem) -> None:
        self._problem = problem
        self._action: np.ndarray | None = None
        controller = problem.fallback
        if callable(fallback) or isinstance(fallback, Fallback | tuple):
            states, actions = problem.states, problem.actions
            controller = as_fallback(fallback, states=states, actions=actions)
        self._player: Any = None if controller is None else player_of(controller.policy)
        if fallback is None or controller is not problem.fallback:
            return
        action = np.atleast_1d(np.asarray(float_array(fallback, "fallback"), float))
        q = problem.actions.dimension
        if action.shape != (q,):
            raise ArgumentError("fallback", f"a controller, or an action of {q} numbers", action)
        problem.actions.require_inside("fallback", action[None])
        self._action = action

    def __str__(self) -> str:
        if self._action is not None:
            return f"fallback {self._action.tolist()}"
        return "no fallback" if self._player is None else "fallback controller"

    def restart(self) -> None:
        """Begin an episode: forget what the fallback remembers."""
        if isinstance(self._player, PolicyPlayer):
            self._player.restart()

    def at(self, state: np.ndarray | None, period: int) -> np.ndarray | None:
        """Return the action of the fallback.

        Args:
            state: The last good state, (m,), or None if there was none.
            period: The period.

        Returns:
            The action, (q,). None without a fallback, or if it needs a state and there is none.
        """
        if self._action is not None:
            return self._action.copy()
        if self._player is None or state is None:
            return None
        complete = first_state(self._problem, state)
        return np.asarray(self._player(complete, period), float)
