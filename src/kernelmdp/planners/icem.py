"""The improved cross-entropy method (iCEM): search for the best sequence of decisions by sampling.

Each iteration draws sequences, selects the best, and fits the distribution to them (Pinneri et al.
2020). As there, noise is coloured, and the best sequences are reused in later iterations and
periods. The mean is tried too, and the best sequence of all iterations is returned. Unlike there,
every iteration has the same number of draws.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from kernelmdp.planners.proposals import ProposalDistribution, colouring_matrix, shifted
from kernelmdp.types import ArrayLike, Key

#: From a sequence (T, w) and the memory of the refinement, to a better sequence (T, w), its score,
#: and the memory for the next period.
Refinement = Callable[[Array, PyTree], tuple[Array, Array, PyTree]]

#: Scores whose relative difference is below this are tied. It is far above round-off.
TIE = 1e-9


class SearchState(NamedTuple):
    """What a search passes on to the search of the next period.

    Attributes:
        parameters: The parameters of each proposal distribution.
        elites: The best sequences, which are tried again, (k, T, w).
        refinement: What the refinement passes on to itself.
    """

    parameters: tuple[PyTree, ...]
    elites: Float[Array, "k T w"]
    refinement: PyTree = ()


class SearchResult(NamedTuple):
    """The best sequence of a search.

    Attributes:
        decisions: The sequence, (T, w).
        score: Its score, a scalar.
    """

    decisions: Float[Array, "T w"]
    score: Float[Array, ""]


@dataclasses.dataclass(frozen=True)
class CrossEntropySearch:
    """Searches sequences whose decisions are concatenated from several proposal distributions.

    Attributes:
        proposals: The distributions. The decisions of one follow those of another along axis w.
        iterations: Number of iterations of a round.
        samples: Number of sequences that each iteration scores.
        elites: Number of the best sequences to which the distributions are fitted.
        reused: Number of elites that are tried again in the next iteration and period.
        momentum: The share of the old parameters in a fit.
        noise_exponent: The exponent of the spectrum of the noise.
        explorers: Number of sequences of each iteration that are drawn from the initial
            distribution.
    """

    proposals: tuple[ProposalDistribution, ...]
    iterations: int
    samples: int
    elites: int
    reused: int
    momentum: float
    noise_exponent: float
    explorers: int

    def reset(self) -> SearchState:
        """Return the state of a search at the start of an episode.

        Returns:
            The initial parameters, with their centre as elites, and no memory of a refinement.
        """
        parameters = tuple(proposal.initial() for proposal in self.proposals)
        centre = self._centre(parameters)[None]
        return SearchState(parameters, jnp.broadcast_to(centre, (self.reused, *centre.shape[1:])))

    def __call__(
        self,
        memory: SearchState,
        score: Callable[[Float[Array, "n T w"]], Float[Array, " n"]],
        *,
        key: Key,
        rounds: ArrayLike = 1,
        refine: Refinement | None = None,
    ) -> tuple[SearchResult, SearchState]:
        """Search for the best sequence.

        Args:
            memory: The state from the search of the period before, or from ``reset``.
            score: Scores n sequences. NaN counts as −∞.
            key: Decides all draws.
            rounds: Number of independent searches from the same memory. The best one is taken. The
                number may be traced.
            refine: Improves the best sequence of a round, and scores it. None leaves it unchanged.

        Returns:
            The best sequence, and the state for the search of the next period.
        """

        def next_round(
            number: Array, carry: tuple[SearchResult, SearchState]
        ) -> tuple[SearchResult, SearchState]:
            candidate = self._round(memory, score, refine, jax.random.fold_in(key, number))
            improved = candidate[0].score > carry[0].score
            return jax.tree.map(lambda new, old: jnp.where(improved, new, old), candidate, carry)

        nothing = SearchResult(memory.elites[0], jnp.asarray(-jnp.inf))
        best, after = jax.lax.fori_loop(0, rounds, next_round, (nothing, memory))
        pairs = zip(self.proposals, after.parameters, strict=True)
        parameters = tuple(proposal.next_period(fitted) for proposal, fitted in pairs)
        return best, SearchState(parameters, jax.vmap(shifted)(after.elites), after.refinement)

    def _round(
        self,
        memory: SearchState,
        score: Callable[..., Array],
        refine: Refinement | None,
        key: Key,
    ) -> tuple[SearchResult, SearchState]:
        """The best sequence of all iterations, refined, and the state before it is shifted."""

        def iterate(
            number: Array, carry: tuple[SearchState, SearchResult]
        ) -> tuple[SearchState, SearchResult]:
            parameters, reused, refinement = carry[0]
            iteration_key = jax.random.fold_in(key, number)
            # Fresh draws come first, because the first of tied sequences is taken. If no decision
            # matters, the choice is then random.
            fresh = self._draw(parameters, self.samples - self.reused - 1, iteration_key)
            batch = jnp.concatenate([fresh, reused, self._centre(parameters)[None]])
            scores = score(batch)
            scores = jnp.where(jnp.isnan(scores), -jnp.inf, scores)
            # After the first iteration the centre of the elites wins ties: it is the safest.
            advantage = jnp.where(number > 0, TIE * (1 + jnp.abs(scores[-1])), 0.0)
            order = jax.lax.top_k(scores.at[-1].add(advantage), self.elites)[1]
            best = batch[order]
            after = SearchState(self._fit(parameters, best), best[: self.reused], refinement)
            return after, SearchResult(best[0], scores[order[0]])

        # One loop compiles in a third of the time of three unrolled iterations. The best sequence
        # is reused in each iteration, so the last one has the best of all.
        nothing = SearchResult(memory.elites[0], jnp.asarray(-jnp.inf))
        after, best = jax.lax.fori_loop(0, self.iterations, iterate, (memory, nothing))
        if refine is not None:
            refined, refined_score, refinement = refine(best.decisions, memory.refinement)
            candidate = SearchResult(
                refined, jnp.where(jnp.isnan(refined_score), -jnp.inf, refined_score)
            )
            elites = jnp.concatenate([refined[None], after.elites[:-1]])
            improved = candidate.score > best.score
            best = jax.tree.map(lambda new, old: jnp.where(improved, new, old), candidate, best)
            elites = jnp.where(improved, elites, after.elites)
            after = after._replace(elites=elites, refinement=refinement)
        return best, after

    def decode(self, decisions: Float[Array, "... w"]) -> list[Array]:
        """Turn decisions into the values that they stand for.

        Args:
            decisions: Decisions of all proposal distributions, (..., w).

        Returns:
            The values of each proposal distribution, such as actions.
        """
        parts = []
        for proposal, part in zip(self.proposals, self._split(decisions), strict=True):
            parts.append(proposal.decode(part))
        return parts

    def _split(self, decisions: Array) -> list[Array]:
        parts, start = [], 0
        for proposal in self.proposals:
            parts.append(decisions[..., start : start + proposal.width])
            start += proposal.width
        return parts

    def _draw(self, parameters: tuple[PyTree, ...], count: int, key: Key) -> Array:
        steps, width = self.proposals[0].steps, sum(p.width for p in self.proposals)
        colour = jnp.asarray(colouring_matrix(steps, self.noise_exponent))
        white = jax.random.normal(key, (2 * steps, count * width))
        noise = jnp.moveaxis((colour @ white).reshape(steps, count, width), 0, 1)
        parts = []
        for proposal, fitted, part in zip(
            self.proposals, parameters, self._split(noise), strict=True
        ):
            explorers = proposal.from_noise(proposal.initial(), part[: self.explorers])
            parts.append(
                jnp.concatenate([explorers, proposal.from_noise(fitted, part[self.explorers :])])
            )
        return jnp.concatenate(parts, axis=2)

    def _centre(self, parameters: tuple[PyTree, ...]) -> Array:
        pairs = zip(self.proposals, parameters, strict=True)
        return jnp.concatenate([proposal.centre(fitted) for proposal, fitted in pairs], axis=1)

    def _fit(self, parameters: tuple[PyTree, ...], best: Array) -> tuple[Any, ...]:
        rows = zip(self.proposals, parameters, self._split(best), strict=True)
        return tuple(proposal.fit(old, part, self.momentum) for proposal, old, part in rows)
