"""What a server answers of steps and episodes, and how it reads its own answers again."""

from typing import Any

import numpy as np

from kernelmdp.controllers import Controller, LoggedStep, StepLog
from kernelmdp.mdp import Episode

#: Milliseconds in a second.
MILLISECONDS = 1e3


def step_answer(controller: Controller) -> dict[str, Any]:
    """Describe the last step of a controller.

    Args:
        controller: The controller, after its first step.

    Returns:
        Its period, action, source and milliseconds.
    """
    step = controller.log.last
    assert step is not None
    return {
        "period": controller.period - 1,
        "action": step.action.tolist(),
        "source": step.source,
        "milliseconds": MILLISECONDS * step.latency,
    }


def episode_row(number: int, episode: Episode) -> dict[str, Any]:
    """Describe an episode that was learned from.

    Args:
        number: The number of the episode, from 1.
        episode: The episode.

    Returns:
        Its number, steps and return, and whether it ended by itself.
    """
    return {
        "episode": number,
        "steps": len(episode),
        "return": float(episode.total),
        "terminated": bool(episode.terminated),
    }


def restored_log(controller: Controller, events: list[dict[str, Any]]) -> StepLog:
    """Read the steps of an episode from the journal.

    Args:
        controller: The controller of the episode.
        events: What happened after it was asked for.

    Returns:
        The log of all steps that were answered.
    """
    log, observed = StepLog(controller.problem), dict[int, dict[str, Any]]()
    for event in events:
        if event["event"] == "observed":
            observed[event["period"]] = event
            if log.last is not None and "reward" in event:
                log.last.reward, log.last.cost = event["reward"], event.get("cost")
        elif event["event"] == "acted":
            before = observed[event["period"]]
            state, action = controller.checked(before["observation"]), np.array(event["action"])
            seconds = event["milliseconds"] / MILLISECONDS
            step = LoggedStep(before["time"], state, action, event["source"], seconds)
            log.append(step)
    return log
