"""GP-UCRL (the paper's Algorithm 1): plan optimistically over every plausible MDP."""

import math
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from kernelmdp.agents.optimality import Certificate, reward_span
from kernelmdp.agents.promise import Promise, values_covered
from kernelmdp.agents.rarely_planning import RarelyPlanning
from kernelmdp.agents.saving import AGENTS
from kernelmdp.agents.system import checked_state
from kernelmdp.confidence import ConfidenceSets, Coverage
from kernelmdp.confidence.family_sets import CONTRADICTED
from kernelmdp.confidence.plan_assumptions import lipschitz_is_bound
from kernelmdp.confidence.safety_assumptions import THEOREM_5
from kernelmdp.confidence.theorem import Evidence, Theorem
from kernelmdp.learners import Learner, LearnerRequirements
from kernelmdp.learners.kernel_ladder import KernelLadder
from kernelmdp.mdp import MDP
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.numerics.random_keys import episode_key
from kernelmdp.numerics.tracing import as_float
from kernelmdp.planners import Plan, Planner
from kernelmdp.planners.pessimism import worst_value
from kernelmdp.types import ArrayLike, Key

#: Compilation error allowed for kernels of covered sets, as a share of λ. Sets that a theorem
#: covers are widened by the compilation error, so it must be small beside λ.
COVERED_ACCURACY = 1e-6


class GPUCRL(RarelyPlanning):
    """GP-UCRL: optimism in the face of uncertainty (paper, Algorithm 1).

    For episodes l = 1, 2, …:

    1. Build the confidence sets C_R,l and C_P,l from the data of episodes before l.
    2. Let M_l be the set of all MDPs inside them.
    3. Choose the policy π_l that is best in the best of these MDPs, and play it.
    4. Update the posteriors.

    Attributes:
        name: "gp-ucrl".
        columns: β of the reward's and of the transition's confidence set.
        plans_with_deviations: True: radii of confidence sets are standard deviations times β.

    >>> import kernelmdp as km
    >>> print(km.GPUCRL("riverswim", confidence="valid", seed=0).coverage)
    covered by the confidence sets of Theorem 1 (bounded norms)
    >>> agent = km.GPUCRL("riverswim", seed=0)  # smaller sets, which learn faster
    >>> print(agent.coverage)
    not covered: beta is scaled by 0.1
    """

    name: ClassVar[str] = "gp-ucrl"
    columns: ClassVar[tuple[str, ...]] = ("beta_reward", "beta_transition")
    plans_with_deviations: ClassVar[bool] = True

    def plan(self, *, key: Key) -> Plan:
        self.sets, plausible = self.plausible()  # C_R,l and C_P,l, and M_l
        if self.sets.plausible.contradicted:
            self.totals[CONTRADICTED] = 1.0
        plausible = self.learner.hopeful(self.state, self.sets, plausible)
        return self.solve(plausible, key=key)  # π_l = argmax_π max_{M ∈ M_l} V^M_π,1

    def plan_greedy(self, *, key: Key) -> Plan:
        """Plan without exploration. Constraints are kept in every plausible MDP.

        Args:
            key: Breaks ties between equally good actions.

        Returns:
            The plan that ``predict`` follows.
        """
        if not self.planner.bounds_risk:
            return super().plan_greedy(key=key)
        planner = self.planner.within(self.config.risk, self.problem.fallback).without_optimism()
        return planner.plan(self.plausible()[1], start=None, key=key)

    def promise(self, start: ArrayLike | None = None) -> Promise:
        """Tell what ``predict`` is worth at least, if the confidence sets contain the truth.

        With covered sets and a plan on a grid, it is the worst value of the policy among all
        plausible MDPs (note A7). The sets hold with probability 1 − δ.

        Args:
            start: The first state, (m,). The default is the mean over the starts so far.

        Returns:
            The promise. It is an estimate where the sets are not covered.
        """
        plan, coverage = self.controller_plan(), self.coverage
        if plan.table is None or not values_covered(coverage, self.evidence):
            return super().promise(start)
        problem = self.problem
        starts = self.starts if start is None else checked_state(problem, "start", start)[None, :]
        value = worst_value(self.plausible()[1], plan.policy, plan.table.grid, starts)
        return Promise(value, 1.0 - self.confidence.delta, coverage)

    def certificate(self, start: ArrayLike | None = None) -> Certificate:
        """Bound what ``predict`` is worth from below, and the optimal value from above.

        With covered sets and a plan on a grid, these are the worst plausible value of the policy
        and the optimistic value (note A7, certificate ii).

        Args:
            start: The first state, (m,). The default is the mean over the starts so far.

        Returns:
            The certificate. It is an estimate where the sets are not covered.
        """
        promised = self.promise(start)
        # Within constraints, the optimistic value bounds that of safe policies alone.
        if promised.probability is None or self.problem.constraints:
            return super().certificate(start)
        problem = self.problem
        starts = self.starts if start is None else checked_state(problem, "start", start)[None, :]
        # A search over balls can be short of optimism, and would bound nothing.
        planner, key = self.planner.rounded_up(), episode_key(self.seed, self.episode)
        family = self.plausible()[1]
        if not lipschitz_is_bound(problem):  # values that keep to an estimate bound nothing
            family = replace_fields(family, lipschitz=jnp.asarray(math.inf))
        hopeful = planner.plan(family, start=None, key=key)
        rows, counts = np.unique(starts, axis=0, return_counts=True)
        optimum = float(np.average([hopeful.value(row) for row in rows], weights=counts))
        values = promised.value, optimum, reward_span(self)
        return Certificate(*values, promised.probability, promised.coverage)

    def plausible(self) -> tuple[ConfidenceSets, MDP]:
        """Build the confidence sets of the next episode.

        Returns:
            The sets, and the family of MDPs inside them.
        """
        return self.learner.plausible(self.state, self.confidence, episode=self.episode + 1)

    def confidence_sets(self) -> ConfidenceSets:
        return self.plausible()[0]

    def requirements(self) -> LearnerRequirements:
        """State what the agent needs from the learner, with the regularisers λ_R and λ_P.

        Returns:
            The requirements. λ_R and λ_P are the paper's H and mH, or the noise variances.
        """
        return (
            super()
            .requirements()
            ._replace(
                regularisers=self.confidence.regularisers_for(self.problem),
                accuracy=COVERED_ACCURACY if self._settings_covered else self.problem.accuracy,
            )
        )

    @property
    def theorem(self) -> Theorem | None:
        return self.confidence.theorem

    @property
    def coverage(self) -> Coverage:
        """Whether the confidence sets are covered; ``run_bound`` also asks about the plans."""
        if self.theorem is None:
            return self.confidence_sets().coverage
        return self.theorem.coverage(self.evidence, "run")

    @property
    def safety(self) -> Coverage:
        """Whether no constraint is broken with probability 1 − δ − risk, in any episode."""
        return THEOREM_5.coverage(self.evidence, "run")

    @property
    def _settings_covered(self) -> bool:
        if self.theorem is None:
            return False
        known = self.problem.reward is not None
        evidence = Evidence(confidence=self.confidence, reward_known=known)
        return self.theorem.coverage(evidence, "settings").covered

    def _make_planner(self) -> Planner:
        """Round plans up where a regret bound may hold, unless a planner was passed."""
        self.problem = self.confidence.bounded(self.problem)
        planner = super()._make_planner()
        bound_may_hold = self._settings_covered and math.isfinite(self.problem.lipschitz)
        named = isinstance(self.config.planner, str) and not planner.searches_functions
        return planner.rounded_up() if bound_may_hold and named else planner

    def _make_learner(self) -> Learner:
        learner, rule = super()._make_learner(), self.confidence
        kernels = rule.members(self.problem)
        return KernelLadder.of(learner, rule, kernels) if kernels else learner  # type: ignore[arg-type]

    def diagnostics(self) -> dict[str, float]:
        if self.sets is None:  # a first episode of random actions
            return {}
        betas = self.sets.beta_reward, self.sets.beta_transition
        return dict(zip(self.columns, map(as_float, betas), strict=True))


AGENTS.register(GPUCRL.name, GPUCRL)
