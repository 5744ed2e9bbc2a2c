"""Beliefs about an unknown MDP: posteriors of its mean reward and mean transition.

Transitions are learned as (outcome − offset) / scale. The offset is a known guess, usually that the
state does not change. The scale, one number for each coordinate, makes increments comparable. A
known reward function replaces the reward's posterior.
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
from kernelmdp.numerics.modules import Module, jit, quick_jit, replace_fields
from kernelmdp.types import ArrayLike, Key


class MeanTransition(Module):
    """The mean transition offset(z) + scale · residual(z).

    Attributes:
        residual: The learned part, a function of points (n, d) with values (n, m).
        offset: The known part.
        scale: The unit of each coordinate of the state.
    """

    residual: Callable[..., Any]
    offset: Mean
    scale: Float[Array, " m"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return self.offset(points) + self.scale[None, :] * self.residual(points)


class KnownReward(Module):
    """A known reward function in place of a posterior. It has the attributes of a posterior.

    Attributes:
        learned: Whether data change it: False. For a posterior it is True.
        error: The error of its kernel: 0.
        engine: "known".
        information_gain: 0.
        function: The mean reward, a function of points (n, d) with values (n,).

    >>> mean, deviation = KnownReward(lambda z: z[:, 0]).predict(jnp.ones((1, 2)))
    >>> float(mean[0]), float(deviation[0])
    (1.0, 0.0)
    """

    learned: ClassVar[bool] = False
    error: ClassVar[float] = 0.0
    engine: ClassVar[str] = "known"
    information_gain: ClassVar[float] = 0.0

    function: Callable[..., Any]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, " n"]:
        return reward_values(self.function, points)

    def predict(self, points: Float[Array, "n d"]) -> tuple[Array, Array]:
        """Evaluate the reward.

        Args:
            points: z = (s, a), (n, d).

        Returns:
            Values (n,), and standard deviations of 0.
        """
        values = reward_values(self.function, points)
        return values, jnp.zeros_like(values)


def _as_belief(reward: Any) -> Posterior | KnownReward:
    return reward if isinstance(reward, Posterior | KnownReward) else KnownReward(reward)


class Beliefs(Module):
    """Posteriors of reward and transition. ``condition`` returns new ones.

    Attributes:
        reward: The reward's posterior, or the known reward.
        transition: The posterior of the scaled residuals of the transition.
        offset: The known part of the transition.
        scale: The unit of each coordinate of the state.

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
        """The posteriors that are learned: "reward", unless it is known, and "transition"."""
        candidates: dict[str, Any] = {"reward": self.reward, "transition": self.transition}
        return {name: posterior for name, posterior in candidates.items() if posterior.learned}

    @property
    def gains(self) -> tuple[float, float]:
        """Information gained so far about reward (0 when known) and transition."""
        return self.reward.information_gain, self.transition.information_gain

    def condition(self, points: ArrayLike, rewards: ArrayLike, outcomes: ArrayLike) -> "Beliefs":
        """Condition both posteriors on data.

        Args:
            points: z = (s, a), (n, d).
            rewards: Rewards, (n,).
            outcomes: Next states before projection to the state space, (n, m).

        Returns:
            The beliefs after the data.
        """
        learned = self.learned
        if any(posterior.engine == "exact" for posterior in learned.values()):
            # The arrays of an exact posterior grow, which no compiled program can do.
            targets = {
                "reward": rewards,
                "transition": _residuals(self.offset, self.scale, points, outcomes),
            }
            updated = {
                name: posterior.condition(points, targets[name])
                for name, posterior in learned.items()
            }
            return replace_fields(self, **updated)
        for name, data in (("points", points), ("rewards", rewards), ("outcomes", outcomes)):
            require_finite(name, data)
        advances = _condition(self, points, rewards, outcomes)
        return replace_fields(
            self, **{name: learned[name].advanced(*advances[name]) for name in learned}
        )

    def cache_at(self, points: ArrayLike, *, limit: int, moments: bool = False) -> "Beliefs":
        """Cache feature values at points that are evaluated often, such as those of a grid.

        Args:
            points: The points, (n, d).
            limit: Largest size of a cache in bytes. A larger one is not made.
            moments: Whether posterior means and variances are cached too.

        Returns:
            The beliefs, faster at exactly these points.
        """

        def cached(posterior: Posterior) -> Posterior:
            numbers = np.shape(points)[0] * len(posterior.engines) * posterior.rank
            if 8 * numbers > limit:
                return posterior
            return posterior.cache_at(points, moments=moments)

        posteriors = {name: cached(posterior) for name, posterior in self.learned.items()}
        return replace_fields(self, **posteriors)

    def mean(self) -> MeanModel:
        """Return the model of the posterior means.

        Returns:
            The model.
        """
        return self._model_of(_mean(self._without_cache()))

    def sample(self, *, key: Key) -> MeanModel:
        """Draw a model from the posterior, the reward and the transition independently.

        Args:
            key: Decides the draw.

        Returns:
            The model.
        """
        return self._model_of(_sample(self._without_cache(), key))

    def _without_cache(self) -> "Beliefs":
        posteriors = {name: posterior.without_cache() for name, posterior in self.learned.items()}
        return replace_fields(self, **posteriors)

    def _model_of(self, functions: dict[str, Any]) -> MeanModel:
        """The model with these functions, which use the caches of the posteriors."""
        cached = {
            name: functions[name].with_cache_of(posterior.engines)
            for name, posterior in self.learned.items()
        }
        reward: Any = cached.get("reward", getattr(self.reward, "function", None))
        return MeanModel(reward, MeanTransition(cached["transition"], self.offset, self.scale))

    def predict_reward(self, points: Float[Array, "n d"]) -> tuple[Array, Array]:
        """Predict the mean reward.

        Args:
            points: z = (s, a), (n, d).

        Returns:
            Posterior mean and standard deviation, (n,) each. A known reward has deviation 0.
        """
        return self.reward.predict(points)

    def predict_state(self, points: Float[Array, "n d"]) -> tuple[Array, Array]:
        """Predict mean next states.

        Args:
            points: z = (s, a), (n, d).

        Returns:
            Mean next states, and standard deviations in units of ``scale``, (n, m) each.
        """
        mean, std = self.transition.predict(points)
        return self.offset(points) + self.scale[None, :] * mean, std


@quick_jit
def _sample(beliefs: Beliefs, key: Key) -> dict[str, Any]:
    keys = dict(zip(("reward", "transition"), jax.random.split(key), strict=True))
    return {name: learned.sample(key=keys[name]) for name, learned in beliefs.learned.items()}


@quick_jit
def _mean(beliefs: Beliefs) -> dict[str, Any]:
    return {name: learned.mean_function() for name, learned in beliefs.learned.items()}


@jit
def _condition(beliefs: Beliefs, points: Any, rewards: Any, outcomes: Any) -> dict[str, Any]:
    """Advance both posteriors in one compiled program."""
    residuals = _residuals(beliefs.offset, beliefs.scale, points, outcomes)
    x, r = (jnp.asarray(a, beliefs.transition.dtype) for a in (points, rewards))
    targets = {"reward": r, "transition": residuals}
    learned = beliefs.learned
    return {name: advance(posterior, x, targets[name]) for name, posterior in learned.items()}


@jit
def _residuals(offset: Mean, scale: Array, points: Any, outcomes: Any) -> Array:
    points, outcomes = jnp.asarray(points, scale.dtype), jnp.asarray(outcomes, scale.dtype)
    return (outcomes - offset(points)) / scale[None, :]
