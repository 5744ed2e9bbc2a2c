"""The bonus that Gaussian noise makes optimistic (docs/theory.md, Theorem 16)."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import MDP, Problem
from kernelmdp.mdp.noise import gaussian_slope
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.planners.grid_planner import GridPlanner
from kernelmdp.planners.planner import Planner


def theorem_weight(problem: Problem) -> float:
    """Compute λ = 2B(H − 1)/(σ√(2π)), what a unit of uncertainty of the next state is worth.

    B bounds the rewards, and σ is the least standard deviation of the noise, in scaled units.

    Args:
        problem: The problem.

    Returns:
        λ. It is infinite without noise, or without a range of rewards.

    >>> import kernelmdp as km
    >>> round(theorem_weight(km.make("rkhs", horizon=2).problem), 2)
    11.97
    """
    m = problem.mean_dimension
    deviations = problem.transition_noise.standard_deviations(m) / np.asarray(problem.scale)
    largest = max(abs(end) for end in problem.reward_range)
    left = problem.horizon - 1
    return gaussian_slope(2 * largest * left if left else 0.0, float(deviations.min()))


def with_theorem_bonus(family: MDP, problem: Problem) -> MDP:
    """Let plans pay λρ(z) for the radius ρ(z) of the plausible next states.

    Args:
        family: The family of plausible MDPs.
        problem: The problem.

    Returns:
        The family, whose L is λ: a planner with a bonus pays L times the radius.
    """
    return replace_fields(family, lipschitz=jnp.asarray(theorem_weight(problem)))


def theorem_planner(problem: Problem, planner: object = "auto") -> Planner:
    """Make the planner of the bonus: a grid, and values that no L smooths.

    Args:
        problem: The problem.
        planner: The planner of the settings, which must be "auto" or "grid".

    Returns:
        The planner.

    Raises:
        ArgumentError: If it is another planner.
    """
    if planner not in ("auto", "grid"):
        raise ArgumentError("planner", "'auto' or 'grid' with bonus='theorem'", planner)
    grid_planner = GridPlanner.for_problem(problem)
    return dataclasses.replace(grid_planner, optimism="bonus", envelope=False)
