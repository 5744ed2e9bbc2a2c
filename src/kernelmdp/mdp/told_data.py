"""What users see and tell, where the state has coordinates that they do not see.

A measured cost, the past and the time are such coordinates. Policies, states and episodes of users
are completed here.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from kernelmdp.domains import Domain
from kernelmdp.mdp import measured_cost
from kernelmdp.mdp.episode import Episode, checked_episode
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.problem import Problem
from kernelmdp.mdp.remembering_policy import RememberingPolicy
from kernelmdp.types import ArrayLike


def user_policy(problem: Problem, policy: Policy) -> Policy:
    """Let a policy take states as users know them.

    Args:
        problem: The problem.
        policy: The policy of complete states.

    Returns:
        The policy. It is the given one where users see the state.
    """
    if problem.memory is not None:
        return RememberingPolicy(policy, problem.memory)
    return measured_cost.user_policy(problem, policy)


def first_state(problem: Problem, state: Float[np.ndarray, " k"]) -> Float[np.ndarray, " m"]:
    """Complete the first state of an episode.

    Args:
        problem: The problem.
        state: The state as users know it, or a complete one.

    Returns:
        The complete state, (m,). A state of another length is returned unchanged.
    """
    if problem.memory is not None:
        return problem.memory.first(state)
    return measured_cost.with_zero_costs(problem, state)


def observed_states(problem: Problem) -> Domain:
    """Return the space of states as controllers observe them: without the past and the time.

    Args:
        problem: The problem.

    Returns:
        The space. A measured cost is a coordinate of it.
    """
    return problem.states if problem.memory is None else problem.memory.states


def told_episode(
    states: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    outcomes: ArrayLike | None = None,
    costs: ArrayLike | None = None,
    *,
    problem: Problem,
    **ending: bool,
) -> Episode:
    """Check the data of a user's episode, and complete its states.

    Args:
        states: H + 1 states as users know them, or complete ones.
        actions: H actions, (H, q).
        rewards: H rewards, (H,).
        outcomes: Next states before their projection to the state space, or None.
        costs: What each of the H steps was measured to cost, (H,), or None.
        problem: The problem.
        **ending: ``terminated`` and ``truncated``.

    Returns:
        The episode.
    """
    memory, data = problem.memory, (states, actions, rewards, outcomes)
    if memory is None or costs is not None:
        return measured_cost.told_episode(*data, costs, problem=problem, **ending)
    shape: Any = np.shape(np.asarray(states))
    complete = len(shape) == 2 and shape[1] == memory.dimension
    spaces = problem if complete else memory
    return memory.episode(checked_episode(*data, spaces=spaces, **ending))
