"""A certificate to act on: what a controller is worth at least, and what any is worth at most."""

import dataclasses
import math
from typing import Any

import jax
import numpy as np

from kernelmdp.agents.promise import DRAWS, promise_of
from kernelmdp.agents.system import checked_state
from kernelmdp.confidence import NO_THEOREM, Coverage
from kernelmdp.numerics.random_keys import episode_key
from kernelmdp.types import ArrayLike


@dataclasses.dataclass(frozen=True)
class Certificate:
    """Bounds of a controller's value and of the optimal value, or estimates of them.

    If the truth is in the confidence sets, the worst plausible value of the controller is at most
    its value, and the value of the optimistic plan is at least the optimum (note A7).

    Attributes:
        value: The controller is worth at least this.
        optimum: The optimal policy is worth at most this.
        span: H times the width of the range of rewards: the largest possible loss.
        probability: The probability with which both hold; None for an estimate.
        coverage: The theorem behind it, or why there is none.

    >>> from kernelmdp.confidence import Coverage
    >>> print(Certificate(4.5, 5.0, 10.0, 0.9, Coverage("Theorem 1")))
    value at least 4.5, optimum at most 5, with probability 0.9 (Theorem 1), up to the error of the
    grid: at most 5 % of the span from optimal
    """

    value: float
    optimum: float
    span: float
    probability: float | None
    coverage: Coverage

    @property
    def gap(self) -> float:
        """How much less than the optimum the controller earns, at most."""
        return self.optimum - self.value

    @property
    def share(self) -> float:
        """The gap as a share of the span."""
        return self.gap / self.span

    def with_optimum(self, optimum: float) -> "Certificate":
        """Take a smaller bound of the optimum, from an earlier episode.

        The sets of all episodes hold the truth at once, so each of their bounds is valid.

        Args:
            optimum: Another bound.

        Returns:
            The certificate with the smaller of the two bounds.
        """
        return dataclasses.replace(self, optimum=min(self.optimum, optimum))

    def __str__(self) -> str:
        ending = f"at most {100 * self.share:.3g} % of the span from optimal"
        if self.probability is None:
            reason = str(self.coverage).removeprefix("not covered: ")
            return (
                f"value about {self.value:.4g} or more, optimum about {self.optimum:.4g} or less, "
                f"an estimate: {reason}: {ending}"
            )
        return (
            f"value at least {self.value:.4g}, optimum at most {self.optimum:.4g}, with "
            f"probability {self.probability:.4g} ({self.coverage.theorem}), up to the error of "
            f"the grid: {ending}"
        )


def estimated_certificate(agent: Any, start: ArrayLike | None) -> Certificate:
    """Estimate both values in MDPs drawn from the beliefs; see ``Agent.certificate``.

    Args:
        agent: The agent.
        start: The first state, (m,). None is the start of the last episode.

    Returns:
        The lowest value of the controller in the draws, and the highest value of a plan made for
        one of them, in that draw.
    """
    value = promise_of(agent, start).value
    start = agent.starts[-1] if start is None else checked_state(agent.problem, "start", start)
    keys = jax.random.split(episode_key(agent.seed, agent.episode), 2 * DRAWS)
    best = -math.inf
    for draw_key, plan_key in zip(keys[:DRAWS], keys[DRAWS:], strict=True):
        draw = agent.learner.sample(agent.state, key=draw_key)
        plan = agent.solve(draw, key=plan_key)
        best = max(best, float(plan.values_in([draw], start)[0]))
    return Certificate(value, max(best, value), reward_span(agent), None, NO_THEOREM)


def reward_span(agent: Any) -> float:
    """Compute H times the width of the range of mean rewards.

    Args:
        agent: The agent.

    Returns:
        The span. If the range is not known, it is that of all rewards seen.
    """
    low, high = agent.problem.reward_range
    if not (math.isfinite(low) and math.isfinite(high)):
        rewards = np.concatenate([np.asarray(episode.rewards) for episode in agent.history])
        low, high = float(rewards.min()), float(rewards.max())
    return agent.problem.horizon * max(high - low, math.ulp(1.0))
