"""Iterative linear-quadratic regulation: a sequence of decisions moved to the top of its hill.

Along the path of the sequence the motion is taken for linear and the reward for quadratic, with the
part of its curvature that points up left out; the best feedback for that problem (Li and Todorov
2004) is followed in the true one, for several lengths of step and several prices of change at once,
and the best of these paths is the next sequence. Sampling finds the hill, this climbs it: where
motion is unstable a sequence without feedback cannot be improved coordinate by coordinate.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from kernelmdp.types import ArrayLike

#: Rewards (n,), next states (n, m) and whether they are the last (n,), of states and decisions.
Step = Callable[[Array, Array], tuple[Array, Array, Array]]


class Trajectory(NamedTuple):
    """A sequence, where it leads, in which periods it earns, and how much in all."""

    decisions: Float[Array, "T w"]
    states: Float[Array, "T m"]
    earning: Bool[Array, " T"]
    total: Float[Array, ""]


class Feedback(NamedTuple):
    """Changes of decisions: some anyway, some for each change of the state."""

    anyway: Float[Array, "k T w"]
    by_state: Float[Array, "k T w m"]


class TrajectoryDerivatives(NamedTuple):
    """Derivatives along a path by z = (state, decision)."""

    reward: Float[Array, "T z"]
    curvature: Float[Array, "T z z"]
    motion: Float[Array, "T m z"]


def ilqr_refine(
    step: Step,
    start: Float[Array, " m"],
    decisions: Float[Array, "T w"],
    *,
    low: Float[Array, " w"],
    high: Float[Array, " w"],
    scale: Float[Array, " w"],
    live: Bool[Array, " T"],
    difference: Callable[[Array, Array], Array],
    iterations: ArrayLike,
    prices: tuple[float, ...] = (1e-6, 1e-3, 0.1, 3.0),
    lengths: tuple[float, ...] = (1.0, 0.4, 0.1),
) -> Float[Array, "T w"]:
    """The sequence after so many improvements, each at least as good as the one before.

    ``scale`` is what a large change of a decision is, ``live`` says which periods count,
    ``difference`` subtracts states. ``prices`` of change are in units of the mean reward for a
    large change of a decision; with each of them steps of all ``lengths`` are tried.
    """
    steps, width = decisions.shape
    m = start.shape[0]

    def followed(path: Trajectory, feedback: Feedback) -> Trajectory:
        """The best of the paths with each of the feedbacks."""
        count = feedback.anyway.shape[0]

        def one(carry: tuple[Array, Array, Array], now: tuple[PyTree, ...]) -> tuple[Any, Any]:
            here, total, over = carry
            state, decision, anyway, by_state, counts = now
            change = anyway + jnp.einsum("kij,kj->ki", by_state, difference(here, state[None]))
            taken = jnp.clip(decision[None] + change, low[None], high[None])
            rewards, after, ends = step(here, taken)
            earning = counts & ~over
            total = total + jnp.where(earning, rewards, 0.0)
            return (after, total, over | ends), (taken, here, earning)

        here = jnp.broadcast_to(start[None], (count, m))
        begin = (here, jnp.zeros(count, start.dtype), jnp.zeros(count, bool))
        orders = (jnp.moveaxis(part, 0, 1) for part in feedback)
        now = (path.states, path.decisions, *orders, live)
        (_, totals, _), (taken, states, earning) = jax.lax.scan(one, begin, now)
        totals = jnp.where(jnp.isnan(totals), -jnp.inf, totals)
        best = jnp.argmax(totals)
        return Trajectory(taken[:, best], states[:, best], earning[:, best], totals[best])

    def improved(_: ArrayLike, path: Trajectory) -> Trajectory:
        slopes = _slopes(step, path)
        rewards = jnp.where(path.earning, step(path.states, path.decisions)[0], 0.0)
        unit = (jnp.mean(jnp.abs(rewards)) + 1e-9) / jnp.max(scale) ** 2
        feedback = _best_feedback(slopes, path, low, high, unit * jnp.array(prices))
        found = followed(path, _in_lengths(feedback, lengths))
        return jax.tree.map(
            lambda new, old: jnp.where(found.total > path.total, new, old), found, path
        )

    nothing = Feedback(jnp.zeros((1, steps, width)), jnp.zeros((1, steps, width, m)))
    path = Trajectory(decisions, jnp.zeros((steps, m)), live, jnp.asarray(-jnp.inf))
    return jax.lax.fori_loop(0, iterations, improved, followed(path, nothing)).decisions


def _slopes(step: Step, path: Trajectory) -> TrajectoryDerivatives:
    """One direction at a time for all periods at once; periods that earn nothing have no reward."""
    m = path.states.shape[1]
    points = jnp.concatenate([path.states, path.decisions], axis=1)

    def reward(z: Array) -> Array:
        return jnp.sum(jnp.where(path.earning, step(z[:, :m], z[:, m:])[0], 0.0))

    def along(direction: Array) -> tuple[Array, Array]:
        tangent = jnp.broadcast_to(direction[None, :], points.shape)
        bend = jax.jvp(jax.grad(reward), (points,), (tangent,))[1]
        return bend, jax.jvp(lambda z: step(z[:, :m], z[:, m:])[1], (points,), (tangent,))[1]

    bends, motions = jax.lax.map(along, jnp.eye(points.shape[1], dtype=points.dtype))
    bend = jnp.moveaxis(bends, 0, 2)
    sizes, axes = jnp.linalg.eigh((bend + jnp.swapaxes(bend, 1, 2)) / 2)
    down = jnp.einsum("tij,tj,tkj->tik", axes, jnp.minimum(sizes, 0.0), axes)
    return TrajectoryDerivatives(jax.grad(reward)(points), down, jnp.moveaxis(motions, 0, 2))


def _best_feedback(
    slopes: TrajectoryDerivatives,
    path: Trajectory,
    low: Array,
    high: Array,
    prices: Float[Array, " p"],
) -> Feedback:
    """Backwards through the linear-quadratic problem, for each price of change.

    A decision at its bound that would go beyond it stays.
    """
    m = path.states.shape[1]

    def one(carry: tuple[Array, Array], now: tuple[PyTree, ...]) -> tuple[Any, Feedback]:
        slope, bend = carry  # of the value of the next state: (p, m), (p, m, m)
        reward, curvature, motion, decision = now
        q = reward[None] + slope @ motion
        hill = curvature[None] + jnp.einsum("ia,pij,jb->pab", motion, bend, motion)
        q_x, q_u = q[:, :m], q[:, m:]
        h_xx, h_ux, h_uu = hill[:, :m, :m], hill[:, m:, :m], hill[:, m:, m:]
        stays = (decision >= high)[None] & (q_u > 0) | (decision <= low)[None] & (q_u < 0)
        free = jnp.where(stays, 0.0, 1.0)
        pairs = free[:, :, None] * free[:, None, :]
        sizes, axes = jnp.linalg.eigh(-h_uu * pairs)
        inverse = jnp.einsum("pij,pj,pkj->pik", axes, 1 / (jnp.abs(sizes) + prices[:, None]), axes)
        inverse = inverse * pairs
        anyway = jnp.einsum("pij,pj->pi", inverse, q_u)
        by_state = inverse @ h_ux
        turned = jnp.swapaxes(by_state, 1, 2)
        push = jnp.einsum("pij,pj->pi", h_uu, anyway) + q_u
        slope = q_x + jnp.einsum("pij,pi->pj", by_state, push)
        slope = slope + jnp.einsum("pij,pi->pj", h_ux, anyway)
        bend = h_xx + turned @ h_uu @ by_state + turned @ h_ux + jnp.swapaxes(h_ux, 1, 2) @ by_state
        return (slope, (bend + jnp.swapaxes(bend, 1, 2)) / 2), Feedback(anyway, by_state)

    count = prices.shape[0]
    dtype = path.states.dtype
    begin = (jnp.zeros((count, m), dtype), jnp.zeros((count, m, m), dtype))
    _, found = jax.lax.scan(one, begin, (*slopes, path.decisions), reverse=True)
    return jax.tree.map(lambda part: jnp.moveaxis(part, 1, 0), found)


def _in_lengths(feedback: Feedback, lengths: tuple[float, ...]) -> Feedback:
    """Each with every length of step; one that is not finite changes nothing."""
    count = len(lengths)
    each = jnp.tile(jnp.array(lengths), feedback.anyway.shape[0])
    anyway, by_state = (jnp.repeat(part, count, axis=0) for part in feedback)
    sound = jnp.all(jnp.isfinite(anyway), axis=(1, 2)) & jnp.all(
        jnp.isfinite(by_state), axis=(1, 2, 3)
    )
    return Feedback(
        jnp.where(sound[:, None, None], anyway * each[:, None, None], 0.0),
        jnp.where(sound[:, None, None, None], by_state, 0.0),
    )
