"""The engine for one-hot kernels, v·1{x and y in the same cell}: cells are independent.

After n rows with noise variances λ_t in a cell, with N = Σ 1/λ_t and Y = Σ y_t/λ_t there,

    mean = Y / (N + 1/v),   variance = 1 / (N + 1/v),   gain = ½ Σ_cells ln(1 + vN).

With one noise variance λ and v = 1 the mean is Σy/(n + λ) (note D4). An update changes observed
cells only.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from kernelmdp.gp.basis import Basis, FeatureBasis
from kernelmdp.gp.engine import Engine, PosteriorFunction
from kernelmdp.kernels import Kernel
from kernelmdp.types import Key


class TableFunction(PosteriorFunction):
    """One number for each cell and column.

    Attributes:
        kernel: Defines the cells.
        values: The numbers.
    """

    kernel: Kernel
    values: Float[Array, "c p"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        return self.values[jax.vmap(self.kernel.cell)(points)]


class TableEngine(Engine):
    """Independent Gaussian cells; see the module's text.

    Attributes:
        kernel: Defines the cells.
        variance: v.
        precision: N of each cell.
        sums: Y of each cell and column.
        count: The number of rows.
    """

    kernel: Kernel
    variance: Float[Array, ""]
    precision: Float[Array, " c"]
    sums: Float[Array, "c p"]
    count: Int[Array, ""]

    @staticmethod
    def prior(kernel: Kernel, variance: Float[Array, ""], columns: int) -> "TableEngine":
        """Make an engine without data: N(0, variance) for each cell and column.

        Args:
            kernel: Defines the cells.
            variance: v.
            columns: p.

        Returns:
            The engine.
        """
        cells = kernel.cell_count
        assert cells is not None
        dtype = variance.dtype
        return TableEngine(
            kernel=kernel,
            variance=variance,
            precision=jnp.zeros(cells, dtype),
            sums=jnp.zeros((cells, columns), dtype),
            count=jnp.zeros((), jnp.int32),
        )

    def condition(
        self, points: Float[Array, "h d"], targets: Float[Array, "h p"], noise: Float[Array, " h"]
    ) -> "TableEngine":
        cells = self._cells(points)
        return TableEngine(
            kernel=self.kernel,
            variance=self.variance,
            precision=self.precision.at[cells].add(1 / noise),
            sums=self.sums.at[cells].add(targets / noise[:, None]),
            count=self.count + jnp.asarray(points.shape[0], self.count.dtype),
        )

    @property
    def _variances(self) -> Float[Array, " c"]:
        return 1 / (self.precision + 1 / self.variance)

    @property
    def _means(self) -> Float[Array, "c p"]:
        return self.sums * self._variances[:, None]

    def _cells(self, points: Float[Array, "n d"]) -> Int[Array, " n"]:
        return jax.vmap(self.kernel.cell)(points)

    def moments(
        self, points: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        cells = self._cells(points)
        return self._means[cells], self._variances[cells]

    def covariance(self, points: Float[Array, "n d"]) -> Float[Array, "n n"]:
        cells = self._cells(points)
        same = cells[:, None] == cells[None, :]
        return jnp.where(same, self._variances[cells][:, None], 0.0)

    def mean_function(self) -> PosteriorFunction:
        return TableFunction(self.kernel, self._means)

    def draw(self, frequencies: int, *, key: Key) -> PosteriorFunction:
        # Exact in law.
        noise = jax.random.normal(key, self.sums.shape, self.sums.dtype)
        return TableFunction(self.kernel, self._means + jnp.sqrt(self._variances)[:, None] * noise)

    def draw_at(
        self, points: Float[Array, "n d"], draws: int, *, key: Key
    ) -> Float[Array, "draws n p"]:
        noise = jax.random.normal(key, (draws, *self.sums.shape), self.sums.dtype)
        tables = self._means[None] + jnp.sqrt(self._variances)[None, :, None] * noise
        return tables[:, self._cells(points)]

    def gain(self) -> Float[Array, ""]:
        return 0.5 * jnp.sum(jnp.log1p(self.variance * self.precision))

    def weight_form(self, dimension: int) -> tuple[Basis, Float[Array, "c c"]]:
        dtype = self.precision.dtype
        kernel_variance = self.kernel.variance(jnp.zeros(dimension, dtype))
        factor = jnp.sqrt(self.variance / kernel_variance)
        return FeatureBasis(self.kernel), factor * jnp.eye(self.precision.shape[0], dtype=dtype)

    def reserve(self, rows: int) -> "TableEngine":
        return self

    @property
    def factor_to_check(self) -> Array:
        return self.precision
