"""What a controller is worth at least."""

import dataclasses
from typing import Any

import jax

from kernelmdp.agents.system import checked_state
from kernelmdp.confidence import NO_THEOREM, Coverage
from kernelmdp.confidence.plan_assumptions import NOISE_OF_PLANS
from kernelmdp.confidence.theorem import Evidence
from kernelmdp.numerics.random_keys import episode_key
from kernelmdp.types import ArrayLike

#: Drawn MDPs of which the lowest value is an estimate of what a controller is worth at least. One
#: more draw is lower than eight with probability one ninth.
DRAWS = 8


@dataclasses.dataclass(frozen=True)
class Promise:
    """A lower bound of the value of a controller, or an estimate of one.

    Attributes:
        value: The bound. On a grid it has the error of the grid.
        probability: The probability with which it holds; None for an estimate.
        coverage: The theorem behind it, or why there is none.

    >>> from kernelmdp.confidence import NO_THEOREM
    >>> print(Promise(-4.5, None, NO_THEOREM))
    worth about -4.5 or more, an estimate: no theorem is about this agent
    >>> print(Promise(5.43, 0.9, Coverage("Theorem 1")))
    worth at least 5.43 with probability 0.9 (Theorem 1), up to the error of the grid
    """

    value: float
    probability: float | None
    coverage: Coverage

    def __str__(self) -> str:
        if self.probability is None:
            reason = str(self.coverage).removeprefix("not covered: ")
            return f"worth about {self.value:.4g} or more, an estimate: {reason}"
        holds = f"with probability {self.probability:.4g} ({self.coverage.theorem})"
        return f"worth at least {self.value:.4g} {holds}, up to the error of the grid"


def values_covered(coverage: Coverage, evidence: Evidence) -> bool:
    """Tell whether worst and best values over the confidence sets enclose the true value.

    Args:
        coverage: The coverage of the sets.
        evidence: The evidence of the agent.

    Returns:
        Whether the sets are covered, and plans know the noise of the transition.
    """
    return coverage.covered and NOISE_OF_PLANS.check(evidence).holds


def promise_of(agent: Any, start: ArrayLike | None) -> Promise:
    """Estimate what an agent's controller is worth at least; see ``Agent.promise``.

    Args:
        agent: The agent.
        start: The first state, (m,). None is the start of the last episode.

    Returns:
        The lowest value in the drawn MDPs.
    """
    start = agent.starts[-1] if start is None else checked_state(agent.problem, "start", start)
    keys = jax.random.split(episode_key(agent.seed, agent.episode), DRAWS)
    draws = [agent.learner.sample(agent.state, key=key) for key in keys]
    return Promise(float(agent.controller_plan().values_in(draws, start).min()), None, NO_THEOREM)
