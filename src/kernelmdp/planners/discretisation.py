"""Nets over states, actions and noise: their sizes, their errors, and the gap they cause."""

import dataclasses
import math

import numpy as np

from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.planners.lipschitz_bounds import LipschitzConstants

#: Memory of a node-action pair, in terms of a backup. Where a pair has fewer terms than this, its
#: prediction takes more memory than its terms.
TERMS_PER_PAIR = 32


@dataclasses.dataclass(frozen=True)
class DiscretisationSizes:
    """Numbers of nodes, actions and noise values.

    Attributes:
        states: Number of nodes along each axis of a box of states.
        actions: Number of actions along each axis of a box of actions.
        noise: Number of noise values along each axis.
    """

    states: tuple[int, ...]
    actions: tuple[int, ...]
    noise: int

    @staticmethod
    def coarsest(mdp: MDP) -> "DiscretisationSizes":
        """Return the sizes with which refinement begins.

        Args:
            mdp: The MDP to plan in.

        Returns:
            The sizes.
        """
        periodic = mdp.states.periodic
        return DiscretisationSizes(
            tuple(8 if j in periodic else 9 for j in range(mdp.states.dimension)),
            (5,) * mdp.actions.dimension,
            4 if any(mdp.transition_noise.sizes) else 1,
        )

    def refined(self, part: int, mdp: MDP) -> "DiscretisationSizes":
        """Refine one part.

        Args:
            part: 0 halves the spacing of states, 1 that of actions, 2 doubles the noise values.
            mdp: The MDP to plan in.

        Returns:
            The finer sizes.
        """
        periodic = mdp.states.periodic
        if part == 0:
            finer = tuple(2 * n if j in periodic else 2 * n - 1 for j, n in enumerate(self.states))
            return dataclasses.replace(self, states=finer)
        if part == 1:
            return dataclasses.replace(self, actions=tuple(2 * n - 1 for n in self.actions))
        return dataclasses.replace(self, noise=2 * self.noise)

    def grid(self, mdp: MDP) -> StateGrid:
        """Make the grid of nodes.

        Args:
            mdp: The MDP to plan in.

        Returns:
            The grid.
        """
        return StateGrid(mdp.states, self.states, mdp.transition_noise)

    def errors(self, mdp: MDP) -> tuple[float, float, float]:
        """Compute the cover radii η_S and η_A, and e_q ≥ W₁ of the noise values to the noise.

        Axes are independent, so the coupling axis by axis gives W₁ ≤ Σ_j W₁ along axis j.

        Args:
            mdp: The MDP to plan in.

        Returns:
            η_S, η_A and e_q.
        """
        eta_state = eta_action = 0.0
        if not mdp.states.finite:
            eta_state = float(np.linalg.norm(self.grid(mdp).spacing)) / 2
        if not mdp.actions.finite:
            low, high = mdp.actions.bounds
            eta_action = float(np.linalg.norm((high - low) / (np.array(self.actions) - 1))) / 2
        noise_sizes = mdp.transition_noise.axis_sizes(mdp.states.dimension)
        unit_error = mdp.transition_noise.quantiser(self.noise)[1] if noise_sizes.any() else 0.0
        return eta_state, eta_action, unit_error * float(noise_sizes.sum())

    def terms(self, mdp: MDP) -> int:
        """Count the terms of one backup, which the planner's ``max_terms`` bounds.

        Args:
            mdp: The MDP to plan in.

        Returns:
            The number of terms.
        """
        box, action_box = not mdp.states.finite, not mdp.actions.finite
        nodes = math.prod(self.states) if box else len(mdp.states.net(1)[0])
        pairs = nodes * (math.prod(self.actions) if action_box else len(mdp.actions.net(1)[0]))
        noisy_axes = np.count_nonzero(mdp.transition_noise.axis_sizes(mdp.states.dimension))
        nodes_read = 2 if box and mdp.states.dimension == 1 else nodes
        return pairs * max(self.noise ** int(noisy_axes) * nodes_read, TERMS_PER_PAIR)


def a_priori_gap(
    constants: LipschitzConstants,
    horizon: int,
    *,
    state_radius: float,
    action_radius: float,
    noise_error: float,
) -> float:
    """Bound the gap between upper and lower value before planning.

    Σ_h [2 L_{V,h+1} (η_S + e_q) + (L_{R,a} + L_{V,h+1} L_{P,a}) η_A] ≥ V⁺_1 − V⁻_1.

    Args:
        constants: Lipschitz constants of R̄ and P̄.
        horizon: The number of periods H.
        state_radius: Cover radius η_S of the nodes.
        action_radius: Cover radius η_A of the actions.
        noise_error: Wasserstein distance e_q of the noise values to the noise.

    Returns:
        The bound.
    """
    return sum(gap_shares(constants, horizon, (state_radius, action_radius, noise_error)))


def gap_shares(
    constants: LipschitzConstants, horizon: int, errors: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Split the a-priori gap into the shares of nodes, actions and noise.

    Args:
        constants: Lipschitz constants of R̄ and P̄.
        horizon: The number of periods H.
        errors: η_S, η_A and e_q, from ``DiscretisationSizes.errors``.

    Returns:
        The shares, whose sum is ``a_priori_gap``.
    """
    total_slope = float(constants.slopes(horizon)[1:].sum())
    action_slope = horizon * constants.reward_action + total_slope * constants.transition_action
    return 2 * total_slope * errors[0], action_slope * errors[1], 2 * total_slope * errors[2]
