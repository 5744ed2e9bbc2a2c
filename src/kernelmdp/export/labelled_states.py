"""States with the actions that a plan chooses there, along simulated episodes.

The plan is asked along whole episodes, because it searches from its decision one period before.
Its labels therefore are those of its own closed loop, also where the network acts (DAgger, Ross et
al. 2011).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from kernelmdp.domains import Domain
from kernelmdp.mdp import MDP, state_action
from kernelmdp.mdp.mdp import step
from kernelmdp.mdp.policy import Policy
from kernelmdp.numerics.modules import matrix_jit
from kernelmdp.planners.mpc import MPC
from kernelmdp.types import Key


class LabelledStates(NamedTuple):
    """States and periods, with the plan's actions.

    Attributes:
        states: The states, (n, m).
        periods: The periods, (n,).
        actions: The plan's actions, (n, q).
    """

    states: Float[np.ndarray, "n m"]
    periods: Int[np.ndarray, " n"]
    actions: Float[np.ndarray, "n q"]


@matrix_jit
def labelled_episodes(
    mdp: MDP,
    expert: Policy,
    student: Policy,
    starts: Float[Array, "n m"],
    follows_student: Bool[Array, " n"],
    perturbations: Float[Array, " n"],
    deviations: Float[Array, " m"],
    key: Key,
    first_plan: tuple[Any, Any] | None,
) -> tuple[Array, Array, Array]:
    """Simulate episodes in which a plan is asked at every state.

    Args:
        mdp: The learned model.
        expert: The plan.
        student: The network.
        starts: The first states, (n, m).
        follows_student: In which episodes the network acts, (n,). In others the plan does.
        perturbations: Size of the disturbances in each episode, as a share of the action space.
        deviations: Standard deviations of further noise of the next state, (m,).
        key: Decides all draws.
        first_plan: From ``best_plan``, the plan with which all episodes begin. None: each has its
            own.

    Returns:
        States (H, n, m), the plan's actions (H, n, q), and which states count (H, n).
    """

    def begin(memory: Any, states: Array, period: Array) -> tuple[Array, Any]:
        def repeat(leaf: Array, like: Array) -> Array:
            return jnp.broadcast_to(leaf[None], like.shape).astype(like.dtype)

        assert first_plan is not None
        action, common = first_plan
        labels = jnp.broadcast_to(action[None], (states.shape[0], *action.shape))
        return labels, jax.tree.map(repeat, common, memory)

    def one_period(carry: tuple, period: Array) -> tuple[tuple, tuple[Array, ...]]:
        states, memory, ended = carry
        step_key, disturb_key, noise_key = jax.random.split(jax.random.fold_in(key, period), 3)
        if first_plan is None:
            labels, memory = expert.decide(memory, states, period)
        else:
            labels, memory = jax.lax.cond(period == 0, begin, expert.decide, memory, states, period)
        chosen = jnp.where(follows_student[:, None], student.actions(states, period), labels)
        actions = disturbed(chosen, mdp.actions, perturbations, key=disturb_key)
        _, _, after = step(mdp, states, actions, key=step_key)
        noise = deviations[None, :] * jax.random.normal(noise_key, states.shape)
        after = mdp.states.nearest(after + noise)
        counted = ~ended
        if mdp.termination is not None:
            ended = ended | mdp.termination(state_action(states, actions), after)
            after = jnp.where(ended[:, None], states, after)
        return (after, memory, ended), (states, labels, counted)

    count = starts.shape[0]
    initial = (starts, expert.reset(count), jnp.zeros(count, bool))
    states, labels, counted = jax.lax.scan(one_period, initial, jnp.arange(mdp.horizon))[1]
    return states, labels, counted


@matrix_jit
def best_plan(expert: MPC, starts: Float[Array, "n m"]) -> tuple[Array, Any]:
    """Plan from several starts, and take the plan with the highest planned return.

    Args:
        expert: The plan.
        starts: The first states, (n, m).

    Returns:
        The first action (q,), and the memory for the next period.
    """
    memory = expert.reset(starts.shape[0])
    actions, values, after = expert.replan(memory, starts, jnp.asarray(0))
    best = jnp.argmax(values)
    return actions[best], jax.tree.map(lambda leaf: leaf[best], after)


def disturbed(
    actions: Float[Array, "n q"], space: Domain, sizes: Float[Array, " n"], *, key: Key
) -> Float[Array, "n q"]:
    """Disturb actions: those of a box by normal noise, finite ones by even draws.

    Args:
        actions: The actions, (n, q).
        space: The action space.
        sizes: Deviation of the noise as a share of the width of the space, or the probability of a
            draw, (n,).
        key: Decides the draws.

    Returns:
        The disturbed actions, in the action space.

    >>> import kernelmdp as km
    >>> disturbed(jnp.ones((2, 1)), km.Box([0.0], [1.0]), jnp.zeros(2), key=jax.random.key(0)).sum()
    Array(2., dtype=float64)
    """
    if space.points is not None:
        draw_key, share_key = jax.random.split(key)
        points = jnp.asarray(space.points)
        draws = points[jax.random.randint(draw_key, actions.shape[:1], 0, len(points))]
        is_drawn = jax.random.uniform(share_key, sizes.shape) < sizes
        return jnp.where(is_drawn[:, None], draws, actions)
    low, high = (jnp.asarray(end) for end in space.bounds)
    noise = jax.random.normal(key, actions.shape)
    return space.nearest(actions + sizes[:, None] * (high - low)[None, :] * noise)
