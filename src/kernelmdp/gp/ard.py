"""Squared exponentials with a lengthscale for every coordinate, one set for each output."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.kernels import Kernel, Periodic, SquaredExponential
from kernelmdp.numerics import fast
from kernelmdp.numerics.modules import Module


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
