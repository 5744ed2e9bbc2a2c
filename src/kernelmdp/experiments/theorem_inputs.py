"""What theorems need to know of an agent and its task: L, noise, kernels, sizes of rewards."""

import math
from typing import Any

import numpy as np

from kernelmdp.agents import GPUCRL, Agent
from kernelmdp.mdp.noise import gaussian_slope
from kernelmdp.theory import PriorSuprema, gain_bound, prior_suprema

#: Points at which the size of a known reward is looked at.
REWARD_POINTS = 2000
#: How rules begin whose L is a bound, up to the grid on which the truth was solved.
RULES = ("exact", "solved", "noise")


def _has_sets(agent: Agent) -> bool:
    return isinstance(agent, GPUCRL)


def reward_bound(agent: Agent) -> float:
    """B_R√κ; of a known reward the largest seen at many points; infinite when not known."""
    problem = agent.problem
    if problem.reward is not None:
        points = np.asarray(problem.points.spread(REWARD_POINTS))
        return float(np.max(np.abs(np.asarray(problem.reward(points)))))
    if problem.norm_reward is None:
        return math.inf
    return problem.norm_reward * math.sqrt(problem.reward_kernel.variance_bound(problem.points))


def theorem_arguments(agent: Agent) -> dict[str, Any]:
    """Kernels or gains, domain and noise, in the units in which the agent learns."""
    problem, outputs = agent.problem, agent.problem.mean_dimension
    scale = np.array(problem.scale)
    confidence: Any = agent.confidence
    words: dict[str, Any] = {
        "domain": problem.points,
        "horizon": problem.horizon,
        "reward_noise": float(problem.reward_noise.proxies(1)[0]),
        "transition_noise": float((problem.transition_noise.proxies(outputs) / scale).max()),
        "planner": "approximate" if agent.planner.approximate else "exact",
        # Those of the agent's own β, where it has the maximum gain in it.
        "tight": _has_sets(agent) and confidence.gain == "maximum",
        "transition_kernel": problem.transition_kernel,
    }
    if problem.reward is None:
        words["reward_kernel"] = problem.reward_kernel
    else:
        words["gain_reward"] = 0.0
    if _has_sets(agent) and confidence.shape == "trace" and outputs > 1:
        # The trace is √m wider than the one deviation of all outputs that kernels alone suggest.
        del words["transition_kernel"]
        kernel, tight = problem.transition_kernel, words["tight"]

        def gain(n: int, noise_variance: float) -> float:
            given = {"n": n, "noise_variance": noise_variance, "tight": tight}
            return gain_bound(kernel, domain=problem.points, **given)

        words |= {
            "gain_transition": gain,
            "state_dimension": outputs,
            "variance_bound_transition": kernel.variance_bound(problem.points),
            "shared_kernel": False,
        }
    return words


def lipschitz_of(agent: Agent) -> tuple[float, list[str]]:
    """L of the agent's plans, and what one should know of it."""
    problem, caveats = agent.problem, []
    if problem.horizon == 1:
        return 0.0, []
    if problem.reward is None and problem.norm_reward is None:
        caveats.append("if plans stay within sup|R̄| (they are not clipped)")
    if problem.transition_noise.categorical:
        # Plans keep to no L in a table; |V − mean V| ≤ √S/2 · span, math D4.
        return math.sqrt(problem.mean_dimension) * reward_bound(agent) * (problem.horizon - 1), []
    if not problem.lipschitz_rule.startswith(RULES):
        caveats.append(f"L = {problem.lipschitz:.3g} is an estimate")
    if not agent.planner.keeps_lipschitz:
        caveats.append("plans do not keep to L")
    return problem.lipschitz, caveats


def noise_lipschitz(agent: Agent, top: float) -> float:
    """L that Gaussian noise provides where |R̄| is at most ``top`` (math B8)."""
    deviation = float(agent.problem.residual_noise.min())
    return gaussian_slope(2 * top * (agent.problem.horizon - 1), deviation)


def kernel_errors(agent: GPUCRL) -> list[float]:
    """By how much compiled kernels may miss: for the outputs together, as β counts it."""
    beliefs = agent.learner.beliefs(agent.state)
    errors = (
        {name: own.error * own.outputs for name, own in beliefs.learned.items()} if beliefs else {}
    )
    return [errors.get(name, 0.0) for name in ("reward", "transition")]


def regularisers_of(agent: Agent) -> tuple[float, float | np.ndarray]:
    """λ_R and λ_P with which the agent regresses."""
    return agent.requirements().regularisers or agent.problem.noise_variances


def prior_suprema_of(agent: Agent) -> PriorSuprema:
    """Those of draws of the priors."""
    problem = agent.problem
    return prior_suprema(problem.reward_kernel, problem.transition_kernel, problem.points)
