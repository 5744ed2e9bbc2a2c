"""Returns of action sequences in an MDP, or in the best member of a family.

In a family the choice among the plausible next states is a decision too (hallucinated control,
Curi et al. 2020). The search covers the same members as note D1, step by step and without a table.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.model import Prediction
from kernelmdp.planners.action_selection import optimistic_rewards
from kernelmdp.types import Period

#: Ways to choose the next state of a family: search the ball of plausible states, search the box
#: around it, or add a bonus to the reward instead.
OPTIMISM = ("ball", "box", "bonus")


def prediction_shapes(mdp: MDP) -> Prediction:
    """Find out which widths the predictions of an MDP have, without a computation.

    Args:
        mdp: The MDP or family.

    Returns:
        The shapes of the prediction at one point.
    """
    point = jax.ShapeDtypeStruct((1, mdp.points.dimension), jnp.result_type(float))
    return jax.eval_shape(lambda points: mdp.model(points), point)


def require_optimism(mdp: MDP, optimism: str) -> None:
    """Require that the next state of a family can be chosen in a given way.

    Args:
        mdp: The MDP or family.
        optimism: One of ``OPTIMISM``.

    Raises:
        ArgumentError: If a bonus cannot replace the choice.
    """
    if optimism != "bonus":
        return
    prediction = prediction_shapes(mdp)
    if prediction.root is not None or prediction.sides is not None:
        raise ArgumentError("optimism", "'ball' or 'box' for ellipsoids and boxes", "'bonus'")
    if prediction.radius is not None and not np.isfinite(float(mdp.lipschitz)):
        raise ArgumentError("optimism", "'ball' or 'box' where L is infinite", "'bonus'")


def hallucinated_dimension(mdp: MDP, optimism: str) -> int:
    """Count the numbers that choose the next state at each step.

    Args:
        mdp: The MDP or family.
        optimism: One of ``OPTIMISM``.

    Returns:
        The dimension m of the state, or 0 if there is nothing to choose.
    """
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
    """Sum the (optimistic) mean rewards of n action sequences, and average over noise draws.

    All sequences meet the same noise. Steps after the last period of the episode earn nothing.

    Args:
        mdp: The MDP or family.
        start: The state from which the sequences start, (m,).
        period: The period of their first step, counted from 0.
        actions: The sequences, (n, T, q).
        hallucinated_control: Numbers in [−1, 1] that choose among the plausible next states,
            (n, T, k). k is m, or 0 if there is nothing to choose.
        noise: P draws of the transition's noise, (T, P, m). None means no noise.
        optimism: One of ``OPTIMISM``.
        terminal_velocity_penalty: For MDPs with termination, the largest share of a step's mean
            reward that is subtracted if the state changes in the last step. So is the signal
            "nearness" where the state would be if it went on changing like that. Among plans with
            equal returns, one that ends at rest far from limits is likeliest to last. Where steps
            cost, the sign is the other: one that ends in motion is likeliest to reach a goal.

    Returns:
        The returns, (n,).
    """
    count, steps = actions.shape[:2]
    particles = 1 if noise is None else noise.shape[1]
    rows = count * particles

    def repeated(decisions: Float[Array, "n w"]) -> Float[Array, "N w"]:
        return jnp.repeat(decisions, particles, axis=0) if particles > 1 else decisions

    def one_step(carry: tuple[PyTree, ...], inputs: tuple[PyTree, ...]) -> tuple[Any, Any]:
        states, total, ended = carry
        action, control, noise_draws, active = inputs
        points = jnp.concatenate([states, repeated(action)], axis=1)
        rewards, after = _optimistic_prediction(mdp, mdp.model(points), repeated(control), optimism)
        if noise_draws is not None:
            after = after + jnp.tile(noise_draws, (count, 1))
        after = mdp.states.nearest(after)
        if ended is None:
            return (after, total + jnp.where(active, rewards, 0.0), None), None
        after = jnp.where(ended[:, None], states, after)
        earned = jnp.where(active & ~ended, rewards, 0.0)
        change = mdp.states.difference(after, states)
        return (after, total + earned, ended | _ends(mdp, points, after)), (earned, change)

    active = period + jnp.arange(steps) < mdp.horizon
    inputs = (jnp.moveaxis(actions, 1, 0), jnp.moveaxis(hallucinated_control, 1, 0), noise, active)
    states = jnp.broadcast_to(start[None, :], (rows, start.shape[0]))
    ended = None if mdp.termination is None else jnp.zeros(rows, bool)
    initial = (states, jnp.zeros(rows, states.dtype), ended)
    (last, total, ended), path = jax.lax.scan(one_step, initial, inputs)
    if path is not None and terminal_velocity_penalty:
        earned, changes = path
        typical = jnp.mean(changes**2, axis=(0, 1)) + 1e-12
        unrest = jnp.sum(changes[-1] ** 2 / typical[None, :], axis=1)
        if (nearness := mdp.signals.get("nearness")) is not None:
            unrest += nearness(None, last + steps * changes[-1])
        loss = terminal_velocity_penalty * unrest / (1 + unrest)
        total = total - jnp.mean(earned) * loss
    if (terminal_value := terminal_value_after(mdp, period + steps)) is not None:
        later = terminal_value(last)
        total = total + (later if ended is None else jnp.where(ended, 0.0, later))
    return jnp.mean(total.reshape(count, particles), axis=1)


def terminal_value_after(mdp: MDP, period: Period) -> Callable[[Array], Array] | None:
    """Return what is earned from a period on, as a function of the states (n, m) at that period.

    Args:
        mdp: The MDP or family.
        period: The first period after a plan, which may be traced.

    Returns:
        The function, or None if the MDP has no terminal value.
    """
    value: Any = mdp.signals.get("terminal_value")
    if value is None:
        return None
    share = value.share(mdp.horizon - period)
    return lambda states: share * value(None, states)


def rollout_step(
    mdp: MDP,
    states: Float[Array, "n m"],
    actions: Array,
    hallucinated_control: Array,
    *,
    optimism: str,
) -> tuple[Float[Array, " n"], Float[Array, "n m"], Bool[Array, " n"]]:
    """Predict one step of n rollouts without noise.

    Args:
        mdp: The MDP or family.
        states: The states, (n, m).
        actions: The actions, (n, q).
        hallucinated_control: Numbers in [−1, 1] that choose among the plausible next states,
            (n, k).
        optimism: One of ``OPTIMISM``.

    Returns:
        Rewards (n,), next states (n, m), and whether the episode ends there (n,).
    """
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
    """The best plausible reward, and the plausible next state that the control chooses."""
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
        # The argument of the square root is never 0, so its derivative is always finite.
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
    # The sides of the smallest box around the ellipsoid are the norms of the rows of its root.
    return rewards, prediction.state + jnp.linalg.norm(
        prediction.root, axis=2
    ) * hallucinated_control
