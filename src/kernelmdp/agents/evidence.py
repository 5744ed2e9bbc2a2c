"""What is known of an agent, on which the assumptions of theorems are checked."""

from typing import Any

from kernelmdp.confidence.theorem import Evidence


def evidence_of(agent: Any, *, clipped: tuple[int, int] | None) -> Evidence:
    """Collect the evidence of an agent.

    Args:
        agent: The agent.
        clipped: The episode and the step of the first outcome that may have been clipped.

    Returns:
        The evidence.
    """
    return Evidence(
        confidence=agent.confidence,
        reward_known=agent.problem.reward is not None,
        beliefs=agent.beliefs,
        reward_noise=agent.problem.reward_noise,
        transition_noise=agent.problem.transition_noise,
        problem=agent.problem,
        system=agent.system.problem,
        system_reward=agent.system.known_reward,
        learner_breaks=agent.learner.broken_assumptions,
        update=agent.update,
        clipped=clipped,
        first_episode=agent.first_episode,
        planner=agent.planner,
        totals=agent.totals,
        risk_for=agent.config.risk_for,
        at_least=agent.config.at_least,
    )
