"""Prior mean functions: zero, "the next state is the current one", or the user's own."""

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
    """A known function subtracted from targets and added to predictions."""

    @abc.abstractmethod
    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]: ...


class ZeroMean(Mean):
    """0 everywhere."""

    outputs: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return jnp.zeros((points.shape[0], self.outputs), points.dtype)


class IdentityMean(Mean):
    """The first m coordinates: the state stays where it is, and learning is of increments."""

    outputs: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return points[:, : self.outputs]


class TrendMean(Mean):
    """The state and an affine function of the point: increments that keep their trend."""

    slopes: Float[Array, "d m"]
    level: Float[Array, " m"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        own = points @ self.slopes.astype(points.dtype) + self.level[None, :].astype(points.dtype)
        return points[:, : own.shape[1]] + own


class ConstantMean(Mean):
    """The same number for every output, everywhere."""

    value: float = eqx.field(static=True)
    outputs: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return jnp.full((points.shape[0], self.outputs), self.value, points.dtype)


class FunctionMean(Mean):
    """The user's function of one point, giving one number or m of them."""

    function: Callable[[Point], Any] = eqx.field(static=True)
    outputs: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        def one(point: Point) -> Any:
            value = jnp.atleast_1d(jnp.asarray(self.function(point), points.dtype))
            if value.shape != (self.outputs,):
                raise ShapeError("mean", f"{self.outputs} numbers for a point", value.shape)
            return value

        return jax.vmap(one)(points)


def as_mean(mean: Any, outputs: int, dimension: int) -> Mean:
    """None or "zero", "identity", a function of one point, or a Mean."""
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
