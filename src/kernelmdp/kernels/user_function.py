"""A user's function of two points as a kernel."""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.kernels.base import ATOM, Kernel
from kernelmdp.kernels.constants import KernelConstants, linear_modulus
from kernelmdp.types import Point, Scalar


class Function(Kernel):
    """k(x, y) = function(x, y), written with jax.numpy for one pair of points.

    The function must be symmetric and positive semi-definite, which is not checked here
    (``check_kernel`` does). Pass the constants you know: without them, compilation to finite rank
    has an empirical error only.

    Args:
        function: k.
        name: The kernel's name in its text form; the function's name if None.
        variance_bound: κ.
        lipschitz: Λ.
        curvature: Q.

    Attributes:
        function: k.
        name: The kernel's name in its text form.
        bounds: κ, Λ and Q.

    Raises:
        ArgumentError: If it is not a function.

    >>> Function(lambda x, y: (x[0] * y[0]) ** 3, name="cubic", variance_bound=1.0)
    cubic
    """

    function: Callable[[Point, Point], Any] = eqx.field(static=True)
    name: str = eqx.field(static=True)
    bounds: tuple[float, float, float] = eqx.field(static=True)

    def __init__(
        self,
        function: Callable[[Point, Point], Any],
        *,
        name: str | None = None,
        variance_bound: float = math.inf,
        lipschitz: float = math.inf,
        curvature: float = math.inf,
    ) -> None:
        if not callable(function):
            raise ArgumentError("function", "a function of two points", repr(function))
        default = getattr(function, "__name__", "function")
        default = default if default.isidentifier() else "function"
        self.function = function
        self.name = name if name is not None else default
        self.bounds = (float(variance_bound), float(lipschitz), float(curvature))

    def pair(self, x: Point, y: Point) -> Scalar:
        value = jnp.asarray(self.function(x, y), x.dtype)
        if value.ndim != 0:
            raise ArgumentError("function", "one number for a pair of points", value.shape)
        return value

    def constants_on(self, low: np.ndarray, high: np.ndarray) -> KernelConstants:
        variance_bound, lipschitz, curvature = self.bounds
        slopes = np.full(len(low), lipschitz)
        return KernelConstants(
            variance_bound=variance_bound,
            lipschitz=lipschitz,
            curvature=curvature,
            axis_lipschitz=slopes,
            axis_curvature=np.full(len(low), curvature),
            modulus=linear_modulus(slopes, lipschitz),
        )

    def to_text(self) -> tuple[str, int]:
        return self.name, ATOM
