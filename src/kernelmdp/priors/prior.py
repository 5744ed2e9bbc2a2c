"""What a prior without a closed form does for PSRL: begin, learn from an episode, draw an MDP.

The reward and the transition are independent, and so are groups of their outputs; a prior says how
one group is learned and drawn (``start``, ``update``, ``weights``), all else is here. Nothing is
changed in place: ``learn`` returns another state, so that an error loses nothing.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.confidence.beliefs import Beliefs, Transition
from kernelmdp.errors import ArgumentError
from kernelmdp.gp import Posterior
from kernelmdp.mdp import MeanModel, Noise
from kernelmdp.numerics.checks import require_finite
from kernelmdp.priors.diagnostics import Diagnostics, worst_diagnostics
from kernelmdp.priors.weight_space import WeightColumns, WeightSpaceFunction, weight_space_function
from kernelmdp.types import Key


class PriorProblem(NamedTuple):
    """What a prior may know of the problem: Gaussian beliefs without data, noise, norm bounds.

    >>> import kernelmdp as km
    >>> agent = km.PSRL("riverswim", seed=0)
    >>> problem = agent.problem
    >>> laws = problem.reward_noise, problem.transition_noise
    >>> PriorProblem(agent.beliefs, *laws).noise_floors
    (0.001, 0.001)
    """

    beliefs: Beliefs
    reward_noise: Noise
    transition_noise: Noise
    noise_floors: tuple[float, float] = (1e-3, 1e-3)
    norm_reward: float | None = None
    norm_transition: float | None = None


class PriorState(NamedTuple):
    """Both unknown functions (None for a known reward) and what each group has learned.

    >>> PriorState._fields
    ('beliefs', 'reward', 'transition', 'learned')
    """

    beliefs: Beliefs
    reward: WeightSpaceFunction | None
    transition: WeightSpaceFunction
    learned: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Prior(abc.ABC):
    """A prior over MDPs. Use one of its subclasses.

    >>> import kernelmdp as km
    >>> km.priors.UnknownNoise().name
    'unknown-noise'
    """

    name: ClassVar[str]
    #: Whether draws have the posterior's law exactly, rather than in the limit of long chains.
    exact: ClassVar[bool] = False

    # What subclasses say, for one group of columns.

    @abc.abstractmethod
    def start(
        self, columns: WeightColumns, setting: PriorProblem, place: str, *, key: Key
    ) -> tuple[Any, Diagnostics]:
        """Before any data; ``place`` is "reward" or "transition"."""

    @abc.abstractmethod
    def update(
        self,
        learned: Any,
        features: Float[Array, "h r"],
        targets: Float[Array, "h p"],
        *,
        key: Key,
    ) -> tuple[Any, Diagnostics]:
        """After seeing targets at points with these features."""

    @abc.abstractmethod
    def weights(self, learned: Any, *, key: Key) -> Float[Array, "r p"]:
        """Weights ξ of functions drawn from the posterior."""

    @abc.abstractmethod
    def expected(self, learned: Any) -> Float[Array, "r p"]:
        """The posterior mean of the weights."""

    def sizes(self, noise: Noise, dimension: int) -> np.ndarray:
        """The size of the noise along each axis, in the units of the outcomes."""
        return noise.standard_deviations(dimension)

    def posteriors(self, beliefs: Beliefs) -> tuple[Posterior | Callable[..., Any], Posterior]:
        """The posteriors whose bases are used."""
        return beliefs.reward, beliefs.transition

    # What agents call.

    def init(self, setting: PriorProblem, *, key: Key) -> tuple[PriorState, Diagnostics]:
        """The state before any data."""
        beliefs = setting.beliefs
        m = beliefs.scale.shape[0]
        reward_floor, residual_floor = setting.noise_floors
        if setting.transition_noise.categorical:
            raise ArgumentError(
                "prior", "'gaussian' for this noise", repr(setting.transition_noise)
            )
        first, second = self.posteriors(beliefs)
        reward = None
        if isinstance(first, Posterior):
            reward = weight_space_function(
                first, np.maximum(self.sizes(setting.reward_noise, 1), reward_floor)
            )
        own = self.sizes(setting.transition_noise, m) / np.asarray(beliefs.scale)
        transition = weight_space_function(second, np.maximum(own, residual_floor))
        groups = [("reward", g) for g in (reward.groups if reward is not None else ())]
        groups += [("transition", g) for g in transition.groups]
        keys = jax.random.split(key, len(groups))
        made = [
            self.start(group, setting, place, key=each)
            for (place, group), each in zip(groups, keys, strict=True)
        ]
        state = PriorState(beliefs, reward, transition, tuple(learned for learned, _ in made))
        return state, worst_diagnostics(found for _, found in made)

    def learn(
        self, state: PriorState, points: Any, rewards: Any, outcomes: Any, *, key: Key
    ) -> tuple[PriorState, Diagnostics]:
        """After an episode: rewards (n,) and raw outcomes (n, m) at points z (n, d)."""
        for name, data in (("points", points), ("rewards", rewards), ("outcomes", outcomes)):
            require_finite(name, data)
        beliefs = state.beliefs
        x = jnp.asarray(points, beliefs.scale.dtype)
        residuals = (jnp.asarray(outcomes) - beliefs.offset(x)) / beliefs.scale[None, :]
        work = []
        for function, values in ((state.reward, rewards), (state.transition, residuals)):
            if function is not None:
                targets = function.targets(x, values)
                work += [(g.features(x), y) for g, y in zip(function.groups, targets, strict=True)]
        keys = jax.random.split(key, len(work))
        done = [
            self.update(learned, *data, key=each)
            for learned, data, each in zip(state.learned, work, keys, strict=True)
        ]
        after = state._replace(learned=tuple(learned for learned, _ in done))
        return after, worst_diagnostics(found for _, found in done)

    def draw(self, state: PriorState, *, key: Key) -> MeanModel:
        """One MDP from the posterior."""
        keys = jax.random.split(key, len(state.learned))
        pairs = zip(state.learned, keys, strict=True)
        return _known(state, [self.weights(own, key=each) for own, each in pairs], self.exact)

    def mean(self, state: PriorState) -> MeanModel:
        """The MDP of the posterior means."""
        return _known(state, [self.expected(own) for own in state.learned], True)

    def description(self) -> dict[str, Any]:
        """How to make the prior again, in plain words and numbers."""
        fields = dataclasses.asdict(self).items()
        return {"name": self.name} | {k: "a function" if callable(v) else v for k, v in fields}


def _known(state: PriorState, weights: list[Array], exact: bool) -> MeanModel:
    reward: Any = state.beliefs.reward
    count = 0
    if state.reward is not None:
        count = len(state.reward.groups)
        reward = state.reward.function(weights[:count], exact=exact)
    residual = state.transition.function(weights[count:], exact=exact)
    return MeanModel(reward, Transition(residual, state.beliefs.offset, state.beliefs.scale))
