"""PSRL (the paper's Algorithm 2): plan for one MDP drawn from the posterior."""

import math
import warnings
from typing import Any, ClassVar

import jax
import numpy as np

from kernelmdp.agents.base import Agent, Told, episode_key
from kernelmdp.errors import ApproximationWarning, ArgumentError
from kernelmdp.mdp import Known
from kernelmdp.numerics.checks import positive_number
from kernelmdp.planners import Plan
from kernelmdp.priors import Diagnostics, Prior, Setting, State, as_prior
from kernelmdp.types import Key

#: What sets the randomness of learning apart from that of planning.
LEARNING = 2**31 - 2
#: Draws before one that the planner has to mend is taken.
ATTEMPTS = 100


@jax.jit
def _two(key: Key) -> tuple[Key, Key]:
    one, other = jax.random.split(key)
    return one, other


class PSRL(Agent):
    """Posterior sampling.

    For episodes l = 1, 2, …: draw one MDP M_l from the posterior; choose π_l that is optimal for
    it; play it; update the posteriors with what was seen, rewards too (the paper's listing forgets
    them). The posterior has the true noise variance; the regularisers H and mH are GP-UCRL's.

    >>> import kernelmdp as km
    >>> agent = km.PSRL("riverswim", seed=0)
    >>> len(agent.learn(episodes=2, progress=False).episodes)
    2
    >>> agent.predict([5], period=0)  # against the stream, or with it
    array([1.])
    """

    name: ClassVar[str] = "psrl"
    _warned: bool = False

    def __init__(
        self, task: Any, *, prior: Any = "gaussian", inflate: Any = 1.0, **words: Any
    ) -> None:
        """As for other agents. ``prior`` is "gaussian" (the kernels' Gaussian processes, in closed
        form), "student-t", "hyperparameters", "unknown-noise", "norm-ball", or a ``Prior``.

        ``inflate`` multiplies the deviation of a draw from the mean; "gp-ts" is what GP Thompson
        sampling of a fixed truth takes, v = B + σ√(2(γ + 1 + ln(2/δ))) (math D5).
        """
        self.prior: Prior | None = as_prior(prior)
        self.inflate = inflate if inflate == "gp-ts" else positive_number("inflate", inflate)
        if self.prior is not None and self.inflate != 1.0:
            raise ArgumentError("inflate", "1 but for the prior 'gaussian'", inflate)
        super().__init__(task, **words)
        self.words["prior"] = "gaussian" if self.prior is None else self.prior.description()
        self.words["inflate"] = self.inflate

    def plan(self, *, key: Key) -> Plan:
        draw, ties = _two(key)
        drawn = self._solvable_sample(key=draw)  # M_l ~ Φ_l
        return self.solve(self.problem.mdp(drawn), key=ties)  # π_l = π*_{M_l}

    def _solvable_sample(self, *, key: Key) -> Known:
        """A draw in which the planner finds an optimum: for linear-quadratic control Q ≻ 0."""
        drawn = self._sample(key=key)
        if hasattr(self.planner, "solvable"):
            for attempt in range(ATTEMPTS):
                if self.planner.solvable(self.problem.mdp(drawn)):
                    break
                drawn = self._sample(key=jax.random.fold_in(key, attempt))
        return drawn

    def _factor(self) -> float:
        if self.inflate != "gp-ts":
            return float(self.inflate)
        gain = max(self.gains)
        noise = float(self.problem.reward_noise.proxies(1)[0])
        delta = self.confidence.delta
        return self.confidence.norms[0] + noise * math.sqrt(2 * (gain + 1 + math.log(2 / delta)))

    def _sample(self, *, key: Key) -> Known:
        if self.prior is None:
            drawn = self.beliefs.sample(key=key)
            return drawn if self.inflate == 1.0 else self.beliefs.stretched(drawn, self._factor())
        if not self._found.mixed and not self._warned:
            self._warned = True
            warnings.warn(
                f"episode {self.episode + 1}: the chains of the prior {self.prior.name!r} did not "
                f"mix ({self._found}); the column 'mixed' says so for every episode",
                ApproximationWarning,
                stacklevel=2,
            )
        return self.prior.draw(self._state_of_prior, key=key)

    # Priors without a closed form keep a state of their own. It is advanced when an episode is
    # told and not when one is planned: an agent that is told all again comes to the same state.

    def begin(self) -> None:
        super().begin()
        self._warned = False
        if self.prior is None:
            return
        self._state_of_prior: State
        self._found: Diagnostics  # of the chains, for the coming episode
        problem = self.problem
        setting = Setting(
            self.beliefs,
            problem.reward_noise,
            problem.transition_noise,
            problem.noise_floors,
            problem.norm_reward,
            problem.norm_transition,
        )
        key = jax.random.fold_in(jax.random.key(self.seed), LEARNING)
        self._state_of_prior, self._found = self.prior.begin(setting, key=key)

    def learn_from(self, told: Told) -> None:
        if self.prior is not None:
            points = np.concatenate([told.states[:-1], told.actions], axis=1)
            key = jax.random.fold_in(episode_key(self.seed, self.episode), LEARNING)
            state = self._state_of_prior
            after, found = self.prior.learn(state, points, told.rewards, told.outcomes, key=key)
        super().learn_from(told)
        if self.prior is not None:
            self._state_of_prior, self._found = after, found

    def exploit(self, *, key: Key) -> Plan:
        if self.prior is None:
            return super().exploit(key=key)
        return self.planner(self.problem.mdp(self.prior.mean(self._state_of_prior)), key=key)

    def diagnostics(self) -> dict[str, float]:
        return {} if self.prior is None else self._found.columns()

    @property
    def covered(self) -> str:
        if self.beyond is not None:
            return self.beyond
        if self.prior is not None and self.prior.name != "norm-ball":
            return f"no theorem is about this prior ({self.prior.name}); Theorem 4 is its model"
        return (
            "Theorem 4 (Bayes regret) when the truth is drawn from these priors, "
            "Theorem 2 when the prior lives on an RKHS ball; no theorem for a fixed truth"
        )
