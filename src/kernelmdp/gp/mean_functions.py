"""Prior mean functions: zero, the current state, a linear trend, or the user's function."""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError, ShapeError
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Point


class Mean(Module):
    """A known function that is subtracted from targets and added to predictions."""

    @abc.abstractmethod
    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]: ...


class ZeroMean(Mean):
    """0 everywhere.

    Attributes:
        outputs: m.
    """

    outputs: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return jnp.zeros((points.shape[0], self.outputs), points.dtype)


class IdentityMean(Mean):
    """The first m coordinates: the state does not change, and increments are learned.

    Attributes:
        outputs: m.
    """

    outputs: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return points[:, : self.outputs]


class TrendMean(Mean):
    """A known function plus a linear function of the point: residuals with a linear trend.

    Attributes:
        slopes: The slopes.
        level: The constants.
        function: From points (n, d) to the known values (n, m), such as the state itself.
    """

    slopes: Float[Array, "d m"]
    level: Float[Array, " m"]
    function: Callable[[Float[Array, "n d"]], Float[Array, "n m"]]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        trend = points @ self.slopes.astype(points.dtype) + self.level[None, :].astype(points.dtype)
        return jnp.asarray(self.function(points), points.dtype) + trend


class ConstantMean(Mean):
    """The same number for every output, everywhere.

    Attributes:
        value: The number.
        outputs: m.
    """

    value: float = eqx.field(static=True)
    outputs: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return jnp.full((points.shape[0], self.outputs), self.value, points.dtype)


class FunctionMean(Mean):
    """The user's function of one point, with one value or m values.

    Attributes:
        function: The function.
        outputs: m.
    """

    function: Callable[[Point], Any] = eqx.field(static=True)
    outputs: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        def at_point(point: Point) -> Any:
            value = jnp.atleast_1d(jnp.asarray(self.function(point), points.dtype))
            if value.shape != (self.outputs,):
                raise ShapeError("mean", f"{self.outputs} numbers for a point", value.shape)
            return value

        return jax.vmap(at_point)(points)


def as_mean(mean: Any, outputs: int, dimension: int) -> Mean:
    """Convert a user's prior mean to a ``Mean``.

    Args:
        mean: None or "zero", "identity", a function of one point, or a ``Mean``.
        outputs: m.
        dimension: The number of coordinates of a point.

    Returns:
        The mean.

    Raises:
        ArgumentError: If it is none of these, or "identity" with more outputs than coordinates.
    """
    if mean is None or mean == "zero":
        return ZeroMean(outputs)
    if mean == "identity":
        if outputs > dimension:
            raise ArgumentError("mean", f"'identity' with at most {dimension} outputs", outputs)
        return IdentityMean(outputs)
    if isinstance(mean, Mean):
        return mean
    if callable(mean):
        return FunctionMean(mean, outputs)
    raise ArgumentError("mean", "None, 'zero', 'identity' or a function of one point", repr(mean))
