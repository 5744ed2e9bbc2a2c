"""The contract of posterior engines: rows in; moments, information gain and draws out.

An engine knows rows of scalar observations y = f(x) + noise. It does not know outputs, prior means
or units. Targets have p columns that share one factorisation: p functions with the same kernel,
observed at the same points. Engines are immutable pytrees; ``condition`` returns a new engine.
"""

import abc
from collections.abc import Mapping
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Int

from kernelmdp.errors import UnknownPropertyError
from kernelmdp.gp.basis import Basis
from kernelmdp.numerics.modules import Module
from kernelmdp.types import ArrayLike, Key


class PosteriorFunction(Module):
    """The posterior mean, or a draw, as a function: the same value at the same point, always."""

    @abc.abstractmethod
    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]: ...

    def with_cache(self, cache: Any) -> "PosteriorFunction":
        """Return the same function, faster at cached points.

        Args:
            cache: The cache of an engine, or None.

        Returns:
            The function.
        """
        return self


class Engine(Module):
    """The posterior of p functions with one kernel, given the observed rows.

    If the columns have different kernels, the layout is ``ColumnLayout``. Noise variances are then
    (h, p), variances (n, p) and covariances (p, n, n), and the gain is that of all columns.

    Attributes:
        count: The number of rows.
    """

    count: eqx.AbstractVar[Int[Array, ""]]

    @abc.abstractmethod
    def condition(
        self, points: Float[Array, "h d"], targets: Float[Array, "h p"], noise: Float[Array, " h"]
    ) -> "Engine":
        """Condition on rows.

        Args:
            points: Points x, (h, d).
            targets: Observations, (h, p).
            noise: Noise variances, (h,).

        Returns:
            The engine after these rows.
        """

    def changing_arrays(self) -> dict[str, Array]:
        """Return the arrays that data change, from which ``with_arrays`` makes the engine again.

        Returns:
            Arrays by name. The default is empty: such an engine must see its data again.
        """
        return {}

    def with_arrays(self, arrays: Mapping[str, ArrayLike]) -> "Engine":
        """Replace the arrays that data change.

        Args:
            arrays: The result of ``changing_arrays`` of an engine for the same kernel.

        Returns:
            The engine with these arrays.

        Raises:
            ValueError: If an array has another shape.
        """
        return self

    @abc.abstractmethod
    def moments(
        self, points: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        """Compute posterior means and variances.

        Args:
            points: (n, d).

        Returns:
            Means (n, p), and variances of f without noise (n,), which the columns share.
        """

    def prediction(
        self, points: Float[Array, "n d"], tolerance: float
    ) -> tuple[Float[Array, "n p"], Array]:
        """Compute what ``moments`` does, faster where small errors are allowed.

        Args:
            points: (n, d).
            tolerance: The largest relative error of a standard deviation; 0 for none.

        Returns:
            As ``moments``. Means have no such error.
        """
        return self.moments(points)

    @abc.abstractmethod
    def covariance(self, points: Float[Array, "n d"]) -> Float[Array, "n n"]:
        """Compute the joint posterior covariance of f.

        Args:
            points: (n, d).

        Returns:
            The covariance, (n, n).
        """

    @abc.abstractmethod
    def mean_function(self) -> PosteriorFunction:
        """Return the posterior mean as a function, which is cheaper than ``moments``.

        Returns:
            The function.
        """

    @abc.abstractmethod
    def draw(self, frequencies: int, *, key: Key) -> PosteriorFunction:
        """Draw one function from the posterior.

        Args:
            frequencies: The number of random frequencies, for approximate draws only.
            key: Decides the draw.

        Returns:
            The function.
        """

    @property
    def exact_draws(self) -> bool:
        """Whether ``draw`` has exactly the law of the posterior."""
        return True

    @abc.abstractmethod
    def draw_at(
        self, points: Float[Array, "n d"], draws: int, *, key: Key
    ) -> Float[Array, "draws n p"]:
        """Draw values at finitely many points jointly.

        Args:
            points: (n, d).
            draws: The number of draws.
            key: Decides the draws.

        Returns:
            The values, (draws, n, p).
        """

    @abc.abstractmethod
    def gain(self) -> Float[Array, ""]:
        """Compute the information gain ½ ln|I + K/λ| of the rows, for one column.

        Returns:
            The gain.
        """

    @abc.abstractmethod
    def reserve(self, rows: int) -> "Engine":
        """Reserve memory for more rows.

        Args:
            rows: The number of rows to come.

        Returns:
            The same posterior.
        """

    @property
    def in_order_variances(self) -> Float[Array, " c"]:
        """σ²_{t−1}(x_t), the variance of each value given the rows before it; 0 in padding.

        Raises:
            UnknownPropertyError: If the engine does not have them.
        """
        raise UnknownPropertyError("in-order variances are kept by the exact engine, one factor")

    def prior_variance(self, points: Float[Array, "n d"]) -> Float[Array, " n"] | None:
        """Return k(x, x), if posterior variances are differences from it and may cancel.

        Args:
            points: (n, d).

        Returns:
            Prior variances (n,), or None for an engine whose variances cannot cancel.
        """
        return None

    def weight_form(self, dimension: int) -> tuple[Basis, Float[Array, "r r"]] | None:
        """Return g and root with f(z) = g(z)ᵀ root ξ, ξ ~ N(0, I), before any data.

        Args:
            dimension: The number of coordinates of a point.

        Returns:
            g and root, or None for an engine without weights.
        """
        return None

    @property
    def weight_moments(self) -> tuple[Float[Array, "r p"], Float[Array, "r r"]] | None:
        """Mean and a root of the covariance of the weights; None for an engine without weights.

        If there are weights, they are the ``coefficients`` of ``mean_function``.
        """
        return None

    # Some engines can cache feature values at points that are evaluated often.

    @property
    def cached(self) -> Any:
        """The cache, or None."""
        return None

    def cache_for(self, points: Float[Array, "n d"]) -> Any:
        """Compute what is worth caching at some points.

        Args:
            points: (n, d).

        Returns:
            The cache, or None for an engine without caches.
        """
        return None

    def with_cache(self, cache: Any) -> "Engine":
        """Return the same posterior with a cache.

        Args:
            cache: The cache, or None.

        Returns:
            The engine.
        """
        return self

    def with_cached_moments(self) -> "Engine":
        """Return the same posterior, which keeps means and variances at cached points up to date.

        Returns:
            The engine.
        """
        return self

    @property
    @abc.abstractmethod
    def factor_to_check(self) -> Array:
        """An array that contains NaN if positive definiteness was lost."""
