"""Problems whose states tell what is remembered (``history``, ``delay`` and the clock)."""

import dataclasses
from typing import Any

import numpy as np

from kernelmdp.domains import join
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels import Index
from kernelmdp.mdp.known_motion import KnownMotion
from kernelmdp.mdp.measured_cost import LENGTHSCALE, OfInputs
from kernelmdp.mdp.memory import Memory, RememberedMotion
from kernelmdp.mdp.noise import Gaussian
from kernelmdp.mdp.observed_safety import LeadingCoordinates, ObservedCoordinates
from kernelmdp.mdp.problem import Problem, default_kernel


def with_memory(problem: Problem, memory: Memory) -> Problem:
    """Make the problem whose states tell what is remembered.

    Args:
        problem: The problem whose states are observations.
        memory: What is remembered.

    Returns:
        The problem. Its kernels are fitted.

    Raises:
        ArgumentError: If a cost is measured.

    >>> from kernelmdp.domains import Box
    >>> from kernelmdp.mdp.memory import Memory
    >>> heater = Problem.from_spaces(states=Box([10], [40]), actions=Box([0], [1]), horizon=30)
    >>> slow = with_memory(heater, Memory(heater.states, heater.actions, 30, delay=2))
    >>> slow.coordinates, slow.motion_inputs
    (('state', 'action[-1]', 'action[-2]'), (0, 2))
    """
    if problem.measured:
        raise ArgumentError("history", "1 and delay=0 where a cost is measured", "a cost")
    k, m = memory.observed, memory.dimension
    names = problem.coordinates or (
        ("state",) if k == 1 else tuple(f"state[{j}]" for j in range(k))
    )
    seen = problem.observation
    low, high = problem.states.bounds
    shown = ObservedCoordinates(
        LeadingCoordinates(k, None if seen is None else seen.observe),
        names if seen is None else seen.names,
        low if seen is None else seen.low,
        high if seen is None else seen.high,
        leading=k if seen is None else 0,
    )
    followers = tuple((k + j, j) for j in range(k)) if memory.history > 1 else ()
    motion = KnownMotion(RememberedMotion(memory), m, tuple(range(k)), followers, memory.ignored)
    deviations = problem.transition_noise.standard_deviations(k)
    scale = np.ones(m)
    scale[:k] = problem.scale
    points = join(state=memory.space, action=memory.actions)
    wide = dataclasses.replace(
        problem,
        states=memory.space,
        transition_kernel=default_kernel(points, LENGTHSCALE) @ Index(m),
        reward_kernel=default_kernel(points, LENGTHSCALE),
        transition_noise=Gaussian(np.pad(deviations, (0, m - k)), estimated=True),
        scale=tuple(scale),
        state_points=None,
        norm_reward=None,
        norm_transition=None,
        learner="fitted",
        planner="mpc" if memory.remembers or memory.clock else problem.planner,
        unbounded=(*problem.unbounded, *memory.differences),
        coordinates=memory.names(names),
        observation=shown,
        motion=motion,
        memory=memory,
    )
    changes: dict[str, Any] = {}
    if problem.reward is not None:
        changes["reward"] = OfInputs(problem.reward, memory.seen)
    if problem.termination is not None:
        changes["termination"] = OfInputs(problem.termination, memory.seen, k)
    return dataclasses.replace(wide, **changes)
