"""What a posterior engine does: rows in, moments, gain and function draws out.

An engine knows rows of scalar observations y = f(x) + noise and nothing of outputs, means or
units. Targets have p columns that share one factorisation: p functions with the same kernel, seen
at the same points. Engines are immutable pytrees; ``condition`` returns another engine.
"""

import abc
from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Int

from kernelmdp.errors import UnknownPropertyError
from kernelmdp.gp.basis import Basis
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Key


class PosteriorFunction(Module):
    """A drawn function: the same value at the same point, at every call."""

    @abc.abstractmethod
    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n p"]: ...

    def with_memory(self, memory: Any) -> "PosteriorFunction":
        """The same function, faster at remembered points."""
        return self


class Engine(Module):
    """The posterior of p functions with one kernel, given rows seen so far.

    An engine whose columns have kernels of their own is laid out by ``ColumnLayout``. Its noise variances
    are (h, p), its variances (n, p) and its covariances (p, n, n); its gain is that of all columns.
    """

    count: eqx.AbstractVar[Int[Array, ""]]

    @abc.abstractmethod
    def condition(
        self, points: Float[Array, "h d"], targets: Float[Array, "h p"], noise: Float[Array, " h"]
    ) -> "Engine":
        """The engine after rows with these noise variances."""

    @abc.abstractmethod
    def moments(
        self, points: Float[Array, "n d"]
    ) -> tuple[Float[Array, "n p"], Float[Array, " n"]]:
        """Posterior means and the variance of f (noise not included), which the columns share."""

    @abc.abstractmethod
    def covariance(self, points: Float[Array, "n d"]) -> Float[Array, "n n"]:
        """Joint posterior covariance of f at the points."""

    @abc.abstractmethod
    def mean_function(self) -> PosteriorFunction:
        """The posterior mean as a function of its own: cheaper than ``moments``."""

    @abc.abstractmethod
    def draw(self, frequencies: int, *, key: Key) -> PosteriorFunction:
        """One function from the posterior; ``frequencies`` matters to approximate draws only."""

    @property
    def exact_draws(self) -> bool:
        """Whether ``draw`` has the law of the posterior, or approximates it."""
        return True

    @abc.abstractmethod
    def draw_at(
        self, points: Float[Array, "n d"], draws: int, *, key: Key
    ) -> Float[Array, "draws n p"]:
        """Joint draws of the values at finitely many points."""

    @abc.abstractmethod
    def gain(self) -> Float[Array, ""]:
        """½ ln|I + K/λ| of the rows, for one column."""

    @abc.abstractmethod
    def reserve(self, rows: int) -> "Engine":
        """The same posterior with room for that many more rows."""

    @property
    def in_order_variances(self) -> Float[Array, " c"]:
        """σ²_{t−1}(x_t), the variance of each value given the rows before it; 0 in padding."""
        raise UnknownPropertyError("in-order variances are kept by the exact engine, one factor")

    def prior_variance(self, points: Float[Array, "n d"]) -> Float[Array, " n"] | None:
        """k(x, x) where variances are what is left of it, so that they may cancel; else None."""
        return None

    def weight_form(self, dimension: int) -> tuple[Basis, Float[Array, "r r"]] | None:
        """g and root with f(z) = g(z)ᵀ root ξ, ξ ~ N(0, I), before any data; None without such."""
        return None

    # Some engines can remember what they need at points that are asked for again and again.

    @property
    def cached(self) -> Any:
        """What is remembered, or None."""
        return None

    def memory_of(self, points: Float[Array, "n d"]) -> Any:
        """What is worth remembering of these points, or None."""
        return None

    def with_memory(self, memory: Any) -> "Engine":
        """The same posterior with this memory."""
        return self

    def with_known_moments(self) -> "Engine":
        """The same posterior, keeping means and variances at remembered points up to date."""
        return self

    @property
    @abc.abstractmethod
    def factor_to_check(self) -> Array:
        """An array that holds NaN when positive definiteness was lost."""
