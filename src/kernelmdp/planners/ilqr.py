"""Iterative linear-quadratic regulation (iLQR): local improvement of a sequence of decisions.

Along the path of the sequence the dynamics are linearised, and the reward is expanded to second
order without its convex part. The best feedback for that problem (Li and Todorov 2004) is then
followed in the true dynamics, for several step lengths and several regularisers at once. The best
of these paths is the next sequence.

Sampling finds a hill, and iLQR climbs it. Where the dynamics are unstable, a sequence without
feedback cannot be improved coordinate by coordinate.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from kernelmdp.planners.proposals import shifted
from kernelmdp.types import ArrayLike

#: From states (n, m) and decisions (n, w) to rewards (n,), next states (n, m), and whether the
#: episode ends there (n,).
Step = Callable[[Array, Array], tuple[Array, Array, Array]]


class Trajectory(NamedTuple):
    """A sequence of decisions with its path.

    Attributes:
        decisions: The decisions, (T, w).
        states: The states before each decision, (T, m).
        earning: Whether each period earns its reward, (T,). After the end of the episode none does.
        total: The sum of the rewards, with the terminal value, a scalar.
        last: The state after the last decision, (m,).
        continues: Whether the episode has not ended there, a scalar.
    """

    decisions: Float[Array, "T w"]
    states: Float[Array, "T m"]
    earning: Bool[Array, " T"]
    total: Float[Array, ""]
    last: Float[Array, " m"]
    continues: Bool[Array, ""]


class TrackedPath(NamedTuple):
    """A planned path, with feedback laws that follow it from states beside it.

    Attributes:
        states: The states of the path before each decision, (T, m).
        decisions: The decisions, (T, w).
        gain: Changes of the decisions for each unit by which the state leaves the path, for p
            feedback laws, (T, p, w, m).
    """

    states: Float[Array, "T m"]
    decisions: Float[Array, "T w"]
    gain: Float[Array, "T p w m"]

    @classmethod
    def without_feedback(
        cls, decisions: Float[Array, "T w"], *, dimension: int, laws: int
    ) -> "TrackedPath":
        """Make a path that is followed by its decisions alone, for the first period.

        Args:
            decisions: The decisions, (T, w).
            dimension: The number of coordinates of a state, m.
            laws: The number of feedback laws, p.

        Returns:
            The path, with gains of zero.
        """
        (steps, width), dtype = decisions.shape, decisions.dtype
        gain = jnp.zeros((steps, laws, width, dimension), dtype)
        return cls(jnp.zeros((steps, dimension), dtype), decisions, gain)

    def next_period(self) -> "TrackedPath":
        """Drop the first period. The last decision is repeated, without feedback.

        Returns:
            The path of the next period.
        """
        gain = jnp.concatenate([self.gain[1:], jnp.zeros_like(self.gain[:1])])
        return TrackedPath(shifted(self.states), shifted(self.decisions), gain)


class Feedback(NamedTuple):
    """Changes of the decisions of a path, for k feedback laws.

    Attributes:
        feedforward: Changes that do not depend on the state, (k, T, w).
        gain: Changes for each unit by which the state leaves the path, (k, T, w, m).
    """

    feedforward: Float[Array, "k T w"]
    gain: Float[Array, "k T w m"]


class TrajectoryDerivatives(NamedTuple):
    """Derivatives along a path by z = (state, decision).

    Attributes:
        reward: First derivatives of the reward, (T, z).
        curvature: Second derivatives of the reward without their convex part, (T, z, z).
        transition: First derivatives of the next state, (T, m, z).
    """

    reward: Float[Array, "T z"]
    curvature: Float[Array, "T z z"]
    transition: Float[Array, "T m z"]


def ilqr_refine(
    step: Step,
    start: Float[Array, " m"],
    decisions: Float[Array, "T w"],
    *,
    low: Float[Array, " w"],
    high: Float[Array, " w"],
    scale: Float[Array, " w"],
    active: Bool[Array, " T"],
    difference: Callable[[Array, Array], Array],
    iterations: ArrayLike,
    previous: TrackedPath,
    regularisers: tuple[float, ...] = (1e-6, 1e-3, 0.1, 3.0),
    step_lengths: tuple[float, ...] = (1.0, 0.4, 0.1),
    terminal_value: Callable[[Array], Array] | None = None,
) -> tuple[TrackedPath, Float[Array, ""]]:
    """Improve a sequence of decisions. No iteration makes it worse.

    The path of the period before is tried too, with its feedback. Where the motion is unstable, a
    small disturbance makes its decisions useless without feedback.

    Args:
        step: The dynamics and the reward, without noise.
        start: The first state, (m,).
        decisions: The sequence, (T, w).
        low: Lower bounds of a decision, (w,).
        high: Upper bounds of a decision, (w,).
        scale: The size of a large change of a decision, (w,).
        active: Which periods belong to the episode, (T,). Others earn nothing.
        difference: Subtracts states, also across the border of periodic axes.
        iterations: The number of iterations, which may be traced.
        previous: The path from the period before, or one without gains.
        regularisers: Penalties on changes of the decisions, in units of the mean reward for a
            large change.
        step_lengths: Step lengths that are tried with each regulariser.
        terminal_value: The value of states (n, m) after the last period. None: it is 0.

    Returns:
        The improved sequence with its path and feedback, and the sum of its rewards.
    """
    rollouts = jnp.asarray(iterations) + 1
    m, count = start.shape[0], len(regularisers) * len(step_lengths)

    def best_rollout(path: Trajectory, feedback: Feedback) -> Trajectory:
        """The best of the paths with each of the feedback laws."""

        def advance(carry: tuple[Array, Array, Array], row: tuple[PyTree, ...]) -> tuple[Any, Any]:
            states, total, ended = carry
            path_state, decision, feedforward, gain, is_active = row
            change = feedforward + jnp.einsum(
                "kij,kj->ki", gain, difference(states, path_state[None])
            )
            changed_decision = jnp.clip(decision[None] + change, low[None], high[None])
            rewards, after, ends = step(states, changed_decision)
            earning = is_active & ~ended
            total = total + jnp.where(earning, rewards, 0.0)
            return (after, total, ended | ends), (changed_decision, states, earning)

        states = jnp.broadcast_to(start[None], (count, m))
        initial = (states, jnp.zeros(count, start.dtype), jnp.zeros(count, bool))
        feedback_rows = (jnp.moveaxis(part, 0, 1) for part in feedback)
        rows = (path.states, path.decisions, *feedback_rows, active)
        (last, totals, ended), path_rows = jax.lax.scan(advance, initial, rows)
        changed_decisions, states, earning = path_rows
        if terminal_value is not None:
            totals = totals + jnp.where(ended, 0.0, terminal_value(last))
        totals = jnp.where(jnp.isnan(totals), -jnp.inf, totals)
        best = jnp.argmax(totals)
        return Trajectory(
            changed_decisions[:, best],
            states[:, best],
            earning[:, best],
            totals[best],
            last[best],
            ~ended[best],
        )

    def best_feedback(path: Trajectory) -> Feedback:
        rewards, derivatives = _derivatives(step, path)
        unit = (jnp.mean(jnp.abs(rewards)) + 1e-9) / jnp.max(scale) ** 2
        feedback = _best_feedback(
            derivatives,
            path,
            _terminal_derivatives(terminal_value, path),
            low,
            high,
            unit * jnp.array(regularisers),
        )
        return _with_step_lengths(feedback, step_lengths)

    def improve(carry: tuple[Array, Trajectory, Feedback]) -> tuple[Array, Trajectory, Feedback]:
        number, path, feedback = carry
        candidate = best_rollout(path, feedback)
        is_better = candidate.total > path.total
        path = jax.tree.map(lambda new, old: jnp.where(is_better, new, old), candidate, path)
        # A path that is not better would be followed by the same feedback and the same rollouts.
        number = jnp.where(is_better, number + 1, rollouts)
        # After the last rollout nothing follows a feedback.
        return (
            number,
            path,
            jax.lax.cond(number < rollouts, best_feedback, lambda _: feedback, path),
        )

    # The first rollouts are the given sequence and the previous path with each of its gains. They
    # are part of the loop, so that the dynamics are compiled once for all rollouts.
    given = decisions - previous.decisions
    gains = jnp.moveaxis(previous.gain, 1, 0)[: count - 1]
    first = Feedback(
        jnp.zeros((count, *given.shape), given.dtype).at[0].set(given),
        jnp.zeros((count, *gains.shape[1:]), gains.dtype).at[1 : 1 + gains.shape[0]].set(gains),
    )
    nothing = Trajectory(
        previous.decisions,
        previous.states,
        active,
        jnp.asarray(-jnp.inf),
        start,
        jnp.asarray(True),
    )
    _, path, feedback = jax.lax.while_loop(
        lambda carry: carry[0] < rollouts, improve, (jnp.zeros_like(rollouts), nothing, first)
    )
    gain = jnp.moveaxis(feedback.gain[:: len(step_lengths)], 0, 1)
    return TrackedPath(path.states, path.decisions, gain), path.total


def _derivatives(step: Step, path: Trajectory) -> tuple[Array, TrajectoryDerivatives]:
    """Rewards of all periods, and derivatives, along all directions of z at once.

    Periods that earn nothing have reward 0. Second derivatives are taken of the reward alone. All
    directions share the values at the points, which cost more than their derivatives.
    """
    m = path.states.shape[1]
    points = jnp.concatenate([path.states, path.decisions], axis=1)

    def total(z: Array) -> tuple[Array, Array]:
        rewards = jnp.where(path.earning, step(z[:, :m], z[:, m:])[0], 0.0)
        return jnp.sum(rewards), rewards

    def along(direction: Array) -> tuple[tuple[Array, Array], Array, Array]:
        tangent = jnp.broadcast_to(direction[None, :], points.shape)
        reward_derivatives, (curvature, _) = jax.jvp(
            jax.grad(total, has_aux=True), (points,), (tangent,)
        )
        _, transition = jax.jvp(lambda z: step(z[:, :m], z[:, m:])[1], (points,), (tangent,))
        return reward_derivatives, curvature, transition

    (gradient, rewards), curvatures, transitions = jax.vmap(along, out_axes=(None, 2, 2))(
        jnp.eye(points.shape[1], dtype=points.dtype)
    )
    return rewards, TrajectoryDerivatives(gradient, _concave_part(curvatures), transitions)


def _terminal_derivatives(
    terminal_value: Callable[[Array], Array] | None, path: Trajectory
) -> tuple[Float[Array, " m"], Float[Array, "m m"]]:
    """First derivatives of the terminal value, and second ones without their convex part."""
    m, dtype = path.last.shape[0], path.last.dtype
    if terminal_value is None:
        return jnp.zeros(m, dtype), jnp.zeros((m, m), dtype)

    def value(state: Array) -> Array:
        return jnp.where(path.continues, terminal_value(state[None])[0], 0.0)

    slope, curvature = jax.grad(value)(path.last), jax.hessian(value)(path.last)
    return slope, _concave_part(curvature)


def _concave_part(curvature: Float[Array, "*n z z"]) -> Float[Array, "*n z z"]:
    eigenvalues, axes = jnp.linalg.eigh((curvature + jnp.swapaxes(curvature, -1, -2)) / 2)
    return jnp.einsum("...ij,...j,...kj->...ik", axes, jnp.minimum(eigenvalues, 0.0), axes)


def _best_feedback(
    derivatives: TrajectoryDerivatives,
    path: Trajectory,
    terminal: tuple[Float[Array, " m"], Float[Array, "m m"]],
    low: Array,
    high: Array,
    regularisers: Float[Array, " p"],
) -> Feedback:
    """Backward pass of the linear-quadratic problem, for each regulariser.

    A decision at its bound whose gradient points outwards stays there.
    """
    m = path.states.shape[1]

    def backward(carry: tuple[Array, Array], row: tuple[PyTree, ...]) -> tuple[Any, Feedback]:
        slope, value_hessian = carry  # of the value of the next state: (p, m), (p, m, m)
        reward, curvature, transition, decision = row
        q = reward[None] + slope @ transition
        q_hessian = curvature[None] + jnp.einsum(
            "ia,pij,jb->pab", transition, value_hessian, transition
        )
        q_x, q_u = q[:, :m], q[:, m:]
        h_xx, h_ux, h_uu = q_hessian[:, :m, :m], q_hessian[:, m:, :m], q_hessian[:, m:, m:]
        stays = (decision >= high)[None] & (q_u > 0) | (decision <= low)[None] & (q_u < 0)
        free = jnp.where(stays, 0.0, 1.0)
        free_pairs = free[:, :, None] * free[:, None, :]
        eigenvalues, axes = jnp.linalg.eigh(-h_uu * free_pairs)
        inverse = jnp.einsum(
            "pij,pj,pkj->pik", axes, 1 / (jnp.abs(eigenvalues) + regularisers[:, None]), axes
        )
        inverse = inverse * free_pairs
        feedforward = jnp.einsum("pij,pj->pi", inverse, q_u)
        gain = inverse @ h_ux
        gain_transposed = jnp.swapaxes(gain, 1, 2)
        residual = jnp.einsum("pij,pj->pi", h_uu, feedforward) + q_u
        slope = q_x + jnp.einsum("pij,pi->pj", gain, residual)
        slope = slope + jnp.einsum("pij,pi->pj", h_ux, feedforward)
        value_hessian = (
            h_xx
            + gain_transposed @ h_uu @ gain
            + gain_transposed @ h_ux
            + jnp.swapaxes(h_ux, 1, 2) @ gain
        )
        return (
            (slope, (value_hessian + jnp.swapaxes(value_hessian, 1, 2)) / 2),
            Feedback(feedforward, gain),
        )

    last = jax.tree.map(
        lambda part: jnp.broadcast_to(part[None], (regularisers.shape[0], *part.shape)), terminal
    )
    _, feedback = jax.lax.scan(backward, last, (*derivatives, path.decisions), reverse=True)
    return jax.tree.map(lambda part: jnp.moveaxis(part, 1, 0), feedback)


def _with_step_lengths(feedback: Feedback, step_lengths: tuple[float, ...]) -> Feedback:
    """Each feedback law with every step length. A law that is not finite changes nothing."""
    count = len(step_lengths)
    lengths = jnp.tile(jnp.array(step_lengths), feedback.feedforward.shape[0])
    feedforward, gain = (jnp.repeat(part, count, axis=0) for part in feedback)
    finite = jnp.all(jnp.isfinite(feedforward), axis=(1, 2)) & jnp.all(
        jnp.isfinite(gain), axis=(1, 2, 3)
    )
    return Feedback(
        jnp.where(finite[:, None, None], feedforward * lengths[:, None, None], 0.0),
        jnp.where(finite[:, None, None, None], gain, 0.0),
    )
