"""The result of a planner: a policy and its planned value."""

import abc
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.numerics.modules import Module
from kernelmdp.types import ArrayLike


class Plan(Module):
    """A policy, its planned value, and the error of that value.

    Attributes:
        policy: The policy.
        error: The error of the planned value, at the start of the episode. NaN if it is unknown.

    >>> import kernelmdp as km
    >>> agent = km.PSRL("riverswim", seed=0)
    >>> policy = agent.ask()
    >>> isinstance(agent.planned, Plan)
    True
    """

    policy: eqx.AbstractVar[Policy]
    error: eqx.AbstractVar[float]

    @abc.abstractmethod
    def value(self, state: ArrayLike) -> float:
        """Return the planned value of the first period at a state.

        Args:
            state: The state, (m,).

        Returns:
            The value. NaN if the plan does not know it.
        """

    def values_in(self, mdps: Sequence[MDP], start: ArrayLike) -> np.ndarray:
        """Compute the values of the planned policy in other MDPs, such as draws from beliefs.

        Args:
            mdps: The MDPs. They have the spaces and the horizon of the one that was planned for.
            start: The first state, (m,).

        Returns:
            One value for each MDP. NaN if the plan cannot compute them.
        """
        return np.full(len(mdps), np.nan)

    def risk(self, state: ArrayLike) -> float:
        """Return the planned probability of a violation, from the first period on at a state.

        Args:
            state: The state, (m,).

        Returns:
            The probability. NaN if the plan does not know it.
        """
        return float("nan")

    def risks(self, states: Float[np.ndarray, "n m"]) -> Float[np.ndarray, " n"]:
        """Return the planned probabilities of a violation from several states on.

        Args:
            states: The states, (n, m).

        Returns:
            ``risk`` of each state, (n,). NaN if the plan does not know it.
        """
        if not len(states) or np.isnan(self.risk(states[0])):
            return np.full(len(states), np.nan)
        return np.array([self.risk(state) for state in states])

    def episode_risk(
        self, states: Float[np.ndarray, "H1 m"], actions: Float[np.ndarray, "H q"]
    ) -> float:
        """Return the planned or predicted probability of a violation in an episode.

        Args:
            states: The visited states, (H + 1, m).
            actions: The actions, (H, q).

        Returns:
            The probability. By default it is ``risk`` at the first state.
        """
        return self.risk(states[0])

    def largest_error(
        self, states: Float[np.ndarray, "H1 m"], actions: Float[np.ndarray, "H q"]
    ) -> float:
        """Measure how wrong the plan's predictions of constraints were in an episode.

        Args:
            states: The visited states, (H + 1, m).
            actions: The actions, (H, q).

        Returns:
            The largest error, in standard deviations. NaN if the plan predicts none.
        """
        return float("nan")

    def fallback_acts(
        self, states: Float[np.ndarray, "H m"], actions: Float[np.ndarray, "H q"]
    ) -> Bool[np.ndarray, " H"]:
        """Tell in which periods the fallback acts.

        Args:
            states: The states in which the actions are taken, one for each period, (H, m).
            actions: The actions, (H, q).

        Returns:
            Whether the fallback acts, (H,). A plan without a fallback returns False.
        """
        return np.zeros(len(states), bool)

    @property
    def plan_share(self) -> float:
        """The share of the plan in the actions: 1, or less where a fallback has the rest."""
        return 1.0

    @property
    def simulated(self) -> Policy:
        """The policy that stands for the plan in simulations of what it earns."""
        return self.policy

    def with_share(self, share: float) -> "Plan | None":
        """Play a share of the plan, if the plan itself hands over to a fallback.

        Args:
            share: The share, above 0 and below 1.

        Returns:
            The changed plan. None for a plan without a fallback.
        """
        return None

    @property
    def table(self) -> "ValueTable | None":
        """Planned values of all periods on a grid of states, or None for plans without a grid."""
        return None

    @property
    def planned(self) -> bool:
        """Whether a planner chose the policy. False for a policy of random actions."""
        return True


class ValueTable(NamedTuple):
    """Planned values at the nodes of a grid, for periods 1 to H + 1.

    Attributes:
        values: The values, (H + 1, N).
        grid: The grid of N nodes.

    >>> ValueTable._fields
    ('values', 'grid')
    """

    values: Float[Array, "H1 N"]
    grid: StateGrid


class UnplannedPolicy(Plan):
    """A policy that no planner chose. Its value is unknown.

    Attributes:
        policy: The policy.
        error: NaN, because the value is unknown.
        fallback: Whether the policy is the fallback.
        known_risk: The probability of a violation, if it is known without a plan.

    >>> import jax.numpy as jnp
    >>> from kernelmdp.mdp.policy import OpenLoopPolicy
    >>> UnplannedPolicy(policy=OpenLoopPolicy(jnp.zeros((3, 1)))).value([0.0])
    nan
    """

    policy: Policy
    error: float = float("nan")
    fallback: bool = eqx.field(static=True, default=False)
    known_risk: float = float("nan")

    def value(self, state: ArrayLike) -> float:
        return float("nan")

    def risk(self, state: ArrayLike) -> float:
        return self.known_risk

    def fallback_acts(
        self, states: Float[np.ndarray, "H m"], actions: Float[np.ndarray, "H q"]
    ) -> Bool[np.ndarray, " H"]:
        return np.full(len(states), self.fallback)

    @property
    def plan_share(self) -> float:
        return 0.0

    @property
    def planned(self) -> bool:
        return False
