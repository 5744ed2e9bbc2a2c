"""Confidence sets as sets of whole functions.

Lemma 7 and Proposition 8 bound f − μ in the norm of the RKHS. So the mean reward, and the mean
transition, are each one function in an ellipsoid, and not any choice within β σ(z) at each z.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from jaxtyping import Array, Float

from kernelmdp.confidence.beliefs import Beliefs, MeanTransition
from kernelmdp.gp.ellipsoid import FunctionSet, Weights, function_set
from kernelmdp.mdp import MeanModel
from kernelmdp.mdp.model import FunctionFamily
from kernelmdp.types import ArrayLike


class MemberWeights(NamedTuple):
    """The weights of a member's functions.

    Attributes:
        reward: Those of the mean reward, or None if the reward is known.
        transition: Those of the mean transition, in units of the beliefs' scale.
    """

    reward: Weights | None
    transition: Weights


class JointSets(FunctionFamily):
    """All models whose reward and transition lie in sets of functions.

    Attributes:
        beliefs: The beliefs.
        rewards: The set of the mean reward, or None if the reward is known.
        transitions: That of the mean transition, in units of the beliefs' scale.

    >>> import jax.numpy as jnp
    >>> import kernelmdp as km
    >>> agent = km.GPUCRL("rkhs", confidence="valid", seed=0)
    >>> family = agent.confidence_sets().plausible.whole_functions()
    >>> point = jnp.array([[0.0, 0.0]])
    >>> name = family.best(point, jnp.ones(1), jnp.zeros((1, 1)))  # the largest reward there
    >>> bool(family.member(name)(point).reward[0] > 1.0)
    True
    """

    beliefs: Beliefs
    rewards: FunctionSet | None
    transitions: FunctionSet

    def best(
        self,
        points: Float[Array, "n d"],
        reward_weights: Float[Array, " n"],
        state_weights: Float[Array, "n m"],
    ) -> MemberWeights:
        reward = None if self.rewards is None else self.rewards.extreme(points, reward_weights)
        scaled = state_weights * self.beliefs.scale[None, :]
        return MemberWeights(reward, self.transitions.extreme(points, scaled))

    def member(self, name: MemberWeights) -> MeanModel:
        residual = self.transitions.function(name.transition)
        transition = MeanTransition(residual, self.beliefs.offset, self.beliefs.scale)
        reward: Any = self.beliefs.reward  # a known one can be called
        if self.rewards is not None and name.reward is not None:
            reward = self.rewards.function(name.reward)
        return MeanModel(reward, transition)


def family_of(sets: Sequence[tuple[Beliefs, ArrayLike, ArrayLike]]) -> JointSets:
    """Make the family of whole functions in the intersection of confidence sets.

    The error of compiled kernels is left out. It is ``slack`` in the sets.

    Args:
        sets: Beliefs from the same data for several regularisers, with β of reward and transition.

    Returns:
        The family.

    Raises:
        UnknownPropertyError: If a posterior has no weights.
    """
    beliefs, by_reward, by_transition = zip(*sets, strict=True)
    first: Beliefs = beliefs[0]
    transitions = function_set([each.transition for each in beliefs], by_transition)
    if first.reward_known:
        return JointSets(first, None, transitions)
    rewards: Any = [each.reward for each in beliefs]
    return JointSets(first, function_set(rewards, by_reward), transitions)
