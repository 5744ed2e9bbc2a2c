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
        def one_output(lengthscales: Array, signal: Array) -> Array:
            a, b = first / lengthscales[None, :], second / lengthscales[None, :]
            half = 0.5 * (jnp.sum(a**2, axis=1)[:, None] + jnp.sum(b**2, axis=1)[None, :])
            return signal**2 * fast_math.exp(jnp.minimum(a @ b.T - half, 0.0))

        return jax.vmap(one_output)(self.embedded_lengthscales, self.signal)

    def weighted_sum(
        self, centres: Float[Array, "k p"], coefficients: Float[Array, "m k"]
    ) -> "GaussianSum":
        precisions = 1 / self.embedded_lengthscales**2  # (m, p)
        linear = precisions[:, None, :] * centres[None, :, :]
        constants = -0.5 * jnp.einsum("mkp,kp->mk", linear, centres)
        squares = jnp.broadcast_to(-0.5 * precisions[:, None, :], linear.shape)
        exponents = jnp.concatenate([linear, squares, constants[:, :, None]], axis=2)
        return GaussianSum(exponents, self.signal[:, None] ** 2 * coefficients)

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

    The exponent is linear in (x, x², 1). One product of matrices computes all exponents, and few
    loops are left to compile, also in derivatives.

    Attributes:
        exponents: The coefficients of (x, x², 1) in the exponents.
        weights: The weights.
    """

    exponents: Float[Array, "m k f"]
    weights: Float[Array, "m k"]

    def __call__(self, embedded: Float[Array, "n p"]) -> Float[Array, "n m"]:
        ones = jnp.ones((embedded.shape[0], 1), embedded.dtype)
        features = jnp.concatenate([embedded, embedded**2, ones], axis=1)
        exponents = jnp.einsum("nf,mkf->mnk", features, self.exponents)
        values = fast_math.exp(jnp.minimum(exponents, 0.0))
        return jnp.einsum("mnk,mk->nm", values, self.weights)


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
        turns = jnp.einsum("mwp,np->mnw", self.frequencies, embedded) + self.phases[:, None, :]
        return jnp.einsum("mnw,mw->nm", fast_math.cosine(turns), self.weights)


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
        return ARDFamily(self.widths, self.sizes[index][None], self.angular, self.angles)

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
