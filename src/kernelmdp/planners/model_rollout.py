"""What sequences of actions would earn in an MDP, or in the best member of a family.

In a family the next state is a decision too: where among the plausible ones it lies (hallucinated
control, Curi et al. 2020). It searches the same members as math D1, step by step, without a table.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.model import Prediction
from kernelmdp.planners.action_selection import optimistic_rewards
from kernelmdp.types import Period

#: Ways to choose the next state of a family.
OPTIMISM = ("ball", "box", "bonus")


def prediction_shapes(mdp: MDP) -> Prediction:
    """The shapes of what the model says of one point: which widths it has."""
    point = jax.ShapeDtypeStruct((1, mdp.points.dimension), jnp.result_type(float))
    return jax.eval_shape(lambda points: mdp.model(points), point)


def hallucinated_dimension(mdp: MDP, optimism: str) -> int:
    """Numbers that choose the next state at each step: m, or 0 where there is nothing to choose."""
    prediction = prediction_shapes(mdp)
    return 0 if prediction.certain or optimism == "bonus" else mdp.states.dimension


def rollout_returns(
    mdp: MDP,
    start: Float[Array, " m"],
    period: Period,
    actions: Float[Array, "n T q"],
    hallucinated_control: Float[Array, "n T k"],
    noise: Float[Array, "T P m"] | None,
    *,
    optimism: str,
    terminal_velocity_penalty: float = 0.0,
) -> Float[Array, " n"]:
    """Sums of (optimistic) mean rewards from a state on, mean over P draws of the noise.

    ``hallucinated_control`` in [−1, 1]^m chooses among plausible next states (k = 0: none). Every sequence meets
    the same noise. Steps after the last period of the episode earn nothing. Where an episode may
    end, up to ``terminal_velocity_penalty`` of a step's reward is taken off for changes of the state in the last step:
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
        rewards, after = _optimistic_prediction(mdp, mdp.model(points), spread(chosen), optimism)
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
    now = (jnp.moveaxis(actions, 1, 0), jnp.moveaxis(hallucinated_control, 1, 0), noise, live)
    states = jnp.broadcast_to(start[None, :], (rows, start.shape[0]))
    over = None if mdp.termination is None else jnp.zeros(rows, bool)
    begin = (states, jnp.zeros(rows, states.dtype), over)
    (_, total, _), path = jax.lax.scan(one, begin, now)
    if path is not None and terminal_velocity_penalty:
        earned, changes = path
        typical = jnp.mean(changes, axis=(0, 1)) + 1e-12
        moved = jnp.sum(changes[-1] / typical[None, :], axis=1)
        total = total - terminal_velocity_penalty * jnp.mean(jnp.abs(earned)) * moved / (1 + moved)
    return jnp.mean(total.reshape(count, particles), axis=1)


def rollout_step(
    mdp: MDP,
    states: Float[Array, "n m"],
    actions: Array,
    hallucinated_control: Array,
    *,
    optimism: str,
) -> tuple[Float[Array, " n"], Float[Array, "n m"], Bool[Array, " n"]]:
    """Rewards, next states without noise, and whether the episode ends there."""
    points = jnp.concatenate([states, actions], axis=1)
    rewards, after = _optimistic_prediction(mdp, mdp.model(points), hallucinated_control, optimism)
    after = mdp.states.nearest(after)
    never = jnp.zeros(states.shape[0], bool)
    return rewards, after, never if mdp.termination is None else _ends(mdp, points, after)


def _ends(mdp: MDP, points: Array, after: Array) -> Bool[Array, " N"]:
    assert mdp.termination is not None
    return jnp.asarray(mdp.termination(points, after), bool)


def _optimistic_prediction(
    mdp: MDP, prediction: Prediction, hallucinated_control: Float[Array, "N k"], optimism: str
) -> tuple[Float[Array, " N"], Float[Array, "N m"]]:
    """The best plausible reward, and the plausible next state that ``hallucinated_control`` chooses."""
    rewards = optimistic_rewards(prediction, mdp.reward_range)
    if prediction.certain:
        return rewards, prediction.state
    if optimism == "bonus":
        assert prediction.radius is not None
        bonus = jnp.where(prediction.radius > 0, mdp.lipschitz * prediction.radius, 0.0)
        return rewards + bonus, prediction.state
    if prediction.sides is not None:
        return rewards, prediction.state + prediction.sides * hallucinated_control
    metric = jnp.asarray(mdp.metric)[None, :]
    if optimism == "ball":
        # The root of a number that is never 0: so it has a slope everywhere.
        square = jnp.sum(hallucinated_control**2, axis=1, keepdims=True)
        hallucinated_control = hallucinated_control / jnp.sqrt(jnp.maximum(1.0, square))
    if prediction.root is None:
        assert prediction.radius is not None
        return rewards, prediction.state + metric * prediction.radius[
            :, None
        ] * hallucinated_control
    if optimism == "ball":
        return rewards, prediction.state + jnp.einsum(
            "nij,nj->ni", prediction.root, hallucinated_control
        )
    # The smallest box around the ellipsoid: its sides are the lengths of the root's rows.
    return rewards, prediction.state + jnp.linalg.norm(
        prediction.root, axis=2
    ) * hallucinated_control
