"""The inputs of an exported controller: the task's observations, as ``predict`` takes them."""

import functools
from typing import Any

import numpy as np

from kernelmdp.domains import Domain
from kernelmdp.envs import GymnasiumTask
from kernelmdp.envs.flat_spaces import flat_space
from kernelmdp.errors import ArgumentError
from kernelmdp.export.controller_table import Inputs
from kernelmdp.mdp import Problem


def inputs_of(agent: Any, *, clips: bool) -> Inputs:
    """Describe how ``predict`` turns an observation into a state.

    Args:
        agent: The agent.
        clips: Whether states are limited to the state space, as a table needs. Observations of a
            Gymnasium environment are limited in any case, as ``predict`` does.

    Returns:
        The inputs.

    Raises:
        ArgumentError: If the state has a measured cost, which no observation has.

    >>> import kernelmdp as km
    >>> inputs_of(km.Greedy("lqr-1d", seed=0), clips=False).names
    ('state',)
    """
    if agent.problem.measured:
        raise ArgumentError("agent", "one without a limit of a measured cost", agent.problem.name)
    return _inputs(agent.task, agent.problem, clips)


@functools.singledispatch
def _inputs(task: object, problem: Problem, clips: bool) -> Inputs:
    """Inputs of a task whose observations are its states."""
    states = problem.states
    limits, periodic = (states.bounds, states.periodic) if clips else (_unlimited(states), ())
    names = problem.coordinates or coordinate_names("state", states.dimension)
    return Inputs(names, np.zeros(states.dimension), (), *limits, periodic)


@_inputs.register
def _gymnasium_inputs(task: GymnasiumTask, problem: Problem, clips: bool) -> Inputs:
    space = flat_space(task.env.observation_space, "observation")
    if task.states.finite:  # The rows of a table are numbered from 0.
        return Inputs(space.names, space.low, (), *_unlimited(task.states))
    pairs, shift = task.angle_pairs.pairs, np.zeros(len(space.names))
    return Inputs(space.names, shift, pairs, *task.states.bounds, task.states.periodic)


def action_names(agent: Any) -> tuple[str, ...]:
    """Name the coordinates of an action.

    Args:
        agent: The agent.

    Returns:
        The names.

    >>> import kernelmdp as km
    >>> action_names(km.Greedy("lqr-1d", seed=0))
    ('action',)
    """
    return coordinate_names("action", agent.problem.actions.dimension)


def coordinate_names(name: str, count: int) -> tuple[str, ...]:
    """Number the coordinates of a vector, unless there is only one.

    Args:
        name: The name of the vector.
        count: The number of coordinates.

    Returns:
        The names.

    >>> coordinate_names("state", 2)
    ('state[0]', 'state[1]')
    """
    return (name,) if count == 1 else tuple(f"{name}[{j}]" for j in range(count))


def observations_of(states: np.ndarray, inputs: Inputs) -> np.ndarray:
    """Convert states to observations, to try a controller on them.

    Args:
        states: The states, (n, m).
        inputs: The inputs of the controller.

    Returns:
        The observations, (n, k).

    >>> inputs = Inputs(("cosine", "sine"), np.zeros(2), ((0, 1),), np.zeros(1), np.zeros(1))
    >>> observations_of(np.array([[0.0]]), inputs).tolist()
    [[1.0, 0.0]]
    """
    seconds = [second for _, second in inputs.angle_pairs]
    axes = [axis for axis in range(len(inputs.names)) if axis not in seconds]
    observations = np.zeros((len(states), len(inputs.names)))
    observations[:, axes] = states
    for first, second in inputs.angle_pairs:
        angles = observations[:, first].copy()
        observations[:, first], observations[:, second] = np.cos(angles), np.sin(angles)
    return observations + inputs.shift


def _unlimited(states: Domain) -> tuple[np.ndarray, np.ndarray]:
    ends = np.full(states.dimension, np.inf)
    return -ends, ends
