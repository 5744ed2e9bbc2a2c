"""Problems with the constraints and the fallback that an agent is to keep."""

import dataclasses
from typing import Any

import numpy as np

from kernelmdp.domains import Box, Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.constraint_parsing import as_constraints, require_possible
from kernelmdp.mdp.constraints import Constraint
from kernelmdp.mdp.fallback import as_fallback, with_names
from kernelmdp.mdp.observed_safety import observed_constraints, observed_fallback
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
        if problem.observation is not None:
            constraints = observed_constraints(constraints, problem.observation)
        limits = as_constraints(constraints, names=problem.coordinates, **spaces)
    require_possible(limits, states=_probed_states(problem, limits), actions=problem.actions)
    safe = dataclasses.replace(problem, constraints=limits)
    shown = problem.coordinates if problem.observation is None else problem.observation.names
    names = shown or tuple(f"state[{axis}]" for axis in range(problem.states.dimension))
    controller = problem.fallback if fallback == "known" else with_names(fallback, names)
    if problem.observation is not None and fallback != "known":
        controller = observed_fallback(controller, problem.observation)
    # Users cannot say what a step from a trusted state is measured to cost. They know that it is
    # within its limits.
    seen = tuple(each for each in limits if each.coordinate not in problem.measured)
    violation = dataclasses.replace(safe, constraints=seen).violation
    return dataclasses.replace(
        safe, fallback=as_fallback(controller, violation=violation, **spaces)
    )


def _probed_states(problem: Problem, limits: tuple[Constraint, ...]) -> Domain:
    """The state space, where axes without bounds are about as wide as the limits on them.

    Of provisional bounds, a million wide, no probe would be between two limits.
    """
    low, high = (np.array(end) for end in problem.states.bounds)
    for axis in problem.unbounded:
        functions: list[Any] = [each.function for each in limits if each.coordinate == axis]
        bounds = [limit.bound for limit in functions]
        if bounds:
            margin = max(np.ptp(bounds), abs(bounds[0]), 1.0)
            low[axis], high[axis] = min(bounds) - margin, max(bounds) + margin
    return Box(low, high, problem.states.periodic) if problem.unbounded else problem.states
