"""Columns of runs with constraints: violations, the planned risk and the fallback's share."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.agents import Agent
from kernelmdp.mdp import MDP, Episode, Policy, Violation, rollout
from kernelmdp.mdp.episode import state_action
from kernelmdp.planners import Plan
from kernelmdp.types import ArrayLike, Key

#: Violated steps, the plan's bound of the probability of a violation, and the share of steps in
#: which the fallback acted.
SAFETY_COLUMNS = ("violations", "planned_risk", "fallback_share")

#: The share of the plan in the actions of an episode, where agents learn conservatively.
SHARE_COLUMN = "plan_share"

#: Episodes that are simulated to estimate the true risk of a plan. They show a risk of 1 %.
SIMULATED_EPISODES = 2000


def constraints_of(agent: Agent) -> Violation | None:
    """Return the constraints by which a run is judged.

    Args:
        agent: The agent of the run.

    Returns:
        Those that the agent keeps, or else those that the task knows; None if there are none.
    """
    return agent.problem.violation or agent.system.problem.violation


def safety_rows(columns: Any) -> list[tuple[str, str]]:
    """Describe in a few rows how the constraints of a run were kept.

    Args:
        columns: The table of the run.

    Returns:
        Labels and texts; none for a run without constraints.
    """
    if "violations" not in columns:
        return []
    broken, total = int(np.sum(columns["violations"] > 0)), len(columns["violations"])
    return [
        ("violations", f"in {broken} of {total} episodes"),
        ("planned risk, in all", f"{np.nansum(columns['planned_risk']):.3g}"),
        ("fallback acted", f"{np.nanmean(columns['fallback_share']):.0%} of steps"),
    ]


def safety_columns(agent: Agent) -> tuple[str, ...]:
    """List the columns about constraints and conservative learning that a run has.

    Args:
        agent: The agent of the run.

    Returns:
        The columns. Empty for a run without constraints whose agent learns as it likes.
    """
    columns = SAFETY_COLUMNS if constraints_of(agent) is not None else ()
    return columns if agent.config.at_least is None else (*columns, SHARE_COLUMN)


def safety_row(agent: Agent, plan: Plan, episode: Episode) -> dict[str, float]:
    """Compute the numbers of an episode for ``safety_columns``.

    Args:
        agent: The agent, before it learns from the episode.
        plan: The plan of the episode.
        episode: The episode.

    Returns:
        One number for each of ``safety_columns``.
    """
    shares = {} if agent.config.at_least is None else {SHARE_COLUMN: plan.plan_share}
    violation = constraints_of(agent)
    if violation is None:
        return shares
    states, actions = (np.asarray(part, float) for part in (episode.states, episode.actions))
    acts = plan.fallback_acts(states[:-1], actions)
    numbers = (
        float(violation.count(episode.states, episode.actions)),
        plan.episode_risk(states, actions) if agent.problem.constraints else float("nan"),
        float(np.mean(acts)),
    )
    return dict(zip(SAFETY_COLUMNS, numbers, strict=True)) | shares


def violation_share(
    truth: MDP,
    violation: Violation,
    policy: Policy,
    start: ArrayLike,
    *,
    episodes: int,
    key: Key,
) -> float:
    """Simulate how often a policy breaks a constraint in the true MDP.

    Args:
        truth: The true MDP.
        violation: The constraints.
        policy: The policy.
        start: The first state, (m,).
        episodes: The number of episodes to simulate.
        key: Decides the noise.

    Returns:
        The share of episodes with a violation.
    """
    starts = jnp.tile(jnp.asarray(start, float)[None, :], (episodes, 1))
    states, actions, _, _ = rollout(truth, policy, starts, key=key)

    def broken(step: tuple[Any, Any, Any]) -> Any:
        return violation(state_action(step[0], step[1]), step[2])

    steps = jax.vmap(lambda *step: broken(step))(states[:-1], actions, states[1:])
    return float(jnp.mean(jnp.any(steps, axis=0)))
