"""An agent that knows the true MDP. It serves as a reference for regret."""

from typing import Any, ClassVar

import jax

from kernelmdp.agents import AGENTS, Agent
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.systems import EnvironmentSystem
from kernelmdp.planners import Plan
from kernelmdp.types import Key


class Oracle(Agent):
    """An agent that knows the true MDP and plays its optimal policy. Its regret is zero.

    Args:
        task: An environment whose true MDP is known.
        seed: The seed of what is random in the task.
        **settings: As for other agents.

    Raises:
        ArgumentError: If the true MDP of the task is unknown.

    >>> import kernelmdp as km
    >>> km.Oracle("riverswim", seed=0).ask()([0], period=0)  # against the stream
    array([1.])
    """

    name: ClassVar[str] = "oracle"
    learns: ClassVar[bool] = False

    def __init__(self, task: object, *, seed: int = 0, **settings: Any) -> None:
        super().__init__(task, seed=seed, **settings)
        if not isinstance(self.system, EnvironmentSystem):
            raise ArgumentError("task", "an environment whose truth is known", repr(task))
        self.truth = self.system.environment.mdp

    def plan(self, *, key: Key) -> Plan:
        return self.solve(self.truth, key=jax.random.key(0))

    def plan_greedy(self, *, key: Key) -> Plan:
        return self.plan(key=key)


AGENTS.register(Oracle.name, Oracle)
