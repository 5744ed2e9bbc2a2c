"""What plans in a fitted model are kept to: rewards near those seen, and the ends of episodes."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelmdp.mdp import Model, Outlook
from kernelmdp.numerics.modules import Module

#: What counts as going on, of 1: of two errors, to take a state for lost costs less.
ALIVE = 0.75


class Ranged(Model):
    """A model whose rewards stay within what has been seen, and as much again on either side."""

    model: Model
    low: Float[Array, ""]
    high: Float[Array, ""]

    def __call__(self, points: Float[Array, "n d"]) -> Outlook:
        outlook = self.model(points)
        low, high = (end.astype(points.dtype) for end in (self.low, self.high))
        if outlook.reward_width is None:
            return outlook._replace(reward=jnp.clip(outlook.reward, low, high))
        least = jnp.clip(outlook.reward - outlook.reward_width, low, high)
        most = jnp.clip(outlook.reward + outlook.reward_width, low, high)
        return outlook._replace(reward=(least + most) / 2, reward_width=(most - least) / 2)


class Ends(Module):
    """Whether an episode ends in a state, by a regression on 1 where it went on and 0 where it
    ended. Far from all that was seen that is 0: what is behind an end is no way out."""

    known: Callable[..., Any]
    action: Float[Array, " q"]  # where ends are regressed; it does not matter

    def __call__(
        self, points: Float[Array, "n d"], after: Float[Array, "n m"]
    ) -> Bool[Array, " n"]:
        actions = jnp.broadcast_to(self.action[None, :], (after.shape[0], self.action.shape[0]))
        found = self.known(jnp.concatenate([after, actions.astype(after.dtype)], axis=1))
        return jnp.reshape(found, after.shape[:1]) < ALIVE
