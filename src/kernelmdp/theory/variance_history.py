"""What the data of a run says of an unknown function, observation by observation.

One dense Cholesky factor C of K + λI has everything (math A2): C_tt² − λ is the variance before
observation t, Σ_t ln(C_tt²/λ)/2 the information gain, and Σ_{b ≤ j ≤ t} C_tj² − λ the variance at
x_t given all observations before the first one, b, of its episode.

Outputs of k ⊗ B are independent after a rotation, so each is a part of its own; only kernels
without such a form are one part whose rows are all pairs of a point and an output.
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

#: Points at which variances are followed through time when nothing is said.
QUERIES = 64


@dataclasses.dataclass(frozen=True)
class VarianceHistory:
    """Variances and gains of E episodes of b rows each, for P independent parts.

    ``noise`` is λ and ``prior`` is κ, the largest prior variance at the points, of each part;
    ``copies`` is how many outputs share it.
    """

    in_order: np.ndarray  # (P, E, b): σ²_{t−1}(x_t)
    stale: np.ndarray  # (P, E, b): σ²_{l−1}(z_lh), before the episode
    gains: np.ndarray  # (P, E): information of each episode given those before it
    followed: np.ndarray  # (P, E·b + 1, Q): variances at queries after 0, 1, 2, … observations
    noise: np.ndarray  # (P,)
    prior: np.ndarray  # (P,)
    copies: np.ndarray  # (P,)
    horizon: int
    outputs: int

    @property
    def episodes(self) -> int:
        """E."""
        return int(self.in_order.shape[1])

    @property
    def block(self) -> int:
        """Rows of an episode, b: H, or mH where outputs are not independent."""
        return int(self.in_order.shape[2])

    @property
    def gain_by_episode(self) -> np.ndarray:
        """Information gain after each episode, all outputs together, (E,)."""
        return np.cumsum(self.copies @ self.gains)

    @property
    def gain(self) -> float:
        """Information gain of all the data."""
        return float(self.gain_by_episode[-1]) if self.episodes else 0.0


def variance_history(
    kernel: Kernel | OutputKernel, points: Any, *, noise_variance: Any, queries: Any = None
) -> VarianceHistory:
    """Follow a posterior through episodes: points (E, H, d), λ one number or one an output.

    Variances at ``queries`` (Q, d), by default some of the points, are kept after every single
    observation.

    >>> import numpy as np
    >>> from kernelmdp import kernel
    >>> found = variance_history(kernel("se(1)"), np.zeros((2, 2, 1)), noise_variance=2.0)
    >>> found.in_order.round(3).tolist()
    [[[1.0, 0.667], [0.5, 0.4]]]
    >>> found.stale.round(3).tolist()
    [[[1.0, 1.0], [0.5, 0.5]]]
    """
    z = np.asarray(float_array(points, "points"))
    if z.ndim != 3:
        raise ShapeError("points", "shape (episodes, horizon, d)", f"shape {z.shape}")
    require_finite("points", z)
    rows = z.reshape(-1, z.shape[2])
    if queries is None:
        spread = np.linspace(0, len(rows) - 1, min(QUERIES, len(rows))).astype(int)
        queries = rows[np.unique(spread)]
    asked = np.asarray(float_array(queries, "queries"))
    parts = _parts(kernel, np.asarray(noise_variance, float), rows.shape[1])
    found = [_follow(part, rows, asked, len(z)) for part in parts]
    in_order, stale, gains, followed = (np.stack(each) for each in zip(*found, strict=True))
    return VarianceHistory(
        in_order,
        stale,
        gains,
        followed,
        noise=np.array([part.noise for part in parts]),
        prior=np.array([_largest(part, rows) for part in parts]),
        copies=np.array([float(part.copies) for part in parts]),
        horizon=z.shape[1],
        outputs=kernel.outputs,
    )


@dataclasses.dataclass(frozen=True)
class _VariancePart:
    """scale · kernel with one λ, on points or on rows (point, output)."""

    kernel: Kernel
    noise: float
    scale: float = 1.0
    copies: int = 1
    rows: int = 1  # of one point

    def matrix(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        x, y = (self._rows(points) for points in (first, second))
        return self.scale * np.asarray(self.kernel(x, y))

    def _rows(self, points: np.ndarray) -> Any:
        return points if self.rows == 1 else with_outputs(points, self.rows)


def _parts(kernel: Kernel | OutputKernel, noise: np.ndarray, dimension: int) -> list[_VariancePart]:
    m = kernel.outputs
    each = noise.ravel()[:1] if kernel.scalar else np.broadcast_to(noise, (m,))
    same = bool((each == each[0]).all())
    split = kernel.decompose(same_noise=same)
    if split is not None:
        # A part without output of its own, of k ⊗ B, comes with one noise variance for all.
        pairs = zip(split.parts, each, strict=False)
        return [
            _VariancePart(p.kernel, float(own), scale=p.scale, copies=p.copies) for p, own in pairs
        ]
    if not same:
        raise ArgumentError("noise_variance", "one number for outputs that are correlated", noise)
    return [_VariancePart(kernel.as_scalar(dimension), float(each[0]), rows=m)]


def _largest(part: _VariancePart, rows: np.ndarray) -> float:
    if not len(rows):
        return 0.0
    return part.scale * float(np.max(np.asarray(part.kernel.diagonal(part._rows(rows)))))


def _follow(
    part: _VariancePart, rows: np.ndarray, asked: np.ndarray, episodes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    matrix = part.matrix(rows, rows)
    prior = part.scale * np.asarray(part.kernel.diagonal(part._rows(asked)))
    if not len(matrix):
        empty = np.zeros((episodes, 0))
        return empty, empty, np.zeros(episodes), prior[None]
    factor = checked_cholesky(
        jnp.asarray(matrix + part.noise * np.eye(len(matrix))),
        "the kernel matrix of the run plus λ",
        "points repeat with too little noise",
    )
    across = np.asarray(solve_lower(factor, jnp.asarray(part.matrix(rows, asked))))
    followed = prior[None, :] - np.concatenate([0 * prior[None], np.cumsum(across**2, axis=0)])
    lower = np.asarray(factor)
    block = len(lower) // episodes
    squares = np.diag(lower) ** 2
    starts = np.repeat(np.arange(episodes) * block, block)
    own = np.arange(len(lower))[None, :] >= starts[:, None]
    stale = np.sum(np.where(own, lower**2, 0.0), axis=1)
    shape = (episodes, block)
    gains = 0.5 * np.sum(np.log(squares / part.noise).reshape(shape), axis=1)
    in_order, before = (np.maximum(v - part.noise, 0).reshape(shape) for v in (squares, stale))
    return in_order, before, gains, np.maximum(followed, 0)
