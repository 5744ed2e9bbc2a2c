"""The planner for H = 1. No state follows an action, so it maximises the reward (note D5).

Among finitely many arms the maximum is exact. In a box many arms are tried, spread evenly. The best
few of them are then improved by gradient ascent. That maximum is approximate, from below.
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
from kernelmdp.numerics.tracing import as_float
from kernelmdp.planners.action_selection import TIE, optimistic_rewards
from kernelmdp.planners.plan import Plan
from kernelmdp.planners.planner import Planner, Spaces
from kernelmdp.types import ArrayLike, Key, Period

#: First step of gradient ascent, as a share of each axis. A larger one leaves the hill of its arm,
#: a smaller one reaches less far.
FIRST_STEP = 0.03
#: Ratio of successive steps. All steps of the default number together cross 0.42 of an axis.
STEP_DECAY = 0.93


class ArmPolicy(Policy):
    """The policy that always plays one action.

    Attributes:
        action: The action, (q,).
    """

    action: Float[Array, " q"]

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return jnp.broadcast_to(self.action[None, :], (states.shape[0], self.action.shape[0]))


class ArmPlan(Plan):
    """The chosen action and its optimistic reward.

    Attributes:
        policy: The policy that plays the action.
        optimistic_reward: The best plausible mean reward of the action, a scalar.
        error: NaN, because the error is unknown.
    """

    policy: Policy
    optimistic_reward: Float[Array, ""]
    error: float = float("nan")

    def value(self, state: ArrayLike) -> float:
        return as_float(self.optimistic_reward)


@dataclasses.dataclass(frozen=True)
class ArmPlanner(Planner):
    """Chooses the action of the largest (optimistic) reward, for one state and one period.

    If the actions form a box, the best of many arms are improved by gradient ascent. Gradients are
    scaled by the sides of the box.

    Attributes:
        arms: Number of arms to try in a box.
        starts: Number of arms from which gradient ascent starts.
        steps: Number of steps of gradient ascent.

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
        """List the points (state, arm) at which a plan evaluates the model before the ascent.

        Args:
            spaces: An MDP or a problem with one state and H = 1.

        Returns:
            The points, (n, d).

        Raises:
            ArgumentError: If there are several states or periods.
        """
        states = spaces.states
        if spaces.horizon != 1 or not states.finite or len(states.spread_points(1)) != 1:
            raise ArgumentError("planner", "'grid' unless one state and H = 1", "'arms'")
        arms = spaces.actions.spread_points(self.arms)
        return state_action(
            np.broadcast_to(states.spread_points(1), (len(arms), states.dimension)), arms
        )

    def plan(self, mdp: MDP, *, start: ArrayLike | None = None, key: Key) -> Plan:
        action, reward = _best_arm(self, mdp, self.query_points(mdp), key)
        return ArmPlan(policy=ArmPolicy(action), optimistic_reward=reward)


@jit
def _best_arm(planner: ArmPlanner, mdp: MDP, points: ArrayLike, key: Key) -> tuple[Array, Array]:
    """The best action (q,) and its optimistic reward."""
    m = mdp.states.dimension
    points = jnp.asarray(points)

    def rewards_at(rows: Float[Array, "n d"]) -> Float[Array, " n"]:
        return optimistic_rewards(mdp.model(rows), mdp.reward_range)

    values = rewards_at(points)
    # Before any data most arms are tied, so one random order of all arms decides.
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

    def rewards_of(actions: Array) -> Array:
        return rewards_at(state_action(state, actions))

    gradient = jax.grad(lambda actions: jnp.sum(rewards_of(actions)))

    def ascend(carry: tuple[Array, Array, Array], step_size: Array) -> tuple[Any, None]:
        actions, best, best_rewards = carry
        scaled_gradient = gradient(actions) * (high - low)
        norm = jnp.linalg.norm(scaled_gradient, axis=1, keepdims=True)
        moved = actions + step_size * (high - low) * scaled_gradient / jnp.maximum(norm, 1e-12)
        moved = jnp.clip(moved, low, high)
        rewards = rewards_of(moved)
        improved = rewards > best_rewards + TIE * (1 + jnp.abs(best_rewards))
        best = jnp.where(improved[:, None], moved, best)
        return (moved, best, jnp.where(improved, rewards, best_rewards)), None

    step_sizes = jnp.asarray(FIRST_STEP * STEP_DECAY ** np.arange(planner.steps))
    (_, best, best_rewards), _ = jax.lax.scan(ascend, (start, start, values[chosen]), step_sizes)
    winner = jnp.argmax(best_rewards)
    return best[winner], best_rewards[winner]
