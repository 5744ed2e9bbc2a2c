"""Conservative learning: no episode is expected to earn much less than the fallback would.

Before an episode, the plan's value is compared with v − (1 − α)|v|, where v is the fallback's value
and α the setting ``at_least``. For positive returns this is α·v. If the plan may be worth less, the
plan without exploration is tried, then shares of it, and at last the fallback itself, with small
changes in trusted states.

With covered confidence sets on a grid, the worst value of the plan and the best value of the
fallback over all plausible MDPs are compared. The rule then holds in every episode with probability
1 − δ, up to the error of the grid (Proposition 6 of the theory). Otherwise both are simulated in
MDPs that are drawn from the beliefs, and the worst difference counts. That is an estimate.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.agents.planning_agent import PlanningAgent
from kernelmdp.agents.promise import values_covered
from kernelmdp.agents.safety import first_plan
from kernelmdp.mdp.drawn_values import returns_in_draws
from kernelmdp.mdp.fallback import Fallback
from kernelmdp.mdp.mdp import DrawnModels
from kernelmdp.mdp.policy import Policy
from kernelmdp.planners import Plan, UnplannedPolicy
from kernelmdp.planners.blended_plan import blended
from kernelmdp.planners.pessimism import best_value, worst_value
from kernelmdp.types import Key

#: From a plan to what it may earn less than is asked for.
Loss = Callable[[Plan], float]
#: Shares of the plan without exploration that are tried, the largest first.
SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
#: Drawn MDPs in which a plan is compared with the fallback. One more draw is worse than all eight
#: with probability one ninth.
DRAWS = 8


def next_plan(agent: PlanningAgent, *, key: Key) -> Plan:
    """Make the plan of the next episode.

    Args:
        agent: The agent.
        key: Decides everything random.

    Returns:
        The agent's plan, or what the settings ``first_episode`` and ``at_least`` put in its place.
    """
    if agent.first_episode != "prior" and agent.episode == 0:
        return first_plan(agent, agent.first_episode, key=key)
    plan = agent.plan(key=key)
    if agent.config.at_least is not None:
        plan = _conservative(agent, plan, key)
    return jax.block_until_ready(plan)


def _conservative(agent: PlanningAgent, plan: Plan, key: Key) -> Plan:
    """The plan, a share of the careful one, the fallback with small changes, or the fallback."""
    fallback, start = _fallback_of(agent), agent.next_start
    is_covered = values_covered(agent.coverage, agent.evidence)
    is_covered = is_covered and agent.confidence_sets() is not None
    is_known = plan.table is not None and start is not None and not fallback.remembers
    loss = (_plausible_loss if is_covered and is_known else _drawn_loss)(agent, plan, key)
    if loss(plan) <= 0:
        return plan
    # A bound of the risk holds for the plan alone, and not for shares of it.
    if not agent.planner.bounds_risk:
        # What was learned is held: the plan without exploration is next.
        careful = agent.solve(agent.careful_mdp(), key=key)
        for share in (1.0,) if agent.problem.actions.finite else SHARES:
            candidate = blended(careful, fallback, share)
            if loss(candidate) <= 0:
                return candidate
        excited = first_plan(agent, "fallback", key=key)
        if loss(excited) <= 0:
            return excited
    # The fallback stays in the trusted set with this probability, but not if it is changed.
    is_trusted = start is not None and bool(fallback.is_trusted(jnp.asarray(start)[None])[0])
    risk = min(fallback.leaves * agent.problem.horizon, 1.0) if is_trusted else math.nan
    return UnplannedPolicy(policy=fallback.policy, fallback=True, known_risk=risk)


def _plausible_loss(agent: PlanningAgent, plan: Plan, key: Key) -> Loss:
    """Compare worst values in all plausible MDPs with what the fallback's best value asks for."""
    assert plan.table is not None
    family = agent.learner.plausible(agent.state, agent.confidence, episode=agent.episode + 1)[1]
    grid, start = plan.table.grid, np.atleast_2d(np.asarray(agent.next_start))
    asked = _asked(agent, best_value(family, _fallback_of(agent).policy, grid, start))
    return lambda candidate: float(asked - worst_value(family, candidate.policy, grid, start))


def _drawn_loss(agent: PlanningAgent, plan: Plan, key: Key) -> Loss:
    """Compare returns in MDPs that are drawn from the beliefs. The largest loss counts."""
    draw_key, noise_key = jax.random.split(key)
    mdps = [agent.learner.sample(agent.state, key=k) for k in jax.random.split(draw_key, DRAWS)]
    drawn = DrawnModels.stacked([mdp.model for mdp in mdps])
    start = agent.starts[-1] if agent.next_start is None else agent.next_start

    def returns(policy: Policy) -> np.ndarray:
        return returns_in_draws(mdps[0], drawn, policy, start, key=noise_key)

    asked = _asked(agent, returns(_fallback_of(agent).policy))
    return lambda candidate: float(np.max(asked - returns(candidate.simulated)))


def _fallback_of(agent: PlanningAgent) -> Fallback:
    fallback = agent.problem.fallback
    assert fallback is not None  # the setting ``at_least`` needs one
    return fallback


def _asked(agent: PlanningAgent, value: Any) -> Any:
    return value - (1.0 - agent.config.at_least) * abs(value)
