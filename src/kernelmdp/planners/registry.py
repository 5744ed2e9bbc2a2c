"""Planners by name: those of this library, of other packages, and your own."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.problem import Problem
from kernelmdp.numerics.checks import with_suggestion
from kernelmdp.planners.arm_planner import ArmPlanner
from kernelmdp.planners.certified_planner import CertifiedPlanner
from kernelmdp.planners.grid_planner import GridPlanner
from kernelmdp.planners.joint_planner import JointPlanner
from kernelmdp.planners.mpc import MPCPlanner
from kernelmdp.planners.planner import Planner
from kernelmdp.planners.riccati_planner import RiccatiPlanner
from kernelmdp.planners.safe_grid_planner import SafeGridPlanner
from kernelmdp.planners.safe_mpc import SafeMPCPlanner
from kernelmdp.planners.tolerance_planner import TolerancePlanner
from kernelmdp.registry import Registry

#: From a problem to a planner with sizes that suit it.
PlannerMaker = Callable[[Problem], Planner]
#: What users may pass as a planner: a name, a planner, or a name with fields.
PlannerLike = str | Planner | Mapping[str, object]


def bonus_planner(problem: Problem) -> GridPlanner:
    """Make a grid planner whose optimism is a bonus of L times the radius.

    Args:
        problem: The problem to plan for.

    Returns:
        The planner.
    """
    return dataclasses.replace(GridPlanner.for_problem(problem), optimism="bonus")


#: Classes of planners, or functions from a problem to a planner, by name.
PLANNERS = Registry[type[Planner] | PlannerMaker]("planner")
PLANNERS.register("grid", GridPlanner)
PLANNERS.register("bonus", bonus_planner)
PLANNERS.register("joint", JointPlanner)
PLANNERS.register("paper", TolerancePlanner)
PLANNERS.register("mpc", MPCPlanner)
PLANNERS.register("riccati", RiccatiPlanner)
PLANNERS.register("arms", ArmPlanner)
PLANNERS.register("certified", CertifiedPlanner)
PLANNERS.register("safe-grid", SafeGridPlanner)
PLANNERS.register("safe-mpc", SafeMPCPlanner)


def constrained(planner: Planner, problem: Problem) -> Planner:
    """Make the planner that keeps the constraints of a problem, from one that does not.

    Args:
        planner: The planner.
        problem: The problem, with constraints.

    Returns:
        The planner itself if it keeps constraints, or the one that wraps it. Where kernels are
        fitted, a grid is replaced by model-predictive control.

    Raises:
        ArgumentError: If no planner with constraints wraps it.
    """
    if planner.keeps_constraints:
        return planner
    if planner.uses_grid and problem.learner == "fitted":
        # Without valid confidence sets there is no family to bound a risk over.
        planner = MPCPlanner.for_problem(problem)
    if planner.safe_name is None:
        safe = [name for name, maker in PLANNERS.items() if getattr(maker, "wrapping", None)]
        expected = f"a planner that keeps constraints: {' or '.join(safe)}"
        raise ArgumentError("planner", expected, type(planner).__name__)
    maker: Any = PLANNERS.find(planner.safe_name)
    wrapped: Planner = maker.wrapping(planner, problem)
    return wrapped


def as_planner(planner_like: PlannerLike, problem: Problem) -> Planner:
    """Make a planner from a name, or from a name with changed fields.

    Args:
        planner_like: A planner, which is returned unchanged. Or the name of one, where "auto" is
            the planner that the problem names. Or a mapping with ``name`` and fields of the
            planner.
        problem: The problem to plan for.

    Returns:
        The planner.

    Raises:
        ArgumentError: If there is no such planner or field, or a grid would need bounds of
            velocities.

    >>> import kernelmdp as km
    >>> as_planner({"name": "mpc", "horizon": 12}, km.make("rkhs").problem).horizon
    12
    """
    planner = _made(planner_like, problem)
    memory = problem.memory
    if planner.uses_grid and memory is not None and memory.history > 1:
        # Differences of observations have provisional bounds.
        expected = "'mpc' with history, as a grid would need bounds of velocities"
        raise ArgumentError("planner", expected, type(planner).__name__)
    return planner


def _made(planner_like: PlannerLike, problem: Problem) -> Planner:
    if isinstance(planner_like, Planner):
        return planner_like
    fields = dict(planner_like) if isinstance(planner_like, Mapping) else {"name": planner_like}
    name = fields.pop("name", "auto")
    maker: Any = PLANNERS.find(problem.planner if name == "auto" else name)
    planner: Any = getattr(maker, "for_problem", maker)(problem)
    if not isinstance(planner, Planner):
        raise ArgumentError("planner", "a planner or the name of one", repr(planner_like))
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}
    if not fields:
        return planner
    known = [field.name for field in getattr(planner, "__dataclass_fields__", {}).values()]
    for field in fields:
        if field not in known:
            expected = f"fields of {type(planner).__name__}: {', '.join(known)}"
            raise ArgumentError("planner", expected, with_suggestion(field, known))
    return dataclasses.replace(planner, **fields)  # type: ignore[type-var]
