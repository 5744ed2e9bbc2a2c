"""What planners around a grid planner share."""

import dataclasses
from typing import ClassVar

import numpy as np

from kernelmdp.planners.grid_planner import GridPlanner
from kernelmdp.planners.planner import Planner, Spaces


@dataclasses.dataclass(frozen=True)
class GridWrapper(Planner):
    """A planner that asks a grid planner for its nodes, its actions and its optimism.

    Attributes:
        grid_planner: The grid planner.
    """

    uses_grid: ClassVar[bool] = True
    optimal: ClassVar[bool] = True

    grid_planner: GridPlanner = GridPlanner()

    @property
    def keeps_lipschitz(self) -> bool:
        return self.grid_planner.keeps_lipschitz

    @property
    def optimism(self) -> str:
        """How the grid planner chooses the next state of a family."""
        return self.grid_planner.optimism

    def rounds_up(self, spaces: Spaces) -> bool:
        return self.grid_planner.rounds_up(spaces)

    def rounded_up(self) -> "GridWrapper":
        return dataclasses.replace(self, grid_planner=self.grid_planner.rounded_up())

    def query_points(self, spaces: Spaces) -> np.ndarray:
        return self.grid_planner.query_points(spaces)
