"""The constant L of Assumption A1, computed instead of assumed (math B8, D6).

A1 is read on the location family p + ε (math B11): |U_h(p) − U_h(p')| ≤ L ‖p − p'‖, where
U_h(p) = E V_{h+1}(Π_S(p + ε)) and distances are measured after division by the metric of the MDP.
Each rule gives a number with its name and whether it is a proof; ``tightest`` picks the smallest.
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
    """L, the rule it came from, and whether that rule is a proof; infinity where none applies."""

    value: float
    rule: str
    certified: bool


@dataclasses.dataclass(frozen=True)
class LipschitzConstants:
    """How fast mean reward and mean next state change with state and action, Euclidean norms.

    |R̄(s, a) − R̄(s', a')| ≤ reward_state ‖s − s'‖ + reward_action ‖a − a'‖, likewise P̄. Along a
    periodic axis distances, also those of mean next states, go around the circle.
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
        """From RKHS norms B and kernel constants Λ: L_R = B_R Λ_R, L_P = B_P Λ_Z (math D6).

        ``offset_slope`` is added in the state for a known prior mean, 1 for "the state stays".
        """
        reward, transition = reward_norm * reward_slope, transition_norm * transition_slope
        return LipschitzConstants(reward, reward, transition + offset_slope, transition)

    def slopes(self, horizon: int) -> np.ndarray:
        """L_{V,h} for h = 1..H + 1: L_{V,H+1} = 0, L_{V,h} = L_{R,s} + L_{V,h+1} L_{P,s}."""
        found = [0.0]
        for _ in range(integer("horizon", horizon, least=1)):
            found.append(self.reward_state + found[-1] * self.transition_state)
        return np.array(found[::-1])


def gaussian_noise_bound(mdp: MDP, *, span: float | None = None) -> LipschitzBound:
    """L ≤ max_h span(V_{h+1}) / √(2πv), free with Gaussian noise (math B8, P9).

    Without ``span``, a bound of the spans, (highest − lowest mean reward)·(H − 1). v is the
    smallest noise variance over the axes in metric units. Projection to S cannot increase it.
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
    """L ≤ L_{V,2} = L_{R,s} Σ_{j=0}^{H−2} L_{P,s}^j (math D6).

    The constants are Euclidean, so that L in metric units is larger by max(metric). Not for a
    finite set of states, where rounding to the nearest state is not Lipschitz.
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
    """L ≤ B_R Λ_R Σ_{j=0}^{H−2} (B_P Λ_Z)^j (math D6), infinite where a kernel has no finite Λ."""
    numbers = (reward_norm, reward_slope, transition_norm, transition_slope, offset_slope)
    if any(map(math.isinf, numbers)) and min(numbers) >= 0:
        return LipschitzBound(math.inf, "RKHS norms", True)
    constants = LipschitzConstants.from_norms(*numbers)
    bound = smoothness_bound(constants, horizon, metric=metric)
    return dataclasses.replace(bound, rule="RKHS norms")


def tightest(*candidates: LipschitzBound) -> LipschitzBound:
    """The smallest of the candidates; it keeps the name of its rule."""
    if not candidates:
        raise ArgumentError("candidates", "at least one bound", "none")
    return min(candidates, key=lambda bound: bound.value)
