"""SOMBRL: optimism by a bonus in the reward, for any planner.

GP-UCRL searches the plausible next states too, so its decisions have m coordinates more. A bonus
for uncertain transitions explores as well, and the search stays as small as for the mean
(Sukhija et al. 2025, arXiv 2511.20066).
"""

import dataclasses
from typing import Any, ClassVar

import numpy as np

from kernelmdp.agents.agent import Agent
from kernelmdp.agents.config import AgentConfig
from kernelmdp.agents.gp_ucrl import COVERED_ACCURACY
from kernelmdp.agents.saving import AGENTS
from kernelmdp.confidence import ConfidenceSets, Coverage
from kernelmdp.confidence.noise_assumptions import THEOREM_16_BONUS
from kernelmdp.confidence.theorem import Theorem
from kernelmdp.learners import LearnerRequirements
from kernelmdp.numerics.checks import positive_number
from kernelmdp.planners import Plan, Planner
from kernelmdp.planners.noise_bonus import theorem_planner, theorem_weight, with_theorem_bonus
from kernelmdp.settings import setting
from kernelmdp.types import Key


@dataclasses.dataclass(frozen=True, kw_only=True)
class SOMBRLConfig(AgentConfig):
    """Settings of SOMBRL.

    >>> SOMBRLConfig(bonus=0.5).bonus
    0.5
    """

    bonus: Any = setting(
        0.1,
        "Size of the bonus. With 1, a transition that is as uncertain as states change in a step "
        "is worth the span of the observed rewards. 'theorem' takes that of Theorem 16, which is "
        "covered with valid confidence sets, and much larger.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bonus != "theorem":
            object.__setattr__(self, "bonus", positive_number("bonus", self.bonus))


class SOMBRL(Agent):
    """Plans for the mean transition and the reward R(z) + ‖(λ σ_P(z), bonus σ_R(z))‖.

    For episodes l = 1, 2, …:

    1. Let σ_P(z) and σ_R(z) be the standard deviations of transition and reward, from the data of
       episodes before l.
    2. Choose the policy π_l that is best for the mean transition and the reward with the bonus.
    3. Play it, and update the posteriors.

    λ is ``bonus`` times the span of the observed rewards over the root mean square of the observed
    changes of the state, so ``bonus`` has no units. The article has a λ that grows like β, and no
    σ_R. No theorem is about this choice.

    With ``bonus="theorem"``, the reward is min(μ_R + β_R σ_R, B) + λ β_P σ_P(z) instead, with the λ
    of ``theorem_weight``. With ``confidence="valid"``, Theorem 16 bounds the regret.

    Attributes:
        name: "sombrl".
        Config: ``SOMBRLConfig``.
        config: The settings.
        columns: λ.
        plans_with_deviations: True: the bonus needs standard deviations of the transition.

    >>> import kernelmdp as km
    >>> agent = km.SOMBRL("rkhs", seed=0)
    >>> result = agent.learn(episodes=2, progress=False)
    >>> float(result.episodes["bonus_weight"][0])
    0.1
    """

    name: ClassVar[str] = "sombrl"
    Config: ClassVar[type[AgentConfig]] = SOMBRLConfig
    config: SOMBRLConfig
    columns: ClassVar[tuple[str, ...]] = ("bonus_weight",)
    plans_with_deviations: ClassVar[bool] = True
    _bonus_weight: float | None = None

    def plan(self, *, key: Key) -> Plan:
        if self._of_theorem:
            self._bonus_weight = theorem_weight(self.problem)
            return self.solve(with_theorem_bonus(self._plausible()[1], self.problem), key=key)
        self._bonus_weight = self._weight()
        mdp = self.learner.with_bonus(
            self.state, transition_weight=self._bonus_weight, reward_weight=self.config.bonus
        )
        return self.solve(mdp, key=key)

    def _weight(self) -> float:
        """λ, in units of the reward over those of the beliefs' scale."""
        beliefs, episodes = self.learner.beliefs(self.state), self.history
        if beliefs is None or not episodes:
            return self.config.bonus
        rewards = np.concatenate([each.rewards for each in episodes])
        states = np.concatenate([each.states[:-1] for each in episodes])
        outcomes = np.concatenate([each.outcomes for each in episodes])
        squares = ((outcomes - states) / np.asarray(beliefs.scale)) ** 2
        motion = float(np.sqrt(np.mean(np.sum(squares, axis=1))))
        span = float(np.ptp(rewards)) or float(np.abs(rewards).max()) or 1.0
        return self.config.bonus * span / motion if motion > 0 else self.config.bonus

    @property
    def _of_theorem(self) -> bool:
        return self.config.bonus == "theorem"

    def _plausible(self) -> tuple[ConfidenceSets, Any]:
        return self.learner.plausible(self.state, self.confidence, episode=self.episode + 1)

    def confidence_sets(self) -> ConfidenceSets | None:
        return self._plausible()[0] if self._of_theorem else None

    def requirements(self) -> LearnerRequirements:
        """State what the agent needs from the learner; with the theorem's bonus, λ_R and λ_P too.

        Returns:
            The requirements.
        """
        needed = super().requirements()
        if not self._of_theorem:
            return needed
        regularisers = self.confidence.regularisers_for(self.problem)
        return needed._replace(regularisers=regularisers, accuracy=COVERED_ACCURACY)

    @property
    def theorem(self) -> Theorem | None:
        return THEOREM_16_BONUS if self._of_theorem else None

    @property
    def coverage(self) -> Coverage:
        theorem = self.theorem
        return super().coverage if theorem is None else theorem.coverage(self.evidence, "run")

    def _make_planner(self) -> Planner:
        if not self._of_theorem:
            return super()._make_planner()
        return theorem_planner(self.problem, self.config.planner)

    def diagnostics(self) -> dict[str, float]:
        # The first episode of a learner that needs data is not planned.
        return {} if self._bonus_weight is None else {"bonus_weight": self._bonus_weight}


AGENTS.register(SOMBRL.name, SOMBRL)
