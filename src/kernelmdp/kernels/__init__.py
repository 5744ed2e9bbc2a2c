"""Kernels, their algebra and their text form.

>>> import kernelmdp as km
>>> km.kernels.SquaredExponential(0.5).on("state") + km.kernel("linear[action]")
se(0.5)[state] + linear[action]
"""

from kernelmdp.kernels.algebra import (
    Normalised,
    Product,
    Restricted,
    Scaled,
    Sum,
    normalise,
)
from kernelmdp.kernels.base import AnyKernel, Kernel
from kernelmdp.kernels.conformance import check_kernel
from kernelmdp.kernels.discrete import Coregional, Index, OneHot
from kernelmdp.kernels.facts import Facts
from kernelmdp.kernels.function import Function
from kernelmdp.kernels.outputs import Coregionalised, Independent, OutputKernel, OutputSum
from kernelmdp.kernels.polynomial import Constant, Linear, Polynomial, Quadratic
from kernelmdp.kernels.stationary import Matern, Periodic, SquaredExponential
from kernelmdp.kernels.text import as_kernel, as_output_kernel, kernel

__all__ = [
    "AnyKernel",
    "Constant",
    "Coregional",
    "Coregionalised",
    "Facts",
    "Function",
    "Independent",
    "Index",
    "Kernel",
    "Linear",
    "Matern",
    "Normalised",
    "OneHot",
    "OutputKernel",
    "OutputSum",
    "Periodic",
    "Polynomial",
    "Product",
    "Quadratic",
    "Restricted",
    "Scaled",
    "SquaredExponential",
    "Sum",
    "as_kernel",
    "as_output_kernel",
    "check_kernel",
    "kernel",
    "normalise",
]
