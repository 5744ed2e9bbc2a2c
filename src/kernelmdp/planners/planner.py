"""The contract of planners: an MDP in, a plan out."""

from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from kernelmdp.mdp.episode import EpisodeSpaces
from kernelmdp.mdp.fallback import Fallback
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.noise import Noise
from kernelmdp.mdp.problem import Problem
from kernelmdp.planners.plan import Plan
from kernelmdp.types import ArrayLike, Key


@runtime_checkable
class Spaces(EpisodeSpaces, Protocol):
    """State space, action space, horizon and transition noise: what MDPs and problems share.

    Attributes:
        transition_noise: The noise of the next state.

    >>> import kernelmdp as km
    >>> isinstance(km.make("riverswim").problem, Spaces)
    True
    """

    @property
    def transition_noise(self) -> Noise: ...


@runtime_checkable
class Planner(Protocol):
    """Plans for an MDP, or for the best member of a family of plausible MDPs.

    A planner must have ``plan``. The other methods have defaults: derive from this class to get
    them.

    Attributes:
        uses_grid: Whether plans are tables over the states. State spaces then need bounds.
        optimal: Whether plans are optimal up to the spacing of a grid, as the theorems assume.
        replans: Whether the policy searches again at every state. Its actions then take longer.
        approximate: Whether plans are optimal up to a tolerance that decreases with the episode,
            as in the paper.
        safe_name: The name of the planner that keeps constraints and wraps this one; None if there
            is none. ``constrained`` makes it.
        keeps_constraints: Whether plans keep constraints. ``within`` then tells the planner how.
        bounds_risk: Whether the planned risk of a violation is a bound, and no estimate.
        searches_functions: Whether the best member of a family is searched among whole functions.
            Such a search may be short of optimism.
        needs_quadratic_rewards: Whether rewards must be quadratic. Rewards that are lowered by
            their standard deviations are not.
        drawn_models: Number of models, drawn from the beliefs, that plans need in the MDP.

    >>> import kernelmdp as km
    >>> isinstance(km.MPCPlanner(), Planner)
    True
    """

    uses_grid: ClassVar[bool] = False
    optimal: ClassVar[bool] = False
    replans: ClassVar[bool] = False
    approximate: ClassVar[bool] = False
    safe_name: ClassVar[str | None] = None
    keeps_constraints: ClassVar[bool] = False
    bounds_risk: ClassVar[bool] = False
    searches_functions: ClassVar[bool] = False
    needs_quadratic_rewards: ClassVar[bool] = False
    drawn_models: int = 0

    def plan(self, mdp: MDP, *, start: ArrayLike | None, key: Key) -> Plan:
        """Plan a policy for an MDP.

        Args:
            mdp: The MDP, or a family of plausible MDPs.
            start: The state in which the episode starts, (m,). None if it is unknown.
            key: Decides everything random in the plan.

        Returns:
            The policy with its planned value.
        """
        ...

    def query_points(self, spaces: Spaces) -> np.ndarray | None:
        """List the points z = (s, a) at which every plan evaluates the model.

        Args:
            spaces: An MDP or a problem.

        Returns:
            The points, (n, d). None if they are not known in advance.
        """
        return None

    def visited_states(self, spaces: Spaces) -> int:
        """Return the number of visited states that plans need, in ``MDP.visited``.

        Args:
            spaces: An MDP or a problem.

        Returns:
            The number, 0 for none.
        """
        return 0

    def prepared(self, mdp: MDP, *, key: Key) -> MDP:
        """Compute what all plans in an MDP have in common.

        Args:
            mdp: The MDP or family.
            key: Decides everything random in it.

        Returns:
            The MDP, with signals that ``plan`` would compute otherwise.
        """
        return mdp

    def solvable(self, mdp: MDP) -> bool:
        """Return whether the planner finds an optimum in an MDP.

        PSRL draws MDPs until one is solvable.

        Args:
            mdp: The MDP.

        Returns:
            Whether it can be solved.
        """
        return True

    def for_episode(self, episode: int, *, horizon: int) -> "Planner":
        """Return the planner for an episode.

        Args:
            episode: The number of the episode, counted from 1.
            horizon: The number of periods H.

        Returns:
            This planner, or one with the settings for the episode.
        """
        return self

    @property
    def keeps_lipschitz(self) -> bool:
        """Whether planned values obey the Lipschitz constant L of the MDP."""
        return True

    def rounds_up(self, spaces: Spaces) -> bool:
        """Whether no plan for a family is short of optimism, up to the planner's grid.

        Args:
            spaces: An MDP or a problem.

        Returns:
            Whether the planned values of a family are at least the optimal value of each member.
        """
        return True

    def rounded_up(self) -> "Planner":
        """Return the planner whose plans are not short of optimism, where there is one.

        Returns:
            This planner, or one that ``rounds_up``.
        """
        return self

    def within(self, risk: float, fallback: Fallback | None) -> "Planner":
        """Return the planner for an episode with constraints.

        Args:
            risk: The probability of a violation that the episode may take.
            fallback: The fallback, or None.

        Returns:
            The planner. A planner that keeps no constraints returns itself.
        """
        return self

    def without_optimism(self) -> "Planner":
        """Return the planner whose values are those of the centre of a family.

        Returns:
            The planner. A planner that cannot do so returns itself.
        """
        return self

    @classmethod
    def for_problem(cls, problem: Problem) -> "Planner":
        """Make a planner with sizes that suit a problem.

        Args:
            problem: The problem to plan for.

        Returns:
            The planner.
        """
        return cls()
