"""PSRL (the paper's Algorithm 2): plan for one MDP drawn from the posterior."""

import dataclasses
import math
import warnings
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.agents.agent import Agent
from kernelmdp.agents.config import AgentConfig
from kernelmdp.agents.saving import AGENTS
from kernelmdp.confidence import Coverage
from kernelmdp.errors import ApproximationWarning, ArgumentError
from kernelmdp.learners import MCMC, FixedKernels, Learner
from kernelmdp.mdp import MDP, Model, Prediction
from kernelmdp.numerics.checks import positive_number
from kernelmdp.numerics.modules import changed
from kernelmdp.planners import Plan
from kernelmdp.priors import as_prior
from kernelmdp.settings import setting
from kernelmdp.types import Key

#: Draws before one that the planner cannot solve exactly is taken. A draw of linear-quadratic
#: control is solvable with probability above one half once data have come.
ATTEMPTS = 100


@dataclasses.dataclass(frozen=True, kw_only=True)
class PSRLConfig(AgentConfig):
    """Settings of PSRL.

    >>> PSRLConfig(prior="student-t").inflate
    1.0
    """

    prior: Any = setting(
        "gaussian",
        "'gaussian' (the kernels' Gaussian processes, in closed form), 'student-t', "
        "'hyperparameters', 'unknown-noise', 'norm-ball', or a Prior.",
    )
    inflate: Any = setting(
        1.0,
        "Multiplies the deviation of a draw from the mean; 'gp-ts' is what GP Thompson sampling of "
        "a fixed truth takes, v = B + σ√(2(γ + 1 + ln(2/δ))) (math D5).",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inflate != "gp-ts":
            object.__setattr__(self, "inflate", positive_number("inflate", self.inflate))
        if as_prior(self.prior) is not None and self.inflate != 1.0:
            raise ArgumentError("inflate", "1 but for the prior 'gaussian'", self.inflate)


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
    Config: ClassVar[type[AgentConfig]] = PSRLConfig
    config: PSRLConfig

    def plan(self, *, key: Key) -> Plan:
        draw, ties = _two(key)
        drawn = self._solvable_sample(key=draw)  # M_l ~ Φ_l
        return self.solve(drawn, key=ties)  # π_l = π*_{M_l}

    def _solvable_sample(self, *, key: Key) -> MDP:
        """A draw in which the planner finds an optimum: for linear-quadratic control Q ≻ 0."""
        self._warn_of_chains()
        drawn = self._sample(key=key)
        for attempt in range(ATTEMPTS):
            if self.planner.solvable(drawn):
                break
            drawn = self._sample(key=jax.random.fold_in(key, attempt))
        return drawn

    def _sample(self, *, key: Key) -> MDP:
        drawn = self.learner.sample(self.state, key=key)
        if self.config.inflate == 1.0:
            return drawn
        mean, factor = self.learner.mean(self.state), jnp.asarray(self._factor())
        return changed(drawn, model=InflatedSample(drawn.model, mean.model, factor))

    def _factor(self) -> float:
        if self.config.inflate != "gp-ts":
            return float(self.config.inflate)
        gain = max(self.learner.info(self.state).values())
        noise = float(self.problem.reward_noise.proxies(1)[0])
        norm, delta = self.confidence.norms[0], self.confidence.delta
        return norm + noise * math.sqrt(2 * (gain + 1 + math.log(2 / delta)))

    def _make_learner(self) -> Learner:
        learner, prior = super()._make_learner(), as_prior(self.config.prior)
        if prior is None:
            return learner
        if not isinstance(learner, FixedKernels):
            raise ArgumentError("prior", "'gaussian' unless kernels are fixed", prior.name)
        return MCMC(prior, learner)

    def _warn_of_chains(self) -> None:
        if not self._chains_warn or "mixed" not in self.learner.columns:
            return
        info = self.learner.info(self.state)
        if info["mixed"]:
            return
        self._chains_warn = False
        numbers = ", ".join(f"{name} {info[name]:.3g}" for name in ("r_hat", "acceptance"))
        warnings.warn(
            f"episode {self.episode + 1}: the chains of the prior {self.config.prior!r} did not "
            f"mix ({numbers}); the column 'mixed' says so for every episode",
            ApproximationWarning,
            stacklevel=2,
        )

    #: Whether chains that do not mix are still to be warned of; once is enough.
    _chains_warn: bool = True

    @property
    def coverage(self) -> Coverage:
        prior = as_prior(self.config.prior)
        if prior is not None and prior.name != "norm-ball":
            reason = f"no theorem is about this prior ({prior.name}); Theorem 4 is its model"
        else:
            reason = (
                "Theorem 4 needs a truth drawn from these priors, Theorem 2 one drawn from an RKHS "
                "ball; no theorem is about a fixed truth"
            )
        return Coverage("Theorem 4 (Bayes regret)", self.broken_assumptions or (reason,))


class InflatedSample(Model):
    """mean + factor·(draw − mean); where nothing is uncertain, as of a known reward, the mean."""

    draw: Model
    mean: Model
    factor: Float[Array, ""]

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        drawn, mean = self.draw(points), self.mean(points)
        return Prediction(
            reward=mean.reward + self.factor * (drawn.reward - mean.reward),
            state=mean.state + self.factor * (drawn.state - mean.state),
        )


AGENTS.register(PSRL.name, PSRL)
