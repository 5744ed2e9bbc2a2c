"""Baseline agents: certainty equivalence and random actions."""

from typing import ClassVar

from kernelmdp.agents.agent import Agent
from kernelmdp.agents.saving import AGENTS
from kernelmdp.mdp.policy import UniformPolicy
from kernelmdp.planners import Plan, UnplannedPolicy
from kernelmdp.types import Key


class Greedy(Agent):
    """Certainty equivalence: plans as if the posterior means were the truth.

    Attributes:
        name: "greedy".

    >>> import kernelmdp as km
    >>> print(km.Greedy("riverswim", seed=0).coverage)
    not covered: no theorem is about this agent
    """

    name: ClassVar[str] = "greedy"

    def plan(self, *, key: Key) -> Plan:
        return self.solve(self.learner.mean(self.state), key=key)


class Random(Agent):
    """Draws every action uniformly and learns nothing.

    Attributes:
        name: "random".
        learns: False.

    >>> import kernelmdp as km
    >>> km.Random("riverswim", seed=0).learns
    False
    """

    name: ClassVar[str] = "random"
    learns: ClassVar[bool] = False

    def plan(self, *, key: Key) -> Plan:
        return UnplannedPolicy(policy=UniformPolicy(self.problem.actions, key))


AGENTS.register(Greedy.name, Greedy)
AGENTS.register(Random.name, Random)
