"""The paper's approximate planner: plan to the tolerance ε_l = √(H/l), by an error estimate."""

import dataclasses
import math
from typing import ClassVar

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.problem import Problem
from kernelmdp.numerics.checks import integer
from kernelmdp.planners.grid_planner import GridPlan, GridPlanner
from kernelmdp.planners.grid_wrapper import GridWrapper
from kernelmdp.types import ArrayLike, Key


def paper_tolerance(horizon: int, episode: int) -> float:
    """Compute ε_l = √(H/l), which adds at most 2√T to the regret (note A5).

    Args:
        horizon: The number of periods H.
        episode: The number l of the episode, counted from 1.

    Returns:
        The tolerance.

    >>> paper_tolerance(4, 25)
    0.4
    """
    return math.sqrt(integer("horizon", horizon, least=1) / integer("episode", episode, least=1))


@dataclasses.dataclass(frozen=True)
class TolerancePlanner(GridWrapper):
    """A grid planner that refines its grid until the estimated error at the start is small.

    Attributes:
        grid_planner: The planner with the first grid.
        tolerance: The largest estimated error. None means ε_l of the episode, as in the paper (see
            ``for_episode``).

    >>> TolerancePlanner().for_episode(25, horizon=4).tolerance
    0.4
    """

    approximate: ClassVar[bool] = True

    tolerance: float | None = None

    @classmethod
    def for_problem(cls, problem: Problem) -> "TolerancePlanner":
        return cls(GridPlanner.for_problem(problem))

    def for_episode(self, episode: int, *, horizon: int) -> "TolerancePlanner":
        """Return the planner with ε_l = √(H/l), unless its tolerance is set.

        Args:
            episode: The number l of the episode, counted from 1.
            horizon: The number of periods H.

        Returns:
            The planner.
        """
        if self.tolerance is not None:
            return self
        return dataclasses.replace(self, tolerance=paper_tolerance(horizon, episode))

    def plan(self, mdp: MDP, *, start: ArrayLike | None, key: Key) -> GridPlan:
        """Plan with an estimated error at the start of at most the tolerance.

        Args:
            mdp: The MDP, or a family of plausible MDPs.
            start: The state in which the episode starts, (m,). It is required.
            key: Decides everything random in the plan.

        Returns:
            The plan, with its estimated error.

        Raises:
            ArgumentError: If ``start`` is None.
        """
        if start is None:
            raise ArgumentError("first_state", "the state in which the episode starts", None)
        tolerance = paper_tolerance(mdp.horizon, 1) if self.tolerance is None else self.tolerance
        return self.grid_planner.plan_within(tolerance, mdp, start, key=key)
