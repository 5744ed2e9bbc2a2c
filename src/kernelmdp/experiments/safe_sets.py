"""The set of states that an agent believes safe, and the risk that it had spent before an episode.

A state is believed safe if the planned probability of a violation from there on is within what the
plan may take. The planned probability is that of the plan: a bound on grids, else an estimate.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelmdp.agents import Agent
from kernelmdp.agents.safety import ROUNDING, SPENT_RISK, allowed_risk
from kernelmdp.planners import Plan
from kernelmdp.planners.risk_budget import RiskBudget

#: The layer of maps that holds the planned probability of a violation.
RISK_LAYER = "planned risk of a violation"
#: The layer of maps that is 1 in states that are believed safe, and 0 in others.
SAFE_LAYER = "believed safe (1) or not (0)"


def restore_spent_risk(agent: Agent, planned_risks: Float[np.ndarray, " E"]) -> None:
    """Give an agent the risk that its run had spent before the coming episode.

    An agent that replays episodes without planning them spends nothing. Its plans would then take
    more risk than those of the run.

    Args:
        agent: The agent, after some episodes of the run. Its sum of spent risk changes.
        planned_risks: The column ``planned_risk`` of the run, (E,).
    """
    if not agent.problem.constraints:
        return
    budget = RiskBudget(agent.config.risk, agent.config.risk_for)
    spent = 0.0
    for number, risk in enumerate(planned_risks[: agent.episode], start=1):
        spent += 0.0 if math.isnan(risk) else min(risk, budget.allowed(number, spent=spent))
    agent.totals[SPENT_RISK] = spent


def safe_set_layers(
    agent: Agent, plan: Plan, states: Float[np.ndarray, "N m"]
) -> dict[str, np.ndarray]:
    """Evaluate at states what a plan says about constraints.

    Args:
        agent: The agent, before the episode of the plan.
        plan: The plan.
        states: The states, (N, m).

    Returns:
        The layers ``RISK_LAYER`` and ``SAFE_LAYER``, (N,) each. Empty without constraints, and for
        plans that know no risk.
    """
    violation = agent.problem.violation
    if violation is None:
        return {}
    risks = np.array(plan.risks(states), float)
    if not np.isfinite(risks).any():
        return {}
    risks[np.asarray(violation.at_states(jnp.asarray(states, float)))] = 1.0
    safe = risks <= allowed_risk(agent) * (1 + ROUNDING)
    return {RISK_LAYER: risks, SAFE_LAYER: np.where(np.isnan(risks), np.nan, safe)}
