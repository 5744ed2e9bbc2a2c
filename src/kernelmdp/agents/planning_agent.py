"""What functions that help agents to plan use of them."""

from typing import Any, Protocol, runtime_checkable

import numpy as np

from kernelmdp.confidence import ConfidenceSets, Coverage
from kernelmdp.confidence.theorem import Evidence
from kernelmdp.learners import Learner
from kernelmdp.mdp import MDP, Problem
from kernelmdp.planners import Plan, Planner
from kernelmdp.types import Key


@runtime_checkable
class PlanningAgent(Protocol):
    """An agent, as the functions see it that plan safely or conservatively.

    Attributes:
        config: The settings.
        confidence: The rule of the confidence sets.
        planner: The planner.
        learner: The learner.
        state: What was learned.
        episode: The number of episodes so far.
        totals: Running sums, which are stored with the agent.
        first_episode: How the first episode is played.
        problem: The problem.

    >>> import kernelmdp as km
    >>> agent: PlanningAgent = km.PSRL("riverswim", seed=0)
    >>> agent.totals
    {}
    """

    config: Any
    confidence: Any
    planner: Planner
    learner: Learner
    state: Any
    episode: Any
    totals: dict[str, float]
    first_episode: str
    problem: Problem

    @property
    def starts(self) -> np.ndarray:
        """First states of all episodes, (n, m); before the first, one of the state space."""
        ...

    @property
    def next_start(self) -> np.ndarray | None:
        """First state of the next episode, (m,), if it is known."""
        ...

    @property
    def coverage(self) -> Coverage:
        """Which theorem covers the run, or why none does."""
        ...

    @property
    def evidence(self) -> Evidence:
        """What is known of the run, on which assumptions are checked."""
        ...

    def confidence_sets(self) -> ConfidenceSets | None:
        """Build the confidence sets of the next episode.

        Returns:
            The sets, or None for an agent without confidence sets.
        """
        ...

    def plan(self, *, key: Key) -> Plan:
        """Plan the next episode from what was learned.

        Args:
            key: Decides everything random in the plan.

        Returns:
            The plan.
        """
        ...

    def careful_mdp(self) -> MDP:
        """Return the mean MDP, with learned rewards lowered where they are uncertain.

        Returns:
            The MDP.
        """
        ...

    def solve(self, mdp: MDP, *, key: Key) -> Plan:
        """Plan in an MDP, or in a family of them, within the allowed risk.

        Args:
            mdp: What to plan in.
            key: Decides everything random in the plan.

        Returns:
            The plan.
        """
        ...
