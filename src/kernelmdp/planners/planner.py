"""What a planner is: an MDP in, a plan out. Nothing else is asked of it."""

from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from kernelmdp.mdp.episode import EpisodeSpaces
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.noise import Noise
from kernelmdp.mdp.problem import Problem
from kernelmdp.planners.plan import Plan
from kernelmdp.types import ArrayLike, Key


@runtime_checkable
class Spaces(EpisodeSpaces, Protocol):
    """Where a plan is made: what MDPs and problems have in common.

    >>> import kernelmdp as km
    >>> isinstance(km.make("riverswim").problem, Spaces)
    True
    """

    @property
    def transition_noise(self) -> Noise: ...


@runtime_checkable
class Planner(Protocol):
    """Plans for an MDP, or for the best member of a family of plausible ones.

    ``plan`` is all that a planner must have. The other methods have defaults: derive from this
    class to get them.

    >>> import kernelmdp as km
    >>> isinstance(km.MPCPlanner(), Planner)
    True
    """

    #: Whether plans are tables over the states, for which state spaces need bounds.
    uses_grid: ClassVar[bool] = False
    #: Whether plans are optimal but for the spacing of a grid: those the theorems are about.
    optimal: ClassVar[bool] = False

    #: Whether the policy searches anew at every state, which takes a while.
    replans: ClassVar[bool] = False
    #: Whether plans are good to a tolerance that falls with the episode, as the paper's are.
    approximate: ClassVar[bool] = False

    def plan(self, mdp: MDP, *, start: ArrayLike | None, key: Key) -> Plan:
        """A policy for the MDP, with its planned value.

        Args:
            mdp: The MDP, or a family of plausible ones.
            start: The state in which the episode starts, where it is known.
            key: Of all that is random in the plan.
        """
        ...

    def query_points(self, spaces: Spaces) -> np.ndarray | None:
        """All points z at which plans ask the model, (n, d); None when they are not known."""
        return None

    def solvable(self, mdp: MDP) -> bool:
        """Whether the planner finds an optimum in this MDP; PSRL draws again until it does."""
        return True

    def for_episode(self, episode: int, *, horizon: int) -> "Planner":
        """The planner for an episode, counted from 1."""
        return self

    @property
    def keeps_lipschitz(self) -> bool:
        """Whether planned values keep to the L of the MDP."""
        return True

    @classmethod
    def for_problem(cls, problem: Problem) -> "Planner":
        """A planner with the sizes that suit a problem."""
        return cls()
