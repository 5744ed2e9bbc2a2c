"""Squared exponentials with lengthscales of their own for each output, on few centres.

For kernels that are learned from data, and so change with it. Nothing is compiled on a domain:
centres are data points. With φ_i(z) = L_i⁻¹ k_i(U, z), K_i(U, U) = L_i L_iᵀ, output i is

    f_i(z) = φ_i(z)ᵀ v + rest_i(z),   v ~ N(0, I),   Var rest_i(z) = k_i(z, z) − |φ_i(z)|²,

and data speak about v only: A_i = I + Σ_t φ_i φ_iᵀ/λ_i. While every data point is a centre this is
the exact posterior; beyond, it is the projected process ("DTC"), whose variance far from all
centres is that of the prior and never less. Shapes depend on the number of centres alone.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from kernelmdp.errors import UnknownPropertyError
from kernelmdp.gp.engines import Engine, Path
from kernelmdp.gp.layouts import Side
from kernelmdp.gp.means import as_mean
from kernelmdp.gp.posterior import Posterior
from kernelmdp.kernels import Independent, Kernel, Periodic, SquaredExponential
from kernelmdp.numerics import fast
from kernelmdp.numerics.factor import cholesky, solve_lower, solve_lower_transposed
from kernelmdp.numerics.modules import Module, in_chunks, jit
from kernelmdp.types import Key

#: Added to K(U, U), as a share of the signal variance: centres may repeat or nearly so.
JITTER = 1e-8
#: Waves of a prior draw; they matter where there are no data.
WAVES = 192
#: Points treated at once.
CHUNK = 1024


class Shape(Module):
    """What a learned squared exponential is: one row an output.

    Coordinates in ``angles`` count by their cosine and sine after multiplication with the entry of
    ``turns``; lengthscales there are chords of the unit circle.
    """

    lengthscales: Float[Array, "m d"]
    signal: Float[Array, " m"]
    noise: Float[Array, " m"]
    turns: Float[Array, " d"]
    angles: tuple[int, ...] = eqx.field(static=True)

    def embed(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        """Coordinates, and behind them sines in the order of ``angles``."""
        if not self.angles:
            return points
        index = np.array(self.angles)
        turned = points[:, index] * self.turns[index].astype(points.dtype)[None, :]
        return jnp.concatenate([points.at[:, index].set(jnp.cos(turned)), jnp.sin(turned)], axis=1)

    @property
    def spread(self) -> Float[Array, "m p"]:
        """Lengthscales of the embedded coordinates."""
        if not self.angles:
            return self.lengthscales
        return jnp.concatenate(
            [self.lengthscales, self.lengthscales[:, np.array(self.angles)]], axis=1
        )

    def kernels(self) -> list[Kernel]:
        """The same as kernels, for their text."""
        found = []
        d = self.lengthscales.shape[1]
        straight = [j for j in range(d) if j not in self.angles]
        for own, signal in zip(np.asarray(self.lengthscales), np.asarray(self.signal), strict=True):
            parts: list[Kernel] = [
                Periodic(own[j], period=2 * np.pi / float(self.turns[j])).on([j])
                for j in self.angles
            ]
            if straight:
                parts.append(SquaredExponential(own[straight]).on(straight))
            product = parts[0]
            for part in parts[1:]:
                product = product * part
            found.append(float(signal) ** 2 * product)
        return found


def gram(
    shape: Shape, first: Float[Array, "n p"], second: Float[Array, "k p"]
) -> Float[Array, "m n k"]:
    """k_i between embedded points, for every output i."""

    def one(spread: Array, signal: Array) -> Array:
        a, b = first / spread[None, :], second / spread[None, :]
        half = 0.5 * (jnp.sum(a**2, axis=1)[:, None] + jnp.sum(b**2, axis=1)[None, :])
        return signal**2 * fast.exp(jnp.minimum(a @ b.T - half, 0.0))

    return jax.vmap(one)(shape.spread, shape.signal)


class InducingPath(Path):
    """Σ_u coefficients_u k(z, u), and for a draw waves that the centres do not pin down."""

    shape: Shape
    centres: Float[Array, "R p"]
    coefficients: Float[Array, "m R"]
    frequencies: Float[Array, "m W p"] | None = None
    phases: Float[Array, "m W"] | None = None
    heights: Float[Array, "m W"] | None = None

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        def some(z: Array) -> Array:
            x = self.shape.embed(z)
            values = jnp.einsum("mnr,mr->nm", gram(self.shape, x, self.centres), self.coefficients)
            return values if self.heights is None else values + self._waves(x)

        return in_chunks(some, points, CHUNK)

    def _waves(self, x: Float[Array, "n p"]) -> Float[Array, "n m"]:
        assert self.frequencies is not None
        assert self.phases is not None
        turns = jnp.einsum("mwp,np->mnw", self.frequencies, x) + self.phases[:, None, :]
        return jnp.einsum("mnw,mw->nm", fast.cosine(turns), self.heights)


class InducingEngine(Engine):
    """Posterior of m functions; see the module's text."""

    shape: Shape
    centres: Float[Array, "R p"]  # embedded; rows of those not in use are never read
    used: Float[Array, " R"]
    root: Float[Array, "m R R"]  # L
    precision: Float[Array, "m R R"]  # A
    pull: Float[Array, "m R"]  # Σ_t φ y/λ
    factor: Float[Array, "m R R"]  # C, A = C Cᵀ
    coefficients: Float[Array, "m R"]
    reach: Float[Array, "m R R"]  # W: Var f = k − |k(z, U) W|²
    count: Int[Array, ""]

    @staticmethod
    def prior(
        shape: Shape, centres: Float[Array, "R d"], used: Float[Array, " R"]
    ) -> "InducingEngine":
        """No data yet, with these points as centres where ``used`` is 1."""
        x = shape.embed(centres)
        pairs = used[:, None] * used[None, :]
        identity = jnp.eye(x.shape[0], dtype=x.dtype)
        inside = gram(shape, x, x) * pairs[None]
        scale = (shape.signal**2)[:, None, None]
        # An unused centre has variance 1 and no covariance: nothing is ever learned of it.
        filled = inside + scale * identity[None] * jnp.where(used > 0, JITTER, 1.0)[None, None, :]
        m, r = shape.signal.shape[0], x.shape[0]
        empty = jnp.zeros((m, r), x.dtype)
        ones = jnp.broadcast_to(identity[None], (m, r, r))
        return InducingEngine(
            shape=shape,
            centres=x,
            used=used,
            root=jax.vmap(cholesky)(filled),
            precision=ones,
            pull=empty,
            factor=ones,
            coefficients=empty,
            reach=jnp.zeros((m, r, r), x.dtype),
            count=jnp.zeros((), jnp.int32),
        )

    def _rows(self, x: Float[Array, "n p"]) -> Float[Array, "m n R"]:
        """k(z, U), zero for centres not in use."""
        return gram(self.shape, x, self.centres) * self.used[None, None, :]

    def absorbed(
        self, points: Float[Array, "h d"], targets: Float[Array, "h m"], counted: Float[Array, " h"]
    ) -> "InducingEngine":
        """After rows for which ``counted`` is 1, before ``finished``: only sums have changed."""
        rows = self._rows(self.shape.embed(points)) * counted[None, :, None]

        def one(root: Array, row: Array, target: Array, noise: Array) -> tuple[Array, Array]:
            values = solve_lower(root, row.T) / noise
            return values @ values.T, values @ (target * counted / noise)

        more, pull = jax.vmap(one)(self.root, rows, targets.T, self.shape.noise)
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
            learned = cholesky(identity * (1 + 1e-10) - half.T @ half)  # I − A⁻¹
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
        self, points: Float[Array, "h d"], targets: Float[Array, "h p"], noise: Float[Array, " h"]
    ) -> "InducingEngine":
        """With the noise that was fitted; ``noise`` says nothing of its own here."""
        return self.absorbed(points, targets, jnp.ones(points.shape[0], points.dtype)).finished()

    def moments(
        self, points: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n m"], Float[Array, "n m"]]:
        """Means and variances, a column an output."""

        def some(z: Array) -> tuple[Array, Array]:
            rows = self._rows(self.shape.embed(z))
            mean = jnp.einsum("mnr,mr->nm", rows, self.coefficients)
            known = jnp.sum(jnp.einsum("mnr,mrs->mns", rows, self.reach) ** 2, axis=2)
            return mean, jnp.maximum(self.shape.signal[None, :] ** 2 - known.T, 0.0)

        return in_chunks(some, points, CHUNK)

    def covariance(self, points: Float[Array, "n d"]) -> Float[Array, "m n n"]:
        x = self.shape.embed(points)
        known = jnp.einsum("mnr,mrs->mns", self._rows(x), self.reach)
        return gram(self.shape, x, x) - jnp.einsum("mns,mks->mnk", known, known)

    def mean_path(self) -> Path:
        return InducingPath(self.shape, self.centres, self.coefficients)

    def draw(self, frequencies: int, *, key: Key) -> Path:
        """Exact at the centres; between and beyond them waves in place of the prior's draw."""
        m, r = self.coefficients.shape
        weight_key, wave_key, phase_key, height_key = jax.random.split(key, 4)
        dtype = self.root.dtype
        p = self.centres.shape[1]
        waves = jax.random.normal(wave_key, (m, WAVES, p), dtype)
        waves = waves / (2 * jnp.pi * self.shape.spread[:, None, :])
        phases = jax.random.uniform(phase_key, (m, WAVES), dtype)
        size = self.shape.signal[:, None] * jnp.sqrt(2 / WAVES)
        heights = size * jax.random.normal(height_key, (m, WAVES), dtype)
        rough = InducingPath(
            self.shape, self.centres, jnp.zeros((m, r), dtype), waves, phases, heights
        )
        there = rough._waves(self.centres) * self.used[:, None]  # (R, m)
        noise = jax.random.normal(weight_key, (m, r), dtype)

        def one(root: Array, factor: Array, pull: Array, own: Array, prior: Array) -> Array:
            centred = solve_lower(factor, pull[:, None]) + own[:, None]
            weights = solve_lower_transposed(factor, centred)
            already = solve_lower(root, prior[:, None])
            return solve_lower_transposed(root, weights - already)[:, 0]

        drawn = jax.vmap(one)(self.root, self.factor, self.pull, noise, there.T)
        drawn = drawn * self.used[None, :]
        return InducingPath(self.shape, self.centres, drawn, waves, phases, heights)

    def draw_at(
        self, points: Float[Array, "n d"], draws: int, *, key: Key
    ) -> Float[Array, "draws n p"]:
        raise UnknownPropertyError("joint draws at points are not offered by the inducing engine")

    def gain(self) -> Float[Array, ""]:
        """Σ_i ½ ln|A_i|."""
        return jnp.sum(jnp.log(jnp.diagonal(self.factor, axis1=1, axis2=2)))

    def reserve(self, rows: int) -> "InducingEngine":
        return self

    @property
    def factor_to_check(self) -> Array:
        return self.coefficients


def inducing_posterior(
    shape: Shape,
    centres: Any,
    used: Any,
    points: Any,
    targets: Any,
    *,
    scalar: bool,
    block: int,
) -> Posterior:
    """The posterior of these data, taken ``block`` rows at a time: no shape depends on how many."""
    engine = _prior(shape, jnp.asarray(centres), jnp.asarray(used))
    x, y = np.asarray(points, float), np.asarray(targets, float)
    for start in range(0, len(x), block):
        piece, own = x[start : start + block], y[start : start + block]
        short = block - len(piece)
        counted = np.concatenate([np.ones(len(piece)), np.zeros(short)])
        engine = _absorb(
            engine, np.pad(piece, ((0, short), (0, 0))), np.pad(own, ((0, short), (0, 0))), counted
        )
    engine = _finish(engine)
    m, d = shape.lengthscales.shape
    kernels = shape.kernels()
    return Posterior(
        kernel=kernels[0] if scalar else Independent(kernels),
        layout=Side(m),
        engines=(engine,),
        mean=as_mean(None, m, d),
        noise_variance=shape.noise**2,
        jitter=0.0,
        scalar=scalar,
        domain=None,
        dimension=d,
        engine="inducing",
        rank=float(engine.centres.shape[0]),
        error=0.0,
        error_kind="exact",
    )


@jit
def _prior(shape: Shape, centres: Array, used: Array) -> InducingEngine:
    return InducingEngine.prior(shape, centres, used)


@jit
def _absorb(engine: InducingEngine, points: Any, targets: Any, counted: Any) -> Any:
    return engine.absorbed(jnp.asarray(points), jnp.asarray(targets), jnp.asarray(counted))


@jit
def _finish(engine: InducingEngine) -> InducingEngine:
    return engine.finished()


@jit
def spread_out(shape: Shape, points: Float[Array, "n d"], count: int) -> Int[Array, " count"]:
    """Places of points that say most about the others: greedy in the variance not yet explained,
    for the shortest lengthscale of any output along each coordinate."""
    tight = Shape(
        lengthscales=jnp.min(shape.lengthscales, axis=0, keepdims=True),
        signal=jnp.ones(1),
        noise=jnp.ones(1),
        turns=shape.turns,
        angles=shape.angles,
    )
    x = tight.embed(points)

    def one(carry: tuple[Array, Array, Array], step: Array) -> tuple[Any, Array]:
        left, columns, chosen = carry
        best = jnp.argmax(left)
        column = gram(tight, x, x[best][None, :])[0, :, 0] - columns @ columns[best]
        column = column / jnp.sqrt(jnp.maximum(left[best], 1e-12))
        left = jnp.maximum(left - column**2, 0.0).at[best].set(-1.0)
        return (left, columns.at[:, step].set(column), chosen), best

    start = (jnp.ones(x.shape[0]), jnp.zeros((x.shape[0], count)), jnp.zeros(()))
    return jax.lax.scan(one, start, jnp.arange(count))[1]
