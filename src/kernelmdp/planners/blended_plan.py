"""Plans between a planned policy and a fallback, for agents that leave the fallback slowly."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.mdp.fallback import Fallback
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.policy import EpisodicPolicy, Policy
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.planners.plan import Plan, ValueTable
from kernelmdp.types import ArrayLike, Period


class BlendedPolicy(EpisodicPolicy):
    """Takes the fallback's action plus a share of the difference to the planned one.

    Attributes:
        policy: The planned policy.
        fallback: The fallback.
        share: The share, a scalar between 0 and 1.

    >>> from kernelmdp.mdp.fallback import Fallback
    >>> from kernelmdp.mdp.policy import OpenLoopPolicy
    >>> policy, rest = (OpenLoopPolicy(jnp.full((3, 1), action)) for action in (1.0, 0.0))
    >>> BlendedPolicy(policy, Fallback(rest), jnp.asarray(0.25))([0.0], 0)
    array([0.25])
    """

    policy: Policy
    fallback: Fallback = eqx.field(static=True)
    share: Float[Array, ""]

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        safe = self.fallback.policy.actions(states, period)
        return self._blended(self.policy.actions(states, period), safe)

    def reset(self, count: int) -> Any:
        return self.policy.reset(count), self.fallback.policy.reset(count)

    def decide(
        self, memory: Any, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], Any]:
        planned, search = self.policy.decide(memory[0], states, period)
        safe, controller = self.fallback.policy.decide(memory[1], states, period)
        return self._blended(planned, safe), (search, controller)

    def at_nodes(self, grid: StateGrid, period: Period) -> Float[Array, "N q"]:
        safe = self.fallback.policy.at_nodes(grid, period)
        return self._blended(self.policy.at_nodes(grid, period), safe)

    def later_period(self, horizon: int) -> int:
        return self.policy.later_period(horizon)

    def _blended(self, planned: Array, safe: Array) -> Array:
        return safe + self.share * (planned - safe)


class BlendedPlan(Plan):
    """A plan of which only a share is played. The rest is the fallback's.

    Attributes:
        policy: The policy that is played.
        original: The plan.
        share: The share, a number above 0 and below 1.
        error: NaN, because nothing was planned for this policy.
    """

    policy: BlendedPolicy
    original: Plan
    share: float = eqx.field(static=True)
    error: float = float("nan")

    def value(self, state: ArrayLike) -> float:
        return float("nan")

    def values_in(self, mdps: Sequence[MDP], start: ArrayLike) -> np.ndarray:
        return self.original.values_in(mdps, start)

    def fallback_acts(
        self, states: Float[np.ndarray, "H m"], actions: Float[np.ndarray, "H q"]
    ) -> Bool[np.ndarray, " H"]:
        return self.original.fallback_acts(states, actions)

    @property
    def plan_share(self) -> float:
        return self.share

    @property
    def table(self) -> ValueTable | None:
        return self.original.table


def blended(plan: Plan, fallback: Fallback, share: float) -> Plan:
    """Play a share of a plan.

    Args:
        plan: The plan.
        fallback: The fallback.
        share: The share, above 0 and at most 1.

    Returns:
        The plan itself for a share of 1. Otherwise a plan with actions in between.
    """
    if share == 1.0:
        return plan
    if (changed := plan.with_share(share)) is not None:
        return changed
    policy = BlendedPolicy(plan.policy, fallback, jnp.asarray(share))
    return BlendedPlan(policy=policy, original=plan, share=share)
