"""The risk that an agent may take while it learns, and what it has taken."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.confidence.safety_assumptions import EXCEEDED_RISK, FALLBACK_LEFT
from kernelmdp.mdp import Episode
from kernelmdp.mdp.first_policies import first_policy
from kernelmdp.planners import Plan, UnplannedPolicy
from kernelmdp.planners.risk_budget import RiskBudget
from kernelmdp.types import Key

#: The name of the sum of planned risks among the running sums of an agent.
SPENT_RISK = "spent_risk"
#: Relative differences of risks below this are rounding.
ROUNDING = 1e-9


def allowed_risk(agent: Any) -> float:
    """Return the probability of breaking a constraint that the next episode may take.

    Args:
        agent: The agent.

    Returns:
        The probability; 0 without constraints, where no planner asks for it.
    """
    if not agent.problem.constraints:
        return 0.0
    budget = RiskBudget(agent.config.risk, agent.config.risk_for)
    return budget.allowed(agent.episode + 1, spent=agent.totals.get(SPENT_RISK, 0.0))


def spend_risk(agent: Any, plan: Plan | None, episode: Episode) -> None:
    """Add the planned risk of an episode to what the agent has taken.

    Args:
        agent: The agent, before it takes over the episode. Its sum changes.
        plan: The plan of the episode; None for an episode that was recorded elsewhere.
        episode: The episode.
    """
    if plan is None or not agent.problem.constraints:
        return
    risk, allowed = plan.risk(episode.states[0]), allowed_risk(agent)
    _add(agent, SPENT_RISK, 0.0 if math.isnan(risk) else min(risk, allowed))
    _add(agent, EXCEEDED_RISK, float(not risk <= allowed * (1 + ROUNDING)))
    fallback = agent.problem.fallback
    if fallback is not None and fallback.trusted is not None:
        states = np.asarray(episode.states, float)
        trusted = np.asarray(fallback.is_trusted(jnp.asarray(states)))
        acts = plan.fallback_acts(states[:-1])
        _add(agent, FALLBACK_LEFT, float(np.sum(acts & trusted[:-1] & ~trusted[1:])))


def _add(agent: Any, name: str, amount: float) -> None:
    agent.totals[name] = agent.totals.get(name, 0.0) + amount


def first_plan(agent: Any, *, key: Key) -> Plan:
    """Make the plan of a first episode that is not planned.

    Args:
        agent: The agent.
        key: Decides the draw of random actions.

    Returns:
        The plan, of which nothing is known.
    """
    policy = first_policy(agent.first_episode, agent.problem, key=key)
    return UnplannedPolicy(policy=policy, fallback=agent.first_episode == "fallback")
