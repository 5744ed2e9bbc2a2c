"""Models that wrap a model: clipped rewards, other units, termination, inflated draws."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelmdp.confidence import Beliefs
from kernelmdp.mdp import Model, Prediction, state_action
from kernelmdp.numerics.modules import Module


class ClippedReward(Model):
    """A model whose rewards are clipped to an interval.

    Attributes:
        model: The model.
        low: The lowest reward.
        high: The highest reward.
    """

    model: Model
    low: Float[Array, ""]
    high: Float[Array, ""]

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        prediction = self.model(points)
        low, high = (bound.astype(points.dtype) for bound in (self.low, self.high))
        if prediction.reward_width is None:
            return prediction._replace(reward=jnp.clip(prediction.reward, low, high))
        lower = jnp.clip(prediction.reward - prediction.reward_width, low, high)
        upper = jnp.clip(prediction.reward + prediction.reward_width, low, high)
        return prediction._replace(reward=(lower + upper) / 2, reward_width=(upper - lower) / 2)


class PessimisticReward(Model):
    """A model whose rewards are lower by some standard deviations of the reward's posterior.

    Attributes:
        model: The model.
        beliefs: Posteriors of reward and transition.
        deviations: The number of standard deviations.
    """

    model: Model
    beliefs: Beliefs
    deviations: Float[Array, ""]

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        prediction = self.model(points)
        deviation = self.beliefs.predict_reward(points)[1].astype(points.dtype)
        penalty = self.deviations.astype(points.dtype) * deviation
        return prediction._replace(reward=prediction.reward - penalty)


class BonusReward(Model):
    """A model whose rewards are higher where it is uncertain: R(z) + ‖(λ_P σ_P(z), λ_R σ_R(z))‖.

    Attributes:
        model: The model.
        beliefs: Posteriors of reward and transition.
        transition_weight: λ_P, in units of the reward over those of the beliefs' scale.
        reward_weight: λ_R.
    """

    model: Model
    beliefs: Beliefs
    transition_weight: Float[Array, ""]
    reward_weight: Float[Array, ""]

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        prediction = self.model(points)
        state_part = self.transition_weight * self.beliefs.predict_state(points)[1]
        reward_part = self.reward_weight * self.beliefs.predict_reward(points)[1]
        square = jnp.sum(state_part**2, axis=1) + reward_part**2
        # Planners sample the bonus, and follow the slope of the reward alone: second derivatives
        # of deviations take four times as long as all the rest of a decision.
        bonus = jax.lax.stop_gradient(jnp.sqrt(square)).astype(points.dtype)
        return prediction._replace(reward=prediction.reward + bonus)


class CentredReward(Model):
    """A model whose rewards are a little lower near limits, and lower still beyond them.

    Where all steps earn the same, all plans that last to their horizon are equal. One that stays
    away from survival limits can last longest after it. Along a coordinate on which the motion does
    not depend, plans would drift. Where it has no limit yet, the ends of what was visited stand for
    it: nothing is gained beyond, and a track may end there. In the inner half between the limits
    all states are equal, because limits are not known exactly. A pole that is held a little off its
    balance drives its cart away.

    Attributes:
        model: The model.
        low: Lower limits of the coordinates; −∞ where there is none.
        high: Upper limits.
        loss: What a step at a limit loses.
    """

    model: Model
    low: Float[Array, " m"]
    high: Float[Array, " m"]
    loss: Float[Array, ""]

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        prediction = self.model(points)
        states = points[:, : self.low.shape[0]].astype(self.low.dtype)
        distances = jnp.abs(_between_limits(states, self.low, self.high))
        loss = self.loss * jnp.sum(jnp.maximum(2 * distances - 1, 0.0) ** 2, axis=1)
        return prediction._replace(reward=prediction.reward - loss.astype(points.dtype))


class RescaledModel(Model):
    """A model whose balls in units of ``scale`` become ellipsoids in units of the state.

    The metric of the MDP can then stay 1 while the scale changes with the data.

    Attributes:
        model: The model.
        scale: The unit of each coordinate of the state.
    """

    model: Model
    scale: Float[Array, " m"]

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        prediction = self.model(points)
        if prediction.radius is None:
            return prediction
        axes = jnp.diag(self.scale.astype(points.dtype))
        return prediction._replace(radius=None, root=prediction.radius[:, None, None] * axes[None])


class TerminationModel(Module):
    """Predicts whether an episode ends in a state.

    The prediction is a regression, which is 0 far from all data. If termination costs, it is on 1
    where episodes continued and 0 where they ended. A plan can therefore not pass a terminal region
    through unseen states. If termination is a goal, it is the reverse: a plan does not take unseen
    states for the goal. An episode is also predicted to end beyond limits of coordinates that
    explain earlier ends.

    Attributes:
        regression: A function of points (n, d).
        action: The action at which the regression is evaluated. Its value does not matter.
        threshold: What plans hope for is predicted where the regression is at least this value.
        low: Lower limits of the coordinates; −∞ where there is none.
        high: Upper limits.
        is_goal: Whether plans hope for termination. Otherwise they hope that episodes continue.
    """

    regression: Callable[..., Any]
    action: Float[Array, " q"]
    threshold: Float[Array, ""]
    low: Float[Array, " m"]
    high: Float[Array, " m"]
    is_goal: bool = eqx.field(static=True, default=False)

    @property
    def limits(self) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
        """Lower and upper limits of the coordinates; infinite where there is none."""
        return self.low, self.high

    def __call__(
        self, points: Float[Array, "n d"], after: Float[Array, "n m"]
    ) -> Bool[Array, " n"]:
        actions = jnp.broadcast_to(self.action[None, :], (after.shape[0], self.action.shape[0]))
        share = self.regression(state_action(after, actions.astype(after.dtype)))
        hoped_for = jnp.reshape(share, after.shape[:1]) >= self.threshold
        low, high = (bound.astype(after.dtype)[None, :] for bound in (self.low, self.high))
        beyond = (after < low) | (after > high)
        return (hoped_for if self.is_goal else ~hoped_for) | jnp.any(beyond, axis=1)


class NearnessToLimits(Module):
    """How near states are to limits of their coordinates.

    It is the sum of squares of coordinates that are −1 and 1 at their limits. Coordinates without
    limits do not count.

    Attributes:
        low: Lower limits of the coordinates; −∞ where there is none.
        high: Upper limits.

    >>> nearness = NearnessToLimits(jnp.array([-1.0, -jnp.inf]), jnp.array([3.0, jnp.inf]))
    >>> nearness(None, jnp.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])).tolist()
    [0.0, 0.25, 1.0]
    """

    low: Float[Array, " m"]
    high: Float[Array, " m"]

    def __call__(
        self, points: Float[Array, "n d"] | None, after: Float[Array, "n m"]
    ) -> Float[Array, " n"]:
        shares = _between_limits(after, self.low, self.high)
        return jnp.sum(shares**2, axis=1).astype(after.dtype)


def _between_limits(
    states: Float[Array, "n m"], low: Float[Array, " m"], high: Float[Array, " m"]
) -> Float[Array, "n m"]:
    """Coordinates that are −1 and 1 at their limits; 0 where a limit is infinite."""
    limited = jnp.isfinite(low) & jnp.isfinite(high)
    low, high = jnp.where(limited, low, -1.0), jnp.where(limited, high, 1.0)
    shares = (2 * states - (low + high)[None, :]) / (high - low)[None, :]
    return jnp.where(limited[None, :], shares, 0.0)


class InflatedSample(Model):
    """mean + factor·(draw − mean). Where nothing is uncertain, as for a known reward, the mean.

    Attributes:
        draw: The drawn model.
        mean: The posterior mean.
        factor: By how much deviations from the mean are multiplied.
    """

    draw: Model
    mean: Model
    factor: Float[Array, ""]

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        drawn, mean = self.draw(points), self.mean(points)
        return Prediction(
            reward=mean.reward + self.factor * (drawn.reward - mean.reward),
            state=mean.state + self.factor * (drawn.state - mean.state),
        )
