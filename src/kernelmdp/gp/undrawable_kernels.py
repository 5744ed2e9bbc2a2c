"""Kernels of which no functions can be drawn: without a finite rank and without a spectral law."""

from collections.abc import Iterable

from kernelmdp.gp.engine import Engine
from kernelmdp.gp.exact_engine import ExactEngine
from kernelmdp.kernels import Kernel, Product, Scaled, Sum


def undrawable_part(kernel: Kernel, dimension: int) -> Kernel | None:
    """Find the part of a kernel that ``prior_basis`` makes no features of.

    Args:
        kernel: The kernel, of infinite rank where it is not compiled.
        dimension: The number of coordinates of a point.

    Returns:
        The part, or None if functions can be drawn.

    >>> import kernelmdp as km
    >>> cubic = km.kernels.Function(lambda x, y: (x @ y) ** 3, name="cubic")
    >>> undrawable_part(km.kernel("se(0.5)") + 2.0 * cubic, dimension=1)
    cubic
    """
    if kernel.stationary or kernel.feature_count(dimension) < float("inf"):
        return None
    if isinstance(kernel, Scaled):
        return undrawable_part(kernel.kernel, dimension)
    if isinstance(kernel, Sum | Product):
        left = undrawable_part(kernel.left, dimension)
        return left if left is not None else undrawable_part(kernel.right, dimension)
    return kernel


def undrawable_engine_part(engines: Iterable[Engine]) -> Kernel | None:
    """Find the part of the kernels of some engines of which no functions can be drawn.

    A kernel that was compiled to a finite rank can be drawn from, whatever it is.

    Args:
        engines: The engines of a posterior.

    Returns:
        The part, or None.
    """
    for engine in engines:
        if isinstance(engine, ExactEngine):
            part = undrawable_part(engine.kernel, engine.points.shape[1])
            if part is not None:
                return part
    return None
