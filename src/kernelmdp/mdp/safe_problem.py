"""Problems with the constraints and the fallback that an agent is to keep."""

import dataclasses
from typing import Any

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.constraints import as_constraints, require_possible
from kernelmdp.mdp.fallback import as_fallback
from kernelmdp.mdp.problem import Problem


def with_safety(problem: Problem, constraints: Any, fallback: Any) -> Problem:
    """Give a problem the constraints and the fallback that an agent is to keep.

    Args:
        problem: The problem, with those that the environment knows.
        constraints: What ``as_constraints`` takes, or "known" for those of the environment.
        fallback: What ``as_fallback`` takes, or "known" for that of the environment.

    Returns:
        The problem with these constraints and this fallback, tried at some states.

    Raises:
        ArgumentError: If they are "known" and the environment knows none.
    """
    given = {"constraints": constraints, "fallback": fallback}
    for name, value in given.items():
        if value == "known" and not getattr(problem, name):
            raise ArgumentError(name, f"{name} of your own, as the task has none", "'known'")
    spaces = {"states": problem.states, "actions": problem.actions}
    limits = problem.constraints
    if constraints != "known":
        limits = as_constraints(constraints, names=problem.coordinates, **spaces)
    require_possible(limits, **spaces)
    safe = dataclasses.replace(problem, constraints=limits)
    controller = problem.fallback if fallback == "known" else fallback
    return dataclasses.replace(
        safe, fallback=as_fallback(controller, violation=safe.violation, **spaces)
    )
