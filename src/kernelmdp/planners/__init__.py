"""Planners: an MDP, or a family of plausible ones, in; a policy with its planned value out.

>>> import kernelmdp as km
>>> km.planners.GridPlanner(state_points=51).optimism
'ball'
"""

from kernelmdp.planners.arms import ArmPlanner
from kernelmdp.planners.conformance import check_planner
from kernelmdp.planners.grid import GridPlan, GridPlanner, GridPolicy
from kernelmdp.planners.mpc import MPC, MPCPlan, MPCPlanner
from kernelmdp.planners.plan import Plan, Unplanned
from kernelmdp.planners.riccati import RiccatiPlan, RiccatiPlanner

__all__ = [
    "MPC",
    "ArmPlanner",
    "GridPlan",
    "GridPlanner",
    "GridPolicy",
    "MPCPlan",
    "MPCPlanner",
    "Plan",
    "RiccatiPlan",
    "RiccatiPlanner",
    "Unplanned",
    "check_planner",
]
