"""Which planner an agent plans with: from a word, from an object, and from a checkpoint."""

import dataclasses
from typing import Any

from kernelmdp.agents.problem import Problem
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import Categorical
from kernelmdp.numerics.checks import choice
from kernelmdp.planners import ArmPlanner, GridPlanner, MPCPlanner, RiccatiPlanner

#: Numbers S·S·A of a table beyond which optimism is a bonus rather than a search.
LARGE_TABLE = 200_000
#: Planners by the name of their class, as checkpoints have them.
PLANNERS: dict[str, Any] = {
    kind.__name__: kind for kind in (GridPlanner, MPCPlanner, RiccatiPlanner, ArmPlanner)
}


def as_planner(given: Any, problem: Problem) -> Any:
    """A planner, or the word for one, with the sizes that suit the problem."""
    if not isinstance(given, str):
        if not callable(given) or not hasattr(given, "points"):
            raise ArgumentError("planner", "a planner or the word for one", repr(given))
        return given
    word = choice("planner", given, ("auto", "grid", "bonus", "paper", "mpc", "riccati", "arms"))
    word = problem.planner if word == "auto" else word
    if word == "riccati":
        return RiccatiPlanner()
    if word == "arms":
        return ArmPlanner()
    if word == "mpc":
        return MPCPlanner()
    cells = problem.mean_dimension**2 * len(problem.actions.spread(1))
    large = isinstance(problem.transition_noise, Categorical) and cells > LARGE_TABLE
    apart = problem.states.finite and not isinstance(problem.transition_noise, Categorical)
    optimism = "bonus" if word == "bonus" or large or apart else "ball"
    return GridPlanner(problem.state_points, problem.action_points, optimism=optimism)


def described(planner: Any) -> dict[str, Any]:
    """A planner in plain words and numbers; ``planner_of`` makes it again, unless it is of a user's
    own class, which has only a name here."""
    kind = type(planner).__name__
    return {"kind": kind, **dataclasses.asdict(planner)} if kind in PLANNERS else {"kind": kind}


def planner_of(words: dict[str, Any]) -> Any:
    """The planner that was described so."""
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in words.items() if k != "kind"}
    return PLANNERS[words["kind"]](**fields)
