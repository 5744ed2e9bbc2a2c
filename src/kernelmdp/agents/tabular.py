"""The classics for finite states and actions, from counts: no kernel, no posterior of ours.

They see what our agents see and are written independently of them, in NumPy. ``scale`` multiplies
their confidence widths: 1 is the theory, less is practice, as for ``Confidence.scale``.
"""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelmdp.agents.base import Agent, Told, generator
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp import Categorical
from kernelmdp.mdp.policy import Policy
from kernelmdp.numerics.checks import positive_number
from kernelmdp.planners import Plan
from kernelmdp.types import Key


class TablePolicy(Policy):
    """The number of an action for every period and state."""

    choices: Int[Array, "H S"]

    def actions(self, states: Float[Array, "n 1"], period: Any) -> Float[Array, "n 1"]:
        where = jnp.round(states[:, 0]).astype(jnp.int32)
        return self.choices[period][where][:, None].astype(states.dtype)


class TablePlan(Plan):
    """A policy and its planned values in every state."""

    policy: Policy
    values: Float[Array, "H S"]
    error: float = 0.0

    def value(self, state: Any) -> float:
        return float(self.values[0, round(float(np.asarray(state)[0]))])


class TabularAgent(Agent):
    """Counts of transitions and sums of rewards for every pair (s, a)."""

    def __init__(
        self,
        task: Any,
        *,
        scale: float = 1.0,
        delta: float = 0.1,
        reward_bounds: Any = (0.0, 1.0),
        **words: Any,
    ) -> None:
        """As for other agents; ``delta`` is the probability with which bounds may fail, and mean
        rewards lie within ``reward_bounds``."""
        self.scale = positive_number("scale", scale)
        self.delta = positive_number("delta", delta)
        self.reward_bounds = (float(reward_bounds[0]), float(reward_bounds[1]))
        super().__init__(task, **words)
        self.words |= {
            "scale": self.scale,
            "delta": self.delta,
            "reward_bounds": list(self.reward_bounds),
        }

    def begin(self) -> None:
        problem = self.problem
        if not isinstance(problem.transition_noise, Categorical):
            raise ArgumentError("task", f"finite states for {self.name}", repr(problem.states))
        S, A = problem.transition_noise.states.count, len(problem.actions.spread(1))
        self.counts, self.sums = np.zeros((S, A, S)), np.zeros((S, A))

    def learn_from(self, told: Told) -> None:
        s, a = (np.round(x[:, 0]).astype(int) for x in (told.states, told.actions))
        np.add.at(self.counts, (s[:-1], a, s[1:]), 1.0)
        np.add.at(self.sums, (s[:-1], a), told.rewards)

    def exploit(self, *, key: Key) -> Plan:
        rewards, transitions, _ = self.estimates()
        return self.solve_table(lambda V: rewards + transitions @ V, key)

    @property
    def gains(self) -> tuple[float, float]:
        return float("nan"), float("nan")

    def solve_table(self, backup: Any, key: Key, **bounds: float) -> "TablePlan":
        """Backward induction with this backup."""
        return backward_induction(backup, len(self.sums), self.problem.horizon, key, **bounds)

    def estimates(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean rewards (S, A), frequencies (S, A, S; uniform where nothing was seen), counts."""
        visits = self.counts.sum(axis=2)
        seen = np.maximum(visits, 1)
        unseen = np.full_like(self.counts, 1 / len(self.counts))
        frequencies = np.where(visits[:, :, None] > 0, self.counts / seen[:, :, None], unseen)
        return self.sums / seen, frequencies, visits


class DirichletPSRL(TabularAgent):
    """PSRL with the conjugate priors, Dirichlet(c/S) rows and N(0, 1) rewards (Osband 2013).

    The ``concentration`` c is how many observations the prior is worth.
    """

    name: ClassVar[str] = "dirichlet-psrl"

    def __init__(self, task: Any, *, concentration: float = 1.0, **words: Any) -> None:
        """As for other classics."""
        self.concentration = positive_number("concentration", concentration)
        super().__init__(task, **words)
        self.words["concentration"] = self.concentration

    def plan(self, *, key: Key) -> Plan:
        rng = generator(key)
        drawn = rng.standard_gamma(self.concentration / len(self.counts) + self.counts)
        transitions = drawn / drawn.sum(axis=2, keepdims=True)
        variance = self.problem.noise_variances[0]
        precision = 1.0 + self.counts.sum(axis=2) / variance
        rewards = rng.normal(self.sums / variance / precision, precision**-0.5)
        return self.solve_table(lambda V: rewards + transitions @ V, key)

    @property
    def covered(self) -> str:
        return "Bayes regret under its own priors (Osband et al. 2013); no theorem of this paper"


class UCBVI(TabularAgent):
    """Value iteration with a bonus of Hoeffding's kind, 7 H ln(5SAT/δ)/√N (Azar et al. 2017)."""

    name: ClassVar[str] = "ucbvi"

    def plan(self, *, key: Key) -> Plan:
        rewards, transitions, visits = self.estimates()
        H, (S, A) = self.problem.horizon, visits.shape
        low, high = self.reward_bounds
        steps = max(1, (self.episode + 1) * H)
        level = np.log(5 * S * A * steps / self.delta)
        bonus = self.scale * 7 * (high - low) * H * level / np.sqrt(np.maximum(visits, 1))
        bonus[visits == 0] = np.inf

        def backup(V: np.ndarray) -> np.ndarray:
            return rewards + bonus + transitions @ V

        return self.solve_table(backup, key, low=low, high=high)


class UCRL2(TabularAgent):
    """Optimism over l1 balls of rows and intervals of rewards (Jaksch et al. 2010), finite H."""

    name: ClassVar[str] = "ucrl2"

    def plan(self, *, key: Key) -> Plan:
        rewards, transitions, visits = self.estimates()
        H, (S, A) = self.problem.horizon, visits.shape
        low, high = self.reward_bounds
        steps = max(2, self.episode * H)
        seen = np.maximum(visits, 1)
        width = self.scale * np.sqrt(14 * S * np.log(2 * A * steps / self.delta) / seen)
        margin = self.scale * np.sqrt(3.5 * np.log(2 * S * A * steps / self.delta) / seen)
        best = np.clip(rewards + (high - low) * margin, low, high)

        def backup(V: np.ndarray) -> np.ndarray:
            return best + _most_hopeful(transitions, width, V) @ V

        return self.solve_table(backup, key, low=low, high=high)


def backward_induction(
    backup: Any,
    states: int,
    horizon: int,
    key: Key,
    low: float = -np.inf,
    high: float = np.inf,
) -> TablePlan:
    """H backups V -> Q (S, A); values clipped to what is possible, ties by the key."""
    rng = generator(key)
    V = np.zeros(states)
    values, choices = [], []
    for left in range(1, horizon + 1):
        Q = np.clip(backup(V), left * low, left * high)
        top = Q.max(axis=1, keepdims=True)
        tied = Q >= top - 1e-9 * (1 + np.abs(top))
        choices.append(np.argmax(np.where(tied, rng.uniform(size=Q.shape), -1.0), axis=1))
        V = top[:, 0]
        values.append(V)
    policy = TablePolicy(jnp.asarray(np.array(choices[::-1])))
    return TablePlan(policy=policy, values=jnp.asarray(np.array(values[::-1])))


def _most_hopeful(rows: np.ndarray, width: np.ndarray, V: np.ndarray) -> np.ndarray:
    """The best rows within ``width`` in l1: mass moves from the worst states to the best one."""
    order = np.argsort(V)
    moved = rows.copy()
    best = order[-1]
    moved[..., best] = np.minimum(1.0, rows[..., best] + width / 2)
    excess = moved.sum(axis=2) - 1.0
    for s in order[:-1]:
        taken = np.minimum(moved[..., s], np.maximum(excess, 0.0))
        moved[..., s] -= taken
        excess -= taken
    return moved
