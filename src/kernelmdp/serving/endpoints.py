"""The endpoints: their paths, what they take and return, and what answers them."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from kernelmdp.serving.request_error import BAD_REQUEST, RequestError
from kernelmdp.serving.service import Service

#: The schema of a number.
NUMBER = {"type": "number"}
#: The schema of a list of numbers, such as an observation.
VECTOR = {"type": "array", "items": NUMBER, "minItems": 1}
#: The schema of one list of numbers for each step.
MATRIX = {"type": "array", "items": VECTOR, "minItems": 1}
#: The schema of a number of things, or of a period.
COUNT = {"type": "integer", "minimum": 0}
#: The schema of a truth value.
TRUTH = {"type": "boolean"}
#: The schema of a text.
TEXT = {"type": "string"}


def described(schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    """Add a description to a schema.

    Args:
        schema: The schema.
        description: What the value means.

    Returns:
        The schema with the description.
    """
    return {**schema, "description": description}


def record(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """Make the schema of an object.

    Args:
        properties: Schemas of its fields, by name.
        *required: The names of fields that must be there.

    Returns:
        The schema.
    """
    schema = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


#: What is told of one step.
REWARDS = {
    "reward": described(NUMBER, "What the last action earned. Only the first period has none."),
    "cost": described(NUMBER, "The measured cost of the last action, if a constraint limits it."),
}
#: One row of the table of episodes.
ROW = record(
    {
        "episode": described(COUNT, "The number of the episode, from 1."),
        "steps": described(COUNT, "Its steps."),
        "return": described(NUMBER, "The sum of its rewards."),
        "terminated": described(TRUTH, "Whether the plant ended it by itself."),
        "learned": described(TRUTH, "Whether the agent learned from it."),
    },
    "episode",
)
#: What ``POST /tell`` takes to end the episode under way.
ENDING = {
    "observation": described(VECTOR, "What the plant shows after the last action."),
    **REWARDS,
    "terminated": described(TRUTH, "Whether the plant ended the episode by itself."),
    "episode": described(COUNT, "Its number. A repeated request then gets the same answer."),
}
#: What ``POST /tell`` takes of a whole episode.
RECORDED = {
    "states": described(MATRIX, "All states, one more than there are actions."),
    "actions": described(MATRIX, "All actions."),
    "rewards": described(VECTOR, "All rewards."),
    "outcomes": described(MATRIX, "Next states before they were clipped, if states are clipped."),
    "costs": described(VECTOR, "All measured costs, if a constraint limits them."),
    "truncated": described(TRUTH, "Whether the episode was cut off, and is shorter than others."),
}


@dataclasses.dataclass(frozen=True)
class Endpoint:
    """One endpoint.

    Attributes:
        method: GET or POST.
        path: The path.
        summary: What it does, in one sentence.
        answer: From the service and the parsed body to the answer.
        returns: The schema of the answer.
        takes: The schema of the body. None takes no body.
        example: A body.
    """

    method: str
    path: str
    summary: str
    answer: Callable[[Service, dict[str, Any]], Any]
    returns: Mapping[str, Any]
    takes: Mapping[str, Any] | None = None
    example: Mapping[str, Any] | None = None


def description(service: Service) -> dict[str, Any]:
    """Say what a server serves.

    Args:
        service: The service.

    Returns:
        The task, the agent, and the limits of states and actions.
    """
    problem = service.agent.problem
    (state_low, state_high), (action_low, action_high) = (
        problem.states.bounds,
        problem.actions.bounds,
    )
    return {
        "title": "kernelmdp: ask, act and tell over HTTP",
        "task": problem.name,
        "agent": service.agent.name,
        "learns": service.learns,
        "horizon": problem.horizon,
        "coordinates": list(problem.coordinates),
        "state_low": state_low.tolist(),
        "state_high": state_high.tolist(),
        "action_low": action_low.tolist(),
        "action_high": action_high.tolist(),
        "endpoints": [f"{each.method} {each.path}: {each.summary}" for each in ENDPOINTS],
    }


def _tell(service: Service, body: dict[str, Any]) -> dict[str, Any]:
    """End the episode under way, or learn from a whole one."""
    names = set(body) & set(RECORDED)
    if not names:
        return service.tell(**body)
    mixed = set(body) & (set(ENDING) - {"terminated"})
    missing = {"states", "actions", "rewards"} - names
    if mixed or missing:
        text = f"{', '.join(sorted(missing)) or 'nothing else'} to be given with"
        raise RequestError(BAD_REQUEST, f"tell: expected {text} {', '.join(sorted(names))}")
    return service.tell_episode(**body)


#: All endpoints.
ENDPOINTS = (
    Endpoint(
        "GET",
        "/",
        "What is served.",
        lambda service, body: description(service),
        record(
            {
                "title": TEXT,
                "task": TEXT,
                "agent": TEXT,
                "learns": TRUTH,
                "horizon": COUNT,
                "coordinates": {"type": "array", "items": TEXT},
                **{
                    f"{part}_{end}": VECTOR
                    for part in ("state", "action")
                    for end in ("low", "high")
                },
                "endpoints": {"type": "array", "items": TEXT},
            }
        ),
    ),
    Endpoint(
        "GET",
        "/health",
        "What is going on. It is answered at any time.",
        lambda service, body: service.health(),
        record(
            {
                "status": {"type": "string", "enum": ["ready", "planning", "acting", "learning"]},
                "episode": described(COUNT | {"nullable": True}, "The episode under way."),
                "period": described(COUNT | {"nullable": True}, "Its next period."),
                "episodes": described(COUNT, "The number of episodes learned from."),
            }
        ),
    ),
    Endpoint(
        "GET",
        "/episodes",
        "The table of episodes that the agent learned from.",
        lambda service, body: {"episodes": service.episodes()},
        record({"episodes": {"type": "array", "items": ROW}}),
    ),
    Endpoint(
        "POST",
        "/ask",
        "Begin an episode. Planning may take seconds.",
        lambda service, body: service.ask(**body),
        record({"episode": COUNT, "period": COUNT, "horizon": COUNT, "milliseconds": NUMBER}),
        record({"observation": described(VECTOR, "Where the plant is.")}),
        {"observation": [20.0]},
    ),
    Endpoint(
        "POST",
        "/act",
        "The action of one period.",
        lambda service, body: service.act(**body),
        record(
            {
                "episode": COUNT,
                "period": COUNT,
                "action": VECTOR,
                "source": {"type": "string", "enum": ["plan", "late", "fallback", "held"]},
                "milliseconds": described(NUMBER, "What the decision took, without the network."),
            }
        ),
        record(
            {
                "observation": described(VECTOR, "What the plant shows."),
                **REWARDS,
                "period": described(COUNT, "The period that the client is in, from 0."),
            },
            "observation",
        ),
        {"observation": [21.5], "reward": -0.9, "period": 1},
    ),
    Endpoint(
        "POST",
        "/tell",
        "End the episode under way, or tell a whole one. Learning may take seconds.",
        _tell,
        ROW,
        record(ENDING | RECORDED),
        {"observation": [60.2], "reward": -0.1},
    ),
)
