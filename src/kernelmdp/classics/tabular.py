"""Classic algorithms for finite states and actions, from counts.

They get the same data as the other agents. They are written in NumPy, independently of kernels and
posteriors. ``scale`` multiplies their confidence widths, as ``Confidence.scale`` does: 1 is the
published algorithm, and smaller values learn faster in practice.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelmdp.agents import AGENTS, Agent, numpy_generator
from kernelmdp.agents.config import AgentConfig
from kernelmdp.confidence import Coverage
from kernelmdp.learners.counts import CountState
from kernelmdp.mdp.policy import Policy
from kernelmdp.numerics.checks import positive_number
from kernelmdp.planners import Plan
from kernelmdp.settings import setting
from kernelmdp.types import ArrayLike, Key, Period


@dataclasses.dataclass(frozen=True, kw_only=True)
class TabularConfig(AgentConfig):
    """Settings of the classic algorithms for finite MDPs."""

    scale: Any = setting(1.0, "Factor of confidence widths; 1 is the published algorithm.")
    delta: Any = setting(0.1, "The probability with which bounds may fail.")
    reward_bounds: Any = setting((0.0, 1.0), "(low, high) between which every mean reward lies.")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("scale", "delta"):
            object.__setattr__(self, name, positive_number(name, getattr(self, name)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class DirichletConfig(TabularConfig):
    """Settings of PSRL with conjugate priors."""

    concentration: Any = setting(1.0, "The number of observations that the prior is worth.")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_number("concentration", self.concentration)


class TablePolicy(Policy):
    """A policy given by a table.

    Attributes:
        choices: The number of the action for every period and state.
    """

    choices: Int[Array, "H S"]

    def actions(self, states: Float[Array, "n 1"], period: Period) -> Float[Array, "n 1"]:
        indices = jnp.round(states[:, 0]).astype(jnp.int32)
        return self.choices[period][indices][:, None].astype(states.dtype)


class TablePlan(Plan):
    """A policy and its planned values in every state.

    Attributes:
        policy: The policy.
        values: Planned values of every period and state.
        error: The error of the values.
    """

    policy: Policy
    values: Float[Array, "H S"]
    error: float = 0.0

    def value(self, state: ArrayLike) -> float:
        return float(self.values[0, round(float(np.asarray(state)[0]))])


#: A backup, from values of the next period (S,) to values of state and action (S, A).
Backup = Callable[[np.ndarray], np.ndarray]


class TabularAgent(Agent):
    """Plans by backward induction from counts.

    Attributes:
        Config: ``TabularConfig``.
        default_learner: "counts".
        config: The settings.
        state: The counts.
    """

    Config: ClassVar[type[AgentConfig]] = TabularConfig
    default_learner: ClassVar[str] = "counts"
    config: TabularConfig
    state: CountState

    def plan_greedy(self, *, key: Key) -> Plan:
        rewards, transitions, _ = self.controller_state.estimates()
        return self.solve_table(lambda V: rewards + transitions @ V, key)

    def solve_table(
        self, backup: Backup, key: Key, low: float = -np.inf, high: float = np.inf
    ) -> TablePlan:
        """Plan by backward induction.

        Args:
            backup: The backup.
            key: Breaks ties.
            low: A lower bound of mean rewards.
            high: An upper bound of mean rewards.

        Returns:
            The plan.
        """
        return backward_induction(
            backup, len(self.state.sums), self.problem.horizon, key, low, high
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval that contains every mean reward."""
        low, high = self.config.reward_bounds
        return float(low), float(high)


class DirichletPSRL(TabularAgent):
    """PSRL with conjugate priors: Dirichlet(c/S) rows and N(0, 1) rewards (Osband 2013).

    Attributes:
        name: "dirichlet-psrl".
        Config: ``DirichletConfig``.
        config: The settings.

    >>> import kernelmdp as km
    >>> km.classics.DirichletPSRL("riverswim", seed=0).name
    'dirichlet-psrl'
    """

    name: ClassVar[str] = "dirichlet-psrl"
    Config: ClassVar[type[AgentConfig]] = DirichletConfig
    config: DirichletConfig

    def plan(self, *, key: Key) -> Plan:
        rewards, transitions = self.state.draw(self.config.concentration, numpy_generator(key))
        return self.solve_table(lambda V: rewards + transitions @ V, key)

    @property
    def coverage(self) -> Coverage:
        reason = "Bayes regret under its own priors (Osband et al. 2013); no theorem of this paper"
        return Coverage(None, (reason,))


class UCBVI(TabularAgent):
    """Value iteration with the Hoeffding bonus 7 H ln(5SAT/δ)/√N (Azar et al. 2017).

    Attributes:
        name: "ucbvi".

    >>> import kernelmdp as km
    >>> km.classics.UCBVI("riverswim", seed=0).name
    'ucbvi'
    """

    name: ClassVar[str] = "ucbvi"

    def plan(self, *, key: Key) -> Plan:
        rewards, transitions, visits = self.state.estimates()
        H, (S, A) = self.problem.horizon, visits.shape
        low, high = self.bounds
        steps = max(1, (self.episode + 1) * H)
        level = np.log(5 * S * A * steps / self.config.delta)
        bonus = self.config.scale * 7 * (high - low) * H * level / np.sqrt(np.maximum(visits, 1))
        bonus[visits == 0] = np.inf

        def backup(V: np.ndarray) -> np.ndarray:
            return rewards + bonus + transitions @ V

        return self.solve_table(backup, key, low, high)


class UCRL2(TabularAgent):
    """Optimism over l1 balls of rows and intervals of rewards (Jaksch et al. 2010), finite H.

    Attributes:
        name: "ucrl2".

    >>> import kernelmdp as km
    >>> km.classics.UCRL2("riverswim", seed=0).name
    'ucrl2'
    """

    name: ClassVar[str] = "ucrl2"

    def plan(self, *, key: Key) -> Plan:
        rewards, transitions, visits = self.state.estimates()
        H, (S, A) = self.problem.horizon, visits.shape
        low, high = self.bounds
        scale, delta = self.config.scale, self.config.delta
        steps = max(2, self.episode * H)
        divisor = np.maximum(visits, 1)
        row_width = scale * np.sqrt(14 * S * np.log(2 * A * steps / delta) / divisor)
        reward_width = scale * np.sqrt(3.5 * np.log(2 * S * A * steps / delta) / divisor)
        optimistic_rewards = np.clip(rewards + (high - low) * reward_width, low, high)

        def backup(V: np.ndarray) -> np.ndarray:
            return optimistic_rewards + optimistic_rows(transitions, row_width, V) @ V

        return self.solve_table(backup, key, low, high)


def backward_induction(
    backup: Backup,
    states: int,
    horizon: int,
    key: Key,
    low: float = -np.inf,
    high: float = np.inf,
) -> TablePlan:
    """Plan by H backups V -> Q (S, A).

    Args:
        backup: The backup.
        states: S.
        horizon: H.
        key: Breaks ties between actions.
        low: A lower bound of mean rewards; values are clipped to what is possible.
        high: An upper bound of mean rewards.

    Returns:
        The plan.
    """
    rng = numpy_generator(key)
    V = np.zeros(states)
    values, choices = [], []
    for periods_left in range(1, horizon + 1):
        Q = np.clip(backup(V), periods_left * low, periods_left * high)
        best = Q.max(axis=1, keepdims=True)
        tied = Q >= best - 1e-9 * (1 + np.abs(best))
        choices.append(np.argmax(np.where(tied, rng.uniform(size=Q.shape), -1.0), axis=1))
        V = best[:, 0]
        values.append(V)
    policy = TablePolicy(jnp.asarray(np.array(choices[::-1])))
    return TablePlan(policy=policy, values=jnp.asarray(np.array(values[::-1])))


def optimistic_rows(rows: np.ndarray, width: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Find the distributions with the best mean value in l1 balls.

    Probability moves from the states with the lowest values to the state with the highest.

    Args:
        rows: Centres of the balls, (S, A, S).
        width: Radii, (S, A).
        V: Values of next states, (S,).

    Returns:
        The best distributions, (S, A, S).
    """
    order = np.argsort(V)
    optimistic = rows.copy()
    best = order[-1]
    optimistic[..., best] = np.minimum(1.0, rows[..., best] + width / 2)
    excess = optimistic.sum(axis=2) - 1.0
    for s in order[:-1]:
        removed = np.minimum(optimistic[..., s], np.maximum(excess, 0.0))
        optimistic[..., s] -= removed
        excess -= removed
    return optimistic


for kind in (DirichletPSRL, UCBVI, UCRL2):
    AGENTS.register(kind.name, kind)
