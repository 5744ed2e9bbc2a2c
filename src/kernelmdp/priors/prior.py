"""The contract of priors without a closed form: start, learn from an episode, draw an MDP.

The reward and the transition are independent, and so are groups of their outputs. A prior defines
how one group is learned and drawn (``start``, ``update``, ``weights``). Everything else is here.
Nothing is changed in place: ``learn`` returns a new state.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.confidence.beliefs import Beliefs, MeanTransition
from kernelmdp.errors import ArgumentError
from kernelmdp.gp import Posterior
from kernelmdp.mdp import MeanModel, Noise
from kernelmdp.numerics.checks import require_finite
from kernelmdp.priors.diagnostics import Diagnostics, worst_diagnostics
from kernelmdp.priors.weight_space import WeightColumns, WeightSpaceFunction, weight_space_function
from kernelmdp.types import Key


class PriorProblem(NamedTuple):
    """What a prior may use of the problem.

    Attributes:
        beliefs: Gaussian beliefs without data.
        reward_noise: Noise of rewards.
        transition_noise: Noise of transitions, in units of the state.
        noise_floors: Smallest standard deviations of the noise of rewards and scaled residuals.
        norm_reward: A bound of the norm of the reward, or None.
        norm_transition: A bound of the norm of the scaled residuals, or None.

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
    """The state of a prior.

    Attributes:
        beliefs: Gaussian beliefs without data.
        reward: The unknown reward; None if it is known.
        transition: The unknown transition.
        learned: What each group of outputs has learned.

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

    Attributes:
        name: The prior's name in settings.
        exact: Whether draws have exactly the posterior's law, and not only for long chains.

    >>> import kernelmdp as km
    >>> km.priors.UnknownNoise().name
    'unknown-noise'
    """

    name: ClassVar[str]
    exact: ClassVar[bool] = False

    # Methods for subclasses, for one group of columns.

    @abc.abstractmethod
    def start(
        self, columns: WeightColumns, problem: PriorProblem, role: str, *, key: Key
    ) -> tuple[Any, Diagnostics]:
        """Make the state of a group before any data.

        Args:
            columns: The group.
            problem: What the prior may use of the problem.
            role: "reward" or "transition".
            key: Decides everything random.

        Returns:
            The state, and diagnostics of its chains.
        """

    @abc.abstractmethod
    def update(
        self,
        learned: Any,
        features: Float[Array, "h r"],
        targets: Float[Array, "h p"],
        *,
        key: Key,
    ) -> tuple[Any, Diagnostics]:
        """Learn from data of a group.

        Args:
            learned: The state of the group before.
            features: Features of the points, (h, r).
            targets: Observations, (h, p).
            key: Decides everything random.

        Returns:
            The state after the data, and diagnostics of its chains.
        """

    @abc.abstractmethod
    def weights(self, learned: Any, *, key: Key) -> Float[Array, "r p"]:
        """Draw weights ξ of functions from the posterior of a group.

        Args:
            learned: The state of the group.
            key: Decides the draw.

        Returns:
            The weights, (r, p).
        """

    @abc.abstractmethod
    def expected(self, learned: Any) -> Float[Array, "r p"]:
        """Compute the posterior mean of the weights of a group.

        Args:
            learned: The state of the group.

        Returns:
            The mean, (r, p).
        """

    def sizes(self, noise: Noise, dimension: int) -> np.ndarray:
        """Return the size of the noise along each axis.

        Args:
            noise: The noise law.
            dimension: The number of axes.

        Returns:
            The sizes in units of the outcomes.
        """
        return noise.standard_deviations(dimension)

    def posteriors(self, beliefs: Beliefs) -> tuple[Posterior | Callable[..., Any], Posterior]:
        """Return the posteriors whose bases represent the unknown functions.

        Args:
            beliefs: Gaussian beliefs without data.

        Returns:
            The posteriors of reward and transition.
        """
        return beliefs.reward, beliefs.transition

    # Methods for learners.

    def init(self, problem: PriorProblem, *, key: Key) -> tuple[PriorState, Diagnostics]:
        """Make the state before any data.

        Args:
            problem: What the prior may use of the problem.
            key: Decides everything random.

        Returns:
            The state, and diagnostics of its chains.

        Raises:
            ArgumentError: If the prior does not suit the noise.
        """
        beliefs = problem.beliefs
        m = beliefs.scale.shape[0]
        reward_floor, residual_floor = problem.noise_floors
        if problem.transition_noise.categorical:
            raise ArgumentError(
                "prior", "'gaussian' for this noise", repr(problem.transition_noise)
            )
        reward_posterior, transition_posterior = self.posteriors(beliefs)
        reward = None
        if isinstance(reward_posterior, Posterior):
            reward = weight_space_function(
                reward_posterior, np.maximum(self.sizes(problem.reward_noise, 1), reward_floor)
            )
        sizes = self.sizes(problem.transition_noise, m) / np.asarray(beliefs.scale)
        transition = weight_space_function(transition_posterior, np.maximum(sizes, residual_floor))
        groups = [("reward", group) for group in (reward.groups if reward is not None else ())]
        groups += [("transition", group) for group in transition.groups]
        keys = jax.random.split(key, len(groups))
        started = [
            self.start(group, problem, role, key=group_key)
            for (role, group), group_key in zip(groups, keys, strict=True)
        ]
        state = PriorState(beliefs, reward, transition, tuple(learned for learned, _ in started))
        return state, worst_diagnostics(diagnostics for _, diagnostics in started)

    def learn(
        self, state: PriorState, points: Any, rewards: Any, outcomes: Any, *, key: Key
    ) -> tuple[PriorState, Diagnostics]:
        """Learn from an episode.

        Args:
            state: The state before.
            points: z = (s, a), (n, d).
            rewards: (n,).
            outcomes: Next states before projection to the state space, (n, m).
            key: Decides everything random.

        Returns:
            The state after the episode, and diagnostics of its chains.
        """
        for name, data in (("points", points), ("rewards", rewards), ("outcomes", outcomes)):
            require_finite(name, data)
        beliefs = state.beliefs
        x = jnp.asarray(points, beliefs.scale.dtype)
        residuals = (jnp.asarray(outcomes) - beliefs.offset(x)) / beliefs.scale[None, :]
        group_data = []
        for function, values in ((state.reward, rewards), (state.transition, residuals)):
            if function is not None:
                targets = function.targets(x, values)
                pairs = zip(function.groups, targets, strict=True)
                group_data += [(group.features(x), target) for group, target in pairs]
        keys = jax.random.split(key, len(group_data))
        updated = [
            self.update(learned, *data, key=group_key)
            for learned, data, group_key in zip(state.learned, group_data, keys, strict=True)
        ]
        after = state._replace(learned=tuple(learned for learned, _ in updated))
        return after, worst_diagnostics(diagnostics for _, diagnostics in updated)

    def draw(self, state: PriorState, *, key: Key) -> MeanModel:
        """Draw a model from the posterior.

        Args:
            state: What was learned.
            key: Decides the draw.

        Returns:
            The model.
        """
        keys = jax.random.split(key, len(state.learned))
        pairs = zip(state.learned, keys, strict=True)
        weights = [self.weights(learned, key=group_key) for learned, group_key in pairs]
        return _model_of(state, weights, self.exact)

    def mean(self, state: PriorState) -> MeanModel:
        """Return the model of the posterior means.

        Args:
            state: What was learned.

        Returns:
            The model.
        """
        return _model_of(state, [self.expected(learned) for learned in state.learned], True)

    def description(self) -> dict[str, Any]:
        """Describe how to make the prior again.

        Returns:
            Name and settings, as text and numbers.
        """
        fields = dataclasses.asdict(self).items()
        settings = {name: "a function" if callable(value) else value for name, value in fields}
        return {"name": self.name} | settings


def _model_of(state: PriorState, weights: list[Array], exact: bool) -> MeanModel:
    reward: Any = state.beliefs.reward
    count = 0
    if state.reward is not None:
        count = len(state.reward.groups)
        reward = state.reward.function(weights[:count], exact=exact)
    residual = state.transition.function(weights[count:], exact=exact)
    return MeanModel(reward, MeanTransition(residual, state.beliefs.offset, state.beliefs.scale))
