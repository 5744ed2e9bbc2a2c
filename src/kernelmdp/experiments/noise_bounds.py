"""Curves of Theorems 16 to 18 for an agent and its task (Gaussian noise takes the place of L)."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelmdp.agents import Agent
from kernelmdp.confidence.dual_sets import MIXTURES, SECTIONS
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.theorem_inputs import (
    compilation_drift,
    regularisers_of,
    reward_bound,
    theorem_arguments,
)
from kernelmdp.theory import Bound, theorem16, theorem17, theorem18
from kernelmdp.theory.bound import log
from kernelmdp.theory.noise_theorems import noise_slopes
from kernelmdp.theory.sampling_theorem import TOLERANCE, rank_of


def optimistic_curve(
    agent: Agent, *, optimism: str, lipschitz: float | None
) -> Callable[[int], Bound]:
    """Make the curve of Theorem 16.

    Args:
        agent: The agent.
        optimism: "search" or "bonus".
        lipschitz: The L that plans keep to, if it is known.

    Returns:
        The bound as a function of the number of episodes.

    Raises:
        ArgumentError: If the plans are approximate.
    """
    arguments = theorem_arguments(agent)
    if arguments.pop("planner") != "exact":
        raise ArgumentError("planner", "exact plans for Theorem 16", "approximate ones")
    settings: Any = agent.confidence
    problem, norms, dual = agent.problem, settings.norms, settings.beta == "dual"
    regularisers = regularisers_of(agent)
    largest = _largest_reward(agent, optimism)
    arguments |= {
        "norm_reward": norms[0],
        "norm_transition": norms[1],
        "least_noise": least_noise(agent),
        "lipschitz": lipschitz,
        "optimism": optimism,
        "delta": settings.delta,
        "anytime": True,
        "reward_bound": largest if math.isfinite(largest) else None,
        "regulariser_reward": regularisers[0],
        "regulariser_transition": regularisers[1],
        "beta": "paper" if settings.beta == "paper" else "mixture",
        "mixtures": len(MIXTURES) + len(SECTIONS) if dual else 1,
    }
    steepest = 0.0
    if problem.horizon > 1:
        steepest = float(noise_slopes(problem.horizon, largest, least_noise(agent), lipschitz)[0])

    def at(episodes: int) -> Bound:
        drift, slack = compilation_drift(agent, episodes)
        bound = theorem16(
            episodes=episodes, drift_reward=drift[0], drift_transition=drift[1], **arguments
        )
        kernel_part = 2 * episodes * problem.horizon * (slack[0] + steepest * slack[1])
        return dataclasses.replace(bound, log_parts={**bound.log_parts, "kernel": log(kernel_part)})

    return at


def ball_curve(agent: Agent, norms: tuple[float, float]) -> Callable[[int], Bound]:
    """Make the curve of Theorem 17.

    Args:
        agent: The agent.
        norms: The norms of the ball, of reward and transition.

    Returns:
        The bound as a function of the number of episodes.

    Raises:
        ArgumentError: If the plans are approximate.
    """
    arguments = _exact_plans(agent)
    arguments |= {
        "norm_reward": norms[0],
        "norm_transition": norms[1],
        "least_noise": least_noise(agent),
    }
    return lambda episodes: theorem17(episodes=episodes, **arguments)


def prior_curve(agent: Agent) -> Callable[[int], Bound]:
    """Make the curve of Theorem 18.

    Args:
        agent: The agent.

    Returns:
        The bound as a function of the number of episodes.

    Raises:
        ArgumentError: If the plans are approximate.
        CompilationError: If a kernel is too rough to be compiled.
    """
    problem = agent.problem
    # The rank of the prior from which the agent draws, or a larger one.
    tolerance = min(TOLERANCE, problem.accuracy * min(problem.noise_variances))
    arguments = _exact_plans(agent) | {"tolerance": tolerance}
    for role in ("reward", "transition"):  # a rough kernel has no rank, and is named before a run
        if f"{role}_kernel" in arguments:
            rank_of(arguments[f"{role}_kernel"], problem.points, tolerance=tolerance)
    return lambda episodes: theorem18(episodes=episodes, **arguments)


def _largest_reward(agent: Agent, optimism: str) -> float:
    """B: a bound of |R̄| that planned values keep to, and from which a bonus is computed."""
    bound, problem = reward_bound(agent), agent.problem
    clipped = max(abs(end) for end in problem.reward_range)
    # Plans for a known reward, without a bonus, expect no more than it has.
    if math.isinf(clipped) or (problem.reward is not None and optimism == "search"):
        return bound
    return max(bound, clipped)


def least_noise(agent: Agent) -> float:
    """Return the least standard deviation of the transition's noise, in scaled units.

    Args:
        agent: The agent.

    Returns:
        The deviation σ.
    """
    problem = agent.problem
    deviations = problem.transition_noise.standard_deviations(problem.mean_dimension)
    return float((deviations / np.asarray(problem.scale)).min())


def _exact_plans(agent: Agent) -> dict[str, Any]:
    arguments = theorem_arguments(agent)
    if arguments.pop("planner") != "exact":
        raise ArgumentError("planner", "exact plans", "approximate ones")
    return arguments
