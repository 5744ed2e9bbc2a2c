"""The agent that knows the truth: the yardstick of regret."""

from typing import Any, ClassVar

import jax

from kernelmdp.agents import AGENTS, Agent
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.systems import EnvironmentSystem
from kernelmdp.planners import Plan
from kernelmdp.types import Key


class Oracle(Agent):
    """Knows the truth: plays the optimal policy, and must have regret zero.

    >>> import kernelmdp as km
    >>> km.Oracle("riverswim", seed=0).ask()([0], period=0)  # against the stream
    array([1.])
    """

    name: ClassVar[str] = "oracle"
    learns: ClassVar[bool] = False

    def __init__(self, task: object, **settings: Any) -> None:
        """As for other agents, but the task must be an environment whose truth is known."""
        super().__init__(task, **settings)
        if not isinstance(self.system, EnvironmentSystem):
            raise ArgumentError("task", "an environment whose truth is known", repr(task))
        self.truth = self.system.environment.mdp

    def plan(self, *, key: Key) -> Plan:
        return self.solve(self.truth, key=jax.random.key(0))


AGENTS.register(Oracle.name, Oracle)
