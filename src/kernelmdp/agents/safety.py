"""The risk that an agent may take while it learns, and what it has taken."""

import math
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.agents.planning_agent import PlanningAgent
from kernelmdp.confidence import Coverage
from kernelmdp.confidence.safety_assumptions import EXCEEDED_RISK, FALLBACK_LEFT
from kernelmdp.errors import SafetyWarning
from kernelmdp.mdp import MDP, Episode
from kernelmdp.mdp.first_policies import first_policy
from kernelmdp.mdp.mdp import DrawnModels
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.planners import Plan, Planner, UnplannedPolicy
from kernelmdp.planners.risk_budget import RiskBudget
from kernelmdp.types import ArrayLike, Key

#: The name of the sum of planned risks among the running sums of an agent.
SPENT_RISK = "spent_risk"
#: The name of the largest error of the last planned episode, beside the running sums.
LARGEST_ERROR = "largest_error"
#: The number of steps in which the fallback broke a constraint, among the running sums.
FALLBACK_BROKE = "fallback_broke"
#: Relative differences of risks below this are rounding.
ROUNDING = 1e-9


def allowed_risk(agent: PlanningAgent) -> float:
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


def without_theorem(agent: PlanningAgent) -> Coverage:
    """Say of an agent that no theorem is about whether its plans kept to the risk.

    Args:
        agent: The agent.

    Returns:
        Why its constraints are not covered.
    """
    count = int(agent.totals.get(EXCEEDED_RISK, 0)) if agent.problem.constraints else 0
    exceeded = (f"{count} plans exceeded the risk, or were not planned",) if count else ()
    return Coverage(None, ("no theorem is about this agent", *exceeded))


def plan_safely(
    agent: PlanningAgent,
    planner: Planner,
    mdp: MDP,
    *,
    risk: float | None = None,
    start: ArrayLike | None = None,
    state: Any = None,
    key: Key,
) -> Plan:
    """Plan within a risk, with models drawn from the beliefs if the planner checks actions in them.

    Args:
        agent: The agent.
        planner: The planner.
        mdp: The MDP or family to plan in.
        risk: The probability of a violation that the episode may take; None for all that is set.
        start: The first state, or None.
        state: What was learned; None for the agent's newest.
        key: Decides the draws, and everything random in the plan.

    Returns:
        The plan.
    """
    planner = planner.within(agent.config.risk if risk is None else risk, agent.problem.fallback)
    if planner.drawn_models:
        learned = agent.state if state is None else state
        keys = jax.random.split(key, planner.drawn_models)
        models = [agent.learner.sample(learned, key=each).model for each in keys]
        deviations = agent.learner.noise_deviations(learned)
        error = agent.totals.get(LARGEST_ERROR, math.nan)
        mdp = replace_fields(mdp, drawn_models=DrawnModels.stacked(models, deviations, error))
    return planner.plan(mdp, start=start, key=key)


def spend_risk(agent: PlanningAgent, plan: Plan | None, episode: Episode) -> None:
    """Add the planned risk of an episode to what the agent has taken.

    Args:
        agent: The agent, before it takes over the episode. Its sum changes.
        plan: The plan of the episode; None for an episode that was recorded elsewhere.
        episode: The episode.
    """
    if plan is None or not agent.problem.constraints:
        return
    states, actions = (np.asarray(part, float) for part in (episode.states, episode.actions))
    risk, allowed = plan.episode_risk(states, actions), allowed_risk(agent)
    _add(agent, SPENT_RISK, 0.0 if math.isnan(risk) else min(risk, allowed))
    _add(agent, EXCEEDED_RISK, float(not risk <= allowed * (1 + ROUNDING)))
    if not math.isnan(error := plan.largest_error(states, actions)):
        agent.totals[LARGEST_ERROR] = error
    fallback = agent.problem.fallback
    if fallback is not None and fallback.trusted is not None:
        trusted = np.asarray(fallback.is_trusted(jnp.asarray(states)))
        acts = plan.fallback_acts(states[:-1], actions)
        left = np.flatnonzero(acts & trusted[:-1] & ~trusted[1:])
        if len(left) and not agent.totals.get(FALLBACK_LEFT):
            where = f"from {states[left[0]]} to {states[left[0] + 1]} in period {left[0]}"
            text = f"the fallback left its trusted set, {where}. Choose a smaller set"
            warnings.warn(text, SafetyWarning, stacklevel=2)
        _add(agent, FALLBACK_LEFT, float(len(left)))
    elif fallback is not None:
        _warn_if_broken(agent, plan, states, actions)


def _warn_if_broken(
    agent: PlanningAgent, plan: Plan, states: np.ndarray, actions: np.ndarray
) -> None:
    """Warn if a constraint on the next state was broken by an action of the fallback."""
    violation = agent.problem.violation
    assert violation is not None
    broken = np.asarray(violation.at_states(jnp.asarray(states)))
    acts = plan.fallback_acts(states[:-1], actions)
    steps = np.flatnonzero(acts & broken[1:] & ~broken[:-1])
    if len(steps) and not agent.totals.get(FALLBACK_BROKE):
        where = f"in period {steps[0]}, from {states[steps[0]]} to {states[steps[0] + 1]}"
        limits = " or ".join(each.name for each in agent.problem.constraints)
        text = f"the fallback itself broke {limits} {where}. Check its signs and its coordinates"
        warnings.warn(text, SafetyWarning, stacklevel=2)
    _add(agent, FALLBACK_BROKE, float(len(steps)))


def _add(agent: PlanningAgent, name: str, amount: float) -> None:
    agent.totals[name] = agent.totals.get(name, 0.0) + amount


def first_plan(agent: PlanningAgent, kind: str, *, key: Key) -> Plan:
    """Make the plan of an episode that is not planned, such as the first one.

    Args:
        agent: The agent.
        kind: "random", "smooth" or "fallback", as for ``first_policy``.
        key: Decides the draw of random actions.

    Returns:
        The plan, of which nothing is known.
    """
    policy = first_policy(kind, agent.problem, key=key)
    return UnplannedPolicy(policy=policy, fallback=kind == "fallback")
