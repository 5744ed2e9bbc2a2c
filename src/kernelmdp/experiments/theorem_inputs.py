"""Inputs of the theorems for an agent and its task: L, noise, kernels, bounds of rewards."""

import math
from typing import Any

import numpy as np

from kernelmdp.agents import Agent
from kernelmdp.mdp.noise import gaussian_slope
from kernelmdp.theory import PriorSuprema, gain_bound, prior_suprema

#: Points at which the largest absolute value of a known reward is searched for. More of them find
#: a larger one and take longer.
REWARD_POINTS = 2000


def _has_sets(agent: Agent) -> bool:
    return agent.theorem is not None and agent.theorem.has_sets


def compilation_drift(agent: Agent, episodes: int) -> tuple[list[float], list[float]]:
    """Bound what compiled kernels add to β and to widths (``misspecified_beta``).

    Args:
        agent: The agent, which has confidence sets.
        episodes: The number of episodes.

    Returns:
        What is added to β, and to half-widths, of reward and transition. In Proposition 8 it adds
        twice to β.
    """
    settings: Any = agent.confidence
    norms, errors = settings.norms, kernel_errors(agent)
    drift = [
        (2 if settings.beta == "dual" else 1)
        * norm
        * math.sqrt(episodes * agent.problem.horizon * error / noise)
        for norm, error, noise in zip(norms, errors, regularisers_of(agent), strict=True)
    ]
    return drift, [norm * math.sqrt(error) for norm, error in zip(norms, errors, strict=True)]


def reward_bound(agent: Agent) -> float:
    """Bound the absolute mean reward, and what plans take for it.

    Args:
        agent: The agent.

    Returns:
        B_R√κ, or the ends of the range to which plans clip rewards, if they are larger. For a known
        reward, its largest absolute value at many points. Infinity if unknown.
    """
    problem = agent.problem
    if problem.reward is not None:
        points = np.asarray(problem.points.spread_points(REWARD_POINTS))
        return float(np.max(np.abs(np.asarray(problem.reward(points)))))
    clipped = max(abs(end) for end in problem.reward_range)
    if problem.norm_reward is None:
        return clipped
    bound = problem.norm_reward * math.sqrt(problem.reward_kernel.variance_bound(problem.points))
    # Planned values go as far as the range that was given, and so does the martingale.
    return max(bound, clipped) if math.isfinite(clipped) else bound


def theorem_arguments(agent: Agent) -> dict[str, Any]:
    """Collect the arguments that all theorems share, in the units in which the agent learns.

    Args:
        agent: The agent.

    Returns:
        Domain, horizon, noise, planner, and kernels or information gains, by argument name.
    """
    problem, outputs = agent.problem, agent.problem.mean_dimension
    scale = np.array(problem.scale)
    confidence: Any = agent.confidence
    arguments: dict[str, Any] = {
        "domain": problem.points,
        "horizon": problem.horizon,
        "reward_noise": float(problem.reward_noise.sub_gaussian_proxies(1)[0]),
        "transition_noise": float(
            (problem.transition_noise.sub_gaussian_proxies(outputs) / scale).max()
        ),
        "planner": "approximate" if agent.planner.approximate else "exact",
        # The gains of the agent's own β, if β uses the maximum gain.
        "tight": _has_sets(agent) and confidence.gain == "maximum",
        "transition_kernel": problem.transition_kernel,
    }
    if problem.reward is None:
        arguments["reward_kernel"] = problem.reward_kernel
    else:
        arguments["gain_reward"] = 0.0
    if _has_sets(agent) and confidence.shape == "trace" and outputs > 1:
        # From the kernels alone, a theorem assumes one deviation for all outputs. The trace is √m
        # times wider.
        del arguments["transition_kernel"]
        kernel, tight = problem.transition_kernel, arguments["tight"]

        def gain(n: int, noise_variance: float) -> float:
            options = {"n": n, "noise_variance": noise_variance, "tight": tight}
            return gain_bound(kernel, domain=problem.points, **options)

        arguments |= {
            "gain_transition": gain,
            "state_dimension": outputs,
            "variance_bound_transition": kernel.variance_bound(problem.points),
            "shared_kernel": False,
        }
    return arguments


def lipschitz_of(agent: Agent) -> float:
    """Return the Lipschitz constant L of the agent's plans.

    Args:
        agent: The agent.

    Returns:
        L; infinite if it is unknown.
    """
    problem = agent.problem
    if problem.horizon == 1:
        return 0.0
    if problem.transition_noise.categorical:
        # In a table no L limits the plans. Instead |V − mean V| ≤ √S/2 · span, note D4.
        return math.sqrt(problem.mean_dimension) * reward_bound(agent) * (problem.horizon - 1)
    return problem.lipschitz


def noise_lipschitz(agent: Agent, max_reward: float) -> float:
    """Return the L that Gaussian noise provides (note B8).

    Args:
        agent: The agent.
        max_reward: A bound of |R̄|.

    Returns:
        The Lipschitz constant.
    """
    deviation = float(agent.problem.residual_noise.min())
    return gaussian_slope(2 * max_reward * (agent.problem.horizon - 1), deviation)


def kernel_errors(agent: Agent) -> list[float]:
    """Bound the error of compiled kernels, summed over outputs as β counts it.

    Args:
        agent: The agent.

    Returns:
        The errors of the reward's and the transition's kernel; 0 for one that is not compiled.
    """
    beliefs = agent.learner.beliefs(agent.state)
    errors = (
        {name: posterior.error * posterior.outputs for name, posterior in beliefs.learned.items()}
        if beliefs
        else {}
    )
    return [errors.get(name, 0.0) for name in ("reward", "transition")]


def regularisers_of(agent: Agent) -> tuple[float, float | np.ndarray]:
    """Return the regularisers λ_R and λ_P of the agent's regressions.

    Args:
        agent: The agent.

    Returns:
        λ_R, and λ_P: one number or one for each output.
    """
    return agent.requirements().regularisers or agent.problem.noise_variances


def prior_suprema_of(agent: Agent) -> PriorSuprema:
    """Bound the suprema of draws of the GP priors.

    Args:
        agent: The agent.

    Returns:
        The bounds for reward and transition.
    """
    problem = agent.problem
    return prior_suprema(problem.reward_kernel, problem.transition_kernel, problem.points)
