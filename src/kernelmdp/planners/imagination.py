"""What sequences of actions would earn in an MDP, or in the best member of a family.

In a family the next state is a decision too: where among the plausible ones it lies (hallucinated
control, Curi et al. 2020). It searches the same members as math D1, step by step, without a table.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.model import Outlook
from kernelmdp.planners.actions import optimistic_reward
from kernelmdp.types import Period

#: Ways to choose the next state of a family.
OPTIMISM = ("ball", "box", "bonus")


def outlook_shapes(mdp: MDP) -> Outlook:
    """The shapes of what the model says of one point: which widths it has."""
    point = jax.ShapeDtypeStruct((1, mdp.points.dimension), jnp.result_type(float))
    return jax.eval_shape(lambda points: mdp.model(points), point)


def luck_dimension(mdp: MDP, optimism: str) -> int:
    """Numbers that choose the next state at each step: m, or 0 where there is nothing to choose."""
    outlook = outlook_shapes(mdp)
    return 0 if outlook.certain or optimism == "bonus" else mdp.states.dimension


def imagined_returns(
    mdp: MDP,
    start: Float[Array, " m"],
    period: Period,
    actions: Float[Array, "n T q"],
    luck: Float[Array, "n T k"],
    noise: Float[Array, "T P m"] | None,
    *,
    optimism: str,
    unrest: float = 0.0,
) -> Float[Array, " n"]:
    """Sums of (optimistic) mean rewards from a state on, mean over P draws of the noise.

    ``luck`` in [−1, 1]^m chooses among plausible next states (k = 0: none). Every sequence meets
    the same noise. Steps after the last period of the episode earn nothing. Where an episode may
    end, up to ``unrest`` of a step's reward is taken off for changes of the state in the last step:
    of plans that earn the same, one that ends at rest is the likeliest to last.
    """
    count, steps = actions.shape[:2]
    particles = 1 if noise is None else noise.shape[1]
    rows = count * particles

    def spread(decisions: Float[Array, "n w"]) -> Float[Array, "N w"]:
        return jnp.repeat(decisions, particles, axis=0) if particles > 1 else decisions

    def one(carry: tuple[PyTree, ...], now: tuple[PyTree, ...]) -> tuple[Any, Any]:
        states, total, over = carry
        action, chosen, shock, live = now
        points = jnp.concatenate([states, spread(action)], axis=1)
        rewards, after = _hoped(mdp, mdp.model(points), spread(chosen), optimism)
        if shock is not None:
            after = after + jnp.tile(shock, (count, 1))
        after = mdp.states.nearest(after)
        if over is None:
            return (after, total + jnp.where(live, rewards, 0.0), None), None
        after = jnp.where(over[:, None], states, after)
        earned = jnp.where(live & ~over, rewards, 0.0)
        change = mdp.states.difference(after, states) ** 2
        return (after, total + earned, over | _ends(mdp, points, after)), (earned, change)

    live = period + jnp.arange(steps) < mdp.horizon
    now = (jnp.moveaxis(actions, 1, 0), jnp.moveaxis(luck, 1, 0), noise, live)
    states = jnp.broadcast_to(start[None, :], (rows, start.shape[0]))
    over = None if mdp.termination is None else jnp.zeros(rows, bool)
    begin = (states, jnp.zeros(rows, states.dtype), over)
    (_, total, _), path = jax.lax.scan(one, begin, now)
    if path is not None and unrest:
        earned, changes = path
        usual = jnp.mean(changes, axis=(0, 1)) + 1e-12
        moved = jnp.sum(changes[-1] / usual[None, :], axis=1)
        total = total - unrest * jnp.mean(jnp.abs(earned)) * moved / (1 + moved)
    return jnp.mean(total.reshape(count, particles), axis=1)


def imagined_step(
    mdp: MDP, states: Float[Array, "n m"], actions: Array, luck: Array, *, optimism: str
) -> tuple[Float[Array, " n"], Float[Array, "n m"], Bool[Array, " n"]]:
    """Rewards, next states without noise, and whether the episode ends there."""
    points = jnp.concatenate([states, actions], axis=1)
    rewards, after = _hoped(mdp, mdp.model(points), luck, optimism)
    after = mdp.states.nearest(after)
    never = jnp.zeros(states.shape[0], bool)
    return rewards, after, never if mdp.termination is None else _ends(mdp, points, after)


def _ends(mdp: MDP, points: Array, after: Array) -> Bool[Array, " N"]:
    assert mdp.termination is not None
    return jnp.asarray(mdp.termination(points, after), bool)


def _hoped(
    mdp: MDP, outlook: Outlook, luck: Float[Array, "N k"], optimism: str
) -> tuple[Float[Array, " N"], Float[Array, "N m"]]:
    """The best plausible reward, and the plausible next state that ``luck`` chooses."""
    rewards = optimistic_reward(outlook, mdp.reward_range)
    if outlook.certain:
        return rewards, outlook.state
    if optimism == "bonus":
        assert outlook.radius is not None
        bonus = jnp.where(outlook.radius > 0, mdp.lipschitz * outlook.radius, 0.0)
        return rewards + bonus, outlook.state
    if outlook.sides is not None:
        return rewards, outlook.state + outlook.sides * luck
    metric = jnp.asarray(mdp.metric)[None, :]
    if optimism == "ball":
        # The root of a number that is never 0: so it has a slope everywhere.
        square = jnp.sum(luck**2, axis=1, keepdims=True)
        luck = luck / jnp.sqrt(jnp.maximum(1.0, square))
    if outlook.root is None:
        assert outlook.radius is not None
        return rewards, outlook.state + metric * outlook.radius[:, None] * luck
    if optimism == "ball":
        return rewards, outlook.state + jnp.einsum("nij,nj->ni", outlook.root, luck)
    # The smallest box around the ellipsoid: its sides are the lengths of the root's rows.
    return rewards, outlook.state + jnp.linalg.norm(outlook.root, axis=2) * luck
