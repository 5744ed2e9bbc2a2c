"""What the two algorithms are compared with: certainty equivalence, chance, and the optimum."""

from typing import Any, ClassVar

import jax

from kernelmdp.agents.base import Agent, Told
from kernelmdp.envs import Environment
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.policy import Uniform
from kernelmdp.planners import Plan, Unplanned
from kernelmdp.types import Key


class Greedy(Agent):
    """Certainty equivalence: plans as if the posterior means were the truth.

    >>> import kernelmdp as km
    >>> km.Greedy("riverswim", seed=0).covered
    'not covered: no theorem is about this agent'
    """

    name: ClassVar[str] = "greedy"

    def plan(self, *, key: Key) -> Plan:
        return self.solve(self.problem.mdp(self.beliefs.mean()), key=key)


class Random(Agent):
    """Draws every action uniformly and learns nothing.

    >>> import kernelmdp as km
    >>> km.Random("riverswim", seed=0).learns
    False
    """

    name: ClassVar[str] = "random"
    learns: ClassVar[bool] = False

    def plan(self, *, key: Key) -> Plan:
        return Unplanned(policy=Uniform(self.problem.actions, key))

    def learn_from(self, told: Told) -> None:
        """There is nothing to learn."""


class Oracle(Agent):
    """Knows the truth: plays the optimal policy, and must have regret zero.

    >>> import kernelmdp as km
    >>> km.Oracle("riverswim", seed=0).ask()([0], period=0)  # against the stream
    array([1.])
    """

    name: ClassVar[str] = "oracle"
    learns: ClassVar[bool] = False

    def __init__(self, task: Any, **words: Any) -> None:
        """As for other agents, but the task must be an environment whose truth is known."""
        super().__init__(task, **words)
        if not isinstance(self.task, Environment):
            raise ArgumentError("task", "an environment whose truth is known", repr(task))

    def plan(self, *, key: Key) -> Plan:
        return self.solve(self.task.mdp, key=jax.random.key(0))

    def learn_from(self, told: Told) -> None:
        """There is nothing to learn."""
