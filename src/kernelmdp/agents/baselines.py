"""What the two algorithms are compared with: certainty equivalence, chance, and the optimum."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from kernelmdp.agents.base import Agent, Told
from kernelmdp.confidence import Beliefs
from kernelmdp.envs import Environment
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.grid import StateGrid
from kernelmdp.mdp.policy import Policy, Uniform
from kernelmdp.planners import Plan
from kernelmdp.types import Key


class Greedy(Agent):
    """Certainty equivalence: plans as if the posterior means were the truth."""

    name: ClassVar[str] = "greedy"

    def plan(self, *, key: Key) -> Plan:
        return self.solve(self.problem.mdp(self.beliefs.mean()), key=key)


class Random(Agent):
    """Draws every action uniformly and learns nothing."""

    name: ClassVar[str] = "random"

    def plan(self, *, key: Key) -> Plan:
        grid = self.planner.grid(self.problem.mdp(self.beliefs.mean()))
        return _unplanned(Uniform(self.problem.actions, key), grid, self.problem.horizon)

    def _after(self, told: Told) -> Beliefs:
        return self.beliefs


class Oracle(Agent):
    """Knows the truth: plays the optimal policy, and must have regret zero."""

    name: ClassVar[str] = "oracle"

    def __init__(self, task: Any, **words: Any) -> None:
        """As for other agents, but the task must be an environment whose truth is known."""
        super().__init__(task, **words)
        if not isinstance(self.task, Environment):
            raise ArgumentError("task", "an environment whose truth is known", repr(task))

    def plan(self, *, key: Key) -> Plan:
        return self.solve(self.task.mdp, key=jax.random.key(0))

    def _after(self, told: Told) -> Beliefs:
        return self.beliefs


def _unplanned(policy: Policy, grid: StateGrid, horizon: int) -> Plan:
    return Plan(policy, jnp.full((horizon + 1, len(grid.nodes)), jnp.nan), grid)
