"""The learner with fixed kernels (``learner="fixed"``), which the theorems assume."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from kernelmdp.confidence import Beliefs, ConfidenceRule, ConfidenceSets, KnownReward
from kernelmdp.gp import Posterior, posterior
from kernelmdp.gp.engine import Engine
from kernelmdp.gp.mean_functions import ConstantMean, as_mean
from kernelmdp.gp.undrawable_kernels import undrawable_engine_part
from kernelmdp.kernels import Kernel, OutputKernel
from kernelmdp.learners.forgetting import LEAST_WEIGHT, age_weights
from kernelmdp.learners.learner import GAINS, Learner, LearnerRequirements
from kernelmdp.mdp import MDP, Episode, Problem
from kernelmdp.numerics.modules import Module, replace_fields
from kernelmdp.types import Key


class FixedState(Module):
    """The state of ``FixedKernels``.

    Attributes:
        beliefs: Posteriors of reward and transition.
        problem: The problem that is learned.
        prior: The beliefs from episodes whose weight no longer changes, where old episodes are
            forgotten; else None.
        recent: The later episodes there, the newest one last.
    """

    beliefs: Beliefs
    problem: Problem = eqx.field(static=True)
    prior: Beliefs | None = None
    recent: tuple[Episode, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class FixedKernels(Learner):
    """Exact Gaussian process regression with the problem's kernels.

    ``update`` is a pure function of arrays and can be compiled, unless a kernel needs the exact
    engine, whose arrays grow with the data.

    Attributes:
        name: "fixed".
        columns: The information gains.
        forgets: True.
        regularisers: λ_R and λ_P. None means the problem's noise variances.
        accuracy: Error of compiled kernels as a share of λ. None means the problem's value.
        query_points: Points (n, d) at which predictions are cached and kept up to date.
        deviations: Whether standard deviations are cached there too.
        cache_bytes: Largest size of the cache. The default, 1 GiB, leaves room on a small machine.

    >>> import jax, kernelmdp as km
    >>> problem, learner = km.make("riverswim").problem, FixedKernels()
    >>> state = learner.init(problem, key=jax.random.key(0))
    >>> learner.info(state)
    {'gain_reward': 0.0, 'gain_transition': 0.0}
    """

    name: ClassVar[str] = "fixed"
    columns: ClassVar[tuple[str, ...]] = GAINS
    forgets: ClassVar[bool] = True

    regularisers: tuple[float, float | np.ndarray] | None = None
    accuracy: float | None = None
    query_points: np.ndarray | None = dataclasses.field(default=None, repr=False)
    deviations: bool = False
    cache_bytes: int = 2**30

    @classmethod
    def for_problem(cls, problem: Problem, requirements: LearnerRequirements) -> "FixedKernels":
        points = requirements.query_points(problem)
        return cls(
            requirements.regularisers, requirements.accuracy, points, requirements.deviations
        )

    def init(self, problem: Problem, *, key: Key) -> FixedState:
        beliefs = prior_beliefs(problem, self.regularisers, self.accuracy)
        if self.query_points is not None:
            beliefs = beliefs.cache_at(
                self.query_points, limit=self.cache_bytes, moments=self.deviations
            )
        return FixedState(beliefs, problem, beliefs if problem.forgetting else None)

    def update(self, state: FixedState, episode: Episode, *, key: Key) -> FixedState:
        if state.prior is not None:
            return self._forgetting(state, state.prior, (*state.recent, episode))
        targets = state.problem.transition_noise.embed(episode.outcomes)
        after = state.beliefs.condition(episode.points, episode.rewards, targets)
        return replace_fields(state, beliefs=after)

    def _forgetting(
        self, state: FixedState, oldest: Beliefs, episodes: tuple[Episode, ...]
    ) -> FixedState:
        """Learn again from the episodes whose weights still change, or from those in a window."""
        weights = age_weights(np.arange(len(episodes))[::-1], state.problem.forgetting)
        settled = int(np.sum((weights <= LEAST_WEIGHT) & (weights > 0)))
        for episode in episodes[:settled]:
            oldest = _with_weight(state.problem, oldest, episode, LEAST_WEIGHT)
        beliefs = oldest
        recent = episodes[settled:]
        for episode, weight in zip(recent, weights[settled:], strict=True):
            beliefs = _with_weight(state.problem, beliefs, episode, weight)
        if state.problem.forgetting >= 1:  # what leaves the window tells of rewards only
            left = int(np.sum(weights == 0))
            for episode in recent[:left]:
                oldest = _with_weight(state.problem, oldest, episode, 0.0)
            recent = recent[left:]
        return replace_fields(state, beliefs=beliefs, prior=oldest, recent=recent)

    def mean(self, state: FixedState) -> MDP:
        return state.problem.mdp(state.beliefs.mean())

    def undrawable(self, state: FixedState) -> Kernel | None:
        learned = state.beliefs.learned.values()
        return undrawable_engine_part(each for posterior in learned for each in posterior.engines)

    def sample(self, state: FixedState, *, key: Key) -> MDP:
        return state.problem.mdp(state.beliefs.sample(key=key))

    def plausible(
        self, state: FixedState, confidence: ConfidenceRule, *, episode: int
    ) -> tuple[ConfidenceSets, MDP]:
        problem = state.problem
        sets = confidence.sets(
            state.beliefs,
            episode=episode,
            horizon=problem.horizon,
            domain=problem.points,
            reward_noise=problem.reward_noise,
            transition_noise=problem.transition_noise,
        )
        return sets, sets.family(problem.mdp(sets.plausible))

    def saved_arrays(self, state: FixedState) -> dict[str, np.ndarray]:
        engines = _engines(state.beliefs)
        if state.prior is not None:
            return {}
        if not all(engine.changing_arrays() for engine in engines.values()):
            return {}
        return {
            f"{name}_{part}": np.asarray(array)
            for name, engine in engines.items()
            for part, array in engine.changing_arrays().items()
        }

    def restored(
        self, initial: FixedState, episodes: Sequence[Episode], arrays: Mapping[str, np.ndarray]
    ) -> FixedState:
        engines = {
            name: engine.with_arrays(
                {part: arrays[f"{name}_{part}"] for part in engine.changing_arrays()}
            )
            for name, engine in _engines(initial.beliefs).items()
        }
        posteriors = {
            role: replace_fields(
                posterior,
                engines=tuple(engines[f"{role}{i}"] for i in range(len(posterior.engines))),
            )
            for role, posterior in initial.beliefs.learned.items()
        }
        return replace_fields(initial, beliefs=replace_fields(initial.beliefs, **posteriors))

    def info(self, state: FixedState) -> dict[str, float]:
        return dict(zip(GAINS, state.beliefs.gains, strict=True))

    def beliefs(self, state: FixedState) -> Beliefs:
        return state.beliefs


def _with_weight(problem: Problem, beliefs: Beliefs, episode: Episode, weight: float) -> Beliefs:
    """Condition on an episode, whose transitions have a weight. Rewards are not forgotten."""
    targets = problem.transition_noise.embed(episode.outcomes)
    data = episode.points, episode.rewards, targets
    if weight == 0:
        return replace_fields(beliefs, reward=beliefs.condition(*data).reward)
    heavier = replace_fields(beliefs, transition=_with_noise_times(beliefs.transition, 1 / weight))
    after = heavier.condition(*data)
    return replace_fields(after, transition=_with_noise_times(after.transition, weight))


def _with_noise_times(posterior: Posterior, factor: float) -> Posterior:
    """Change the noise variance with which the next rows count. With 2, a row counts half."""
    return replace_fields(posterior, noise_variance=posterior.noise_variance * factor)


def _engines(beliefs: Beliefs) -> dict[str, Engine]:
    """The engines of all posteriors, by role and number."""
    return {
        f"{role}{i}": engine
        for role, posterior in beliefs.learned.items()
        for i, engine in enumerate(posterior.engines)
    }


def prior_beliefs(
    problem: Problem,
    regularisers: tuple[float, float | np.ndarray] | None = None,
    accuracy: float | None = None,
) -> Beliefs:
    """Make the beliefs of a problem before any data.

    Args:
        problem: Defines kernels, noise and scales.
        regularisers: λ_R and λ_P. None means the noise variances.
        accuracy: Error of compiled kernels as a share of λ. None means the problem's value.

    Returns:
        The prior beliefs.

    >>> import kernelmdp as km
    >>> prior_beliefs(km.make("riverswim").problem).gains
    (0.0, 0.0)
    """
    variances = problem.noise_variances if regularisers is None else regularisers
    share = problem.accuracy if accuracy is None else accuracy

    def prior(kernel: Kernel | OutputKernel, variance: float | np.ndarray) -> Posterior:
        return posterior(
            kernel,
            noise_variance=variance,
            domain=problem.points,
            tolerance=share * float(np.min(variance)),
            std_tolerance=0.0,  # what is claimed of confidence sets allows no other error
        )

    m, d = problem.mean_dimension, problem.points.dimension
    return Beliefs(
        reward=prior(problem.reward_kernel, variances[0])
        if problem.reward is None
        else KnownReward(problem.reward),
        transition=prior(problem.transition_kernel, variances[1]),
        offset=ConstantMean(1 / m, m)
        if problem.offset == "uniform"
        else as_mean(problem.offset, m, d),
        scale=jnp.asarray(problem.scale),
    )
