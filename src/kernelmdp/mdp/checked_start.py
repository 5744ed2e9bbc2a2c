"""Policies that refuse to begin in a state that breaks a constraint."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from kernelmdp.mdp.constraints import Violation, require_allowed
from kernelmdp.mdp.policy import Policy
from kernelmdp.types import Period


class CheckedStart(Policy):
    """A policy for tasks that choose their own start, which is seen only when they are played.

    Attributes:
        policy: The policy.
        violation: The constraints.

    >>> from kernelmdp.domains import Box
    >>> from kernelmdp.mdp.constraint_parsing import as_constraints
    >>> from kernelmdp.mdp.pid import PID
    >>> box = Box([-1.0], [1.0])
    >>> limits = as_constraints("x <= 0.5", states=box, actions=box, names=("x",))
    >>> controller = CheckedStart(PID(0, set_point=0.0, proportional=1.0), Violation(limits, 1))
    >>> controller.player()(np.array([0.4]), 0)
    array([-0.4])
    >>> controller.player()(np.array([0.6]), 0)
    Traceback (most recent call last):
    kernelmdp.errors.ArgumentError: start: expected a state that keeps x <= 0.5, got [0.6]
    """

    policy: Policy
    violation: Violation

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return self.policy.actions(states, period)

    def player(self) -> Callable[[Any, int], np.ndarray]:
        play = self.policy.player()

        def checked(state: Any, period: int) -> np.ndarray:
            if period == 0:
                require_allowed(self.violation, "start", np.asarray(state, float))
            return play(state, period)

        return checked
