"""Nets of the GP setting: the domain in cells, finer from episode to episode."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.confidence.beta import Number, log_cells, net_counts
from kernelmdp.domains import Domain
from kernelmdp.numerics.modules import Module


class Net(Module):
    """Cells of a box: [z]_l is the centre of the cell in which z lies.

    Counts are array leaves, so a finer net is no other program. Axes of finite sets have length 0:
    their points stand for themselves.
    """

    low: Float[Array, " d"]
    sides: Float[Array, " d"]
    counts: Float[Array, " d"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The representative [z]_l of every point."""
        low, sides, counts = (a[None, :].astype(points.dtype) for a in self._rows)
        step = jnp.where(sides > 0, sides / counts, 1.0)
        cell = jnp.clip(jnp.floor((points - low) / step), 0.0, counts - 1)
        return jnp.where(sides > 0, low + (cell + 0.5) * step, points)

    @property
    def _rows(self) -> tuple[Array, Array, Array]:
        return self.low, self.sides, self.counts


def net(domain: Domain, *, slope: Number, episode: Number) -> tuple[Net, Float[Array, ""]]:
    """The net of an episode, and ln of how many representatives there are.

    Each box of a product is laid out by itself, as the paper does with S and A; a finite set
    counts with its points.
    """
    low, sides, together, log_points = layout(domain)
    counts = net_counts(
        sides=jnp.asarray(sides), together=jnp.asarray(together), slope=slope, episode=episode
    )
    return Net(jnp.asarray(low), jnp.asarray(sides), counts), log_cells(counts) + log_points


def log_count(domain: Domain) -> float:
    """ln of the number of points of finite sets in a domain, |Z| of a finite one."""
    return layout(domain)[3]


def layout(domain: Domain) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Lower ends, lengths (0 when finite), axes laid out together, ln of the finite points."""
    parts = [_layout_of(part) for part in domain.parts]
    low, sides, together = (np.concatenate([p[i] for p in parts]) for i in range(3))
    return low, sides, together, float(sum(p[3] for p in parts))


def _layout_of(part: Domain) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    low, high = part.bounds
    if part.points is not None:
        return low, np.zeros(len(low)), np.ones(len(low)), float(np.log(len(part.points)))
    return low, high - low, np.full(len(low), float(len(low))), 0.0
