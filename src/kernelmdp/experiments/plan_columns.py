"""Columns of some runs only: about kept plans, and about confidence sets of families."""

from kernelmdp.agents import Agent

#: The number of plans until the episode, with its own. It grows by 1 where a plan is new.
PLANS = "plans"


def plan_columns(agent: Agent) -> tuple[str, ...]:
    """List the columns about kept plans that a run has.

    Args:
        agent: The agent of the run.

    Returns:
        The column ``plans`` where plans are kept, and those of the confidence sets.
    """
    plans = () if agent.plans_made is None else (PLANS,)
    return plans + (agent.confidence.columns if hasattr(agent, "plausible") else ())


def plan_row(agent: Agent) -> dict[str, float]:
    """Compute the number for ``plan_columns``.

    Args:
        agent: The agent, before it learns from the episode.

    Returns:
        The number of plans so far and numbers of the sets, by column.
    """
    plans = {} if agent.plans_made is None else {PLANS: float(agent.plans_made)}
    return plans if agent.sets is None else plans | agent.sets.plausible.numbers()
