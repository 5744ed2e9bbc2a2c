"""What is known of an unknown MDP: posteriors of its mean reward and mean transition.

Transitions are learned as (outcome − offset) / scale, where the offset is a known guess, usually
"the state stays where it is", and the scale, one number a coordinate, makes increments of
comparable size. A known reward function takes the place of the reward's posterior.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.gp import Posterior
from kernelmdp.gp.mean_functions import Mean
from kernelmdp.gp.posterior import advance
from kernelmdp.mdp.model import MeanModel, reward_values
from kernelmdp.numerics.checks import require_finite
from kernelmdp.numerics.modules import Module, changed, jit
from kernelmdp.types import ArrayLike, Key


class Transition(Module):
    """Mean next states: offset(z) + scale · residual(z)."""

    residual: Callable[..., Any]
    offset: Mean
    scale: Float[Array, " m"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return self.offset(points) + self.scale[None, :] * self.residual(points)


class KnownReward(Module):
    """A known reward function in the place of a posterior: nothing is learned of it.

    >>> mean, deviation = KnownReward(lambda z: z[:, 0]).predict(jnp.ones((1, 2)))
    >>> float(mean[0]), float(deviation[0])
    (1.0, 0.0)
    """

    #: Whether data change it; a posterior says True.
    learned: ClassVar[bool] = False
    #: How far its kernel is from the one that was asked for.
    error: ClassVar[float] = 0.0
    engine: ClassVar[str] = "known"
    information_gain: ClassVar[float] = 0.0

    function: Callable[..., Any]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, " n"]:
        return reward_values(self.function, points)

    def predict(self, points: Float[Array, "n d"]) -> tuple[Array, Array]:
        """Values, and deviations of 0."""
        values = reward_values(self.function, points)
        return values, jnp.zeros_like(values)


def _as_belief(reward: Any) -> Posterior | KnownReward:
    return reward if isinstance(reward, Posterior | KnownReward) else KnownReward(reward)


class Beliefs(Module):
    """Posteriors after the data seen so far; ``condition`` returns others.

    >>> import kernelmdp as km
    >>> agent = km.PSRL("riverswim", seed=0)
    >>> beliefs = agent.learner.beliefs(agent.state)  # before any data
    >>> beliefs.reward_known, beliefs.gains
    (False, (0.0, 0.0))
    >>> beliefs.predict_reward(jnp.zeros((1, 2)))[1].shape
    (1,)
    """

    reward: Posterior | KnownReward = eqx.field(converter=_as_belief)
    transition: Posterior
    offset: Mean
    scale: Float[Array, " m"]

    @property
    def reward_known(self) -> bool:
        """Whether the reward is a known function rather than learned."""
        return not self.reward.learned

    @property
    def learned(self) -> dict[str, Posterior]:
        """What is learned, by name: "reward", unless it is known, and "transition"."""
        both: dict[str, Any] = {"reward": self.reward, "transition": self.transition}
        return {name: posterior for name, posterior in both.items() if posterior.learned}

    @property
    def gains(self) -> tuple[float, float]:
        """Information gained so far about reward (0 when known) and transition."""
        return self.reward.information_gain, self.transition.information_gain

    def condition(self, points: ArrayLike, rewards: ArrayLike, outcomes: ArrayLike) -> "Beliefs":
        """After observing rewards (n,) and raw outcomes (n, m) at points z (n, d)."""
        learned = self.learned
        if any(posterior.engine == "exact" for posterior in learned.values()):
            # These grow, outside any program.
            targets = {
                "reward": rewards,
                "transition": _residuals(self.offset, self.scale, points, outcomes),
            }
            after = {name: own.condition(points, targets[name]) for name, own in learned.items()}
            return changed(self, **after)
        for name, data in (("points", points), ("rewards", rewards), ("outcomes", outcomes)):
            require_finite(name, data)
        advances = _condition(self, points, rewards, outcomes)
        return changed(self, **{name: learned[name].advanced(*advances[name]) for name in learned})

    def cache_at(self, points: ArrayLike, *, limit: int, moments: bool = False) -> "Beliefs":
        """Faster at exactly these points, unless that takes more than ``limit`` bytes."""

        def kept(posterior: Posterior) -> Posterior:
            numbers = np.shape(points)[0] * len(posterior.engines) * posterior.rank
            if 8 * numbers > limit:
                return posterior
            return posterior.cache_at(points, moments=moments)

        return changed(self, **{name: kept(own) for name, own in self.learned.items()})

    def mean(self) -> MeanModel:
        """The MDP of the posterior means."""
        return self._known(_mean(self._without_cache()))

    def sample(self, *, key: Key) -> MeanModel:
        """One MDP drawn from the posterior, the reward and the transition independently."""
        return self._known(_sample(self._without_cache(), key))

    def _without_cache(self) -> "Beliefs":
        return changed(self, **{name: own.without_cache() for name, own in self.learned.items()})

    def _known(self, functions: dict[str, Any]) -> MeanModel:
        """The MDP with these functions, fast at the points that the posteriors remember."""
        fast = {
            name: functions[name].with_cache_of(own.engines) for name, own in self.learned.items()
        }
        reward: Any = fast.get("reward", getattr(self.reward, "function", None))
        return MeanModel(reward, Transition(fast["transition"], self.offset, self.scale))

    def predict_reward(self, points: Float[Array, "n d"]) -> tuple[Array, Array]:
        """Mean and standard deviation of the mean reward; the latter 0 when it is known."""
        return self.reward.predict(points)

    def predict_state(self, points: Float[Array, "n d"]) -> tuple[Array, Array]:
        """Mean next states, and standard deviations *in units of the scale*, both (n, m)."""
        mean, std = self.transition.predict(points)
        return self.offset(points) + self.scale[None, :] * mean, std


@jit
def _sample(beliefs: Beliefs, key: Key) -> dict[str, Any]:
    keys = dict(zip(("reward", "transition"), jax.random.split(key), strict=True))
    return {name: own.sample(key=keys[name]) for name, own in beliefs.learned.items()}


@jit
def _mean(beliefs: Beliefs) -> dict[str, Any]:
    return {name: own.mean_function() for name, own in beliefs.learned.items()}


@jit
def _condition(beliefs: Beliefs, points: Any, rewards: Any, outcomes: Any) -> dict[str, Any]:
    """Both posteriors in one program."""
    residuals = _residuals(beliefs.offset, beliefs.scale, points, outcomes)
    x, r = (jnp.asarray(a, beliefs.transition.dtype) for a in (points, rewards))
    targets = {"reward": r, "transition": residuals}
    return {name: advance(own, x, targets[name]) for name, own in beliefs.learned.items()}


@jit
def _residuals(offset: Mean, scale: Array, points: Any, outcomes: Any) -> Array:
    points, outcomes = jnp.asarray(points, scale.dtype), jnp.asarray(outcomes, scale.dtype)
    return (outcomes - offset(points)) / scale[None, :]
