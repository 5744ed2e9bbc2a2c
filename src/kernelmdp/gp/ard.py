"""Squared exponentials with one lengthscale for every coordinate (ARD), for several outputs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.gp.fit_config import InducingConfig
from kernelmdp.gp.hyperpriors import HyperPrior
from kernelmdp.gp.kernel_families import BatchedKernels, KernelFamily, KernelSum, PriorDraw
from kernelmdp.kernels import Kernel, Periodic, SquaredExponential
from kernelmdp.numerics import fast_math
from kernelmdp.numerics.jacobians import call_with_jacobian
from kernelmdp.numerics.tracing import as_array
from kernelmdp.types import Key


class ARDKernels(BatchedKernels):
    """ARD squared exponentials with fixed parameters, one row for each output.

    Coordinates in ``angles`` are multiplied by ``angular`` and embedded as cosine and sine. Their
    lengthscales are chords of the unit circle.

    Attributes:
        lengthscales: The lengthscales.
        signal: The signal's standard deviations.
        noise: The noise's standard deviations.
        angular: Factors that turn periodic coordinates into angles; 1 elsewhere.
        angles: The positions of periodic coordinates.
    """

    lengthscales: Float[Array, "m d"]
    signal: Float[Array, " m"]
    noise: Float[Array, " m"]
    angular: Float[Array, " d"]
    angles: tuple[int, ...] = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        return self.lengthscales.shape[1]

    def embed(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        # Cosines replace the angles; sines follow all coordinates, in the order of ``angles``.
        if not self.angles:
            return points
        index = np.array(self.angles)
        angles = points[:, index] * self.angular[index].astype(points.dtype)[None, :]
        return jnp.concatenate([points.at[:, index].set(jnp.cos(angles)), jnp.sin(angles)], axis=1)

    @property
    def embedded_lengthscales(self) -> Float[Array, "m p"]:
        """Lengthscales of the embedded coordinates."""
        if not self.angles:
            return self.lengthscales
        return jnp.concatenate(
            [self.lengthscales, self.lengthscales[:, np.array(self.angles)]], axis=1
        )

    def gram(
        self, first: Float[Array, "n p"], second: Float[Array, "k p"]
    ) -> Float[Array, "m n k"]:
        precisions = 1 / self.embedded_lengthscales**2  # (m, p)
        scaled = precisions[:, None, :] * first[None]
        m, n, p = scaled.shape
        products = (scaled.reshape(m * n, p) @ second.T).reshape(m, n, -1)
        lengths, other_lengths = (0.5 * precisions @ (x**2).T for x in (first, second))
        exponents = products - lengths[:, :, None] - other_lengths[:, None, :]
        return self.signal[:, None, None] ** 2 * fast_math.exp(jnp.minimum(exponents, 0.0))

    def slopes(
        self,
        embedded: Float[Array, "n p"],
        centres: Float[Array, "k p"],
        weights: Float[Array, "m n k"],
    ) -> Float[Array, "n m p"]:
        # ∂k(x, u)/∂x = k(x, u) (u − x)/ℓ².
        terms = weights * self.gram(embedded, centres)
        sums = jnp.einsum("mnk,kp->nmp", terms, centres)
        differences = sums - jnp.sum(terms, axis=2).T[:, :, None] * embedded[:, None, :]
        return differences / self.embedded_lengthscales[None] ** 2

    def weighted_sum(
        self, centres: Float[Array, "k p"], coefficients: Float[Array, "m k"]
    ) -> "GaussianSum":
        precisions = 1 / self.embedded_lengthscales**2  # (m, p)
        linear = precisions[:, None, :] * centres[None, :, :]
        constants = -0.5 * jnp.einsum("mkp,kp->mk", linear, centres)
        return GaussianSum(
            linear=jnp.concatenate([linear, constants[:, :, None]], axis=2),
            squares=-0.5 * precisions,
            weights=self.signal[:, None] ** 2 * coefficients,
        )

    def variances(self, embedded: Float[Array, "n p"]) -> Float[Array, "#n m"]:
        return self.signal[None, :] ** 2

    def scale(
        self, embedded: Float[Array, "n p"], counted: Float[Array, " n"]
    ) -> Float[Array, " m"]:
        return self.signal**2

    def prior_draw(self, config: InducingConfig, *, keys: tuple[Key, Key, Key]) -> PriorDraw:
        frequency_key, phase_key, weight_key = keys
        lengthscales = self.embedded_lengthscales
        m, p = lengthscales.shape
        count, dtype = config.fourier_features, self.signal.dtype
        frequencies = jax.random.normal(frequency_key, (m, count, p), dtype)
        frequencies = frequencies / (2 * jnp.pi * lengthscales[:, None, :])
        phases = jax.random.uniform(phase_key, (m, count), dtype)
        size = self.signal[:, None] * jnp.sqrt(2 / count)
        weights = size * jax.random.normal(weight_key, (m, count), dtype)
        return FourierDraw(frequencies, phases, weights)

    def selection_kernel(self, points: Float[Array, "n d"]) -> "ARDKernels":
        # Along each coordinate, the shortest lengthscale of any output.
        return ARDKernels(
            lengthscales=jnp.min(self.lengthscales, axis=0, keepdims=True),
            signal=jnp.ones(1),
            noise=jnp.ones(1),
            angular=self.angular,
            angles=self.angles,
        )

    def kernels(self) -> list[Kernel]:
        expressions = []
        d = self.lengthscales.shape[1]
        not_periodic = [j for j in range(d) if j not in self.angles]
        rows = zip(np.asarray(self.lengthscales), np.asarray(self.signal), strict=True)
        for lengthscales, signal in rows:
            parts: list[Kernel] = [
                Periodic(lengthscales[j], period=2 * np.pi / float(self.angular[j])).on([j])
                for j in self.angles
            ]
            if not_periodic:
                parts.append(SquaredExponential(lengthscales[not_periodic]).on(not_periodic))
            product = parts[0]
            for part in parts[1:]:
                product = product * part
            expressions.append(float(signal) ** 2 * product)
        return expressions


class GaussianSum(KernelSum):
    """Σ_u weights_u exp(−½ Σ_j (x_j − u_j)²/ℓ_j²), one sum for every output.

    The exponent is linear in (x, 1) and x². One product of matrices computes all exponents but
    their part in x², which all centres share.

    Attributes:
        linear: The coefficients of (x, 1) in the exponents.
        squares: The coefficients of x² in the exponents.
        weights: The weights.
    """

    linear: Float[Array, "m k p1"]
    squares: Float[Array, "m p"]
    weights: Float[Array, "m k"]

    def __call__(self, embedded: Float[Array, "n p"]) -> Float[Array, "n m"]:
        return call_with_jacobian(_gaussian_sum, _gaussian_jacobian, self, embedded)


def _gaussians(function: GaussianSum, embedded: Array) -> Float[Array, "m k n"]:
    # The points come last: they are the fastest axis of all loops and products.
    m, k, f = function.linear.shape
    ones = jnp.ones((embedded.shape[0], 1), embedded.dtype)
    features = jnp.concatenate([embedded, ones], axis=1)
    exponents = (function.linear.reshape(m * k, f) @ features.T).reshape(m, k, -1)
    shared = function.squares @ (embedded**2).T
    return fast_math.exp(jnp.minimum(exponents + shared[:, None, :], 0.0))


def _gaussian_sum(function: GaussianSum, embedded: Array) -> Float[Array, "n m"]:
    return jnp.einsum("mkn,mk->nm", _gaussians(function, embedded), function.weights)


def _gaussian_jacobian(function: GaussianSum, embedded: Array) -> Float[Array, "n m p"]:
    p = embedded.shape[1]
    terms = function.weights[:, :, None] * _gaussians(function, embedded)
    # A column of ones makes a sum of the terms themselves.
    factors = function.linear.at[:, :, p].set(1.0)
    sums = jnp.einsum("mkn,mkf->nmf", terms, factors)
    return sums[:, :, :p] + 2 * embedded[:, None, :] * function.squares[None] * sums[:, :, p:]


class FourierDraw(PriorDraw):
    """Σ_w weights_w cos(2π(frequencies_wᵀ x + phases_w)), one sum for every output.

    Attributes:
        frequencies: The frequencies.
        phases: The phases, in turns.
        weights: The weights.
    """

    frequencies: Float[Array, "m W p"]
    phases: Float[Array, "m W"]
    weights: Float[Array, "m W"]

    def __call__(self, embedded: Float[Array, "n p"]) -> Float[Array, "n m"]:
        return call_with_jacobian(_fourier_sum, _fourier_jacobian, self, embedded)


def _turns(draw: FourierDraw, embedded: Array) -> Float[Array, "m W n"]:
    m, count, p = draw.frequencies.shape
    turns = (draw.frequencies.reshape(m * count, p) @ embedded.T).reshape(m, count, -1)
    return turns + draw.phases[:, :, None]


def _fourier_sum(draw: FourierDraw, embedded: Array) -> Float[Array, "n m"]:
    cosines = fast_math.cosine(_turns(draw, embedded))
    return jnp.einsum("mwn,mw->nm", cosines, draw.weights)


def _fourier_jacobian(draw: FourierDraw, embedded: Array) -> Float[Array, "n m p"]:
    sines = fast_math.cosine(_turns(draw, embedded) - 0.25)
    return jnp.einsum(
        "mwn,mwp->nmp", -2 * jnp.pi * draw.weights[:, :, None] * sines, draw.frequencies
    )


class ARDFamily(KernelFamily):
    """The family of ARD squared exponentials, in units of axes and outputs.

    Attributes:
        widths: The width of every axis, the unit of its lengthscale.
        sizes: The size of every output, the unit of its signal and noise.
        angular: Factors that turn periodic coordinates into angles; 1 elsewhere.
        angles: The positions of periodic coordinates.
    """

    widths: Float[Array, " d"]
    sizes: Float[Array, " m"]
    angular: Float[Array, " d"]
    angles: tuple[int, ...] = eqx.field(static=True)

    def parameter_priors(self, hyper_prior: HyperPrior) -> Float[np.ndarray, "m k 4"]:
        rows = hyper_prior.rows(self.widths.shape[0])
        return np.tile(rows[None], (self.sizes.shape[0], 1, 1))

    def output(self, index: int) -> "ARDFamily":
        return ARDFamily(
            self.widths,
            as_array(np.asarray(self.sizes)[index : index + 1]),
            self.angular,
            self.angles,
        )

    def kernels_at(self, logs: Float[Array, "m k"]) -> ARDKernels:
        d = self.widths.shape[0]
        values = jnp.exp(logs)
        return ARDKernels(
            lengthscales=values[:, :d] * self.widths[None, :],
            signal=values[:, d] * self.sizes,
            noise=values[:, d + 1] * self.sizes,
            angular=self.angular,
            angles=self.angles,
        )
