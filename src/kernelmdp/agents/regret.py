"""True regret: V*_1(s) − V^π_1(s) in the true MDP, both computed the same way.

Regret is a difference of *values*. Where transitions are noisy, both are computed by dynamic
programming on the same grid of the true MDP, so that the error of the grid mostly cancels and the
optimal policy has regret exactly zero. Where nothing is random the return is the value.
"""

from typing import Any

import jax
import jax.numpy as jnp

from kernelmdp.envs import Environment
from kernelmdp.mdp import Episode, Policy, Value, policy_values
from kernelmdp.planners import GridPlanner


class Judge:
    """Knows the truth and says what a policy is worth in it."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        mdp = environment.mdp
        self.deterministic = not any(mdp.transition_noise.sizes)
        if self.deterministic:
            return
        planner = GridPlanner(environment.state_points, environment.action_points)
        self.grid = planner.grid(mdp)
        plan = planner(mdp, key=jax.random.key(0))
        # What the optimal policy is worth on this grid; its refined actions may beat the plan's.
        self.best = policy_values(mdp, plan.policy, self.grid)[0]

    def optimum(self, start: Any) -> Value:
        """V*_1 at a state, with its error."""
        fine = self.environment.optimal_value(start)
        if self.deterministic:
            return fine
        here = float(self.grid.value_at(self.best, jnp.asarray(start)[None, :])[0])
        return Value(here, abs(here - fine.value) + fine.error, fine.kind)

    def value(self, policy: Policy, start: Any, episode: Episode) -> float:
        """V^π_1 at a state."""
        if self.deterministic:
            return episode.total
        values = policy_values(self.environment.mdp, policy, self.grid)[0]
        return float(self.grid.value_at(values, jnp.asarray(start)[None, :])[0])
