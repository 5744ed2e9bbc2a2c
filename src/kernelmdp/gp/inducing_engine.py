"""The engine with inducing points, for kernels that are fitted to the data.

Nothing is compiled on a domain: inducing points U are data points. With φ_i(z) = L_i⁻¹ k_i(U, z)
and K_i(U, U) = L_i L_iᵀ, output i is

    f_i(z) = φ_i(z)ᵀ v + rest_i(z),   v ~ N(0, I),   Var rest_i(z) = k_i(z, z) − |φ_i(z)|²,

and data inform about v only: A_i = I + Σ_t φ_i φ_iᵀ/λ_i. While every data point is an inducing
point, this is the exact posterior up to the jitter. With more data it is the projected process
("DTC"). Its variance far from all inducing points is that of the prior and never less. Its distance
from the exact posterior is not known. Shapes depend on the number of inducing points only.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from kernelmdp.gp.engine import Engine, PosteriorFunction
from kernelmdp.gp.fit_config import INDUCING, InducingConfig
from kernelmdp.gp.kernel_families import BatchedKernels, KernelSum, PriorDraw
from kernelmdp.gp.truncated_root import TruncatedRoot
from kernelmdp.numerics.factorisation import (
    cholesky,
    require_positive_definite,
    solve_lower,
    solve_lower_transposed,
)
from kernelmdp.numerics.jacobians import call_with_jacobian
from kernelmdp.numerics.modules import map_chunks, quick_jit
from kernelmdp.types import Key


class InducingFunction(PosteriorFunction):
    """Σ_u coefficients_u k(z, u), plus a prior draw for functions that are drawn.

    Attributes:
        kernels: The kernels of the outputs.
        weighted_sum: The sum, a function of embedded points.
        config: Numerical settings.
        prior: The prior draw, or None for the mean.
    """

    kernels: BatchedKernels
    weighted_sum: KernelSum
    config: InducingConfig = eqx.field(static=True)
    prior: PriorDraw | None = None

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        def evaluate(z: Array) -> Array:
            x = self.kernels.embed(z)
            values = self.weighted_sum(x)
            return values if self.prior is None else values + self.prior(x)

        return map_chunks(evaluate, points, self.config.chunk)


class InducingEngine(Engine):
    """The posterior of m functions with different kernels; see the module's text.

    Its layout is ``ColumnLayout``: variances are (n, m), covariances (m, n, n) and noise variances
    (h, m).

    Attributes:
        kernels: The kernels and the noise of the outputs.
        inducing_points: The embedded inducing points U. Rows not in use are never read.
        used: 1 for each inducing point in use, else 0.
        root: L.
        precision: A.
        moment: Σ_t φ y/λ.
        factor: C with A = C Cᵀ.
        coefficients: The coefficients of the mean: mean(z) = k(z, U) coefficients.
        variance_root: W with Var f(z) = k(z, z) − |k(z, U) W|².
        count: The number of rows.
        config: Numerical settings.
        truncated: W by ranks, or None if all columns count.
    """

    kernels: BatchedKernels
    inducing_points: Float[Array, "R p"]
    used: Float[Array, " R"]
    root: Float[Array, "m R R"]
    precision: Float[Array, "m R R"]
    moment: Float[Array, "m R"]
    factor: Float[Array, "m R R"]
    coefficients: Float[Array, "m R"]
    variance_root: Float[Array, "m R R"]
    count: Int[Array, ""]
    config: InducingConfig = eqx.field(static=True)
    truncated: TruncatedRoot | None = None

    @staticmethod
    def prior(
        kernels: BatchedKernels,
        inducing_points: Float[Array, "R d"],
        used: Float[Array, " R"],
        config: InducingConfig = INDUCING,
    ) -> "InducingEngine":
        """Make an engine without data.

        Args:
            kernels: The kernels and the noise of the outputs.
            inducing_points: The inducing points, (R, d).
            used: 1 for each inducing point in use, else 0.
            config: Numerical settings.

        Returns:
            The engine.
        """
        x = kernels.embed(inducing_points)
        pairs = used[:, None] * used[None, :]
        identity = jnp.eye(x.shape[0], dtype=x.dtype)
        covariance = kernels.gram(x, x) * pairs[None]
        scale = kernels.scale(x, used)[:, None, None]
        # An unused point has variance 1 and no covariance, so nothing is learned at it.
        diagonal = jnp.where(used > 0, config.jitter, 1.0)
        covariance = covariance + scale * identity[None] * diagonal[None, None, :]
        m, r = kernels.signal.shape[0], x.shape[0]
        empty = jnp.zeros((m, r), x.dtype)
        ones = jnp.broadcast_to(identity[None], (m, r, r))
        return InducingEngine(
            kernels=kernels,
            inducing_points=x,
            used=used,
            root=jax.vmap(cholesky)(covariance),
            precision=ones,
            moment=empty,
            factor=ones,
            coefficients=empty,
            variance_root=jnp.zeros((m, r, r), x.dtype),
            count=jnp.zeros((), jnp.int32),
            config=config,
        )

    def _rows(self, x: Float[Array, "n p"]) -> Float[Array, "m n R"]:
        """k(z, U), zero for inducing points not in use."""
        return self.kernels.gram(x, self.inducing_points) * self.used[None, None, :]

    def absorbed(
        self, points: Float[Array, "h d"], targets: Float[Array, "h m"], counted: Float[Array, " h"]
    ) -> "InducingEngine":
        """Add rows to the sums. Call ``finished`` before you predict.

        Args:
            points: (h, d).
            targets: (h, m).
            counted: 1 for rows that count, √w for those of weight w, 0 for padding.

        Returns:
            The engine with changed sums only.
        """
        rows = self._rows(self.kernels.embed(points)) * counted[None, :, None]
        return self._with_rows(rows, targets.T, counted, self.kernels.noise)

    def _with_rows(
        self,
        rows: Float[Array, "m h R"],
        targets: Float[Array, "m h"],
        counted: Float[Array, " h"],
        noise: Float[Array, " m"],
    ) -> "InducingEngine":
        """Add rows k(z, U) and targets to the sums, with one noise deviation for each output."""

        def one_output(root: Array, row: Array, target: Array, noise: Array) -> tuple[Array, Array]:
            values = solve_lower(root, row.T) / noise
            return values @ values.T, values @ (target * counted / noise)

        precision, moment = jax.vmap(one_output)(self.root, rows, targets, noise)
        return eqx.tree_at(
            lambda e: (e.precision, e.moment, e.count),
            self,
            (
                self.precision + precision,
                self.moment + moment,
                self.count + jnp.sum(counted > 0).astype(self.count.dtype),
            ),
        )

    def finished(self) -> "InducingEngine":
        """Compute what predictions need from the sums.

        Returns:
            The engine, ready to predict.
        """

        def one_output(root: Array, precision: Array, moment: Array) -> tuple[Array, Array, Array]:
            identity = jnp.eye(root.shape[0], dtype=root.dtype)
            factor = cholesky(precision)
            inverse_factor = solve_lower(factor, identity)
            weights = inverse_factor.T @ (inverse_factor @ moment)
            inverse = inverse_factor.T @ inverse_factor
            learned = self._root_of_learned(inverse, jnp.trace(precision))
            columns = jnp.concatenate([learned, weights[:, None]], axis=1)
            solved = solve_lower_transposed(root, columns)
            return factor, solved[:, -1], solved[:, :-1]

        factor, coefficients, variance_root = jax.vmap(one_output)(
            self.root, self.precision, self.moment
        )
        return eqx.tree_at(
            lambda e: (e.factor, e.coefficients, e.variance_root),
            self,
            (factor, coefficients * self.used[None, :], variance_root * self.used[None, :, None]),
        )

    def _root_of_learned(
        self, inverse: Float[Array, "R R"], trace: Float[Array, ""]
    ) -> Float[Array, "R R"]:
        """A root of I − A⁻¹. The smallest eigenvalues may round to less than zero."""
        identity = jnp.eye(inverse.shape[0], dtype=inverse.dtype)
        # A⁻¹ is wrong by ε times the condition of A, which is at most its trace as A ≥ I. Where
        # noise is small against the signal, this is more than the slack.
        rounding = jnp.finfo(inverse.dtype).eps * trace
        root = cholesky(identity * (1 + self.config.slack) - inverse)
        safe_root = cholesky(identity * (1 + self.config.slack + rounding) - inverse)
        return jnp.where(jnp.all(jnp.isfinite(root)), root, safe_root)

    def condition(
        self, points: Float[Array, "h d"], targets: Float[Array, "h m"], noise: Float[Array, "h m"]
    ) -> "InducingEngine":
        # Inducing points do not change. Other rows inform as far as inducing points represent them.
        deviations = jnp.sqrt(noise).T
        rows = self._rows(self.kernels.embed(points)) / deviations[:, :, None]
        counted, ones = jnp.ones_like(noise[:, 0]), jnp.ones_like(noise[0])
        return self._with_rows(rows, targets.T / deviations, counted, ones).finished()

    def moments(
        self, points: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
        def moments(z: Array) -> tuple[Array, Array]:
            x = self.kernels.embed(z)
            moments = call_with_jacobian(_learned_moments, _slopes_of_moments, self, x)
            mean, learned = jnp.split(moments, 2, axis=1)
            return mean, jnp.maximum(self.kernels.variances(x) - learned, 0.0)

        return map_chunks(moments, points, self.config.chunk)

    def covariance(self, points: Float[Array, "n d"]) -> Float[Array, "m n n"]:
        x = self.kernels.embed(points)
        learned = jnp.einsum("mnr,mrs->mns", self._rows(x), self.variance_root)
        return self.kernels.gram(x, x) - jnp.einsum("mns,mks->mnk", learned, learned)

    def mean_function(self) -> PosteriorFunction:
        weighted_sum = self.kernels.weighted_sum(self.inducing_points, self.coefficients)
        return InducingFunction(self.kernels, weighted_sum, self.config)

    def draw(self, frequencies: int, *, key: Key) -> PosteriorFunction:
        # Exact in law at the inducing points. Elsewhere random features approximate the prior.
        m, r = self.coefficients.shape
        weight_key, *keys = jax.random.split(key, 4)
        dtype = self.root.dtype
        prior = self.kernels.prior_draw(self.config, keys=(keys[0], keys[1], keys[2]))
        prior_values = prior(self.inducing_points) * self.used[:, None]  # (R, m)
        noise = jax.random.normal(weight_key, (m, r), dtype)

        def one_output(
            root: Array, factor: Array, moment: Array, noise: Array, values: Array
        ) -> Array:
            whitened = solve_lower(factor, moment[:, None]) + noise[:, None]
            weights = solve_lower_transposed(factor, whitened)
            prior_weights = solve_lower(root, values[:, None])
            return solve_lower_transposed(root, weights - prior_weights)[:, 0]

        coefficients = jax.vmap(one_output)(
            self.root, self.factor, self.moment, noise, prior_values.T
        )
        coefficients = coefficients * self.used[None, :]
        weighted_sum = self.kernels.weighted_sum(self.inducing_points, coefficients)
        return InducingFunction(self.kernels, weighted_sum, self.config, prior)

    @property
    def exact_draws(self) -> bool:
        return False

    def draw_at(
        self, points: Float[Array, "n d"], draws: int, *, key: Key
    ) -> Float[Array, "draws n m"]:
        # Exact in law for this posterior, by a Cholesky factor of the covariance.
        mean, _ = self.moments(points)
        counted = jnp.ones(points.shape[0], mean.dtype)
        scale = self.config.jitter * self.kernels.scale(self.kernels.embed(points), counted)
        identity = jnp.eye(points.shape[0], dtype=mean.dtype)
        covariance = self.covariance(points) + scale[:, None, None] * identity[None]
        root = jax.vmap(cholesky)(covariance)
        root = require_positive_definite(
            root,
            root,
            "the posterior covariance at the points",
            "points may be too close together for a joint draw: use fewer points",
        )
        m, n = root.shape[:2]
        normal = jax.random.normal(key, (draws, m, n), mean.dtype)
        return mean[None] + jnp.einsum("mij,dmj->dim", root, normal)

    @property
    def complete(self) -> bool:
        """Whether there are at most as many data as inducing points.

        If every data point is an inducing point, the posterior is exact up to the jitter.
        """
        return int(self.count) <= int(jnp.sum(self.used))

    def gain(self) -> Float[Array, ""]:
        # Σ_i ½ ln|A_i|.
        return _log_determinant(self.factor)

    def reserve(self, rows: int) -> "InducingEngine":
        return self

    @property
    def factor_to_check(self) -> Array:
        return self.variance_root


def _learned_moments(engine: InducingEngine, x: Float[Array, "n p"]) -> Float[Array, "n k"]:
    """Means, and by how much the variances are less than those of the prior."""
    rows = engine._rows(x)
    mean = jnp.einsum("mnr,mr->nm", rows, engine.coefficients)
    if engine.truncated is None:
        learned = jnp.sum(jnp.einsum("mnr,mrs->mns", rows, engine.variance_root) ** 2, axis=2)
    else:
        learned = engine.truncated.squared_norms(rows)
    return jnp.concatenate([mean, learned.T], axis=1)


def _slopes_of_moments(engine: InducingEngine, x: Float[Array, "n p"]) -> Float[Array, "n k p"]:
    rows, root = engine._rows(x), engine.variance_root
    weights = 2 * (rows @ root) @ jnp.swapaxes(root, 1, 2)  # ∂|k W|²/∂k = 2 k W Wᵀ
    coefficients = jnp.broadcast_to(engine.coefficients[:, None, :], weights.shape)
    kernels, points = engine.kernels, engine.inducing_points
    parts = [kernels.slopes(x, points, each) for each in (coefficients, weights)]
    return jnp.concatenate(parts, axis=1)


@quick_jit
def _log_determinant(factors: Float[Array, "m r r"]) -> Float[Array, ""]:
    return jnp.sum(jnp.log(jnp.diagonal(factors, axis1=1, axis2=2)))
