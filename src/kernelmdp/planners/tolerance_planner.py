"""The paper's approximate planner: each plan to ε_l = √(H/l), by estimate."""

import dataclasses
import math
from typing import ClassVar

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.problem import Problem
from kernelmdp.numerics.checks import integer
from kernelmdp.planners.grid_planner import GridPlan, GridPlanner
from kernelmdp.planners.planner import Planner, Spaces
from kernelmdp.types import ArrayLike, Key


def paper_tolerance(horizon: int, episode: int) -> float:
    """ε_l = √(H/l), which adds at most 2√T to the regret (math A5).

    >>> paper_tolerance(4, 25)
    0.4
    """
    return math.sqrt(integer("horizon", horizon, least=1) / integer("episode", episode, least=1))


@dataclasses.dataclass(frozen=True)
class TolerancePlanner(Planner):
    """A grid planner that refines its grid until the estimated error at the start is small.

    ``tolerance`` None means ε_l of the episode, as in the paper (see ``for_episode``).

    >>> TolerancePlanner().for_episode(25, horizon=4).tolerance
    0.4
    """

    uses_grid: ClassVar[bool] = True
    optimal: ClassVar[bool] = True
    approximate: ClassVar[bool] = True

    grid_planner: GridPlanner = GridPlanner()
    tolerance: float | None = None

    @classmethod
    def for_problem(cls, problem: Problem) -> "TolerancePlanner":
        return cls(GridPlanner.for_problem(problem))

    @property
    def keeps_lipschitz(self) -> bool:
        return self.grid_planner.keeps_lipschitz

    def query_points(self, spaces: Spaces) -> np.ndarray:
        return self.grid_planner.query_points(spaces)

    def for_episode(self, episode: int, *, horizon: int) -> "TolerancePlanner":
        """With ε_l = √(H/l), unless a tolerance was given."""
        if self.tolerance is not None:
            return self
        return dataclasses.replace(self, tolerance=paper_tolerance(horizon, episode))

    def plan(self, mdp: MDP, *, start: ArrayLike | None, key: Key) -> GridPlan:
        """A plan whose estimated error at the start is at most the tolerance."""
        if start is None:
            raise ArgumentError("first_state", "the state in which the episode starts", None)
        tolerance = paper_tolerance(mdp.horizon, 1) if self.tolerance is None else self.tolerance
        return self.grid_planner.within(tolerance, mdp, start, key=key)
