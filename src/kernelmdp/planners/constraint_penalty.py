"""A price of coming near to a limit, so that searches find plans that keep the constraints."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.mdp.constraints import Constraint, Violation
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.model import Model, Prediction
from kernelmdp.numerics.modules import Module, jit, replace_fields

#: Points at which the sizes of rewards and constraints are measured.
PROBES = 512


class ConstraintPenalty(Module):
    """A model whose rewards are lower where the next state is near to a limit, or beyond it.

    With u = max(0, g/width + margin) for each constraint g ≤ 0, a step costs price·(√(1 + u²) − 1).
    This grows with the square of small u and linearly with large u. It is convex, because the local
    search uses second derivatives.

    Attributes:
        model: The model.
        violation: The constraints.
        price: The factor of ln(1 + u²), a scalar.
        widths: A width for each constraint, (c,).
        margin: The number of widths before a limit at which the price begins.
    """

    model: Model
    violation: Violation
    price: Float[Array, ""]
    widths: Float[Array, " c"]
    margin: Float[Array, ""]

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        prediction = self.model(points)
        states, actions = (
            points[:, : self.violation.dimension],
            points[:, self.violation.dimension :],
        )
        cost = jnp.zeros(points.shape[0])
        for j, constraint in enumerate(self.violation.constraints):
            rows = states if constraint.on_actions else prediction.state
            values = constraint.values(rows, actions if constraint.on_actions else None)
            excess = jnp.maximum(values / self.widths[j] + self.margin, 0.0)
            cost = cost + jnp.sqrt(1.0 + excess**2) - 1.0
        return prediction._replace(reward=prediction.reward - self.price * cost)


def with_penalty(
    mdp: MDP,
    violation: Violation,
    *,
    penalty: float,
    margin: float,
    least: float,
    at_visited: bool = False,
) -> MDP:
    """Lower the rewards of an MDP near its constraints.

    Args:
        mdp: The MDP or family.
        violation: The constraints.
        penalty: The price of one width, in standard deviations of the mean reward over the space.
        margin: The number of widths before a limit at which the price begins. A width is the
            standard deviation of the constraint by the noise of one step.
        least: The least width, as a share of the constraint's median distance from the limit.
        at_visited: Whether sizes are measured at visited states, if there are any, and not all over
            the state space. Provisional bounds are far beyond any state.

    Returns:
        The MDP with lower rewards.
    """
    visited = mdp.visited if at_visited else None
    rows = jnp.asarray(mdp.states.spread_points(PROBES) if visited is None else visited, float)
    actions = jnp.asarray(mdp.actions.spread_points(PROBES), float)
    actions = jnp.asarray(np.resize(np.asarray(actions), (rows.shape[0], actions.shape[1])))
    deviations = mdp.noise_deviations
    price, widths = _sizes(mdp.model, violation, rows, actions, deviations, jnp.asarray(least))
    model = ConstraintPenalty(
        mdp.model, violation, penalty * price, widths, jnp.asarray(float(margin))
    )
    return replace_fields(mdp, model=model, reward_range=(-jnp.inf, mdp.reward_range[1]))


@jit
def _sizes(
    model: Model,
    violation: Violation,
    rows: Float[Array, "n m"],
    actions: Float[Array, "n q"],
    deviations: Float[Array, " m"],
    least: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, " c"]]:
    """The standard deviation of mean rewards, and the width of each constraint."""
    rewards = model(jnp.concatenate([rows, actions], axis=1)).reward
    widths = []
    for constraint in violation.constraints:

        def total(states: Array, each: Constraint = constraint) -> tuple[Array, Array]:
            values = each.values(states, actions if each.on_actions else None)
            return jnp.sum(values), values

        slopes, values = jax.grad(total, has_aux=True)(rows)
        allowed = jnp.where(values <= 0, -values, jnp.nan)
        distance = jnp.nanmedian(jnp.where(jnp.any(values <= 0), allowed, jnp.abs(values)))
        spread = jnp.nanmedian(jnp.linalg.norm(slopes * deviations[None, :], axis=1))
        widths.append(jnp.maximum(spread, least * distance))
    return jnp.nanstd(rewards), jnp.stack(widths)
