"""The constant L of Assumption A1, computed instead of assumed (math B8, D6, D7).

A1 is read on the location family p + ε (math B11): |U_h(p) − U_h(p')| ≤ L ‖p − p'‖, where
U_h(p) = E V_{h+1}(Π_S(p + ε)) and distances are measured after division by the metric of the MDP.
Each rule gives a number with its name and whether it is a proof; ``tightest`` picks the smallest.
"""

import dataclasses
import math
from typing import Any

import numpy as np
from scipy import stats

from kernelmdp.domains import Box, FiniteSet
from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.mdp.grid import StateGrid
from kernelmdp.mdp.mdp import MDP
from kernelmdp.mdp.noise import Gaussian, Noise
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
    deviation = _smallest_deviation(mdp.transition_noise, mdp.metric)
    if span == 0:
        return LipschitzBound(0.0, rule, certified)
    value = span / (math.sqrt(2 * math.pi) * deviation) if deviation > 0 else math.inf
    return LipschitzBound(value, rule, certified)


def smoothness_bound(
    constants: LipschitzConstants, horizon: int, *, metric: tuple[float, ...] = (1.0,)
) -> LipschitzBound:
    """L ≤ L_{V,2} = L_{R,s} Σ_{j=0}^{H−2} L_{P,s}^j (math D6); with ``from_norms``, the RKHS bound.

    The constants are Euclidean, so that L in metric units is larger by max(metric). Not for a
    finite set of states, where rounding to the nearest state is not Lipschitz.
    """
    return LipschitzBound(float(constants.slopes(horizon)[1]) * max(metric), "smoothness", True)


def tightest(*candidates: LipschitzBound) -> LipschitzBound:
    """The smallest of the candidates; it keeps the name of its rule."""
    if not candidates:
        raise ArgumentError("candidates", "at least one bound", "none")
    return min(candidates, key=lambda bound: bound.value)


def measured_slope(values: Any, grid: StateGrid, *, metric: tuple[float, ...]) -> LipschitzBound:
    """Steepest finite difference of U_h between neighbouring places of the lattice (math D7).

    ``values`` is V (H + 1, N) at the nodes. A lower estimate of L. With Gaussian noise U is exact
    for the interpolated V; quadrature of a V with jumps has steps that are not there.
    """
    steepest = 0.0
    for table in _tables(values, grid)[1:]:
        if isinstance(grid.states, FiniteSet):
            gaps = (grid.nodes[:, None, :] - grid.nodes[None, :, :]) / np.array(metric)
            lengths = np.linalg.norm(gaps, axis=2) + np.diag(np.full(len(grid.nodes), np.inf))
            steepest = max(steepest, float((abs(table[:, None] - table[None, :]) / lengths).max()))
            continue
        if isinstance(grid.noise, Gaussian):
            smooth = _apply([matrix for matrix, _ in _smoothing(grid)], table, grid)
        else:
            smooth = np.asarray(grid.expectation(table)).reshape(grid.lattice_shape)
        for j, (step, unit) in enumerate(zip(grid.spacing, metric, strict=True)):
            around = np.take(smooth, [0], axis=j) if _periodic(grid, j) else None
            rises = np.diff(smooth, axis=j) if around is None else np.diff(
                smooth, axis=j, append=around
            )
            steepest = max(steepest, float(abs(rises).max()) * unit / step)
    return LipschitzBound(steepest, "finite differences", False)


def certified_slope(
    values: Any, grid: StateGrid, *, metric: tuple[float, ...], error: float = 0.0
) -> LipschitzBound:
    """L ≤ max over the lattice of ‖∇U_h‖ + 2φ(1) span(V_{h+1}) η / v, Gaussian noise (math D7).

    ``values`` is V (H + 1, N) at the nodes, taken as its multilinear interpolation, for which
    ∇U = E[V(p + ε) ε]/v has a closed form; η is half the diagonal of a cell. Valid for means p
    inside the lattice. A V within ``error`` of the interpolation adds 2·error/√(2πv) (math P9).
    """
    rule = "gradients on the lattice"
    certified = not grid.noise.estimated
    deviation = _smallest_deviation(grid.noise, metric)
    if isinstance(grid.states, FiniteSet) or deviation == 0:
        return LipschitzBound(math.inf, rule, certified)
    units, matrices = np.array(metric), _smoothing(grid)
    radius = float(np.linalg.norm(grid.spacing / units)) / 2
    steepest = 0.0
    for table in _tables(values, grid)[1:]:
        partial = [
            units[j]
            * _apply([slope if i == j else a for i, (a, slope) in enumerate(matrices)], table, grid)
            for j in range(len(units))
        ]
        bend = 2 * stats.norm.pdf(1.0) * float(np.ptp(table)) / deviation**2
        gradient = float(np.sqrt(sum(p**2 for p in partial)).max())
        steepest = max(steepest, gradient + bend * radius)
    return LipschitzBound(
        steepest + 2 * error / (math.sqrt(2 * math.pi) * deviation), rule, certified
    )


def _smallest_deviation(noise: Noise, metric: tuple[float, ...]) -> float:
    """√v in metric units; 0 where the Gaussian rules do not apply."""
    if not isinstance(noise, Gaussian):
        return 0.0
    return float((noise.standard_deviations(len(metric)) / np.array(metric)).min())


def _tables(values: Any, grid: StateGrid) -> np.ndarray:
    tables = np.asarray(values, dtype=float)
    if tables.ndim != 2 or tables.shape[1] != len(grid.nodes):
        raise ShapeError("values", f"shape (H + 1, {len(grid.nodes)})", f"shape {tables.shape}")
    return tables


def _periodic(grid: StateGrid, axis: int) -> bool:
    return isinstance(grid.states, Box) and axis in grid.states.periodic


def _apply(matrices: list[np.ndarray], table: np.ndarray, grid: StateGrid) -> np.ndarray:
    out = table.reshape(grid.counts)
    for j, matrix in enumerate(matrices):
        out = np.moveaxis(np.tensordot(matrix, out, axes=(1, j)), 0, j)
    return out


def _smoothing(grid: StateGrid) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each axis the matrices from V at nodes to U and to its derivative on the lattice.

    Exact for piecewise linear V, a sum of ramps: E(p + ε − x)₊ = σ(zΦ(z) + φ(z)), z = (p − x)/σ,
    with the derivative Φ(z).
    """
    found = []
    sizes = grid.noise.standard_deviations(len(grid.counts))
    for j, (n, places) in enumerate(zip(grid.counts, grid.lattice_shape, strict=True)):
        size = sizes[j] / grid.spacing[j]
        if size == 0:
            found.append((np.eye(n), np.zeros((n, n))))
            continue
        turns = math.ceil(10 * size / n) + 1 if _periodic(grid, j) else 0
        knots = np.arange(-turns * n - 1, (turns + 1) * n + 1)
        z = (np.arange(places)[:, None] - (places - n) // 2 - knots[None, :]) / size
        ramp = size * (z * stats.norm.cdf(z) + stats.norm.pdf(z))
        level, slope = (np.diff(part, n=2, axis=1) for part in (ramp, stats.norm.cdf(z)))
        if turns:  # every node counts with all its images around the circle
            level, slope = (x.reshape(places, -1, n).sum(axis=1) for x in (level, slope))
        else:  # beyond the border V is what it is there: the outer hats have no outer flank
            below, above = (ramp[:, 0] - ramp[:, 1], ramp[:, -2] - ramp[:, -1])
            level[:, 0] += 1 - below
            level[:, -1] += above
            slope[:, 0] -= stats.norm.cdf(z[:, 0]) - stats.norm.cdf(z[:, 1])
            slope[:, -1] += stats.norm.cdf(z[:, -2]) - stats.norm.cdf(z[:, -1])
        found.append((level, slope / grid.spacing[j]))
    return found
