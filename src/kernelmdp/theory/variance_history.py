"""Posterior variances and information gains of a run, observation by observation.

One dense Cholesky factor C of K + λI contains all of them (note A2). C_tt² − λ is the variance
before observation t. Σ_t ln(C_tt²/λ)/2 is the information gain. If b is the first observation of an
episode, Σ_{b ≤ j ≤ t} C_tj² − λ is the variance at x_t given all earlier episodes.

The outputs of k ⊗ B are independent after a rotation, so each becomes a separate part. Other
kernels are one part, whose rows are all pairs of a point and an output.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.kernels import Kernel, OutputKernel
from kernelmdp.kernels.output_kernels import with_outputs
from kernelmdp.numerics.checks import float_array, require_finite
from kernelmdp.numerics.factorisation import checked_cholesky, solve_lower

#: Default number of points at which variances are computed after every observation. More points
#: check more and take more memory.
QUERY_COUNT = 64


@dataclasses.dataclass(frozen=True)
class VarianceHistory:
    """Variances and gains of E episodes of b rows each, for P independent parts.

    Attributes:
        in_order: σ²_{t−1}(x_t), given all observations before, (P, E, b).
        stale: σ²_{l−1}(z_lh), given all episodes before, (P, E, b).
        gains: Information gain of each episode, given those before it, (P, E).
        query_variances: Variances at Q query points after 0, 1, 2, … observations,
            (P, E·b + 1, Q).
        noise_variances: The noise variance λ of each part, (P,).
        prior_variances: κ, the largest prior variance at the points, of each part, (P,).
        copies: How many outputs share each part, (P,).
        horizon: The number of periods H.
        outputs: The number of outputs m.
    """

    in_order: np.ndarray
    stale: np.ndarray
    gains: np.ndarray
    query_variances: np.ndarray
    noise_variances: np.ndarray
    prior_variances: np.ndarray
    copies: np.ndarray
    horizon: int
    outputs: int

    @property
    def episodes(self) -> int:
        """The number of episodes E."""
        return int(self.in_order.shape[1])

    @property
    def block(self) -> int:
        """The number of rows b of an episode: H, or mH if outputs are not independent."""
        return int(self.in_order.shape[2])

    @property
    def gain_by_episode(self) -> np.ndarray:
        """Information gain of all outputs together after each episode, (E,)."""
        return np.cumsum(self.copies @ self.gains)

    @property
    def gain(self) -> float:
        """Information gain of all data."""
        return float(self.gain_by_episode[-1]) if self.episodes else 0.0


def variance_history(
    kernel: Kernel | OutputKernel, points: Any, *, noise_variance: Any, queries: Any = None
) -> VarianceHistory:
    """Compute the posterior variances and information gains of a run.

    Args:
        kernel: The kernel.
        points: The visited points, (E, H, d).
        noise_variance: The noise variance λ, one number or one for each output.
        queries: Points at which variances are computed after every observation, (Q, d). None means
            some of the visited points.

    Returns:
        The variances and gains.

    Raises:
        ShapeError: If ``points`` does not have three axes.

    >>> import numpy as np
    >>> from kernelmdp import kernel
    >>> history = variance_history(kernel("se(1)"), np.zeros((2, 2, 1)), noise_variance=2.0)
    >>> history.in_order.round(3).tolist()
    [[[1.0, 0.667], [0.5, 0.4]]]
    >>> history.stale.round(3).tolist()
    [[[1.0, 1.0], [0.5, 0.5]]]
    """
    z = np.asarray(float_array(points, "points"))
    if z.ndim != 3:
        raise ShapeError("points", "shape (episodes, horizon, d)", f"shape {z.shape}")
    require_finite("points", z)
    rows = z.reshape(-1, z.shape[2])
    if queries is None:
        indices = np.linspace(0, len(rows) - 1, min(QUERY_COUNT, len(rows))).astype(int)
        queries = rows[np.unique(indices)]
    query_points = np.asarray(float_array(queries, "queries"))
    parts = _parts(kernel, np.asarray(noise_variance, float), rows.shape[1])
    part_histories = [_part_history(part, rows, query_points, len(z)) for part in parts]
    in_order, stale, gains, query_variances = (
        np.stack(arrays) for arrays in zip(*part_histories, strict=True)
    )
    return VarianceHistory(
        in_order,
        stale,
        gains,
        query_variances,
        noise_variances=np.array([part.noise_variance for part in parts]),
        prior_variances=np.array([_largest_prior_variance(part, rows) for part in parts]),
        copies=np.array([float(part.copies) for part in parts]),
        horizon=z.shape[1],
        outputs=kernel.outputs,
    )


@dataclasses.dataclass(frozen=True)
class _VariancePart:
    """scale · kernel with one λ, on points or on rows (point, output).

    ``rows_per_point`` is 1, or the number of outputs.
    """

    kernel: Kernel
    noise_variance: float
    scale: float = 1.0
    copies: int = 1
    rows_per_point: int = 1

    def matrix(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        x, y = (self._rows(points) for points in (first, second))
        return self.scale * np.asarray(self.kernel(x, y))

    def _rows(self, points: np.ndarray) -> Any:
        return points if self.rows_per_point == 1 else with_outputs(points, self.rows_per_point)


def _parts(kernel: Kernel | OutputKernel, noise: np.ndarray, dimension: int) -> list[_VariancePart]:
    m = kernel.outputs
    variances = noise.ravel()[:1] if kernel.scalar else np.broadcast_to(noise, (m,))
    same = bool((variances == variances[0]).all())
    split = kernel.decompose(same_noise=same)
    if split is not None:
        # The parts of k ⊗ B belong to no single output. All outputs then have the same variance.
        pairs = zip(split.parts, variances, strict=False)
        return [
            _VariancePart(p.kernel, float(variance), scale=p.scale, copies=p.copies)
            for p, variance in pairs
        ]
    if not same:
        raise ArgumentError("noise_variance", "one number for outputs that are correlated", noise)
    return [_VariancePart(kernel.as_scalar(dimension), float(variances[0]), rows_per_point=m)]


def _largest_prior_variance(part: _VariancePart, rows: np.ndarray) -> float:
    if not len(rows):
        return 0.0
    return part.scale * float(np.max(np.asarray(part.kernel.diagonal(part._rows(rows)))))


def _part_history(
    part: _VariancePart, rows: np.ndarray, query_points: np.ndarray, episodes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """``in_order``, ``stale``, ``gains`` and ``query_variances`` of one part."""
    matrix = part.matrix(rows, rows)
    prior = part.scale * np.asarray(part.kernel.diagonal(part._rows(query_points)))
    if not len(matrix):
        empty = np.zeros((episodes, 0))
        return empty, empty, np.zeros(episodes), prior[None]
    factor = checked_cholesky(
        jnp.asarray(matrix + part.noise_variance * np.eye(len(matrix))),
        "the kernel matrix of the run plus λ",
        "points repeat with too little noise",
    )
    cross = np.asarray(solve_lower(factor, jnp.asarray(part.matrix(rows, query_points))))
    query_variances = prior[None, :] - np.concatenate(
        [0 * prior[None], np.cumsum(cross**2, axis=0)]
    )
    lower = np.asarray(factor)
    block = len(lower) // episodes
    squares = np.diag(lower) ** 2
    starts = np.repeat(np.arange(episodes) * block, block)
    in_same_episode = np.arange(len(lower))[None, :] >= starts[:, None]
    stale = np.sum(np.where(in_same_episode, lower**2, 0.0), axis=1)
    shape = (episodes, block)
    gains = 0.5 * np.sum(np.log(squares / part.noise_variance).reshape(shape), axis=1)
    in_order, before_episode = (
        np.maximum(v - part.noise_variance, 0).reshape(shape) for v in (squares, stale)
    )
    return in_order, before_episode, gains, np.maximum(query_variances, 0)
