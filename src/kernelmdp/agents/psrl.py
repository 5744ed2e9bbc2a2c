"""PSRL (the paper's Algorithm 2): plan for one MDP drawn from the posterior."""

from typing import ClassVar

import jax

from kernelmdp.agents.base import Agent
from kernelmdp.planners import Plan
from kernelmdp.types import Key


class PSRL(Agent):
    """Posterior sampling.

    For episodes l = 1, 2, …: draw one MDP M_l from the posterior; choose π_l that is optimal for
    it; play it; update the posteriors with what was seen, rewards too (the paper's listing forgets
    them). The posterior has the true noise variance; the regularisers H and mH are GP-UCRL's.
    """

    name: ClassVar[str] = "psrl"

    def plan(self, *, key: Key) -> Plan:
        draw, ties = jax.random.split(key)
        drawn = self.beliefs.sample(key=draw)  # M_l ~ Φ_l
        return self.solve(self.problem.mdp(drawn), key=ties)  # π_l = π*_{M_l}

    @property
    def covered(self) -> str:
        return (
            "Theorem 4 (Bayes regret) when the truth is drawn from these priors, "
            "Theorem 2 when the prior lives on an RKHS ball; no theorem for a fixed truth"
        )
