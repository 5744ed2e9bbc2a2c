"""H = 1: nothing follows an action, so planning is to find the best of them (math D5).

Of finitely many arms the best is found exactly. In a box many arms are tried, spread evenly, and
the best few are then moved uphill; that maximum is approximate, from below.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.episode import state_action
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.policy import Policy
from kernelmdp.numerics.modules import jit
from kernelmdp.planners.action_selection import TIE, optimistic_rewards
from kernelmdp.planners.plan import Plan
from kernelmdp.planners.planner import Planner, Spaces
from kernelmdp.types import ArrayLike, Key, Period

#: First step uphill as a share of each axis, and by how much every step is shorter.
STEP, SHRINK = 0.03, 0.93


class Arm(Policy):
    """One action."""

    action: Float[Array, " q"]

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return jnp.broadcast_to(self.action[None, :], (states.shape[0], self.action.shape[0]))


class ArmPlan(Plan):
    """The action chosen, and the reward it is hoped to have."""

    policy: Policy
    hoped: Float[Array, ""]
    error: float = float("nan")

    def value(self, state: ArrayLike) -> float:
        return float(self.hoped)


@dataclasses.dataclass(frozen=True)
class ArmPlanner(Planner):
    """The action of the largest (optimistic) reward, for one state and one period.

    ``arms`` are tried when actions form a box; the best ``starts`` of them go uphill ``steps``
    times, along the gradient scaled by the box.

    >>> import kernelmdp as km
    >>> arms = km.FiniteSet([[0.0], [0.5], [1.0]])
    >>> env = km.envs.bandit(lambda a: a[:, 0], arms, km.kernel("se(0.5)"))
    >>> ArmPlanner().plan(env.mdp, key=jax.random.key(0)).policy([0.0], 0)
    array([1.])
    """

    optimal: ClassVar[bool] = True

    arms: int = 4096
    starts: int = 16
    steps: int = 60

    def query_points(self, spaces: Spaces) -> np.ndarray:
        """All points (state, arm) at which a plan asks the model first."""
        states = spaces.states
        if spaces.horizon != 1 or not states.finite or len(states.spread(1)) != 1:
            raise ArgumentError("planner", "'grid' unless one state and H = 1", "'arms'")
        arms = spaces.actions.spread(self.arms)
        return state_action(np.broadcast_to(states.spread(1), (len(arms), states.dimension)), arms)

    def plan(self, mdp: MDP, *, start: ArrayLike | None = None, key: Key) -> Plan:
        """The best action for the MDP, or for the best member of a family."""
        action, hoped = _best(self, mdp, self.query_points(mdp), key)
        return ArmPlan(policy=Arm(action), hoped=hoped)


@jit
def _best(planner: ArmPlanner, mdp: MDP, points: ArrayLike, key: Key) -> tuple[Array, Array]:
    m = mdp.states.dimension
    points = jnp.asarray(points)

    def hoped(rows: Float[Array, "n d"]) -> Float[Array, " n"]:
        return optimistic_rewards(mdp.model(rows), mdp.reward_range)

    values = hoped(points)
    # Ties are the rule before any data; one seeded order decides.
    priority = jax.random.uniform(key, values.shape)
    top = jnp.max(values)
    tied = values >= top - TIE * (1 + jnp.abs(top))
    first = jnp.argmax(jnp.where(tied, priority, -jnp.inf))
    if mdp.actions.finite or not mdp.actions.bounded:
        return points[first, m:], values[first]
    low, high = (jnp.asarray(end)[None, :] for end in mdp.actions.bounds)
    best_few = jax.lax.top_k(values, min(planner.starts, values.shape[0]))[1]
    chosen = best_few.at[0].set(first.astype(best_few.dtype))
    rows = points[chosen]
    state, start = rows[:, :m], rows[:, m:]

    def rewards(actions: Array) -> Array:
        return hoped(state_action(state, actions))

    slope = jax.grad(lambda actions: jnp.sum(rewards(actions)))

    def climb(carry: tuple[Array, Array, Array], size: Array) -> tuple[Any, None]:
        here, best, value = carry
        uphill = slope(here) * (high - low)
        length = jnp.linalg.norm(uphill, axis=1, keepdims=True)
        there = here + size * (high - low) * uphill / jnp.maximum(length, 1e-12)
        there = jnp.clip(there, low, high)
        found = rewards(there)
        better = found > value + TIE * (1 + jnp.abs(value))
        best = jnp.where(better[:, None], there, best)
        return (there, best, jnp.where(better, found, value)), None

    sizes = jnp.asarray(STEP * SHRINK ** np.arange(planner.steps))
    (_, best, value), _ = jax.lax.scan(climb, (start, start, values[chosen]), sizes)
    place = jnp.argmax(value)
    return best[place], value[place]
