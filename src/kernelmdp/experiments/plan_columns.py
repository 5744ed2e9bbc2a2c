"""The column of runs whose agents keep plans for several episodes."""

from kernelmdp.agents import Agent

#: The number of plans until the episode, with its own. It grows by 1 where a plan is new.
PLANS = "plans"


def plan_columns(agent: Agent) -> tuple[str, ...]:
    """List the columns about kept plans that a run has.

    Args:
        agent: The agent of the run.

    Returns:
        The column ``plans``; nothing where every episode has a plan of its own.
    """
    return () if agent.plans_made is None else (PLANS,)


def plan_row(agent: Agent) -> dict[str, float]:
    """Compute the number for ``plan_columns``.

    Args:
        agent: The agent, before it learns from the episode.

    Returns:
        The number of plans so far, by column.
    """
    return {} if agent.plans_made is None else {PLANS: float(agent.plans_made)}
