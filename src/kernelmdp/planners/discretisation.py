"""Nets over states, actions and noise: their sizes, their errors, and the gap these allow."""

import dataclasses
import math

import numpy as np

from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.planners.lipschitz_bounds import LipschitzConstants

#: Memory that a node-action pair takes, in terms.
PAIR = 32


@dataclasses.dataclass(frozen=True)
class DiscretisationSizes:
    """Counts along each axis of a box of states and of actions, and of noise values an axis."""

    states: tuple[int, ...]
    actions: tuple[int, ...]
    noise: int

    @staticmethod
    def coarsest(mdp: MDP) -> "DiscretisationSizes":
        """Where refinement begins."""
        around = mdp.states.periodic
        return DiscretisationSizes(
            tuple(8 if j in around else 9 for j in range(mdp.states.dimension)),
            (5,) * mdp.actions.dimension,
            4 if any(mdp.transition_noise.sizes) else 1,
        )

    def refined(self, part: int, mdp: MDP) -> "DiscretisationSizes":
        """Half the spacing of states (part 0) or actions (1), or twice the noise values (2)."""
        around = mdp.states.periodic
        if part == 0:
            finer = tuple(2 * n if j in around else 2 * n - 1 for j, n in enumerate(self.states))
            return dataclasses.replace(self, states=finer)
        if part == 1:
            return dataclasses.replace(self, actions=tuple(2 * n - 1 for n in self.actions))
        return dataclasses.replace(self, noise=2 * self.noise)

    def grid(self, mdp: MDP) -> StateGrid:
        """The nodes."""
        return StateGrid(mdp.states, self.states, mdp.transition_noise)

    def errors(self, mdp: MDP) -> tuple[float, float, float]:
        """Cover radii η_S and η_A, and e_q ≥ W₁ of the noise values to the noise.

        Axes are independent, so the coupling axis by axis gives W₁ ≤ Σ_j W₁ along axis j.
        """
        eta_state = eta_action = 0.0
        if not mdp.states.finite:
            eta_state = float(np.linalg.norm(self.grid(mdp).spacing)) / 2
        if not mdp.actions.finite:
            low, high = mdp.actions.bounds
            eta_action = float(np.linalg.norm((high - low) / (np.array(self.actions) - 1))) / 2
        sizes = mdp.transition_noise.along(mdp.states.dimension)
        unit = mdp.transition_noise.quantiser(self.noise)[1] if sizes.any() else 0.0
        return eta_state, eta_action, unit * float(sizes.sum())

    def terms(self, mdp: MDP) -> int:
        """Terms of one backup: what the planner's limit is about."""
        box, acts = not mdp.states.finite, not mdp.actions.finite
        nodes = math.prod(self.states) if box else len(mdp.states.net(1)[0])
        pairs = nodes * (math.prod(self.actions) if acts else len(mdp.actions.net(1)[0]))
        noisy = np.count_nonzero(mdp.transition_noise.along(mdp.states.dimension))
        read = 2 if box and mdp.states.dimension == 1 else nodes
        return pairs * max(self.noise ** int(noisy) * read, PAIR)


def a_priori_gap(
    constants: LipschitzConstants,
    horizon: int,
    *,
    state_radius: float,
    action_radius: float,
    noise_error: float,
) -> float:
    """Σ_h [2 L_{V,h+1} (η_S + e_q) + (L_{R,a} + L_{V,h+1} L_{P,a}) η_A] ≥ V⁺_1 − V⁻_1."""
    return sum(gap_shares(constants, horizon, (state_radius, action_radius, noise_error)))


def gap_shares(
    constants: LipschitzConstants, horizon: int, errors: tuple[float, float, float]
) -> tuple[float, float, float]:
    """What nodes, actions and noise contribute to the a-priori gap."""
    total = float(constants.slopes(horizon)[1:].sum())
    actions = horizon * constants.reward_action + total * constants.transition_action
    return 2 * total * errors[0], actions * errors[1], 2 * total * errors[2]
