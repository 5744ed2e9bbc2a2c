"""Nets of the GP setting: cells of the domain, finer from episode to episode."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.confidence.beta import Number, log_cells, net_counts
from kernelmdp.domains import Domain
from kernelmdp.numerics.modules import Module

#: Number of boxes whose nets together stay within the slack 1/l²: each takes a quarter of it.
BOXES_WITHIN_SLACK = 4


class Net(Module):
    """Cells of a box: [z]_l is the centre of the cell that contains z.

    Counts are array leaves, so a finer net needs no new program. Axes of finite sets have length
    0, and their points represent themselves.

    Attributes:
        low: Lower ends of the axes.
        sides: Lengths of the axes; 0 for finite sets.
        counts: Numbers of cells along the axes.
    """

    low: Float[Array, " d"]
    sides: Float[Array, " d"]
    counts: Float[Array, " d"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Return the representative [z]_l of every point."""
        rows = (self.low, self.sides, self.counts)
        low, sides, counts = (row[None, :].astype(points.dtype) for row in rows)
        step = jnp.where(sides > 0, sides / counts, 1.0)
        cell = jnp.clip(jnp.floor((points - low) / step), 0.0, counts - 1)
        return jnp.where(sides > 0, low + (cell + 0.5) * step, points)


def net(domain: Domain, *, slope: Number, episode: Number) -> tuple[Net, Float[Array, ""]]:
    """Make the net of an episode.

    Each box of a product has its own net, as S and A in the paper. A finite set counts with its
    points.

    Args:
        domain: Where z lies.
        slope: A bound L̄ of all partial derivatives.
        episode: l, counted from 1.

    Returns:
        The net, and the logarithm of the number of representatives.
    """
    low, sides, together, log_points = axis_layout(domain)
    counts = net_counts(
        sides=jnp.asarray(sides), together=jnp.asarray(together), slope=slope, episode=episode
    )
    return Net(jnp.asarray(low), jnp.asarray(sides), counts), log_cells(counts) + log_points


def log_count(domain: Domain) -> float:
    """Compute the logarithm of the number of points of the finite sets in a domain.

    Args:
        domain: The domain.

    Returns:
        ln|Z| of a finite domain; of a product, the part of its finite factors.
    """
    return axis_layout(domain)[3]


def axis_layout(domain: Domain) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Describe the axes of a domain for its net.

    Args:
        domain: The domain.

    Returns:
        Lower ends, lengths (0 for finite sets), numbers of axes that share a net (more where there
        are many boxes), and the logarithm of the number of points of finite sets.
    """
    parts = [_part_layout(part) for part in domain.parts]
    low, sides, together = (np.concatenate([part[i] for part in parts]) for i in range(3))
    # A function changes by at most 1/(4 l²) within the cells of one box. With more than four boxes
    # the cells must be smaller, so that the sum stays within the slack 1/l².
    boxes = sum(part.points is None for part in domain.parts)
    together = together * max(1.0, boxes / BOXES_WITHIN_SLACK)
    return low, sides, together, float(sum(part[3] for part in parts))


def _part_layout(part: Domain) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    low, high = part.bounds
    if part.points is not None:
        return low, np.zeros(len(low)), np.ones(len(low)), float(np.log(len(part.points)))
    return low, high - low, np.full(len(low), float(len(low))), 0.0
