"""Priors without a closed form: chains of draws, moved on by every episode."""

import dataclasses
from typing import Any, ClassVar

import equinox as eqx
import jax

from kernelmdp.confidence import Beliefs
from kernelmdp.learners.fixed_kernels import FixedKernels, FixedState
from kernelmdp.learners.learner import GAINS, Learner
from kernelmdp.mdp import MDP, Episode, Problem
from kernelmdp.numerics.modules import Module
from kernelmdp.priors import Diagnostics, Prior, PriorProblem
from kernelmdp.types import Key

#: Sets the randomness of chains apart from that of planning.
CHAINS = 2**31 - 2


class ChainState(Module):
    """Gaussian posteriors, for gains, and what the prior has learned."""

    gaussian: FixedState
    chains: Any
    diagnostics: Diagnostics = eqx.field(static=True)


@dataclasses.dataclass(frozen=True, eq=False)
class MCMC(Learner):
    """A prior whose posterior is drawn by Markov chains.

    Chains move when an episode is learned from, not when one is planned: a learner that is told all
    again comes to the same state.

    Attributes:
        prior: The prior.
        gaussian: Learner of the Gaussian posteriors that start the chains and count the gains.

    >>> import kernelmdp as km
    >>> MCMC(km.priors.UnknownNoise()).prior.name
    'unknown-noise'
    """

    name: ClassVar[str] = "mcmc"
    columns: ClassVar[tuple[str, ...]] = (*GAINS, *Diagnostics._fields)

    prior: Prior
    gaussian: FixedKernels = FixedKernels()

    def init(self, problem: Problem, *, key: Key) -> ChainState:
        gaussian = self.gaussian.init(problem, key=key)
        context = PriorProblem(
            gaussian.beliefs,
            problem.reward_noise,
            problem.transition_noise,
            problem.noise_floors,
            problem.norm_reward,
            problem.norm_transition,
        )
        chains, diagnostics = self.prior.init(context, key=jax.random.fold_in(key, CHAINS))
        return ChainState(gaussian, chains, diagnostics)

    def update(self, state: ChainState, episode: Episode, *, key: Key) -> ChainState:
        chains, diagnostics = self.prior.learn(
            state.chains,
            episode.points,
            episode.rewards,
            episode.outcomes,
            key=jax.random.fold_in(key, CHAINS),
        )
        gaussian = self.gaussian.update(state.gaussian, episode, key=key)
        return ChainState(gaussian, chains, diagnostics)

    def mean(self, state: ChainState) -> MDP:
        return state.gaussian.problem.mdp(self.prior.mean(state.chains))

    def sample(self, state: ChainState, *, key: Key) -> MDP:
        return state.gaussian.problem.mdp(self.prior.draw(state.chains, key=key))

    def info(self, state: ChainState) -> dict[str, float]:
        return self.gaussian.info(state.gaussian) | state.diagnostics.columns()

    def beliefs(self, state: ChainState) -> Beliefs:
        return state.gaussian.beliefs
