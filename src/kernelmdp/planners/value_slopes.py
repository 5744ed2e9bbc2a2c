"""L from a solved MDP: the slope of U_h(p) = E V_{h+1}(Π_S(p + ε)) (note D7)."""

import math

import jax.numpy as jnp
import numpy as np
import scipy

from kernelmdp.errors import ShapeError
from kernelmdp.mdp.noise import gaussian_slope, smallest_deviation
from kernelmdp.mdp.state_grid import StateGrid
from kernelmdp.planners.lipschitz_bounds import LipschitzBound
from kernelmdp.types import ArrayLike


def measured_slope(
    values: ArrayLike, grid: StateGrid, *, metric: tuple[float, ...]
) -> LipschitzBound:
    """Find the steepest finite difference of U_h between neighbours on the lattice (note D7).

    It is a lower estimate of L. With Gaussian noise U is exact for the interpolated V. With other
    noise U is a quadrature, which adds artificial steps where V jumps.

    Args:
        values: V at the nodes for h = 1..H + 1, (H + 1, N).
        grid: The grid of N nodes.
        metric: The metric of the MDP, one number for each axis.

    Returns:
        The estimate, which is not certified.
    """
    rule, steepest = "finite differences", 0.0
    tables = _checked_tables(values, grid)[1:]
    if grid.states.finite:
        gaps = (grid.nodes[:, None, :] - grid.nodes[None, :, :]) / np.array(metric)
        lengths = np.linalg.norm(gaps, axis=2)
        np.fill_diagonal(lengths, math.inf)
        rises = np.abs(tables[:, :, None] - tables[:, None, :])
        return LipschitzBound(float((rises / lengths).max()), rule, False)
    gaussian = grid.noise.gaussian
    matrices = [matrix for matrix, _ in _smoothing(grid)] if gaussian else []
    for table in tables:
        if gaussian:
            smooth = _apply(matrices, table, grid)
        else:
            smooth = np.asarray(grid.expectation(jnp.asarray(table))).reshape(grid.lattice_shape)
        for j, (step, unit) in enumerate(zip(grid.spacing, metric, strict=True)):
            parts = (
                [smooth, np.take(smooth, [0], axis=j)] if j in grid.states.periodic else [smooth]
            )
            rises = np.diff(np.concatenate(parts, axis=j), axis=j)
            steepest = max(steepest, float(abs(rises).max()) * unit / step)
    return LipschitzBound(steepest, rule, False)


def certified_slope(
    values: ArrayLike, grid: StateGrid, *, metric: tuple[float, ...], error: float = 0.0
) -> LipschitzBound:
    """Bound L by gradients on the lattice, for Gaussian noise (note D7).

    L ≤ max over the lattice of ‖∇U_h‖ + 2φ(1) span(V_{h+1}) η / v, where η is half the diagonal of
    a cell. V is its multilinear interpolation, for which ∇U = E[V(p + ε) ε]/v has a closed form.
    The bound holds for means p inside the lattice.

    Args:
        values: V at the nodes for h = 1..H + 1, (H + 1, N).
        grid: The grid of N nodes.
        metric: The metric of the MDP, one number for each axis.
        error: How far the true V may be from the interpolation. It adds 2·error/√(2πv) (note P9).

    Returns:
        The bound. It is infinite for a finite set of states, and without Gaussian noise.
    """
    rule = "gradients on the lattice"
    certified = not grid.noise.estimated
    deviation = smallest_deviation(grid.noise, metric)
    if grid.states.finite or deviation == 0:
        return LipschitzBound(math.inf, rule, certified)
    units, matrices = np.array(metric), _smoothing(grid)
    radius = float(np.linalg.norm(grid.spacing / units)) / 2
    steepest = 0.0
    for table in _checked_tables(values, grid)[1:]:
        partials = [
            units[j]
            * _apply(
                [
                    derivative if i == j else smoothing
                    for i, (smoothing, derivative) in enumerate(matrices)
                ],
                table,
                grid,
            )
            for j in range(len(units))
        ]
        curvature = 2 * float(scipy.stats.norm.pdf(1.0)) * float(np.ptp(table)) / deviation**2
        gradient = float(np.sqrt(sum(p**2 for p in partials)).max())
        steepest = max(steepest, gradient + curvature * radius)
    return LipschitzBound(steepest + gaussian_slope(2 * error, deviation), rule, certified)


def _checked_tables(values: ArrayLike, grid: StateGrid) -> np.ndarray:
    tables = np.asarray(values, dtype=float)
    if tables.ndim != 2 or tables.shape[1] != len(grid.nodes):
        raise ShapeError("values", f"shape (H + 1, {len(grid.nodes)})", f"shape {tables.shape}")
    return tables


def _apply(matrices: list[np.ndarray], table: np.ndarray, grid: StateGrid) -> np.ndarray:
    """Multiply each axis of a table by its matrix."""
    product = table.reshape(grid.counts)
    for j, matrix in enumerate(matrices):
        product = np.moveaxis(np.tensordot(matrix, product, axes=(1, j)), 0, j)
    return product


def _smoothing(grid: StateGrid) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each axis the matrices from V at nodes to U and to its derivative on the lattice.

    Exact for piecewise linear V, a sum of ramps: E(p + ε − x)₊ = σ(zΦ(z) + φ(z)), z = (p − x)/σ,
    with the derivative Φ(z).
    """
    matrices = []
    deviations = grid.noise.standard_deviations(len(grid.counts))
    for j, (n, places) in enumerate(zip(grid.counts, grid.lattice_shape, strict=True)):
        deviation = deviations[j] / grid.spacing[j]
        if deviation == 0:
            matrices.append((np.eye(n), np.zeros((n, n))))
            continue
        turns = math.ceil(10 * deviation / n) + 1 if j in grid.states.periodic else 0
        knots = np.arange(-turns * n - 1, (turns + 1) * n + 1)
        z = (np.arange(places)[:, None] - (places - n) // 2 - knots[None, :]) / deviation
        ramp = deviation * (z * scipy.stats.norm.cdf(z) + scipy.stats.norm.pdf(z))
        level, slope = (np.diff(part, n=2, axis=1) for part in (ramp, scipy.stats.norm.cdf(z)))
        if turns:  # every node counts with all its images around the circle
            level, slope = (x.reshape(places, -1, n).sum(axis=1) for x in (level, slope))
        else:  # V is constant beyond the border, so the outer hat functions stay at 1 there
            below, above = (ramp[:, 0] - ramp[:, 1], ramp[:, -2] - ramp[:, -1])
            level[:, 0] += 1 - below
            level[:, -1] += above
            slope[:, 0] -= scipy.stats.norm.cdf(z[:, 0]) - scipy.stats.norm.cdf(z[:, 1])
            slope[:, -1] += scipy.stats.norm.cdf(z[:, -2]) - scipy.stats.norm.cdf(z[:, -1])
        matrices.append((level, slope / grid.spacing[j]))
    return matrices
