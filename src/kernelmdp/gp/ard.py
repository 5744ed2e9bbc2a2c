"""Squared exponentials with a lengthscale for every coordinate, one set for each output."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.gp.fit_config import InducingConfig
from kernelmdp.gp.hyperpriors import HyperPrior
from kernelmdp.gp.kernel_families import BatchedKernels, KernelFamily, PriorDraw
from kernelmdp.kernels import Kernel, Periodic, SquaredExponential
from kernelmdp.numerics import fast_math
from kernelmdp.types import Key


class ARDKernels(BatchedKernels):
    """What a learned squared exponential is: one row an output.

    Coordinates in ``angles`` count by their cosine and sine after multiplication with the entry of
    ``periodic``; lengthscales there are chords of the unit circle.
    """

    lengthscales: Float[Array, "m d"]
    signal: Float[Array, " m"]
    noise: Float[Array, " m"]
    periodic: Float[Array, " d"]
    angles: tuple[int, ...] = eqx.field(static=True)

    @property
    def dimension(self) -> int:
        return self.lengthscales.shape[1]

    def embed(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]:
        """Coordinates, and behind them sines in the order of ``angles``."""
        if not self.angles:
            return points
        index = np.array(self.angles)
        turned = points[:, index] * self.periodic[index].astype(points.dtype)[None, :]
        return jnp.concatenate([points.at[:, index].set(jnp.cos(turned)), jnp.sin(turned)], axis=1)

    @property
    def spread(self) -> Float[Array, "m p"]:
        """Lengthscales of the embedded coordinates."""
        if not self.angles:
            return self.lengthscales
        return jnp.concatenate(
            [self.lengthscales, self.lengthscales[:, np.array(self.angles)]], axis=1
        )

    def gram(
        self, first: Float[Array, "n p"], second: Float[Array, "k p"]
    ) -> Float[Array, "m n k"]:
        def one(spread: Array, signal: Array) -> Array:
            a, b = first / spread[None, :], second / spread[None, :]
            half = 0.5 * (jnp.sum(a**2, axis=1)[:, None] + jnp.sum(b**2, axis=1)[None, :])
            return signal**2 * fast_math.exp(jnp.minimum(a @ b.T - half, 0.0))

        return jax.vmap(one)(self.spread, self.signal)

    def variances(self, embedded: Float[Array, "n p"]) -> Float[Array, "#n m"]:
        return self.signal[None, :] ** 2

    def scale(
        self, embedded: Float[Array, "n p"], counted: Float[Array, " n"]
    ) -> Float[Array, " m"]:
        return self.signal**2

    def prior_draw(self, config: InducingConfig, *, keys: tuple[Key, Key, Key]) -> PriorDraw:
        """Cosines with random frequencies, phases and heights."""
        wave_key, phase_key, height_key = keys
        m, p = self.spread.shape
        count, dtype = config.fourier_features, self.signal.dtype
        fourier_features = jax.random.normal(wave_key, (m, count, p), dtype)
        fourier_features = fourier_features / (2 * jnp.pi * self.spread[:, None, :])
        phases = jax.random.uniform(phase_key, (m, count), dtype)
        size = self.signal[:, None] * jnp.sqrt(2 / count)
        return FourierDraw(
            fourier_features, phases, size * jax.random.normal(height_key, (m, count), dtype)
        )

    def selection_kernel(self, points: Float[Array, "n d"]) -> "ARDKernels":
        """The shortest lengthscale of any output along each coordinate."""
        return ARDKernels(
            lengthscales=jnp.min(self.lengthscales, axis=0, keepdims=True),
            signal=jnp.ones(1),
            noise=jnp.ones(1),
            periodic=self.periodic,
            angles=self.angles,
        )

    def kernels(self) -> list[Kernel]:
        found = []
        d = self.lengthscales.shape[1]
        straight = [j for j in range(d) if j not in self.angles]
        for own, signal in zip(np.asarray(self.lengthscales), np.asarray(self.signal), strict=True):
            parts: list[Kernel] = [
                Periodic(own[j], period=2 * np.pi / float(self.periodic[j])).on([j])
                for j in self.angles
            ]
            if straight:
                parts.append(SquaredExponential(own[straight]).on(straight))
            product = parts[0]
            for part in parts[1:]:
                product = product * part
            found.append(float(signal) ** 2 * product)
        return found


class FourierDraw(PriorDraw):
    """Σ_w heights_w cos(2π(frequencies_wᵀ x + phases_w)), a set for every output."""

    frequencies: Float[Array, "m W p"]
    phases: Float[Array, "m W"]
    heights: Float[Array, "m W"]

    def __call__(self, embedded: Float[Array, "n p"]) -> Float[Array, "n m"]:
        periodic = jnp.einsum("mwp,np->mnw", self.frequencies, embedded) + self.phases[:, None, :]
        return jnp.einsum("mnw,mw->nm", fast_math.cosine(periodic), self.heights)


class ARDFamily(KernelFamily):
    """The width of every axis, and the size of every output."""

    widths: Float[Array, " d"]
    sizes: Float[Array, " m"]
    periodic: Float[Array, " d"]
    angles: tuple[int, ...] = eqx.field(static=True)

    def parameter_priors(self, hyper_prior: HyperPrior) -> Float[np.ndarray, "m k 4"]:
        rows = hyper_prior.rows(self.widths.shape[0])
        return np.tile(rows[None], (self.sizes.shape[0], 1, 1))

    def output(self, index: int) -> "ARDFamily":
        return ARDFamily(self.widths, self.sizes[index][None], self.periodic, self.angles)

    def kernels_at(self, logs: Float[Array, "m k"]) -> ARDKernels:
        """From logarithms of parameters in these units."""
        d = self.widths.shape[0]
        values = jnp.exp(logs)
        return ARDKernels(
            lengthscales=values[:, :d] * self.widths[None, :],
            signal=values[:, d] * self.sizes,
            noise=values[:, d + 1] * self.sizes,
            periodic=self.periodic,
            angles=self.angles,
        )
