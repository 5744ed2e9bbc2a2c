"""True regret V*_1(s) − V^π_1(s), with both values computed in the same way in the true MDP.

Regret is a difference of *values*. How they are computed depends on the environment:

- With noisy transitions, dynamic programming computes both on the same grid of the true MDP. Most
  of the grid's error cancels, and the optimal policy has regret exactly zero.
- Without noise, the return is the value.
- In linear-quadratic control, the value is a closed form. Rollouts with common noise correct it for
  bounds.
"""

import abc
import copy
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelmdp.confidence import ConfidenceSets
from kernelmdp.envs import Environment
from kernelmdp.mdp import MDP, Episode, Policy, StateGrid, Value, policy_values
from kernelmdp.numerics.modules import jit
from kernelmdp.numerics.tracing import array_library, as_float
from kernelmdp.planners import GridPlanner


class Evaluator(abc.ABC):
    """Evaluates policies and confidence sets by the true MDP.

    Attributes:
        columns: The columns that ``row`` fills.
        containment_columns: The columns that ``containment`` fills.
    """

    columns: ClassVar[tuple[str, ...]] = (
        "value",
        "optimal_value",
        "optimal_value_error",
        "regret",
        "cumulative_regret",
    )
    containment_columns: ClassVar[tuple[str, ...]] = ("covered_reward", "covered_transition")

    @abc.abstractmethod
    def row(
        self, policy: Policy, start: Array, episode: Episode, totals: dict[str, float]
    ) -> dict[str, float]:
        """Compute value, optimal value and regret of a policy.

        Args:
            policy: The policy.
            start: The first state of the episode, (m,).
            episode: An episode of the policy.
            totals: Running sums. The regret is added to its entry "regret".

        Returns:
            One number for each of ``columns``; empty if the truth is unknown.
        """

    @abc.abstractmethod
    def containment(self, sets: ConfidenceSets | None, points: Array) -> dict[str, float]:
        """Check whether confidence sets contain the truth.

        Args:
            sets: The sets, or None for an agent without sets.
            points: Points z = (s, a) at which they are checked, (n, d).

        Returns:
            1 or 0 for each of ``containment_columns``; empty without sets or without the truth.
        """


class NoEvaluator(Evaluator):
    """For systems whose truth is unknown. It returns no numbers."""

    def row(
        self, policy: Policy, start: Array, episode: Episode, totals: dict[str, float]
    ) -> dict[str, float]:
        return {}

    def containment(self, sets: ConfidenceSets | None, points: Array) -> dict[str, float]:
        return {}


class RegretEvaluator(Evaluator):
    """Computes values and regret in the true MDP of an environment.

    Args:
        environment: The environment.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._optima: dict[tuple[float, ...], Value] = {}
        self._measure = _measure_for(environment)

    def optimum(self, start: Array) -> Value:
        """Compute V*_1 at a state. The result is cached.

        Args:
            start: The state, (m,).

        Returns:
            The optimal value with its error.
        """
        state = tuple(np.asarray(start).tolist())
        if state not in self._optima:
            self._optima[state] = self._measure.optimum(start)
        return self._optima[state]

    def value(self, policy: Policy, start: Array, episode: Episode) -> float:
        """Compute V^π_1 at a state.

        Args:
            policy: The policy π.
            start: The state, (m,).
            episode: An episode of the policy from this state.

        Returns:
            The value.
        """
        return self._measure.value(policy, start, episode)

    def row(
        self, policy: Policy, start: Array, episode: Episode, totals: dict[str, float]
    ) -> dict[str, float]:
        return self.regret_row(self.value(policy, start, episode), start, totals)

    def regret_row(self, value: float, start: Array, totals: dict[str, float]) -> dict[str, float]:
        """Compute the regret of a value.

        Args:
            value: The value of a policy at a state.
            start: The state, (m,).
            totals: Running sums. The regret is added to its entry "regret".

        Returns:
            One number for each of ``columns``.
        """
        optimum = self.optimum(start)
        regret = optimum.value - value
        totals["regret"] = totals.get("regret", 0.0) + regret
        numbers = (value, optimum.value, optimum.error, regret, totals["regret"])
        return dict(zip(self.columns, numbers, strict=True))

    def containment(self, sets: ConfidenceSets | None, points: Array) -> dict[str, float]:
        if sets is None:
            return {}
        inside = sets.containment(self.environment.agent_mdp.model, points)
        numbers = (as_float(inside.reward), as_float(inside.transition))
        return dict(zip(self.containment_columns, numbers, strict=True))


class ValueEvaluator(Evaluator):
    """Computes values but no optimal values, which a compiled program need not compute.

    Args:
        evaluator: The evaluator of an environment.
        environment: An environment that differs from it in numbers, which may be traced.
    """

    def __init__(self, evaluator: RegretEvaluator, environment: Environment) -> None:
        self._evaluator = copy.copy(evaluator)
        self._evaluator.environment = environment
        self._evaluator._measure = copy.copy(evaluator._measure)
        self._evaluator._measure.environment = environment

    def row(
        self, policy: Policy, start: Array, episode: Episode, totals: dict[str, float]
    ) -> dict[str, float]:
        return {"value": self._evaluator.value(policy, start, episode)}

    def containment(self, sets: ConfidenceSets | None, points: Array) -> dict[str, float]:
        return self._evaluator.containment(sets, points)


class ValueMeasure(abc.ABC):
    """A method to compute values. It is the same for the optimum and for a policy.

    Args:
        environment: The environment.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    @abc.abstractmethod
    def optimum(self, start: Any) -> Value:
        """Compute V*_1 at a state.

        Args:
            start: The state, (m,).

        Returns:
            The optimal value with its error.
        """

    @abc.abstractmethod
    def value(self, policy: Policy, start: Any, episode: Episode) -> float:
        """Compute V^π_1 at a state.

        Args:
            policy: The policy π.
            start: The state, (m,).
            episode: An episode of the policy from this state.

        Returns:
            The value.
        """


class MeanRewardMeasure(ValueMeasure):
    """Adds up the mean rewards of an episode, which is the value if transitions are deterministic.

    If states have too many coordinates for a grid, the sum is used as an unbiased estimate. Noise
    of rewards does not enter: regret is a difference of values, not of returns.
    """

    def optimum(self, start: Any) -> Value:
        return self.environment.optimal_value(start)

    def value(self, policy: Policy, start: Any, episode: Episode) -> float:
        mdp = self.environment.mdp
        if not any(mdp.reward_noise.sizes):
            return episode.total
        rewards = mdp.model(jnp.asarray(episode.points)).reward
        library = array_library(rewards)
        return as_float(library.sum(library.asarray(rewards)))


class GridMeasure(ValueMeasure):
    """Dynamic programming on one grid of the true MDP.

    Args:
        environment: The environment.
    """

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        planner = GridPlanner(environment.problem.state_points, environment.problem.action_points)
        self.grid = planner.grid(environment.mdp)
        plan = planner.plan(environment.mdp, key=jax.random.key(0))
        # Values of the optimal policy on this grid. The policy refines the actions of the plan, so
        # its values may exceed those of the plan.
        self.optimal_values = policy_values(environment.mdp, plan.policy, self.grid)

    def optimum(self, start: Any) -> Value:
        fine = self.environment.optimal_value(start)
        value = float(_first_period_value(self.grid, self.optimal_values, start))
        return Value(value, abs(value - fine.value) + fine.error, fine.kind)

    def value(self, policy: Policy, start: Any, episode: Episode) -> float:
        return as_float(_policy_value(self.environment.mdp, policy, self.grid, start))


class OnePeriodMeasure(ValueMeasure):
    """H = 1: the mean reward of the action that was taken."""

    def optimum(self, start: Any) -> Value:
        return self.environment.optimal_value(start)

    def value(self, policy: Policy, start: Any, episode: Episode) -> float:
        return as_float(self.environment.mdp.model(jnp.asarray(episode.points)).reward[0])


class QuadraticMeasure(ValueMeasure):
    """Closed forms of linear-quadratic control, corrected for bounds (``QuadraticTruth``).

    Args:
        environment: The environment.
    """

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        # It is computed now, and cached, because a compiled program cannot compute it.
        assert environment.quadratic is not None

    def optimum(self, start: Any) -> Value:
        return self.environment.optimal_value(start)

    def value(self, policy: Policy, start: Any, episode: Episode) -> float:
        return self.environment.quadratic.value(policy, start)


def _measure_for(environment: Environment) -> ValueMeasure:
    if environment.problem.planner == "riccati":
        return QuadraticMeasure(environment)
    if environment.mdp.horizon == 1:
        return OnePeriodMeasure(environment)
    if environment.problem.planner == "mpc":
        return MeanRewardMeasure(environment)
    if any(environment.mdp.transition_noise.sizes):
        return GridMeasure(environment)
    return MeanRewardMeasure(environment)


@jit
def _policy_value(mdp: MDP, policy: Policy, grid: StateGrid, start: Array) -> Array:
    return _first_period_value(grid, policy_values(mdp, policy, grid), start)


def _first_period_value(grid: StateGrid, values: Array, start: Array) -> Array:
    """Return the value of the first period at a state."""
    return grid.value_at(values[0], jnp.asarray(start)[None, :])[0]
