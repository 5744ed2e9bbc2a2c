"""Planners: from an MDP, or a family of plausible MDPs, to a policy with its planned value.

>>> import kernelmdp as km
>>> km.planners.GridPlanner(state_points=51).optimism
'ball'
"""

from kernelmdp.planners.arm_planner import ArmPlanner
from kernelmdp.planners.certified_planner import CertifiedPlan, CertifiedPlanner
from kernelmdp.planners.conformance import check_planner
from kernelmdp.planners.grid_planner import GridPlan, GridPlanner, GridPolicy
from kernelmdp.planners.joint_planner import JointPlanner
from kernelmdp.planners.mpc import MPC, MPCPlan, MPCPlanner
from kernelmdp.planners.plan import Plan, UnplannedPolicy, ValueTable
from kernelmdp.planners.planner import Planner, Spaces
from kernelmdp.planners.registry import PLANNERS, PlannerLike, as_planner
from kernelmdp.planners.riccati_planner import RiccatiPlan, RiccatiPlanner
from kernelmdp.planners.safe_grid_planner import SafeGridPlan, SafeGridPlanner
from kernelmdp.planners.tolerance_planner import TolerancePlanner, paper_tolerance

__all__ = [
    "MPC",
    "PLANNERS",
    "ArmPlanner",
    "CertifiedPlan",
    "CertifiedPlanner",
    "GridPlan",
    "GridPlanner",
    "GridPolicy",
    "JointPlanner",
    "MPCPlan",
    "MPCPlanner",
    "Plan",
    "Planner",
    "PlannerLike",
    "RiccatiPlan",
    "RiccatiPlanner",
    "SafeGridPlan",
    "SafeGridPlanner",
    "Spaces",
    "TolerancePlanner",
    "UnplannedPolicy",
    "ValueTable",
    "as_planner",
    "check_planner",
    "paper_tolerance",
]
