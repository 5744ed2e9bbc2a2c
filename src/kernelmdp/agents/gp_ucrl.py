"""GP-UCRL (the paper's Algorithm 1): plan optimistically over every plausible MDP."""

from typing import Any, ClassVar

from kernelmdp.agents.base import Agent
from kernelmdp.confidence import ConfidenceSets
from kernelmdp.planners import Plan, Unplanned
from kernelmdp.types import Key


class GPUCRL(Agent):
    """Optimism in the face of uncertainty.

    For episodes l = 1, 2, …: build the confidence sets C_R,l and C_P,l from the data of episodes
    before l; let M_l be every MDP inside them; choose π_l that is best for the best of them; play
    it; update the posteriors.

    >>> import kernelmdp as km
    >>> km.GPUCRL("riverswim", confidence="valid", seed=0).covered
    'covered by the confidence sets of Theorem 1 (bounded norms)'
    >>> agent = km.GPUCRL("riverswim", seed=0)  # narrower sets, which learn faster
    >>> agent.covered
    'not covered: beta is scaled by 0.1'
    """

    name: ClassVar[str] = "gp-ucrl"
    plans_with_deviations: ClassVar[bool] = True

    def plan(self, *, key: Key) -> Plan:
        self.sets = self.confidence_sets()  # C_R,l and C_P,l
        plausible = self.sets.family(self.problem.mdp(self.sets.plausible))  # M_l
        return self.solve(plausible, key=key)  # π_l = argmax_π max_{M ∈ M_l} V^M_π,1

    def confidence_sets(self) -> ConfidenceSets:
        """The sets of the coming episode."""
        problem = self.problem
        reward_noise, transition_noise = self.noises
        return self.confidence.sets(
            self.beliefs,
            episode=self.episode + 1,
            horizon=problem.horizon,
            domain=problem.points,
            reward_noise=reward_noise,
            transition_noise=transition_noise,
        )

    def regularisers(self) -> tuple[float, Any]:
        """λ_R and λ_P: the paper's H and mH, or the noise variances."""
        return self.confidence.regularisers(
            self.problem.horizon, self.problem.mean_dimension, *self.problem.noise_variances
        )

    @property
    def accuracy(self) -> float:
        # Sets that a theorem covers are widened by what the compiled kernel may miss.
        return 1e-6 if self.confidence.covered else self.problem.accuracy

    @property
    def covered(self) -> str:
        return self.beyond or self.confidence_sets().reason

    def diagnostics(self) -> dict[str, float]:
        if isinstance(self.planned, Unplanned):  # a first episode of random actions
            return {}
        return {
            "beta_reward": float(self.sets.beta_reward),
            "beta_transition": float(self.sets.beta_transition),
        }
