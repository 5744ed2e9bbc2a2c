"""What a planner returns: a policy, and what it was planned to be worth."""

import abc
from typing import NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from kernelmdp.mdp.policy import Policy
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.numerics.modules import Module
from kernelmdp.types import ArrayLike


class Plan(Module):
    """A policy, the value it was planned to have, and what is known of that value's error.

    >>> import kernelmdp as km
    >>> agent = km.PSRL("riverswim", seed=0)
    >>> policy = agent.ask()
    >>> isinstance(agent.planned, Plan)
    True
    """

    policy: eqx.AbstractVar[Policy]
    #: What is known of the error of the planned value at the state asked about; NaN when nothing.
    error: eqx.AbstractVar[float]

    @abc.abstractmethod
    def value(self, state: ArrayLike) -> float:
        """The planned value of the first period at a state."""

    @property
    def table(self) -> "ValueTable | None":
        """Planned values of all periods on a grid of states, where the plan has them."""
        return None

    @property
    def planned(self) -> bool:
        """Whether the policy was planned, rather than drawn by chance."""
        return True


class ValueTable(NamedTuple):
    """Planned values at the nodes of a grid, for periods 1 to H + 1.

    >>> ValueTable._fields
    ('values', 'grid')
    """

    values: Float[Array, "H1 N"]
    grid: StateGrid


class UnplannedPolicy(Plan):
    """A policy that nobody planned: its value is not known.

    >>> import jax.numpy as jnp
    >>> from kernelmdp.mdp.policy import OpenLoopPolicy
    >>> UnplannedPolicy(policy=OpenLoopPolicy(jnp.zeros((3, 1)))).value([0.0])
    nan
    """

    policy: Policy
    error: float = float("nan")

    def value(self, state: ArrayLike) -> float:
        return float("nan")

    @property
    def planned(self) -> bool:
        return False
