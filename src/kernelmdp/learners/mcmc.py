"""The learner for priors without a closed form: Markov chains, extended by every episode."""

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

#: Folded into the key so that chains and plans use different random numbers. Any number works that
#: nothing else folds in.
CHAINS = 2**31 - 2


class ChainState(Module):
    """The state of ``MCMC``.

    Attributes:
        gaussian: Gaussian posteriors, from which information gains are computed.
        chains: The state of the prior's chains.
        diagnostics: Whether the chains of the last update mixed.
    """

    gaussian: FixedState
    chains: Any
    diagnostics: Diagnostics = eqx.field(static=True)


@dataclasses.dataclass(frozen=True, eq=False)
class MCMC(Learner):
    """Samples the posterior of a prior by Markov chains.

    Chains move in ``update`` and not when a plan is made. Replaying the same episodes therefore
    gives the same state.

    Attributes:
        name: "mcmc".
        columns: The information gains, and diagnostics of the chains.
        prior: The prior.
        gaussian: The learner of Gaussian posteriors, which start the chains and give the gains.

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
