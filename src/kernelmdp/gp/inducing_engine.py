"""Posteriors on few centres, for kernels that are fitted to data and so change with it.

Nothing is compiled on a domain: centres are data points. With φ_i(z) = L_i⁻¹ k_i(U, z),
K_i(U, U) = L_i L_iᵀ, output i is

    f_i(z) = φ_i(z)ᵀ v + rest_i(z),   v ~ N(0, I),   Var rest_i(z) = k_i(z, z) − |φ_i(z)|²,

and data speak about v only: A_i = I + Σ_t φ_i φ_iᵀ/λ_i. While every data point is a centre this is
the exact posterior, up to the jitter. Beyond, it is the projected process ("DTC"), whose variance
far from all centres is that of the prior and never less; how far it is from the exact posterior is
not known. Shapes depend on the number of centres alone.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelmdp.gp.ard import ARDKernels
from kernelmdp.gp.engine import Engine, PosteriorFunction
from kernelmdp.gp.fit_config import INDUCING, InducingConfig
from kernelmdp.gp.inducing_points import select_inducing_points
from kernelmdp.gp.kernel_families import BatchedKernels, PriorDraw
from kernelmdp.gp.mean_functions import as_mean
from kernelmdp.gp.output_layouts import ColumnLayout
from kernelmdp.gp.posterior import Posterior
from kernelmdp.kernels import Independent
from kernelmdp.numerics.factorisation import (
    cholesky,
    require_positive_definite,
    solve_lower,
    solve_lower_transposed,
)
from kernelmdp.numerics.modules import in_chunks, jit
from kernelmdp.types import Key

__all__ = [
    "ARDKernels",
    "InducingEngine",
    "InducingFunction",
    "inducing_posterior",
    "select_inducing_points",
]


class InducingFunction(PosteriorFunction):
    """Σ_u coefficients_u k(z, u), and for a draw what the centres do not pin down."""

    shape: BatchedKernels
    inducing_points: Float[Array, "R p"]
    coefficients: Float[Array, "m R"]
    config: InducingConfig = eqx.field(static=True)
    prior: PriorDraw | None = None

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        def some(z: Array) -> Array:
            x = self.shape.embed(z)
            values = jnp.einsum(
                "mnr,mr->nm", self.shape.gram(x, self.inducing_points), self.coefficients
            )
            return values if self.prior is None else values + self.prior(x)

        return in_chunks(some, points, self.config.chunk)


class InducingEngine(Engine):
    """Posterior of m functions with kernels of their own; see the module's text.

    Laid out by ``ColumnLayout``: variances are (n, m), covariances (m, n, n), noise variances (h, m).
    """

    shape: BatchedKernels
    inducing_points: Float[Array, "R p"]  # embedded; rows of those not in use are never read
    used: Float[Array, " R"]
    root: Float[Array, "m R R"]  # L
    precision: Float[Array, "m R R"]  # A
    pull: Float[Array, "m R"]  # Σ_t φ y/λ
    factor: Float[Array, "m R R"]  # C, A = C Cᵀ
    coefficients: Float[Array, "m R"]
    reach: Float[Array, "m R R"]  # W: Var f = k − |k(z, U) W|²
    count: Int[Array, ""]
    config: InducingConfig = eqx.field(static=True)

    @staticmethod
    def prior(
        shape: BatchedKernels,
        inducing_points: Float[Array, "R d"],
        used: Float[Array, " R"],
        config: InducingConfig = INDUCING,
    ) -> "InducingEngine":
        """No data yet, with these points as centres where ``used`` is 1."""
        x = shape.embed(inducing_points)
        pairs = used[:, None] * used[None, :]
        identity = jnp.eye(x.shape[0], dtype=x.dtype)
        inside = shape.gram(x, x) * pairs[None]
        scale = shape.scale(x, used)[:, None, None]
        # An unused centre has variance 1 and no covariance: nothing is ever learned of it.
        extra = jnp.where(used > 0, config.jitter, 1.0)
        filled = inside + scale * identity[None] * extra[None, None, :]
        m, r = shape.signal.shape[0], x.shape[0]
        empty = jnp.zeros((m, r), x.dtype)
        ones = jnp.broadcast_to(identity[None], (m, r, r))
        return InducingEngine(
            shape=shape,
            inducing_points=x,
            used=used,
            root=jax.vmap(cholesky)(filled),
            precision=ones,
            pull=empty,
            factor=ones,
            coefficients=empty,
            reach=jnp.zeros((m, r, r), x.dtype),
            count=jnp.zeros((), jnp.int32),
            config=config,
        )

    def _rows(self, x: Float[Array, "n p"]) -> Float[Array, "m n R"]:
        """k(z, U), zero for centres not in use."""
        return self.shape.gram(x, self.inducing_points) * self.used[None, None, :]

    def absorbed(
        self, points: Float[Array, "h d"], targets: Float[Array, "h m"], counted: Float[Array, " h"]
    ) -> "InducingEngine":
        """After rows for which ``counted`` is 1, before ``finished``: only sums have changed."""
        rows = self._rows(self.shape.embed(points)) * counted[None, :, None]
        return self._with_rows(rows, targets.T, counted, self.shape.noise)

    def _with_rows(
        self,
        rows: Float[Array, "m h R"],
        targets: Float[Array, "m h"],
        counted: Float[Array, " h"],
        noise: Float[Array, " m"],
    ) -> "InducingEngine":
        """With more in the sums: rows k(z, U), targets, and one noise deviation an output."""

        def one(root: Array, row: Array, target: Array, noise: Array) -> tuple[Array, Array]:
            values = solve_lower(root, row.T) / noise
            return values @ values.T, values @ (target * counted / noise)

        more, pull = jax.vmap(one)(self.root, rows, targets, noise)
        return eqx.tree_at(
            lambda e: (e.precision, e.pull, e.count),
            self,
            (
                self.precision + more,
                self.pull + pull,
                self.count + jnp.sum(counted).astype(self.count.dtype),
            ),
        )

    def finished(self) -> "InducingEngine":
        """With what predictions need."""

        def one(root: Array, precision: Array, pull: Array) -> tuple[Array, Array, Array]:
            identity = jnp.eye(root.shape[0], dtype=root.dtype)
            factor = cholesky(precision)
            half = solve_lower(factor, identity)
            weights = half.T @ (half @ pull)
            learned = cholesky(identity * (1 + self.config.slack) - half.T @ half)  # I − A⁻¹
            both = jnp.concatenate([learned, weights[:, None]], axis=1)
            found = solve_lower_transposed(root, both)
            return factor, found[:, -1], found[:, :-1]

        factor, coefficients, reach = jax.vmap(one)(self.root, self.precision, self.pull)
        return eqx.tree_at(
            lambda e: (e.factor, e.coefficients, e.reach),
            self,
            (factor, coefficients * self.used[None, :], reach * self.used[None, :, None]),
        )

    def condition(
        self, points: Float[Array, "h d"], targets: Float[Array, "h m"], noise: Float[Array, "h m"]
    ) -> "InducingEngine":
        """After rows with these noise variances, of each output its own.

        Centres stay: rows that are none are taken in as far as the centres tell.
        """
        deviations = jnp.sqrt(noise).T
        rows = self._rows(self.shape.embed(points)) / deviations[:, :, None]
        counted, ones = jnp.ones_like(noise[:, 0]), jnp.ones_like(noise[0])
        return self._with_rows(rows, targets.T / deviations, counted, ones).finished()

    def moments(
        self, points: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
        """Means and variances, a column an output."""

        def some(z: Array) -> tuple[Array, Array]:
            x = self.shape.embed(z)
            rows = self._rows(x)
            mean = jnp.einsum("mnr,mr->nm", rows, self.coefficients)
            known = jnp.sum(jnp.einsum("mnr,mrs->mns", rows, self.reach) ** 2, axis=2)
            return mean, jnp.maximum(self.shape.variances(x) - known.T, 0.0)

        return in_chunks(some, points, self.config.chunk)

    def covariance(self, points: Float[Array, "n d"]) -> Float[Array, "m n n"]:
        x = self.shape.embed(points)
        known = jnp.einsum("mnr,mrs->mns", self._rows(x), self.reach)
        return self.shape.gram(x, x) - jnp.einsum("mns,mks->mnk", known, known)

    def mean_function(self) -> PosteriorFunction:
        return InducingFunction(self.shape, self.inducing_points, self.coefficients, self.config)

    def draw(self, frequencies: int, *, key: Key) -> PosteriorFunction:
        """Approximate in law: exact at the centres, between and beyond them random features
        in place of the prior's draw."""
        m, r = self.coefficients.shape
        weight_key, *keys = jax.random.split(key, 4)
        dtype = self.root.dtype
        rough = self.shape.prior_draw(self.config, keys=(keys[0], keys[1], keys[2]))
        there = rough(self.inducing_points) * self.used[:, None]  # (R, m)
        noise = jax.random.normal(weight_key, (m, r), dtype)

        def one(root: Array, factor: Array, pull: Array, own: Array, prior: Array) -> Array:
            centred = solve_lower(factor, pull[:, None]) + own[:, None]
            weights = solve_lower_transposed(factor, centred)
            already = solve_lower(root, prior[:, None])
            return solve_lower_transposed(root, weights - already)[:, 0]

        drawn = jax.vmap(one)(self.root, self.factor, self.pull, noise, there.T)
        drawn = drawn * self.used[None, :]
        return InducingFunction(self.shape, self.inducing_points, drawn, self.config, rough)

    @property
    def exact_draws(self) -> bool:
        return False

    def draw_at(
        self, points: Float[Array, "n d"], draws: int, *, key: Key
    ) -> Float[Array, "draws n m"]:
        """Mean and a Cholesky factor of the covariance: exact in law for this posterior."""
        mean, _ = self.moments(points)
        everywhere = jnp.ones(points.shape[0], mean.dtype)
        scale = self.config.jitter * self.shape.scale(self.shape.embed(points), everywhere)
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
        """Whether there are no more data than centres: with every data point among them, as
        ``inducing_posterior`` is used for few data, the posterior is exact up to the jitter."""
        return int(self.count) <= int(jnp.sum(self.used))

    def gain(self) -> Float[Array, ""]:
        """Σ_i ½ ln|A_i|."""
        return jnp.sum(jnp.log(jnp.diagonal(self.factor, axis1=1, axis2=2)))

    def reserve(self, rows: int) -> "InducingEngine":
        return self

    @property
    def factor_to_check(self) -> Array:
        return self.coefficients


def inducing_posterior(
    shape: BatchedKernels,
    inducing_points: Any,
    used: Any,
    points: Any,
    targets: Any,
    *,
    scalar: bool,
    block: int,
    config: InducingConfig = INDUCING,
) -> Posterior:
    """The posterior of these data, taken ``block`` rows at a time: no shape depends on how many.

    Its ``error`` is infinite and of the kind "inducing": no bound is known of what few centres
    leave out, so nothing that needs one may be claimed. It does not change as data outgrow the
    centres, since programs are compiled for it; ``InducingEngine.complete`` tells. Draws are
    approximate. Joint draws at points (``sample_at``) have the law of this posterior.

    Args:
        shape: Kernels and noise of the m outputs.
        centres: Data points (R, d), and any numbers in rows that are not used.
        used: 1 for each centre in use, else 0; shape (R,).
        points: Where the functions were seen, (n, d).
        targets: What was seen, (n, m).
        scalar: Whether the one output has no axis of its own.
        block: Rows taken at once.
        config: Jitter, random features of draws, and points treated at once.

    Returns:
        A posterior whose ``engine`` is "inducing" and whose ``rank`` is R.

    >>> shape = ARDKernels(jnp.array([[0.5]]), jnp.ones(1), jnp.full(1, 0.1), jnp.ones(1), angles=())
    >>> line = np.linspace(0.0, 1.0, 20)[:, None]
    >>> known = inducing_posterior(
    ...     shape, line[::5], np.ones(4), line, np.sin(line), scalar=True, block=16
    ... )
    >>> known.engine, known.error_kind, known.count, known.sample(key=jax.random.key(0)).exact
    ('inducing', 'inducing', 20, False)
    """
    engine = _prior(shape, jnp.asarray(inducing_points), jnp.asarray(used), config)
    x, y = np.asarray(points, float), np.asarray(targets, float)
    for start in range(0, len(x), block):
        piece, own = x[start : start + block], y[start : start + block]
        short = block - len(piece)
        counted = np.concatenate([np.ones(len(piece)), np.zeros(short)])
        engine = _absorb(
            engine, np.pad(piece, ((0, short), (0, 0))), np.pad(own, ((0, short), (0, 0))), counted
        )
    engine = _finish(engine)
    m, d = shape.signal.shape[0], shape.dimension
    kernels = shape.kernels()
    return Posterior(
        kernel=kernels[0] if scalar else Independent(kernels),
        layout=ColumnLayout(m),
        engines=(engine,),
        mean=as_mean(None, m, d),
        noise_variance=shape.noise**2,
        jitter=0.0,
        scalar=scalar,
        domain=None,
        dimension=d,
        engine="inducing",
        rank=float(engine.inducing_points.shape[0]),
        error=math.inf,
        error_kind="inducing",
    )


@jit
def _prior(
    shape: BatchedKernels, inducing_points: Array, used: Array, config: InducingConfig
) -> InducingEngine:
    return InducingEngine.prior(shape, inducing_points, used, config)


@jit
def _absorb(engine: InducingEngine, points: Any, targets: Any, counted: Any) -> Any:
    return engine.absorbed(jnp.asarray(points), jnp.asarray(targets), jnp.asarray(counted))


@jit
def _finish(engine: InducingEngine) -> InducingEngine:
    return engine.finished()
