"""A cost that is measured after every step, as a coordinate of the state on which nothing depends.

After a step the coordinate holds what the step was measured to cost. At the start it is 0. Its next
value is learned as one more output of the transition, and a constraint limits it ("cost <= 0.5").
Users see their own states, without the coordinate.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Box, Domain
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.kernels import Index
from kernelmdp.mdp.episode import Episode, checked_episode, unwrapped
from kernelmdp.mdp.noise import Gaussian
from kernelmdp.mdp.observed_safety import LeadingCoordinates, ObservedCoordinates
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.problem import Problem, default_kernel
from kernelmdp.numerics.checks import float_array, require_finite
from kernelmdp.numerics.modules import Module
from kernelmdp.types import ArrayLike, Period

#: The name of the coordinate.
COST = "cost"
#: Provisional bound of the coordinate. It is far beyond any cost that a limit is set for.
LARGEST_COST = 1e6
#: Lengthscale of kernels before they are fitted, as a share of each axis times √d.
LENGTHSCALE = 0.2


def with_cost_axis(states: Domain) -> Box:
    """Add the coordinate of the cost to a state space. It is the last one.

    Args:
        states: The state space without it.

    Returns:
        The state space with it. Its bounds are provisional.

    Raises:
        ArgumentError: If states are the rows of a table.

    >>> with_cost_axis(Box([0.0], [1.0])).high
    (1.0, 1000000.0)
    """
    if states.finite or len(states.parts) > 1:
        raise ArgumentError("constraints", "no limit of a cost where states are a table", states)
    low, high = states.bounds
    return Box([*low, -LARGEST_COST], [*high, LARGEST_COST], states.periodic)


def with_cost(problem: Problem) -> Problem:
    """Add a measured cost to a problem.

    Args:
        problem: The problem without it.

    Returns:
        The problem with one more coordinate, which is called "cost". Kernels are to be fitted.

    Raises:
        ArgumentError: If states are the rows of a table.

    >>> heater = Problem.from_spaces(states=Box([10], [40]), actions=Box([0], [1]), horizon=30)
    >>> with_cost(heater).coordinates
    ('state', 'cost')
    """
    m, states = problem.states.dimension, with_cost_axis(problem.states)
    names = problem.coordinates or (
        ("state",) if m == 1 else tuple(f"state[{j}]" for j in range(m))
    )
    low, high = problem.states.bounds
    deviations = problem.transition_noise.standard_deviations(m)
    wide = dataclasses.replace(
        problem,
        states=states,
        transition_kernel=default_kernel(problem.points, LENGTHSCALE) @ Index(m + 1),
        transition_noise=Gaussian(np.append(deviations, 1.0), estimated=True),
        scale=(*problem.scale, 1.0),
        state_points=None,
        norm_transition=None,
        planner="mpc",
        unbounded=(*problem.unbounded, m),
        measured=(m,),
        coordinates=(*names, COST),
        observation=ObservedCoordinates(LeadingCoordinates(m), names, low, high, leading=m),
    )
    inputs = wide.inputs
    changes: dict[str, Any] = {}
    if problem.reward is not None:
        changes["reward"] = OfInputs(problem.reward, inputs)
    if problem.termination is not None:
        changes["termination"] = OfInputs(problem.termination, inputs, m)
    return dataclasses.replace(wide, **changes)


def limit_size(problem: Problem, axis: int) -> float:
    """Return the size of the limits of a measured cost, the least size of costs that may be.

    Args:
        problem: The problem.
        axis: The coordinate of the cost.

    Returns:
        The largest limit in absolute value; 1 if there is none but 0.
    """
    limits: list[Any] = [each.function for each in problem.constraints if each.coordinate == axis]
    return max((abs(limit.bound) for limit in limits), default=0.0) or 1.0


class OfInputs(Module):
    """A function of points without the measured cost, applied to points with it.

    Attributes:
        function: The function of points, or of points and next states.
        inputs: The coordinates of points that it takes.
        size: The number of coordinates of a next state that it takes.
    """

    function: Callable[..., Any]
    inputs: tuple[int, ...] = eqx.field(static=True)
    size: int = eqx.field(static=True, default=0)

    def __call__(self, points: Float[Array, "n d"], *after: Float[Array, "n m"]) -> Any:
        rest = (states[:, : self.size] for states in after)
        return self.function(points[:, np.array(self.inputs)], *rest)


def with_zero_costs(problem: Problem, state: Float[np.ndarray, " k"]) -> Float[np.ndarray, " m"]:
    """Add a cost of 0 to a state as users know it. Nothing depends on the number.

    Args:
        problem: The problem.
        state: The state with or without the cost.

    Returns:
        The state, (m,). One of another length is returned unchanged.
    """
    hidden = len(problem.measured)
    without = hidden and state.shape == (problem.states.dimension - hidden,)
    return np.append(state, np.zeros(hidden)) if without else state


class UserPolicy(Policy):
    """A policy that takes states with or without the measured cost.

    Attributes:
        policy: The policy of states with the cost.
        hidden: The number of measured costs.
        dimension: The number of coordinates of a state with the cost, m.
    """

    policy: Policy
    hidden: int = eqx.field(static=True)
    dimension: int = eqx.field(static=True)

    def actions(self, states: Float[Array, "n k"], period: Period) -> Float[Array, "n q"]:
        return self.policy.actions(self._complete(states), period)

    def reset(self, count: int) -> Any:
        return self.policy.reset(count)

    def decide(
        self, memory: Any, states: Float[Array, "n k"], period: Period
    ) -> tuple[Float[Array, "n q"], Any]:
        return self.policy.decide(memory, self._complete(states), period)

    def planned_actions(self, memory: Any) -> Float[Array, "T q"] | None:
        return self.policy.planned_actions(memory)

    def later_period(self, horizon: int) -> int:
        return self.policy.later_period(horizon)

    def player(self) -> Callable[[Any, int], np.ndarray]:
        play = self.policy.player()
        return lambda state, period: play(self._complete(np.atleast_2d(state))[0], period)

    def __call__(self, state: Any, period: int) -> np.ndarray:
        row = np.atleast_1d(np.asarray(state, float))[None, :]
        return self.policy(np.asarray(self._complete(row))[0], period)

    def _complete(self, states: Any) -> Any:
        missing = self.dimension - states.shape[1]
        return jnp.pad(states, ((0, 0), (0, missing))) if missing == self.hidden else states


def user_policy(problem: Problem, policy: Policy) -> Policy:
    """Let a policy take states as users know them.

    Args:
        problem: The problem.
        policy: The policy of states with the measured cost.

    Returns:
        The policy. It is the given one where no cost is measured.
    """
    hidden = len(problem.measured)
    return UserPolicy(policy, hidden, problem.states.dimension) if hidden else policy


def told_episode(
    states: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    outcomes: ArrayLike | None = None,
    costs: ArrayLike | None = None,
    *,
    problem: Problem,
    terminated: bool = False,
    truncated: bool = False,
) -> Episode:
    """Check the data of a user's episode. Costs become a coordinate of the state.

    Args:
        states: H + 1 states without the cost, (H + 1, m), or with it.
        actions: H actions, (H, q).
        rewards: H rewards, (H,).
        outcomes: Next states before their projection to the state space, or None.
        costs: What each of the H steps was measured to cost, (H,).
        problem: The problem.
        terminated: Whether the system ended the episode.
        truncated: Whether the episode was cut off.

    Returns:
        The episode.

    Raises:
        ArgumentError: If costs are missing, or not expected.
        ShapeError: If there is not one cost for each step.
    """
    if costs is None and not problem.measured:
        data = (states, actions, rewards, outcomes)
        return checked_episode(*data, spaces=problem, terminated=terminated, truncated=truncated)
    if not problem.measured:
        expected = f"None, as no constraint names {COST!r}"
        raise ArgumentError("costs", expected, f"{np.size(np.asarray(costs))} costs")
    visited, m = np.asarray(float_array(states, "states"), float), problem.states.dimension
    moved = None if outcomes is None else np.asarray(float_array(outcomes, "outcomes"), float)
    if costs is not None:
        measured = np.asarray(float_array(costs, "costs"), float)
        periods = (max(len(visited) - 1, 0),)
        if measured.shape != periods:
            expected = f"one cost for each of the {periods[0]} steps"
            raise ShapeError("costs", expected, f"shape {measured.shape}")
        require_finite("costs", measured)
        if visited.ndim != 2 or visited.shape[1] != m - 1:
            expected = f"{m - 1} coordinates, without the cost"
            raise ShapeError("states", expected, f"shape {visited.shape}")
        visited = np.column_stack([visited, np.append(0.0, measured)])
        if moved is None:
            moved = unwrapped(problem.states, visited)
        elif moved.ndim == 2 and len(moved) == len(measured):
            moved = np.column_stack([moved, measured])
        visited[:, -1] = np.clip(visited[:, -1], -LARGEST_COST, LARGEST_COST)
    elif visited.ndim == 2 and visited.shape[1] == m - 1:
        expected = f"what each of the {len(visited) - 1} steps was measured to cost"
        raise ArgumentError("costs", expected, None)
    data = (visited, actions, rewards, moved)
    return checked_episode(*data, spaces=problem, terminated=terminated, truncated=truncated)
