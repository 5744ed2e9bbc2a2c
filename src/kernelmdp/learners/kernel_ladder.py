"""The learner of a family of kernels and norms: a posterior for each kernel, and whose turn it is.

Plans are optimistic within one member for the reward and one for the transition. A member's balance
is the sum of the half-widths of its set over the steps of the episodes that were planned with it.
The next is the member whose balance would be the least after one more episode anywhere, among those
that data allow. This is regret balancing (Abbasi-Yadkori et al. 2020). Here all members learn from
all data, and data contradict them by Theorem 11.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelmdp.confidence import Beliefs, ConfidenceRule, ConfidenceSets
from kernelmdp.confidence.adaptive import AdaptiveConfidence
from kernelmdp.confidence.family_sets import (
    CONTRADICTED,
    RoleSets,
    half_widths,
    role_sets,
    union_of_members,
)
from kernelmdp.confidence.theorem import Evidence
from kernelmdp.errors import ArgumentError
from kernelmdp.gp import Posterior
from kernelmdp.gp.regularisation import has_spectrum
from kernelmdp.kernels import Kernel, OutputKernel
from kernelmdp.learners.fixed_kernels import FixedKernels, FixedState
from kernelmdp.learners.learner import Learner
from kernelmdp.mdp import MDP, Episode, Problem
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.types import ArrayLike, Key

#: Error of compiled kernels as a share of λ. Where members are compared, it counts times the number
#: of rows. With 1e-7 it is small for a few thousand rows, and ranks stay below twice the usual.
ACCURACY = 1e-7
#: Points at which the width of an episode anywhere is estimated. More of them take longer.
SPREAD_POINTS = 100


class LadderState(FixedState):
    """The state of ``KernelLadder``.

    Attributes:
        kernels: The beliefs for each kernel.
        squared_lengths: |y|²/λ for rewards and for transitions.
        sets: The sets of all members, by role.
        balances: The balance of each member, by role.
        turns: The number of the member whose turn it is, by role.
    """

    kernels: tuple[Beliefs, ...] = ()
    squared_lengths: Float[np.ndarray, "2"] = dataclasses.field(default_factory=lambda: np.zeros(2))
    sets: dict[str, RoleSets] = dataclasses.field(default_factory=dict)
    balances: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    turns: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class KernelLadder(FixedKernels):
    """Gaussian process regression with several kernels.

    ``mean``, ``sample`` and ``beliefs`` are those of the members whose turn it is.

    Attributes:
        forgets: False.
        kernels: The kernels of reward and transition.
        confidence: The rule, which lists the members.

    >>> import kernelmdp as km
    >>> sets = AdaptiveConfidence(lengthscales=(1.0, 4.0))
    >>> agent = km.GPUCRL("rkhs", confidence=sets, seed=0)
    >>> len(agent.state.kernels), len(agent.state.balances["reward"])
    (2, 8)
    """

    forgets: ClassVar[bool] = False
    kernels: tuple[tuple[Kernel, OutputKernel], ...] = ()
    confidence: AdaptiveConfidence = dataclasses.field(default_factory=AdaptiveConfidence)

    @classmethod
    def of(
        cls, learner: Learner, confidence: AdaptiveConfidence, kernels: Sequence[Any]
    ) -> "KernelLadder":
        """Make the learner of a family from that of one kernel.

        Args:
            learner: A learner with fixed kernels.
            confidence: The rule.
            kernels: The kernels of reward and transition.

        Returns:
            The learner.

        Raises:
            ArgumentError: If the learner has no fixed kernels.
        """
        if learner.name != cls.name:
            expected = "another than 'adaptive' unless kernels are fixed"
            raise ArgumentError("confidence", expected, f"the learner {learner.name!r}")
        names = [each.name for each in dataclasses.fields(FixedKernels)]
        fields = {name: getattr(learner, name) for name in names} | {"accuracy": ACCURACY}
        return cls(**fields, kernels=tuple(kernels), confidence=confidence)

    def init(self, problem: Problem, *, key: Key) -> LadderState:
        made = []
        for reward, transition in self.kernels:
            changed = dataclasses.replace(
                problem, reward_kernel=reward, transition_kernel=transition
            )
            made.append(super().init(changed, key=key).beliefs)
        for beliefs in made:
            for role, posterior in beliefs.learned.items():
                _require_certified(role, posterior)
        balances = {role: np.zeros(len(self.confidence.family(role))) for role in made[0].learned}
        return self._with_turns(
            LadderState(made[0], problem, kernels=tuple(made), balances=balances)
        )

    def update(self, state: FixedState, episode: Episode, *, key: Key) -> FixedState:
        before: Any = state
        targets = before.problem.transition_noise.embed(episode.outcomes)
        data = episode.points, episode.rewards, targets
        balances = {role: balance.copy() for role, balance in before.balances.items()}
        for role, turn in before.turns.items():
            widths = half_widths(before.sets[role], self.confidence.family(role), data[0])
            balances[role][turn] += np.sum(widths[turn])
        after = replace_fields(
            before,
            kernels=tuple(beliefs.condition(*data) for beliefs in before.kernels),
            squared_lengths=before.squared_lengths + _squared_lengths(before.beliefs, *data),
            balances=balances,
        )
        return self._with_turns(after)

    def plausible(
        self, state: FixedState, confidence: ConfidenceRule, *, episode: int
    ) -> tuple[ConfidenceSets, MDP]:
        ladder: Any = state
        problem, shape = state.problem, self.confidence.shape
        union = union_of_members(ladder.kernels[0], ladder.sets, self._families(), shape)
        evidence = Evidence(
            confidence=self.confidence,
            reward_known=state.beliefs.reward_known,
            beliefs=state.beliefs,
            reward_noise=problem.reward_noise,
            transition_noise=problem.transition_noise,
            totals={CONTRADICTED: float(union.contradicted)},
        )
        sets = ConfidenceSets(union, self.confidence.theorem.coverage(evidence, "sets"))
        return sets, sets.family(problem.mdp(union))

    def hopeful(self, state: FixedState, sets: ConfidenceSets, family: MDP) -> MDP:
        ladder: Any = state
        chosen = union_of_members(
            ladder.kernels[0], ladder.sets, self._families(), self.confidence.shape, ladder.turns
        )
        return replace_fields(sets, plausible=chosen).family(state.problem.mdp(chosen))

    def saved_arrays(self, state: FixedState) -> dict[str, np.ndarray]:
        return {}  # a loaded agent learns again from its episodes

    def _families(self) -> dict[str, Any]:
        return {role: self.confidence.family(role) for role in ("reward", "transition")}

    def _with_turns(self, state: LadderState) -> LadderState:
        """The state with the sets of all members after its data, and whose turn is next."""
        problem, beliefs = state.problem, state.kernels[0]
        scale = np.asarray(beliefs.scale, float)
        noises = {
            "reward": problem.reward_noise.sub_gaussian_proxies(1),
            "transition": problem.transition_noise.sub_gaussian_proxies(len(scale)) / scale,
        }
        lengths = state.squared_lengths.tolist()
        roles = tuple(beliefs.learned)
        spread = jnp.asarray(problem.points.spread_points(SPREAD_POINTS))
        sets, turns = dict[str, RoleSets](), dict[str, int]()
        for role in roles:
            family = self.confidence.family(role)
            sets[role] = role_sets(
                [each.learned[role] for each in state.kernels],
                family,
                squared_length=lengths[int(role == "transition")],
                deviation=float(np.max(noises[role])),
                log_odds=float(np.log((1.0 + len(roles)) / self.confidence.delta)),
            )
            anywhere = problem.horizon * half_widths(sets[role], family, spread).mean(axis=1)
            after = np.where(sets[role].survives, state.balances[role] + anywhere, np.inf)
            turns[role] = int(np.argmin(after))
        numbers = {role: self.confidence.family(role)[turn].kernel for role, turn in turns.items()}
        chosen = state.kernels[numbers["transition"]]
        if "reward" in numbers:
            chosen = replace_fields(chosen, reward=state.kernels[numbers["reward"]].reward)
        return replace_fields(state, beliefs=chosen, sets=sets, turns=turns)


def _require_certified(role: str, posterior: Posterior) -> None:
    exact = posterior.error == 0 or posterior.error_kind == "certified"
    if not (has_spectrum(posterior) and exact):
        expected = f"kernels of the {role} that are of finite rank or compile to a certified error"
        raise ArgumentError("confidence", f"{expected}, for a family", str(posterior.kernel))


def _squared_lengths(
    beliefs: Beliefs, points: ArrayLike, rewards: ArrayLike, outcomes: ArrayLike
) -> np.ndarray:
    """|y|²/λ of new data, for rewards and transitions. A known reward has no data."""
    missed = np.asarray(outcomes, float) - np.asarray(beliefs.offset(jnp.asarray(points)))
    targets = {"reward": rewards, "transition": missed / np.asarray(beliefs.scale)}
    return np.array(
        [
            np.sum(np.square(targets[role])) / np.min(np.asarray(posterior.regularisers))
            if (posterior := beliefs.learned.get(role))
            else 0.0
            for role in targets
        ]
    )
