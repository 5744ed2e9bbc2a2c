"""What plans in a fitted model are kept to: rewards near those seen, and the ends of episodes."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelmdp.mdp import Model, Prediction, state_action
from kernelmdp.numerics.modules import Module


class ClippedReward(Model):
    """A model whose rewards stay between two ends."""

    model: Model
    low: Float[Array, ""]
    high: Float[Array, ""]

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        prediction = self.model(points)
        low, high = (end.astype(points.dtype) for end in (self.low, self.high))
        if prediction.reward_width is None:
            return prediction._replace(reward=jnp.clip(prediction.reward, low, high))
        least = jnp.clip(prediction.reward - prediction.reward_width, low, high)
        most = jnp.clip(prediction.reward + prediction.reward_width, low, high)
        return prediction._replace(reward=(least + most) / 2, reward_width=(most - least) / 2)


class RescaledModel(Model):
    """A model whose balls, in units of ``scale``, become ellipsoids in units of the state.

    So the metric of the MDP can stay 1 while the scale changes with the data.
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
    """Whether an episode ends in a state, by a regression on 1 where it went on and 0 where it
    ended. Far from all that was seen that is 0: plans do not look for a way round an end."""

    continuation: Callable[..., Any]
    action: Float[Array, " q"]  # where ends are regressed; it does not matter
    threshold: Float[Array, ""]  # below it an episode is taken to end

    def __call__(
        self, points: Float[Array, "n d"], after: Float[Array, "n m"]
    ) -> Bool[Array, " n"]:
        actions = jnp.broadcast_to(self.action[None, :], (after.shape[0], self.action.shape[0]))
        share = self.continuation(state_action(after, actions.astype(after.dtype)))
        return jnp.reshape(share, after.shape[:1]) < self.threshold
