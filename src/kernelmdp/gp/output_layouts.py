"""Layouts: how m outputs are represented by scalar engines.

- Shared: k ⊗ identity with one noise variance (and a single output). One engine has m columns.
- Rotated: k ⊗ B = Σ_j b_j u_j u_jᵀ k with one noise variance. In the coordinates ỹ = Uᵀy the
  outputs are independent with kernels b_j k, because λI does not change under the rotation.
  Independent outputs with different kernels or noise variances have U = I.
- Dense: one engine on rows (x, i). It suits every kernel and costs m³ times the work.
- Column: one engine with m columns that have different kernels.
- Mixed: m outputs are given linear combinations of p such columns.
"""

import abc
import functools

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain, FiniteSet, join
from kernelmdp.kernels.output_kernels import with_outputs
from kernelmdp.numerics.modules import Module


class Layout(Module):
    """Converts points and outputs to rows of engines, and results of engines to outputs.

    Attributes:
        outputs: m.
    """

    outputs: eqx.AbstractVar[int]

    def rows(self, points: Float[Array, "n d"]) -> Float[Array, "rows d1"]:
        """Convert points to rows of an engine.

        Args:
            points: (n, d).

        Returns:
            The rows.
        """
        return points

    @property
    def rows_per_point(self) -> int:
        """The number of rows that an engine has for one point."""
        return 1

    def row_dimension(self, dimension: int) -> int:
        """Return the number of coordinates of a row.

        Args:
            dimension: The number of coordinates of a point.

        Returns:
            The number.
        """
        return dimension

    def row_domain(self, domain: Domain) -> Domain:
        """Return the domain of rows.

        Args:
            domain: The domain of points.

        Returns:
            The domain.
        """
        return domain

    @property
    def one_factor(self) -> bool:
        """Whether the factor of a single engine is that of all outputs."""
        return True

    def groups(self) -> list[slice] | None:
        """Return the outputs that belong to each engine.

        Returns:
            A slice of outputs for each engine, or None if engines share outputs.
        """
        return None

    @abc.abstractmethod
    def targets(
        self, residuals: Float[Array, "n m"], noise: Float[Array, " m"]
    ) -> list[tuple[Float[Array, "rows p"], Float[Array, " rows"]]]:
        """Convert residuals to targets of engines.

        Args:
            residuals: Observations minus the prior mean, (n, m).
            noise: Noise variances of the outputs.

        Returns:
            Targets and noise variances for each engine.
        """

    @abc.abstractmethod
    def values(self, columns: list[Float[Array, "rows p"]]) -> Float[Array, "n m"]:
        """Convert values of engines to outputs.

        Args:
            columns: Values of each engine.

        Returns:
            The outputs, (n, m).
        """

    @abc.abstractmethod
    def variances(self, parts: list[Float[Array, " rows"]]) -> Float[Array, "n m"]:
        """Convert variances of engines to variances of outputs.

        Args:
            parts: Variances of each engine.

        Returns:
            The variances, (n, m).
        """

    @abc.abstractmethod
    def covariance(self, parts: list[Float[Array, "rows rows"]]) -> Float[Array, "nm nm"]:
        """Convert covariances of engines to the joint covariance.

        Args:
            parts: Covariances of each engine.

        Returns:
            The covariance over pairs (point, output).
        """

    def gain(self, parts: list[Float[Array, ""]]) -> Float[Array, ""]:
        """Compute the information gain of all outputs together.

        Args:
            parts: Gains of each engine.

        Returns:
            The gain.
        """
        return functools.reduce(jnp.add, parts)


class SharedLayout(Layout):
    """One engine whose columns are the outputs.

    Attributes:
        outputs: m.
    """

    outputs: int = eqx.field(static=True)

    def groups(self) -> list[slice] | None:
        return [slice(0, self.outputs)]

    def targets(
        self, residuals: Float[Array, "n m"], noise: Float[Array, " m"]
    ) -> list[tuple[Float[Array, "rows p"], Float[Array, " rows"]]]:
        return [(residuals, jnp.broadcast_to(noise[0], residuals.shape[:1]))]

    def values(self, columns: list[Float[Array, "rows p"]]) -> Float[Array, "n m"]:
        return columns[0]

    def variances(self, parts: list[Float[Array, " rows"]]) -> Float[Array, "n m"]:
        return jnp.broadcast_to(parts[0][:, None], (parts[0].shape[0], self.outputs))

    def covariance(self, parts: list[Float[Array, "rows rows"]]) -> Float[Array, "nm nm"]:
        return jnp.kron(parts[0], jnp.eye(self.outputs, dtype=parts[0].dtype))

    def gain(self, parts: list[Float[Array, ""]]) -> Float[Array, ""]:
        return self.outputs * parts[0]


class RotatedLayout(Layout):
    """One engine for each of the independent outputs Uᵀy; U has orthonormal columns.

    Attributes:
        outputs: m.
        rotation: U.
    """

    outputs: int = eqx.field(static=True)
    rotation: Float[Array, "m q"]

    @property
    def one_factor(self) -> bool:
        return False

    def groups(self) -> list[slice] | None:
        if not np.array_equal(self.rotation, np.eye(self.outputs)):
            return None
        return [slice(j, j + 1) for j in range(self.outputs)]

    def targets(
        self, residuals: Float[Array, "n m"], noise: Float[Array, " m"]
    ) -> list[tuple[Float[Array, "rows p"], Float[Array, " rows"]]]:
        rotated = residuals @ self.rotation
        # With a true rotation all noise variances are equal. With U = I each output has its own.
        variances = (self.rotation**2).T @ noise
        count = residuals.shape[:1]
        return [
            (rotated[:, j : j + 1], jnp.broadcast_to(variances[j], count))
            for j in range(len(variances))
        ]

    def values(self, columns: list[Float[Array, "rows p"]]) -> Float[Array, "n m"]:
        return jnp.concatenate(columns, axis=1) @ self.rotation.T

    def variances(self, parts: list[Float[Array, " rows"]]) -> Float[Array, "n m"]:
        return jnp.stack(parts, axis=1) @ (self.rotation**2).T

    def covariance(self, parts: list[Float[Array, "rows rows"]]) -> Float[Array, "nm nm"]:
        columns = [self.rotation[:, j : j + 1] for j in range(len(parts))]
        pairs = zip(parts, columns, strict=True)
        terms = [jnp.kron(covariance, u @ u.T) for covariance, u in pairs]
        return functools.reduce(jnp.add, terms)


class DenseLayout(Layout):
    """One engine on rows (x, i).

    Attributes:
        outputs: m.
    """

    outputs: int = eqx.field(static=True)

    @property
    def rows_per_point(self) -> int:
        return self.outputs

    def row_dimension(self, dimension: int) -> int:
        return dimension + 1

    def row_domain(self, domain: Domain) -> Domain:
        return join(points=domain, output=FiniteSet.range(self.outputs))

    def rows(self, points: Float[Array, "n d"]) -> Float[Array, "rows d1"]:
        return with_outputs(points, self.outputs)

    def targets(
        self, residuals: Float[Array, "n m"], noise: Float[Array, " m"]
    ) -> list[tuple[Float[Array, "rows p"], Float[Array, " rows"]]]:
        return [(residuals.reshape(-1, 1), jnp.tile(noise, residuals.shape[0]))]

    def values(self, columns: list[Float[Array, "rows p"]]) -> Float[Array, "n m"]:
        return columns[0].reshape(-1, self.outputs)

    def variances(self, parts: list[Float[Array, " rows"]]) -> Float[Array, "n m"]:
        return parts[0].reshape(-1, self.outputs)

    def covariance(self, parts: list[Float[Array, "rows rows"]]) -> Float[Array, "nm nm"]:
        return parts[0]


class ColumnLayout(Layout):
    """One engine with a column for each output, with its own variances.

    Attributes:
        outputs: m.
    """

    outputs: int = eqx.field(static=True)

    def targets(
        self, residuals: Float[Array, "n m"], noise: Float[Array, " m"]
    ) -> list[tuple[Float[Array, "rows p"], Float[Array, "rows p"]]]:
        return [(residuals, jnp.broadcast_to(noise[None, :], residuals.shape))]

    def values(self, columns: list[Float[Array, "rows p"]]) -> Float[Array, "n m"]:
        return columns[0]

    def variances(self, parts: list[Float[Array, "rows p"]]) -> Float[Array, "n m"]:
        return parts[0]

    def covariance(self, parts: list[Float[Array, "m rows rows"]]) -> Float[Array, "nm nm"]:
        m, n = parts[0].shape[:2]
        blocks = jnp.einsum("mnk,mj->nmkj", parts[0], jnp.eye(m, dtype=parts[0].dtype))
        return blocks.reshape(n * m, n * m)


class MixedLayout(Layout):
    """One engine with p columns, and outputs that are linear combinations E·columns of them.

    Observations of the p ``leading`` outputs are those of the columns. The others follow from them.

    Attributes:
        outputs: m.
        mixing: E. Its rows at the leading outputs are those of the identity.
        leading: The outputs that are a column each.
    """

    outputs: int = eqx.field(static=True)
    mixing: Float[Array, "m p"]
    leading: tuple[int, ...] = eqx.field(static=True)

    def targets(
        self, residuals: Float[Array, "n m"], noise: Float[Array, " m"]
    ) -> list[tuple[Float[Array, "rows p"], Float[Array, "rows p"]]]:
        chosen = np.array(self.leading)
        columns = residuals[:, chosen]
        return [(columns, jnp.broadcast_to(noise[chosen][None, :], columns.shape))]

    def values(self, columns: list[Float[Array, "rows p"]]) -> Float[Array, "n m"]:
        return columns[0] @ self.mixing.T.astype(columns[0].dtype)

    def variances(self, parts: list[Float[Array, "rows p"]]) -> Float[Array, "n m"]:
        return parts[0] @ (self.mixing**2).T.astype(parts[0].dtype)

    def covariance(self, parts: list[Float[Array, "p rows rows"]]) -> Float[Array, "nm nm"]:
        n = parts[0].shape[1]
        blocks = jnp.einsum("ip,jp,pnk->nikj", self.mixing, self.mixing, parts[0])
        return blocks.reshape(n * self.outputs, n * self.outputs)
