"""True regret: V*_1(s) − V^π_1(s) in the true MDP, both computed the same way.

Regret is a difference of *values*. Where transitions are noisy, both are computed by dynamic
programming on the same grid of the true MDP, so that the error of the grid mostly cancels and the
optimal policy has regret exactly zero. Where nothing is random the return is the value. In linear-
quadratic control the value is a closed form, with the effect of bounds by common rollouts.
"""

import abc
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelmdp.confidence import ConfidenceSets
from kernelmdp.envs import Environment
from kernelmdp.mdp import MDP, Episode, Policy, StateGrid, Value, policy_values
from kernelmdp.numerics.modules import jit
from kernelmdp.planners import GridPlanner


class Evaluator(abc.ABC):
    """Measures policies by the truth."""

    #: Columns of ``row`` and of ``containment``.
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
        """Value, optimum and regret of a policy; adds the regret to ``totals``."""

    @abc.abstractmethod
    def containment(self, sets: ConfidenceSets | None, points: Array) -> dict[str, float]:
        """Whether confidence sets hold the truth at these points: 1 or 0."""


class NoEvaluator(Evaluator):
    """Where nothing is known of the truth."""

    def row(
        self, policy: Policy, start: Array, episode: Episode, totals: dict[str, float]
    ) -> dict[str, float]:
        return {}

    def containment(self, sets: ConfidenceSets | None, points: Array) -> dict[str, float]:
        return {}


class RegretEvaluator(Evaluator):
    """Knows the truth and says what a policy is worth in it."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._optima: dict[tuple[float, ...], Value] = {}
        self._measure = _measure_for(environment)

    def optimum(self, start: Array) -> Value:
        """V*_1 at a state, with its error."""
        name = tuple(np.asarray(start).tolist())
        if name not in self._optima:
            self._optima[name] = self._measure.optimum(start)
        return self._optima[name]

    def value(self, policy: Policy, start: Array, episode: Episode) -> float:
        """V^π_1 at a state."""
        return self._measure.value(policy, start, episode)

    def row(
        self, policy: Policy, start: Array, episode: Episode, totals: dict[str, float]
    ) -> dict[str, float]:
        optimum = self.optimum(start)
        value = self.value(policy, start, episode)
        regret = optimum.value - value
        totals["regret"] = totals.get("regret", 0.0) + regret
        numbers = (value, optimum.value, optimum.error, regret, totals["regret"])
        return dict(zip(self.columns, numbers, strict=True))

    def containment(self, sets: ConfidenceSets | None, points: Array) -> dict[str, float]:
        if sets is None:
            return {}
        inside = sets.containment(self.environment.seen.model, points)
        numbers = (float(inside.reward), float(inside.transition))
        return dict(zip(self.containment_columns, numbers, strict=True))


class ValueMeasure(abc.ABC):
    """One way to compute values; the optimum and a policy are measured alike."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment

    @abc.abstractmethod
    def optimum(self, start: Any) -> Value:
        """V*_1 at a state, with its error."""

    @abc.abstractmethod
    def value(self, policy: Policy, start: Any, episode: Episode) -> float:
        """V^π_1 at a state, where an episode of the policy is at hand."""


class ReturnMeasure(ValueMeasure):
    """Where nothing is random the return of an episode is the value.

    So it is taken, as an unbiased estimate, where states have too many coordinates for a grid.
    """

    def optimum(self, start: Any) -> Value:
        return self.environment.optimal_value(start)

    def value(self, policy: Policy, start: Any, episode: Episode) -> float:
        return episode.total


class GridMeasure(ValueMeasure):
    """Dynamic programming on one grid of the true MDP."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        planner = GridPlanner(environment.problem.state_points, environment.problem.action_points)
        self.grid = planner.grid(environment.mdp)
        plan = planner.plan(environment.mdp, key=jax.random.key(0))
        # What the optimal policy is worth on this grid; its refined actions may beat the plan's.
        self.best = policy_values(environment.mdp, plan.policy, self.grid)

    def optimum(self, start: Any) -> Value:
        fine = self.environment.optimal_value(start)
        here = float(_first(self.grid, self.best, start))
        return Value(here, abs(here - fine.value) + fine.error, fine.kind)

    def value(self, policy: Policy, start: Any, episode: Episode) -> float:
        return float(_policy_value(self.environment.mdp, policy, self.grid, start))


class OnePeriodMeasure(ValueMeasure):
    """H = 1: the mean reward of the action taken."""

    def optimum(self, start: Any) -> Value:
        return self.environment.optimal_value(start)

    def value(self, policy: Policy, start: Any, episode: Episode) -> float:
        return float(self.environment.mdp.model(jnp.asarray(episode.points)).reward[0])


class QuadraticMeasure(ValueMeasure):
    """Closed forms of linear-quadratic control, corrected for bounds (``QuadraticTruth``)."""

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
        return ReturnMeasure(environment)
    if any(environment.mdp.transition_noise.sizes):
        return GridMeasure(environment)
    return ReturnMeasure(environment)


@jit
def _policy_value(mdp: MDP, policy: Policy, grid: StateGrid, start: Array) -> Array:
    return _first(grid, policy_values(mdp, policy, grid), start)


def _first(grid: StateGrid, values: Array, start: Array) -> Array:
    """The value of the first period at a state."""
    return grid.value_at(values[0], jnp.asarray(start)[None, :])[0]
