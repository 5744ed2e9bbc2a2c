"""Predictions of a compiled posterior from its data, while they are fewer than its rank.

A compiled kernel of rank r costs r² for each point, whatever the number n of data. The exact
posterior costs n². So while n is below r, ``predict`` factorises the kernel matrix of the data at
each call, which costs little beside thousands of points. It is exact, so it is within the
posterior's error. Draws, covariances and the information gain come from the compiled kernel.
"""

import functools
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from kernelmdp.gp.engine import Engine
from kernelmdp.gp.exact_engine import ExactEngine
from kernelmdp.kernels import Kernel
from kernelmdp.numerics.modules import Module, replace_fields

#: Numbers of data are rounded up to a multiple of this. Each multiple is a branch of one program,
#: so nothing is compiled again as data grow.
STEP = 256
#: Smallest number of points for which a new factor pays.
POINTS = 1000


class FewData(Module):
    """The data of a posterior while they are few. Arrays are on the host: to append costs little.

    Attributes:
        kernels: The kernel of each engine.
        points: The points, with padding.
        targets: Their targets, with padding.
        count: The number of points, or −1 if there are too many.
        tiers: The number of branches: room in units of ``STEP`` rows.
    """

    kernels: tuple[Kernel, ...]
    points: Float[np.ndarray, "c d"]
    targets: Float[np.ndarray, "c m"]
    count: Any
    tiers: int = eqx.field(static=True)

    @staticmethod
    def room(
        kernels: tuple[Kernel, ...], rank: float, rows_per_point: int, dimension: int, outputs: int
    ) -> "FewData | None":
        """Make room for data, if the rank is large enough.

        Args:
            kernels: The kernel of each engine.
            rank: The smallest rank of the engines.
            rows_per_point: The number of rows that an engine has for one point.
            dimension: The number of coordinates of a point.
            outputs: The number of outputs.

        Returns:
            The room without data, or None.
        """
        tiers = int(rank) // STEP
        points = tiers * STEP // rows_per_point
        if points == 0:
            return None
        return FewData(
            kernels=kernels,
            points=np.zeros((points, dimension)),
            targets=np.zeros((points, outputs)),
            count=np.zeros((), np.int32),
            tiers=tiers,
        )

    def appended(self, points: Any, targets: Any, before: int) -> "FewData":
        """Append data.

        Args:
            points: (n, d).
            targets: (n,) or (n, m).
            before: The number of data so far. If others were conditioned on, these are useless.

        Returns:
            The data, or none of them if they are too many.
        """
        start, rows = int(self.count), np.shape(points)[0]
        if start < 0:
            return self
        if start != before or start + rows > len(self.points):
            return replace_fields(self, count=np.full((), -1, np.int32))
        x, y = self.points.copy(), self.targets.copy()
        x[start : start + rows] = points
        y[start : start + rows] = np.reshape(targets, (rows, -1))
        return replace_fields(self, points=x, targets=y, count=np.full((), start + rows, np.int32))

    def tier(self, count: int, rows_per_point: int) -> np.ndarray:
        """Choose the branch of a prediction.

        Args:
            count: The number of data of the posterior.
            rows_per_point: The number of rows that an engine has for one point.

        Returns:
            The rows needed in units of ``STEP``, or 0 if these are not all data.
        """
        rows = int(self.count) * rows_per_point
        known = 0 < rows and int(self.count) == count
        return np.full((), -(-rows // STEP) if known else 0, np.int32)

    def moments(
        self,
        tier: Array,
        rows: Float[Array, "c d1"],
        parts: list[Any],
        rows_per_point: int,
        points: Float[Array, "n d1"],
        engines: tuple[Engine, ...],
    ) -> list[tuple[Array, Array]]:
        """Compute means and variances for each engine, from the data if they are known.

        Args:
            tier: The branch.
            rows: Rows of the engines for the points of the data.
            parts: Targets and noise variances for each engine.
            rows_per_point: The number of rows that an engine has for one point.
            points: Rows of the engines for the points of the prediction.
            engines: The engines, which are used for tier 0.

        Returns:
            Means (n, p) and variances (n,) for each engine.
        """
        count = jnp.asarray(self.count) * rows_per_point

        def from_data(room: int) -> list[tuple[Array, Array]]:
            pairs = zip(self.kernels, parts, strict=True)
            exact = [
                ExactEngine.from_rows(kernel, rows[:room], targets[:room], noise[:room], count)
                for kernel, (targets, noise) in pairs
            ]
            return [engine.moments(points) for engine in exact]

        branches = [functools.partial(from_data, STEP * (i + 1)) for i in range(self.tiers)]

        def from_engines() -> list[tuple[Array, Array]]:
            return [engine.moments(points) for engine in engines]

        moments: list[tuple[Array, Array]] = lax.switch(tier, [from_engines, *branches])
        return moments
