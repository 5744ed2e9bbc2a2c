"""Theorems as lists of assumptions, and the evidence on which assumptions are checked.

An assumption is a statement with a predicate of ``Evidence``. The predicate yields the reasons why
the statement fails. Coverage by a theorem is the conjunction of its assumptions. They have levels,
because parts of the evidence are known before others:

- "settings": the settings of the confidence sets.
- "sets": also the posteriors and the noise. Sets of an episode are covered at this level.
- "run": also the system, the learner and the data. The sets of a run are covered at this level.
- "regret": also the planner and the exploration. The theorem's regret bound needs all levels.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kernelmdp.confidence.beliefs import Beliefs
from kernelmdp.confidence.coverage import CheckedAssumption, Coverage
from kernelmdp.gp import Posterior
from kernelmdp.mdp import Noise, Problem

#: Levels of evidence. Each one includes those before it.
LEVELS = ("settings", "sets", "run", "regret")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
    """What assumptions are checked on.

    Attributes:
        confidence: The confidence rule.
        reward_known: Whether the reward is known, and not learned.
        beliefs: Posteriors of reward and transition; None if the learner has none.
        reward_noise: The noise of the reward, as the agent believes.
        transition_noise: The noise of the next state, as the agent believes.
        problem: The problem as the agent learns it, with the user's settings.
        system: The problem as the system describes itself.
        system_reward: The mean reward of the system, if the system knows it.
        learner_breaks: Assumptions of every theorem that the learner breaks.
        update: "episode" or "step".
        clipped: The episode and the step, both counted from 1, of the first outcome that may have
            been clipped to the state space; None if there is none.
        first_episode: "random" or "prior".
        planner: The planner.
        prior: The prior of PSRL; None for Gaussian processes.
        inflate: The factor of the deviation of PSRL's draws.
        totals: Running sums of the run, such as the number of plans that exceeded their risk.
        risk_for: The episodes that the risk of a violation is for.
        at_least: The share of the fallback's return that episodes are to earn; None for no such
            rule.
        replan_gain: The growth of an information gain up to which a plan is kept; None if every
            episode has a plan of its own.
    """

    confidence: Any
    reward_known: bool = False
    beliefs: Beliefs | None = None
    reward_noise: Noise | None = None
    transition_noise: Noise | None = None
    problem: Problem | None = None
    system: Problem | None = None
    system_reward: Callable[..., Any] | None = None
    learner_breaks: tuple[str, ...] = ()
    update: str = "episode"
    clipped: tuple[int, int] | None = None
    first_episode: str = "prior"
    planner: Any = None
    prior: Any = None
    inflate: Any = 1.0
    totals: Mapping[str, float] = dataclasses.field(default_factory=dict)
    risk_for: Any = "learning"
    at_least: float | None = None
    replan_gain: float | None = None

    @property
    def learned(self) -> tuple[tuple[str, Any], ...]:
        """The roles that are learned, "reward" and "transition", with the noise of each."""
        noises: tuple[tuple[str, Any], ...] = (
            ("reward", self.reward_noise),
            ("transition", self.transition_noise),
        )
        return noises[1:] if self.reward_known else noises

    @property
    def posteriors(self) -> tuple[tuple[str, Posterior], ...]:
        """The posteriors of the learned roles; none if the learner has no posteriors."""
        return () if self.beliefs is None else tuple(self.beliefs.learned.items())


@dataclasses.dataclass(frozen=True)
class Assumption:
    """A statement that a theorem needs, with its predicate.

    Attributes:
        name: The statement.
        level: The level of evidence that the predicate needs, one of ``LEVELS``.
        violations: Yields why the statement fails, one sentence each.
        settings: The settings that the predicate reads: "part.field".
    """

    name: str
    level: str
    violations: Callable[[Evidence], Iterable[str]]
    settings: tuple[str, ...] = ()

    def check(self, evidence: Evidence) -> CheckedAssumption:
        """Check the assumption.

        Args:
            evidence: What is known.

        Returns:
            The assumption and why it fails.
        """
        return CheckedAssumption(self.name, tuple(self.violations(evidence)))


@dataclasses.dataclass(frozen=True)
class Theorem:
    """A theorem and its assumptions.

    Attributes:
        name: The theorem.
        assumptions: Its assumptions, in the order in which they are reported.
        has_sets: Whether the theorem has confidence sets, which hold without the level "regret".
    """

    name: str
    assumptions: tuple[Assumption, ...]
    has_sets: bool

    def coverage(self, evidence: Evidence, level: str) -> Coverage:
        """Check the assumptions up to a level.

        Args:
            evidence: What is known; all that the level needs.
            level: The last level.

        Returns:
            The conjunction of the assumptions.

        >>> from kernelmdp.confidence import Confidence
        >>> from kernelmdp.confidence.assumptions import THEOREM_1
        >>> print(THEOREM_1.coverage(Evidence(confidence=Confidence(scale=0.1)), "settings"))
        not covered: beta is scaled by 0.1; norm_reward is unknown (1 assumed); and 1 more
        """
        levels = LEVELS[: LEVELS.index(level) + 1]
        checked = tuple(each.check(evidence) for each in self.assumptions if each.level in levels)
        reasons = tuple(reason for each in checked for reason in each.reasons)
        sets_only = self.has_sets and level != "regret"
        name = f"the confidence sets of {self.name}" if sets_only else self.name
        return Coverage(name, reasons, checked)
