"""Where an exported file comes from, as text and numbers."""

from typing import Any

from kernelmdp.planners import PLANNERS
from kernelmdp.version import __version__


def description_of_agent(agent: Any) -> dict[str, Any]:
    """Describe where a controller comes from.

    Args:
        agent: The agent.

    Returns:
        The task, the agent, its planner, the episodes it learned from, and the version.
    """
    planner = type(agent.planner)
    return {
        "format": "kernelmdp controller",
        "version": __version__,
        "task": agent.problem.name,
        "agent": agent.name,
        "planner": PLANNERS.name_of(planner) or planner.__name__,
        "episodes": int(agent.episode),
        "seed": agent.seed,
    }
