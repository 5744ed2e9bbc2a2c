"""What is known of an unknown MDP: posteriors of its mean reward and mean transition.

Transitions are learned as (outcome − offset) / scale, where the offset is a known guess, usually
"the state stays where it is", and the scale, one number a coordinate, makes increments of
comparable size. A known reward function takes the place of the reward's posterior.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.gp import Posterior
from kernelmdp.gp.means import Mean
from kernelmdp.gp.posterior import advance
from kernelmdp.mdp.model import Known, reward_values
from kernelmdp.numerics.checks import require_finite
from kernelmdp.numerics.modules import Module, changed, jit
from kernelmdp.types import Key


class Transition(Module):
    """Mean next states: offset(z) + scale · residual(z)."""

    residual: Callable[..., Any]
    offset: Mean
    scale: Float[Array, " m"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return self.offset(points) + self.scale[None, :] * self.residual(points)


class Stretched(Module):
    """mean + factor·(draw − mean)."""

    draw: Callable[..., Any]
    mean: Callable[..., Any]
    factor: Float[Array, ""]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n ..."]:
        centre = self.mean(points)
        return centre + self.factor * (self.draw(points) - centre)


class Beliefs(Module):
    """Posteriors after the data seen so far; ``condition`` returns others.

    >>> import kernelmdp as km
    >>> beliefs = km.PSRL("riverswim", seed=0).beliefs  # before any data
    >>> beliefs.reward_known, beliefs.gains
    (False, (0.0, 0.0))
    >>> beliefs.predict_reward(jnp.zeros((1, 2)))[1].shape
    (1,)
    """

    reward: Posterior | Callable[..., Any]
    transition: Posterior
    offset: Mean
    scale: Float[Array, " m"]

    @property
    def reward_known(self) -> bool:
        """Whether the reward is a known function rather than learned."""
        return not isinstance(self.reward, Posterior)

    @property
    def gains(self) -> tuple[float, float]:
        """Information gained so far about reward (0 when known) and transition."""
        reward = self.reward.information_gain if isinstance(self.reward, Posterior) else 0.0
        return reward, self.transition.information_gain

    def condition(self, points: Any, rewards: Any, outcomes: Any) -> "Beliefs":
        """After observing rewards (n,) and raw outcomes (n, m) at points z (n, d)."""
        posteriors = [p for p in (self.reward, self.transition) if isinstance(p, Posterior)]
        if any(p.engine == "exact" for p in posteriors):  # these grow, outside any program
            residuals = _residuals(self.offset, self.scale, points, outcomes)
            reward = self.reward
            if isinstance(reward, Posterior):
                reward = reward.condition(points, rewards)
            return changed(
                self, reward=reward, transition=self.transition.condition(points, residuals)
            )
        for name, data in (("points", points), ("rewards", rewards), ("outcomes", outcomes)):
            require_finite(name, data)
        reward_after, transition_after = _condition(self, points, rewards, outcomes)
        reward = self.reward
        if isinstance(reward, Posterior):
            reward = reward.advanced(*reward_after)
        return changed(self, reward=reward, transition=self.transition.advanced(*transition_after))

    def remember(self, points: Any, *, limit: int, moments: bool = False) -> "Beliefs":
        """Faster at exactly these points, unless that takes more than ``limit`` bytes."""

        def kept(posterior: Posterior) -> Posterior:
            numbers = len(points) * len(posterior.engines) * posterior.rank
            if 8 * numbers > limit:
                return posterior
            return posterior.remember(points, moments=moments)

        reward = self.reward
        reward = kept(reward) if isinstance(reward, Posterior) else reward
        return Beliefs(reward, kept(self.transition), self.offset, self.scale)

    def mean(self) -> Known:
        """The MDP of the posterior means."""
        return self._known(*_mean(self._forget()))

    def sample(self, *, key: Key) -> Known:
        """One MDP drawn from the posterior, the reward and the transition independently."""
        return self._known(*_sample(self._forget(), key))

    def stretched(self, drawn: Known, factor: float) -> Known:
        """The draw with its distance from the posterior mean multiplied."""
        mean, by = self.mean(), jnp.asarray(factor)
        known = drawn.reward if self.reward_known else Stretched(drawn.reward, mean.reward, by)
        return Known(known, Stretched(drawn.transition, mean.transition, by))

    def _forget(self) -> "Beliefs":
        reward = self.reward
        reward = reward.forget() if isinstance(reward, Posterior) else reward
        return changed(self, reward=reward, transition=self.transition.forget())

    def _known(self, reward: Any, residual: Any) -> Known:
        """The MDP with these functions, fast at the points that the posteriors remember."""
        if isinstance(self.reward, Posterior):
            reward = reward.remembering(self.reward.engines)
        else:
            reward = self.reward
        residual = residual.remembering(self.transition.engines)
        return Known(reward, Transition(residual, self.offset, self.scale))

    def predict_reward(self, points: Float[Array, "n d"]) -> tuple[Array, Array]:
        """Mean and standard deviation of the mean reward; the latter 0 when it is known."""
        if isinstance(self.reward, Posterior):
            return self.reward.predict(points)
        values = reward_values(self.reward, points)
        return values, jnp.zeros_like(values)

    def predict_state(self, points: Float[Array, "n d"]) -> tuple[Array, Array]:
        """Mean next states, and standard deviations *in units of the scale*, both (n, m)."""
        mean, std = self.transition.predict(points)
        return self.offset(points) + self.scale[None, :] * mean, std


@jit
def _sample(beliefs: Beliefs, key: Key) -> tuple[Any, Any]:
    reward_key, transition_key = jax.random.split(key)
    reward, transition = beliefs.reward, beliefs.transition
    drawn = reward.sample(key=reward_key) if isinstance(reward, Posterior) else None
    return drawn, transition.sample(key=transition_key)


@jit
def _mean(beliefs: Beliefs) -> tuple[Any, Any]:
    reward, transition = beliefs.reward, beliefs.transition
    expected = reward.mean_function() if isinstance(reward, Posterior) else None
    return expected, transition.mean_function()


@jit
def _condition(beliefs: Beliefs, points: Array, rewards: Array, outcomes: Array) -> Any:
    """Both posteriors in one program."""
    residuals = _residuals(beliefs.offset, beliefs.scale, points, outcomes)
    x, r = (jnp.asarray(a, beliefs.transition.dtype) for a in (points, rewards))
    reward = beliefs.reward
    first = advance(reward, x, r) if isinstance(reward, Posterior) else None
    return first, advance(beliefs.transition, x, residuals)


@jit
def _residuals(offset: Mean, scale: Array, points: Array, outcomes: Array) -> Array:
    points, outcomes = jnp.asarray(points, scale.dtype), jnp.asarray(outcomes, scale.dtype)
    return (outcomes - offset(points)) / scale[None, :]
