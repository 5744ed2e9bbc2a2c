"""The learner for finite MDPs by counts: transitions and rewards of every pair (s, a).

It is written in NumPy, independently of kernels and posteriors, for the classics of finite MDPs.
"""

import dataclasses
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelmdp.errors import ArgumentError
from kernelmdp.learners.learner import Learner
from kernelmdp.mdp import MDP, Episode, MeanModel, Problem
from kernelmdp.mdp.model import LookupTable
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Key

#: Observations that an estimate of the noise of rewards is worth. With 4 of them, the rewards that
#: are drawn for a pair without data have a finite variance, and a few visits outweigh the estimate.
NOISE_WEIGHT = 4.0


class CountState(Module):
    """The state of ``Counts``.

    Attributes:
        counts: How often (s, a) was followed by s', (S, A, S).
        sums: The sum of rewards of each pair (s, a), (S, A).
        squares: The sum of squared rewards of each pair (s, a), (S, A).
        problem: The problem that is learned.
    """

    counts: Float[np.ndarray, "S A S"]
    sums: Float[np.ndarray, "S A"]
    squares: Float[np.ndarray, "S A"]
    problem: Problem = eqx.field(static=True)

    @property
    def visits(self) -> Float[np.ndarray, "S A"]:
        """How often each pair (s, a) was visited."""
        return self.counts.sum(axis=2)

    def estimates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Estimate rewards and transitions.

        Returns:
            Mean rewards (S, A), transition frequencies (S, A, S), and visits (S, A). Frequencies
            of pairs that were never visited are uniform.
        """
        visits = self.visits
        divisor = np.maximum(visits, 1)
        uniform = np.full_like(self.counts, 1 / len(self.counts))
        frequencies = np.where(visits[:, :, None] > 0, self.counts / divisor[:, :, None], uniform)
        return self.sums / divisor, frequencies, visits

    def draw(self, concentration: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Draw from the conjugate posteriors: Dirichlet(c/S) rows, N(0, 1) rewards (Osband 2013).

        Where the noise of rewards is only an estimate, each pair has an unknown variance of its
        own. Its prior is inverse gamma with that estimate, worth ``NOISE_WEIGHT`` observations.
        Rewards that never vary are then known after a few visits. Otherwise the small errors of
        100 drawn rewards outweigh a goal that pays 1.

        Args:
            concentration: c, the number of observations that the Dirichlet prior is worth.
            rng: The random generator.

        Returns:
            Rewards (S, A) and transition probabilities (S, A, S).
        """
        gammas = rng.standard_gamma(concentration / len(self.counts) + self.counts)
        transitions = gammas / gammas.sum(axis=2, keepdims=True)
        noise = self.problem.noise_variances[0]
        # The prior N(0, 1) is worth as many observations as the noise has variance.
        visits = self.visits
        weights = noise + visits
        means, variances = self.sums / weights, np.full_like(self.sums, noise)
        if self.problem.reward_noise.estimated:
            scatter = np.maximum(self.squares - weights * means**2, 0.0)
            rates = (NOISE_WEIGHT * noise + scatter) / 2
            variances = rates / rng.standard_gamma((NOISE_WEIGHT + visits) / 2)
        return rng.normal(means, np.sqrt(variances / weights)), transitions


@dataclasses.dataclass(frozen=True)
class Counts(Learner):
    """Learns finite MDPs by counting.

    Attributes:
        name: "counts".
        concentration: The number of observations that the Dirichlet prior of ``sample`` is worth.
    """

    name: ClassVar[str] = "counts"

    concentration: float = 1.0

    def init(self, problem: Problem, *, key: Key) -> CountState:
        if not problem.transition_noise.categorical:
            raise ArgumentError("task", "finite states for counts", repr(problem.states))
        S, A = len(problem.states.spread_points(1)), len(problem.actions.spread_points(1))
        return CountState(np.zeros((S, A, S)), np.zeros((S, A)), np.zeros((S, A)), problem)

    def update(self, state: CountState, episode: Episode, *, key: Key) -> CountState:
        counts, sums, squares = state.counts.copy(), state.sums.copy(), state.squares.copy()
        s, a = (
            np.round(np.asarray(x)[:, 0]).astype(int) for x in (episode.states, episode.actions)
        )
        np.add.at(counts, (s[:-1], a, s[1:]), 1.0)
        np.add.at(sums, (s[:-1], a), np.asarray(episode.rewards))
        np.add.at(squares, (s[:-1], a), np.asarray(episode.rewards) ** 2)
        return CountState(counts, sums, squares, state.problem)

    def mean(self, state: CountState) -> MDP:
        rewards, transitions, _ = state.estimates()
        return _table(state.problem, rewards, transitions)

    def sample(self, state: CountState, *, key: Key) -> MDP:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
        return _table(state.problem, *state.draw(self.concentration, rng))


def _table(problem: Problem, rewards: np.ndarray, transitions: np.ndarray) -> MDP:
    return problem.mdp(
        MeanModel(LookupTable(jnp.asarray(rewards)), LookupTable(jnp.asarray(transitions)))
    )
