"""PSRL (the paper's Algorithm 2): plan for one MDP drawn from the posterior."""

import dataclasses
import math
import warnings
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array

from kernelmdp.agents.config import AgentConfig
from kernelmdp.agents.rarely_planning import RarelyPlanning, RarelyPlanningConfig
from kernelmdp.agents.saving import AGENTS
from kernelmdp.confidence import Coverage
from kernelmdp.confidence.assumptions import THEOREM_2, THEOREM_4
from kernelmdp.confidence.theorem import Evidence, Theorem
from kernelmdp.errors import ApproximationWarning, ArgumentError
from kernelmdp.learners import MCMC, FixedKernels, Learner, as_learner
from kernelmdp.learners.learner import GAINS
from kernelmdp.learners.model_wrappers import InflatedSample
from kernelmdp.mdp import MDP
from kernelmdp.numerics.checks import positive_number
from kernelmdp.numerics.modules import replace_fields, small_jit
from kernelmdp.numerics.tracing import as_float, is_traced
from kernelmdp.planners import Plan
from kernelmdp.priors import as_prior
from kernelmdp.settings import setting
from kernelmdp.types import Key

#: Number of redraws before an MDP is accepted that the planner cannot solve exactly. With data, a
#: drawn linear-quadratic system is solvable with probability above one half, so 100 suffice.
ATTEMPTS = 100


@dataclasses.dataclass(frozen=True, kw_only=True)
class PSRLConfig(RarelyPlanningConfig):
    """Settings of PSRL.

    >>> PSRLConfig(prior="student-t").inflate
    1.0
    """

    prior: Any = setting(
        "gaussian",
        "Prior over MDPs: 'gaussian' (Gaussian processes, in closed form), 'student-t', "
        "'hyperparameters', 'unknown-noise', 'norm-ball', or a Prior.",
    )
    inflate: Any = setting(
        1.0,
        "Factor of the deviation of a draw from the mean. 'gp-ts' is the factor of GP Thompson "
        "sampling for a fixed truth, v = B + σ√(2(γ + 1 + ln(2/δ))) (note D5).",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inflate != "gp-ts":
            object.__setattr__(self, "inflate", positive_number("inflate", self.inflate))
        if as_prior(self.prior) is not None and self.inflate != 1.0:
            raise ArgumentError("inflate", "1 but for the prior 'gaussian'", self.inflate)


@small_jit
def _split_key(key: Key) -> tuple[Key, Key]:
    sample_key, tie_key = jax.random.split(key)
    return sample_key, tie_key


class PSRL(RarelyPlanning):
    """PSRL: posterior sampling (paper, Algorithm 2).

    For episodes l = 1, 2, …:

    1. Draw one MDP M_l from the posterior.
    2. Choose the policy π_l that is optimal in M_l, and play it.
    3. Update the posteriors with the observed states and rewards (the paper's listing omits the
       rewards).

    The posterior uses the true noise variance. The regularisers H and mH belong to GP-UCRL.

    Attributes:
        name: "psrl".
        Config: ``PSRLConfig``.
        config: The settings.
        draws_functions: True.

    >>> import kernelmdp as km
    >>> agent = km.PSRL("riverswim", seed=0)
    >>> len(agent.learn(episodes=2, progress=False).episodes)
    2
    >>> agent.predict([5], period=0)  # action 1 swims against the current
    array([1.])
    """

    name: ClassVar[str] = "psrl"
    Config: ClassVar[type[AgentConfig]] = PSRLConfig
    config: PSRLConfig
    draws_functions: ClassVar[bool] = True

    def plan(self, *, key: Key) -> Plan:
        sample_key, tie_key = _split_key(key)
        mdp = self._solvable_sample(key=sample_key)  # M_l ~ Φ_l
        return self.solve(mdp, key=tie_key)  # π_l = π*_{M_l}

    def _solvable_sample(self, *, key: Key) -> MDP:
        """Draw an MDP that the planner can solve: for linear-quadratic control, Q ≻ 0."""
        self._warn_if_not_mixed()
        mdp = self._sample(key=key)
        if is_traced(self.planner.solvable(mdp)):
            return self._sample(key=self._solvable_key(key))
        for attempt in range(ATTEMPTS):
            if self.planner.solvable(mdp):
                break
            mdp = self._sample(key=jax.random.fold_in(key, attempt))
        return mdp

    def _solvable_key(self, key: Key) -> Key:
        """The key of the first draw that can be solved, found within a compiled program."""

        def key_of(attempt: Array) -> Key:
            return jnp.where(attempt == 0, key, jax.random.fold_in(key, attempt - 1))

        def fails(attempt: Array) -> Array:
            return (attempt < ATTEMPTS) & ~self.planner.solvable(self._sample(key=key_of(attempt)))

        return key_of(jax.lax.while_loop(fails, lambda attempt: attempt + 1, jnp.asarray(0)))

    def _sample(self, *, key: Key) -> MDP:
        mdp = self.learner.sample(self.state, key=key)
        if not is_traced(self.config.inflate) and self.config.inflate == 1.0:
            return mdp
        mean, factor = self.learner.mean(self.state), jnp.asarray(self._inflation())
        return replace_fields(mdp, model=InflatedSample(mdp.model, mean.model, factor))

    def _inflation(self) -> float:
        if not isinstance(self.config.inflate, str):
            return as_float(self.config.inflate)
        info = self.learner.info(self.state)
        gain = max(info[name] for name in GAINS if name in info)
        noise = float(self.problem.reward_noise.sub_gaussian_proxies(1)[0])
        norm, delta = self.confidence.norms[0], self.confidence.delta
        return norm + noise * math.sqrt(2 * (gain + 1 + math.log(2 / delta)))

    def _make_learner(self) -> Learner:
        if self._counts_table:
            return as_learner("counts", self.problem, self.requirements())
        learner, prior = super()._make_learner(), as_prior(self.config.prior)
        if prior is None:
            return learner
        if not isinstance(learner, FixedKernels):
            raise ArgumentError("prior", "'gaussian' unless kernels are fixed", prior.name)
        return MCMC(prior, learner)

    @property
    def _counts_table(self) -> bool:
        """Whether the exact posterior of a table is used, because nothing else was asked for.

        Draws of Gaussian processes are no probabilities.
        """
        problem, config = self.problem, self.config
        told_nothing = problem.reward is None and problem.reward_noise.estimated
        asked = (config.prior, config.inflate, config.learner) != ("gaussian", 1.0, "auto")
        asked = asked or bool(config.given_kernels) or config.fits_kernels
        return problem.transition_noise.categorical and told_nothing and not asked

    def _warn_if_not_mixed(self) -> None:
        if not self._warn_once or "mixed" not in self.learner.columns:
            return
        info = self.learner.info(self.state)
        if info["mixed"]:
            return
        self._warn_once = False
        numbers = ", ".join(f"{name} {info[name]:.3g}" for name in ("r_hat", "acceptance"))
        warnings.warn(
            f"episode {self.episode + 1}: the chains of the prior {self.config.prior!r} did not "
            f"mix ({numbers}); the column 'mixed' says so for every episode",
            ApproximationWarning,
            stacklevel=2,
        )

    # One warning about chains that do not mix is enough; the column 'mixed' has every episode.
    _warn_once: bool = True

    @property
    def theorem(self) -> Theorem:
        prior = as_prior(self.config.prior)
        on_ball = prior is not None and prior.name == "norm-ball"
        return THEOREM_2 if on_ball else THEOREM_4

    @property
    def evidence(self) -> Evidence:
        prior, inflate = as_prior(self.config.prior), self.config.inflate
        return dataclasses.replace(super().evidence, prior=prior, inflate=inflate)

    @property
    def coverage(self) -> Coverage:
        return self.theorem.coverage(self.evidence, "regret")


AGENTS.register(PSRL.name, PSRL)
