"""Planners by name: those of the library, of other packages, and of a user."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.problem import Problem
from kernelmdp.planners.arm_planner import ArmPlanner
from kernelmdp.planners.certified_planner import CertifiedPlanner
from kernelmdp.planners.grid_planner import GridPlanner
from kernelmdp.planners.mpc import MPCPlanner
from kernelmdp.planners.planner import Planner
from kernelmdp.planners.riccati_planner import RiccatiPlanner
from kernelmdp.planners.tolerance_planner import TolerancePlanner
from kernelmdp.registry import Registry

#: From a problem to a planner with the sizes that suit it.
PlannerMaker = Callable[[Problem], Planner]
#: What a user may give for a planner.
PlannerLike = str | Planner | Mapping[str, object]


def bonus_planner(problem: Problem) -> GridPlanner:
    """A grid planner whose optimism is a bonus of L times the radius."""
    return dataclasses.replace(GridPlanner.for_problem(problem), optimism="bonus")


#: Classes of planners, or functions from a problem to a planner, by name.
PLANNERS = Registry[type[Planner] | PlannerMaker]("planner")
PLANNERS.register("grid", GridPlanner)
PLANNERS.register("bonus", bonus_planner)
PLANNERS.register("paper", TolerancePlanner)
PLANNERS.register("mpc", MPCPlanner)
PLANNERS.register("riccati", RiccatiPlanner)
PLANNERS.register("arms", ArmPlanner)
PLANNERS.register("certified", CertifiedPlanner)


def as_planner(given: PlannerLike, problem: Problem) -> Planner:
    """A planner as it is, by name, or by name with some fields changed.

    Args:
        given: A planner, the name of one ("auto" is the problem's own), or a mapping with ``name``
            and fields of the planner.
        problem: What it plans for.

    Raises:
        ArgumentError: If there is no such planner or field.

    >>> import kernelmdp as km
    >>> as_planner({"name": "mpc", "horizon": 12}, km.make("rkhs").problem).horizon
    12
    """
    if isinstance(given, Planner):
        return given
    changes = dict(given) if isinstance(given, Mapping) else {"name": given}
    name = changes.pop("name", "auto")
    maker: Any = PLANNERS.find(problem.planner if name == "auto" else name)
    planner: Any = getattr(maker, "for_problem", maker)(problem)
    if not isinstance(planner, Planner):
        raise ArgumentError("planner", "a planner or the name of one", repr(given))
    changes = {k: tuple(v) if isinstance(v, list) else v for k, v in changes.items()}
    try:
        return dataclasses.replace(planner, **changes) if changes else planner  # type: ignore[type-var]
    except TypeError as error:
        raise ArgumentError("planner", f"fields of {type(planner).__name__}", error) from None
