"""The constant L of Assumption A1, computed instead of assumed (note B8, D6).

Assumption A1 is about the location family p + ε (note B11): |U_h(p) − U_h(p')| ≤ L ‖p − p'‖, where
U_h(p) = E V_{h+1}(Π_S(p + ε)) and distances are measured after division by the metric of the MDP.

Each rule returns a number with its name, and whether it is proved. ``tightest`` picks the smallest.
``kernelmdp.planners.value_slopes`` has the rules that start from a solved MDP.
"""

import dataclasses
import math

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.noise import gaussian_slope, smallest_deviation
from kernelmdp.numerics.checks import integer


@dataclasses.dataclass(frozen=True)
class LipschitzBound:
    """A bound of L.

    Attributes:
        value: The bound. Infinity if the rule does not apply.
        rule: The name of the rule that gave it.
        certified: Whether the rule is proved. False for estimates.
    """

    value: float
    rule: str
    certified: bool


@dataclasses.dataclass(frozen=True)
class LipschitzConstants:
    """Lipschitz constants of mean reward and mean next state, in Euclidean norms.

    |R̄(s, a) − R̄(s', a')| ≤ reward_state ‖s − s'‖ + reward_action ‖a − a'‖, and likewise for P̄.
    Along a periodic axis all distances, also those of mean next states, are measured around the
    circle.

    Attributes:
        reward_state: L_{R,s}, of the reward in the state.
        reward_action: L_{R,a}, of the reward in the action.
        transition_state: L_{P,s}, of the next state in the state.
        transition_action: L_{P,a}, of the next state in the action.
    """

    reward_state: float
    reward_action: float
    transition_state: float
    transition_action: float

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not (isinstance(value, int | float) and math.isfinite(value) and value >= 0):
                raise ArgumentError(field.name, "a finite number of at least 0", repr(value))

    @staticmethod
    def from_norms(
        reward_norm: float,
        reward_slope: float,
        transition_norm: float,
        transition_slope: float,
        offset_slope: float = 0.0,
    ) -> "LipschitzConstants":
        """Compute the constants from RKHS norms: L_R = B_R Λ_R, L_P = B_P Λ_Z (note D6).

        Args:
            reward_norm: RKHS norm B_R of the reward.
            reward_slope: Constant Λ_R of the reward kernel.
            transition_norm: RKHS norm B_P of the transition.
            transition_slope: Constant Λ_Z of the transition kernel.
            offset_slope: Slope in the state of a known prior mean, which is added to L_{P,s}. It is
                1 if the prior mean is the current state.

        Returns:
            The constants.
        """
        reward, transition = reward_norm * reward_slope, transition_norm * transition_slope
        return LipschitzConstants(reward, reward, transition + offset_slope, transition)

    def slopes(self, horizon: int) -> np.ndarray:
        """Compute the Lipschitz constants of the values.

        L_{V,H+1} = 0, L_{V,h} = L_{R,s} + L_{V,h+1} L_{P,s}.

        Args:
            horizon: The number of periods H.

        Returns:
            L_{V,h} for h = 1..H + 1, (H + 1,).
        """
        slopes = [0.0]
        for _ in range(integer("horizon", horizon, least=1)):
            slopes.append(self.reward_state + slopes[-1] * self.transition_state)
        return np.array(slopes[::-1])


def gaussian_noise_bound(mdp: MDP, *, span: float | None = None) -> LipschitzBound:
    """Bound L by the Gaussian noise: L ≤ max_h span(V_{h+1}) / √(2πv) (note B8, P9).

    It needs no assumption on the means. v is the smallest noise variance over the axes, in metric
    units. Projection to the state space S cannot increase the bound.

    Args:
        mdp: The MDP.
        span: A bound of max_h span(V_{h+1}). The default is
            (highest − lowest mean reward)·(H − 1).

    Returns:
        The bound. It is certified unless the size of the noise is an estimate.

    Raises:
        ArgumentError: If the span is negative or NaN.
    """
    rule = "Gaussian noise"
    certified = not mdp.transition_noise.estimated
    low, high = mdp.reward_range
    if span is None:
        span = (high - low) * (mdp.horizon - 1) if mdp.horizon > 1 else 0.0
    if not span >= 0:
        raise ArgumentError("span", "a number of at least 0", span)
    deviation = smallest_deviation(mdp.transition_noise, mdp.metric)
    return LipschitzBound(gaussian_slope(span, deviation), rule, certified)


def smoothness_bound(
    constants: LipschitzConstants, horizon: int, *, metric: tuple[float, ...] = (1.0,)
) -> LipschitzBound:
    """Bound L by smoothness: L ≤ L_{V,2} = L_{R,s} Σ_{j=0}^{H−2} L_{P,s}^j (note D6).

    It does not hold for a finite set of states, where rounding to the nearest state is not
    Lipschitz.

    Args:
        constants: Lipschitz constants of R̄ and P̄.
        horizon: The number of periods H.
        metric: The metric of the MDP. The constants are Euclidean, so L in metric units is larger
            by max(metric).

    Returns:
        The bound.
    """
    return LipschitzBound(float(constants.slopes(horizon)[1]) * max(metric), "smoothness", True)


def rkhs_bound(
    reward_norm: float,
    reward_slope: float,
    transition_norm: float,
    transition_slope: float,
    *,
    horizon: int,
    offset_slope: float = 0.0,
    metric: tuple[float, ...] = (1.0,),
) -> LipschitzBound:
    """Bound L by RKHS norms: L ≤ B_R Λ_R Σ_{j=0}^{H−2} (B_P Λ_Z)^j (note D6).

    Args:
        reward_norm: RKHS norm B_R of the reward.
        reward_slope: Constant Λ_R of the reward kernel.
        transition_norm: RKHS norm B_P of the transition.
        transition_slope: Constant Λ_Z of the transition kernel.
        horizon: The number of periods H.
        offset_slope: Slope in the state of a known prior mean of the next state.
        metric: The metric of the MDP.

    Returns:
        The bound. It is infinite if a kernel has no finite Λ.
    """
    norms = (reward_norm, reward_slope, transition_norm, transition_slope, offset_slope)
    if any(map(math.isinf, norms)) and min(norms) >= 0:
        return LipschitzBound(math.inf, "RKHS norms", True)
    constants = LipschitzConstants.from_norms(*norms)
    bound = smoothness_bound(constants, horizon, metric=metric)
    return dataclasses.replace(bound, rule="RKHS norms")


def tightest(*candidates: LipschitzBound) -> LipschitzBound:
    """Pick the smallest of several bounds.

    Args:
        *candidates: The bounds.

    Returns:
        The smallest, with the name of its rule.

    Raises:
        ArgumentError: If there are no candidates.
    """
    if not candidates:
        raise ArgumentError("candidates", "at least one bound", "none")
    return min(candidates, key=lambda bound: bound.value)
