"""True regret: V*_1(s) − V^π_1(s) in the true MDP, both computed the same way.

Regret is a difference of *values*. Where transitions are noisy, both are computed by dynamic
programming on the same grid of the true MDP, so that the error of the grid mostly cancels and the
optimal policy has regret exactly zero. Where nothing is random the return is the value.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelmdp.envs import Environment
from kernelmdp.mdp import MDP, Episode, Policy, StateGrid, Value, policy_values
from kernelmdp.planners import GridPlanner


class Judge:
    """Knows the truth and says what a policy is worth in it."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self._known: dict[tuple[float, ...], Value] = {}
        mdp = environment.mdp
        self.deterministic = not any(mdp.transition_noise.sizes)
        if self.deterministic:
            return
        planner = GridPlanner(environment.state_points, environment.action_points)
        self.grid = planner.grid(mdp)
        plan = planner(mdp, key=jax.random.key(0))
        # What the optimal policy is worth on this grid; its refined actions may beat the plan's.
        self.best = policy_values(mdp, plan.policy, self.grid)

    def optimum(self, start: Any) -> Value:
        """V*_1 at a state, with its error."""
        name = tuple(np.asarray(start).tolist())
        if name not in self._known:
            fine = self.environment.optimal_value(start)
            if not self.deterministic:
                here = float(_first(self.grid, self.best, start))
                fine = Value(here, abs(here - fine.value) + fine.error, fine.kind)
            self._known[name] = fine
        return self._known[name]

    def value(self, policy: Policy, start: Any, episode: Episode) -> float:
        """V^π_1 at a state."""
        if self.deterministic:
            return episode.total
        return float(_policy_value(self.environment.mdp, policy, self.grid, start))


@eqx.filter_jit
def _policy_value(mdp: MDP, policy: Policy, grid: StateGrid, start: Array) -> Array:
    return _first(grid, policy_values(mdp, policy, grid), start)


def _first(grid: StateGrid, values: Array, start: Array) -> Array:
    """The value of the first period at a state."""
    return grid.value_at(values[0], jnp.asarray(start)[None, :])[0]
