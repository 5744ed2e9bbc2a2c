"""The learner of a family of kernels: one posterior for each member, from the same data."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.confidence import Beliefs, ConfidenceRule, ConfidenceSets
from kernelmdp.confidence.family_sets import family_sets
from kernelmdp.errors import ArgumentError
from kernelmdp.gp import Posterior
from kernelmdp.gp.regularisation import has_spectrum, log_evidence
from kernelmdp.kernels import Kernel, OutputKernel
from kernelmdp.learners.fixed_kernels import FixedKernels, FixedState
from kernelmdp.learners.learner import Learner
from kernelmdp.mdp import MDP, Episode, Problem
from kernelmdp.numerics.modules import jit, replace_fields
from kernelmdp.types import ArrayLike, Key

#: Error of compiled kernels as a share of λ. Where members are compared, it counts times the number
#: of rows. With 1e-7 it is small for a few thousand rows, and ranks stay below twice the usual.
ACCURACY = 1e-7
#: The member that stands for the family is chosen anew when the data have grown by this share. A
#: choice costs more than an update.
GROWTH = 0.1


class FamilyState(FixedState):
    """The state of ``KernelFamily``.

    Attributes:
        members: The beliefs of each member.
        squared_lengths: |y|²/λ for rewards and for transitions.
        best: The numbers of the members that stand for reward and transition.
        chosen_at: The number of episodes when they were chosen.
        episodes: The number of episodes.
    """

    members: tuple[Beliefs, ...] = ()
    squared_lengths: Float[Array, "2"] = dataclasses.field(default_factory=lambda: jnp.zeros(2))
    best: tuple[int, int] = (0, 0)
    chosen_at: int = 0
    episodes: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class KernelFamily(FixedKernels):
    """Gaussian process regression with several kernels.

    ``mean``, ``sample`` and ``beliefs`` are those of the member with the largest evidence, for
    reward and transition separately.

    Attributes:
        kernels: Kernels of reward and transition of each member.

    >>> import kernelmdp as km
    >>> agent = km.GPUCRL("rkhs", confidence="adaptive", seed=0)
    >>> len(agent.state.members)
    4
    """

    forgets = False
    kernels: tuple[tuple[Kernel, OutputKernel], ...] = ()

    @classmethod
    def of(cls, learner: Learner, kernels: Sequence[Any]) -> "KernelFamily":
        """Make the learner of a family from that of one kernel.

        Args:
            learner: A learner with fixed kernels.
            kernels: Kernels of reward and transition of each member.

        Returns:
            The learner.

        Raises:
            ArgumentError: If the learner has no fixed kernels.
        """
        if learner.name != cls.name:
            expected = "another than 'adaptive' unless kernels are fixed"
            raise ArgumentError("confidence", expected, f"the learner {learner.name!r}")
        names = [each.name for each in dataclasses.fields(FixedKernels)]
        fields = {name: getattr(learner, name) for name in names}
        return cls(**fields | {"kernels": tuple(kernels), "accuracy": ACCURACY})

    def init(self, problem: Problem, *, key: Key) -> FamilyState:
        members = []
        for reward, transition in self.kernels:
            kernels = {"reward_kernel": reward, "transition_kernel": transition}
            changed = dataclasses.replace(problem, **kernels)  # type: ignore[arg-type]
            members.append(super().init(changed, key=key).beliefs)
        for beliefs in members:
            for role, posterior in beliefs.learned.items():
                _require_certified(role, posterior)
        return FamilyState(members[0], problem, members=tuple(members))

    def update(self, state: FixedState, episode: Episode, *, key: Key) -> FixedState:
        family: Any = state
        targets = state.problem.transition_noise.embed(episode.outcomes)
        data = episode.points, episode.rewards, targets
        members = tuple(beliefs.condition(*data) for beliefs in family.members)
        lengths = family.squared_lengths + _squared_lengths(state.beliefs, *data)
        best, chosen_at, episodes = family.best, family.chosen_at, family.episodes + 1
        if episodes > (1 + GROWTH) * chosen_at:
            best, chosen_at = _best(members), episodes
        beliefs = _combined(members, best)
        return FamilyState(
            beliefs, state.problem, members=members, squared_lengths=lengths, best=best,
            chosen_at=chosen_at, episodes=episodes,
        )  # fmt: skip

    def plausible(
        self, state: FixedState, confidence: ConfidenceRule, *, episode: int
    ) -> tuple[ConfidenceSets, MDP]:
        family: Any = state
        problem = state.problem
        sets = family_sets(
            confidence,
            family.members,
            state.beliefs,
            squared_lengths=np.asarray(family.squared_lengths).tolist(),
            reward_noise=problem.reward_noise,
            transition_noise=problem.transition_noise,
        )
        return sets, sets.family(problem.mdp(sets.plausible))

    def saved_arrays(self, state: FixedState) -> dict[str, np.ndarray]:
        return {}  # a loaded agent learns again from its episodes


def _require_certified(role: str, posterior: Posterior) -> None:
    exact = posterior.error == 0 or posterior.error_kind == "certified"
    if not (has_spectrum(posterior) and exact):
        expected = f"kernels of the {role} that are of finite rank or compile to a certified error"
        raise ArgumentError("confidence", f"{expected}, for a family", str(posterior.kernel))


@jit
def _squared_lengths(
    beliefs: Beliefs, points: ArrayLike, rewards: ArrayLike, outcomes: ArrayLike
) -> Array:
    residuals = (jnp.asarray(outcomes) - beliefs.offset(jnp.asarray(points))) / beliefs.scale
    state = jnp.sum(residuals**2) / jnp.min(beliefs.transition.regularisers)
    if not beliefs.reward.learned:
        return jnp.stack([jnp.zeros_like(state), state])
    reward: Any = beliefs.reward
    return jnp.stack([jnp.sum(jnp.asarray(rewards) ** 2) / jnp.min(reward.regularisers), state])


def _best(members: tuple[Beliefs, ...]) -> tuple[int, int]:
    """The members with the largest evidence, for reward and for transition."""
    return tuple(  # type: ignore[return-value]
        int(np.argmax([float(log_evidence(each.learned[role])) for each in members]))
        if role in members[0].learned
        else 0
        for role in ("reward", "transition")
    )


def _combined(members: tuple[Beliefs, ...], best: tuple[int, int]) -> Beliefs:
    reward, transition = (members[number] for number in best)
    return replace_fields(transition, reward=reward.reward)
