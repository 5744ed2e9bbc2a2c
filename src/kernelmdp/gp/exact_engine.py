"""The exact engine: a Cholesky factor to which rows are appended, without refactoring.

With N old and h new rows, C = L⁻¹K(X, X_new) and L' = [[L, 0], [Cᵀ, chol(K_new + Λ − CᵀC)]], at
cost N²h. The diagonal of L contains the variances in time order, L_tt² = λ_t + σ²_{t−1}(x_t), and
the gain, Σ ln L_tt − ½ Σ ln λ_t. Arrays have room for ``capacity`` rows. Shapes change, and
programs are compiled again, only when the capacity grows, by a quarter at a time.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from kernelmdp.gp.basis import Basis, prior_basis
from kernelmdp.gp.engine import Engine, PosteriorFunction
from kernelmdp.gp.large_batches import kernel_factor
from kernelmdp.gp.rounded_solves import checked_moments, worthwhile
from kernelmdp.kernels import Kernel
from kernelmdp.kernels.base import gram, variances
from kernelmdp.numerics.factorisation import (
    checked_cholesky,
    cholesky,
    solve_lower,
    solve_lower_transposed,
)
from kernelmdp.numerics.modules import jit, map_chunks
from kernelmdp.types import Key

#: Smallest capacity in rows.
FIRST = 256
#: Growing capacities are multiples of this number of rows.
STEP = 128
#: The same for a large batch, which should not pay for unused rows.
BULK = 16
#: Smallest number of points predicted at once: enough for a substitution at full speed.
CHUNK = 256
#: Number of entries of the kernel matrix in one chunk: 8 MB, so that a loop reuses fast memory.
ENTRIES = 2**20
#: Jitter in joint draws of noiseless values, as a share of the largest variance.
JITTER = 1e-10


class KernelMean(PosteriorFunction):
    """The function k(z, X) coefficients.

    Attributes:
        kernel: k.
        points: X, with padding.
        coefficients: The coefficients of each column; 0 for padding.
    """

    kernel: Kernel
    points: Float[Array, "c d"]
    coefficients: Float[Array, "c p"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        return map_chunks(
            lambda z: gram(self.kernel, z, self.points) @ self.coefficients, points, CHUNK
        )


class PathwiseSample(PosteriorFunction):
    """A draw by Matheron's rule: a prior draw with random features, plus k(z, X) coefficients.

    Attributes:
        basis: The random features.
        prior: Their weights in the prior draw.
        kernel: k.
        points: X, with padding.
        coefficients: The coefficients of each column; 0 for padding.
    """

    basis: Basis
    prior: Float[Array, "M p"]
    kernel: Kernel
    points: Float[Array, "c d"]
    coefficients: Float[Array, "c p"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        def evaluate(z: Array) -> Array:
            return (
                self.basis(z) @ self.prior + gram(self.kernel, z, self.points) @ self.coefficients
            )

        return map_chunks(evaluate, points, CHUNK)


class ExactEngine(Engine):
    """The posterior by a Cholesky factor. Rows beyond ``count`` are padding.

    Attributes:
        kernel: k.
        points: Observed points.
        noise: Noise variances of the rows; 1 for padding.
        factor: The Cholesky factor L; the identity for padding.
        whitened: L⁻¹ y.
        count: The number of rows.
    """

    kernel: Kernel
    points: Float[Array, "c d"]
    noise: Float[Array, " c"]
    factor: Float[Array, "c c"]
    whitened: Float[Array, "c p"]
    count: Int[Array, ""]

    @staticmethod
    def prior(kernel: Kernel, dimension: int, columns: int, dtype: Any) -> "ExactEngine":
        """Make an engine without data.

        Args:
            kernel: k.
            dimension: d.
            columns: p.
            dtype: The precision.

        Returns:
            The engine.
        """
        return ExactEngine(
            kernel=kernel,
            points=jnp.zeros((FIRST, dimension), dtype),
            noise=jnp.ones(FIRST, dtype),
            factor=jnp.eye(FIRST, dtype=dtype),
            whitened=jnp.zeros((FIRST, columns), dtype),
            count=jnp.zeros((), jnp.int32),
        )

    @staticmethod
    def from_rows(
        kernel: Kernel,
        points: Float[Array, "c d"],
        targets: Float[Array, "c p"],
        noise: Float[Array, " c"],
        count: Int[Array, ""],
    ) -> "ExactEngine":
        """Make an engine from all its rows at once. It can be traced.

        Args:
            kernel: k.
            points: Observed points, with padding.
            targets: Observations, with padding.
            noise: Noise variances, with padding.
            count: The number of rows that are not padding.

        Returns:
            The engine, without room for more rows.
        """
        is_data = jnp.arange(points.shape[0], dtype=count.dtype) < count
        both = is_data[:, None] & is_data[None, :]
        noise = jnp.where(is_data, noise, 1)
        factor = cholesky(jnp.where(both, gram(kernel, points, points), 0) + jnp.diag(noise))
        whitened = solve_lower(factor, jnp.where(is_data[:, None], targets, 0))
        return ExactEngine(
            kernel=kernel,
            points=points,
            noise=noise,
            factor=factor,
            whitened=whitened,
            count=count,
        )

    @property
    def capacity(self) -> int:
        """The number of rows for which there is room."""
        return self.factor.shape[0]

    def reserve(self, rows: int) -> "ExactEngine":
        needed = int(self.count) + rows
        if needed <= self.capacity:
            return self
        capacity = self.capacity
        while capacity < needed:
            capacity += max(capacity // 4 // STEP, 1) * STEP
        if rows > self.capacity // 4:
            capacity = -(-needed // BULK) * BULK
        padding = capacity - self.capacity
        return ExactEngine(
            kernel=self.kernel,
            points=jnp.pad(self.points, ((0, padding), (0, 0))),
            noise=jnp.pad(self.noise, (0, padding), constant_values=1),
            factor=_grown(self.factor, capacity),
            whitened=jnp.pad(self.whitened, ((0, padding), (0, 0))),
            count=self.count,
        )

    def condition_in_place(
        self, points: Float[Array, "h d"], targets: Float[Array, "h p"], noise: Float[Array, " h"]
    ) -> "ExactEngine":
        """Condition an engine without data on many rows, in memory for one factor.

        The program of ``condition`` needs several matrices of the factor's size. This runs outside
        programs; see ``large_batches``.

        Args:
            points: Points x, (h, d).
            targets: Observations, (h, p).
            noise: Noise variances, (h,).

        Returns:
            The engine. Its factor is NaN if positive definiteness was lost.
        """
        rows = points.shape[0]
        padding = -rows % BULK
        factor = kernel_factor(self.kernel, points, noise, rows + padding)
        right = jnp.pad(targets, ((0, padding), (0, 0)))
        return ExactEngine(
            kernel=self.kernel,
            points=jnp.pad(points, ((0, padding), (0, 0))),
            noise=jnp.pad(noise, (0, padding), constant_values=1),
            factor=factor,
            whitened=_whitened(factor, right),
            count=jnp.full((), rows, jnp.int32),
        )

    @property
    def _is_data(self) -> Array:
        """1 for rows of data, 0 for padding."""
        return (jnp.arange(self.capacity, dtype=self.count.dtype) < self.count).astype(
            self.factor.dtype
        )

    def _solved(self, points: Float[Array, "n d"]) -> Float[Array, "c n"]:
        """L⁻¹ K(X, points)."""
        return solve_lower(
            self.factor, self._is_data[:, None] * gram(self.kernel, self.points, points)
        )

    def condition(
        self, points: Float[Array, "h d"], targets: Float[Array, "h p"], noise: Float[Array, " h"]
    ) -> "ExactEngine":
        start = self.count
        cross = self._solved(points)
        block = gram(self.kernel, points, points) + jnp.diag(noise) - cross.T @ cross
        corner = cholesky(block)
        rows = lax.dynamic_update_slice(cross.T, corner, (jnp.zeros_like(start), start))
        whitened = solve_lower(corner, targets - cross.T @ self.whitened)
        first = jnp.zeros_like(start)
        return ExactEngine(
            kernel=self.kernel,
            points=lax.dynamic_update_slice(self.points, points, (start, first)),
            noise=lax.dynamic_update_slice(self.noise, noise, (start,)),
            factor=lax.dynamic_update_slice(self.factor, rows, (start, first)),
            whitened=lax.dynamic_update_slice(self.whitened, whitened, (start, first)),
            count=start + points.shape[0],
        )

    def prior_variance(self, points: Float[Array, "n d"]) -> Float[Array, " n"]:
        return variances(self.kernel, points)

    def gain(self) -> Float[Array, ""]:
        return jnp.sum(jnp.log(jnp.diagonal(self.factor)) - 0.5 * jnp.log(self.noise))

    @property
    def in_order_variances(self) -> Float[Array, " c"]:
        return jnp.diagonal(self.factor) ** 2 - self.noise

    def moments(
        self, points: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        def moments(z: Array) -> tuple[Array, Array]:
            solved = self._solved(z)
            return solved.T @ self.whitened, self.prior_variance(z) - jnp.sum(solved**2, axis=0)

        return map_chunks(moments, points, max(CHUNK, ENTRIES // self.capacity))

    def prediction(
        self, points: Float[Array, "n d"], tolerance: float
    ) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        double = self.factor.dtype == jnp.float64
        if tolerance == 0 or not (double and worthwhile(self.capacity, points.shape[0])):
            return self.moments(points)
        is_data = self._is_data

        def kernel_rows(z: Array) -> tuple[Array, Array]:
            return gram(self.kernel, z, self.points) * is_data[None], self.prior_variance(z)

        smallest = jnp.min(jnp.where(is_data > 0, self.noise, jnp.inf))
        return checked_moments(self.factor, smallest, self.whitened, kernel_rows, points, tolerance)

    def covariance(self, points: Float[Array, "n d"]) -> Float[Array, "n n"]:
        solved = self._solved(points)
        return gram(self.kernel, points, points) - solved.T @ solved

    def mean_function(self) -> PosteriorFunction:
        return KernelMean(self.kernel, self.points, self._update(jnp.zeros_like(self.whitened)))

    @property
    def exact_draws(self) -> bool:
        return False

    def draw(self, frequencies: int, *, key: Key) -> PosteriorFunction:
        # Approximate in law: the prior draw has random features. The update is exact.
        feature_key, weight_key, noise_key = jax.random.split(key, 3)
        dtype, dimension = self.factor.dtype, self.points.shape[1]
        basis = prior_basis(self.kernel.astype(dtype), dimension, frequencies, key=feature_key)
        values = basis(self.points)
        columns = self.whitened.shape[1]
        prior = jax.random.normal(weight_key, (values.shape[1], columns), dtype)
        errors = jax.random.normal(noise_key, (self.capacity, columns), dtype)
        observed = values @ prior + jnp.sqrt(self.noise)[:, None] * errors
        return PathwiseSample(basis, prior, self.kernel, self.points, self._update(observed))

    def _update(self, observed: Float[Array, "c p"]) -> Float[Array, "c p"]:
        """(K + Λ)⁻¹(y − observed) on the rows of data."""
        is_data = self._is_data[:, None]
        whitened = self.whitened - solve_lower(self.factor, is_data * observed)
        return is_data * solve_lower_transposed(self.factor, whitened)

    def draw_at(
        self, points: Float[Array, "n d"], draws: int, *, key: Key
    ) -> Float[Array, "draws n p"]:
        # Matheron's rule with an exact joint prior at the points and the data. It runs eagerly on
        # the rows of data: exact draws cost (n + N)³, so compilation would gain nothing.
        trimmed = self.trimmed()
        value_key, noise_key = jax.random.split(key)
        count, dtype, columns = points.shape[0], trimmed.factor.dtype, trimmed.whitened.shape[1]
        all_points = jnp.concatenate([points, trimmed.points])
        covariance = gram(trimmed.kernel, all_points, all_points)
        jitter = JITTER * jnp.max(jnp.diagonal(covariance))
        root = checked_cholesky(
            covariance + jitter * jnp.eye(covariance.shape[0], dtype=dtype),
            "the prior covariance at the points and the data",
            "points may be too close together for a joint draw: use float64 or fewer points",
        )
        normal = jax.random.normal(value_key, (draws, covariance.shape[0], columns), dtype)
        prior = jnp.einsum("ij,djp->dip", root, normal)
        errors = jax.random.normal(noise_key, (draws, trimmed.capacity, columns), dtype)
        observed = prior[:, count:] + jnp.sqrt(trimmed.noise)[None, :, None] * errors
        cross = gram(trimmed.kernel, points, trimmed.points)
        return prior[:, :count] + jax.vmap(lambda draw: cross @ trimmed._update(draw))(observed)

    def trimmed(self) -> "ExactEngine":
        """Return the same posterior without padding (one row of it if there are no data).

        Returns:
            The engine.
        """
        rows = max(int(self.count), 1)
        return ExactEngine(
            kernel=self.kernel,
            points=self.points[:rows],
            noise=self.noise[:rows],
            factor=self.factor[:rows, :rows],
            whitened=self.whitened[:rows],
            count=self.count,
        )

    @property
    def factor_to_check(self) -> Array:
        return self.whitened


@jit
def _grown(factor: Float[Array, "c c"], capacity: int) -> Float[Array, "C C"]:
    """The factor extended by an identity, in one program, so that it is allocated only once."""
    return lax.dynamic_update_slice(jnp.eye(capacity, dtype=factor.dtype), factor, (0, 0))


@jit
def _whitened(factor: Array, targets: Array) -> Array:
    return solve_lower(factor, targets)
