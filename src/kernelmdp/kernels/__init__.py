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
from kernelmdp.kernels.base import Kernel, KernelBase
from kernelmdp.kernels.conformance import check_kernel
from kernelmdp.kernels.constants import KernelConstants
from kernelmdp.kernels.discrete import Coregional, Index, OneHot
from kernelmdp.kernels.output_kernels import Coregionalised, Independent, OutputKernel, OutputSum
from kernelmdp.kernels.polynomial import Constant, Linear, Polynomial, Quadratic
from kernelmdp.kernels.stationary import Matern, Periodic, SquaredExponential
from kernelmdp.kernels.text import as_kernel, as_output_kernel, kernel
from kernelmdp.kernels.user_function import Function

__all__ = [
    "Constant",
    "Coregional",
    "Coregionalised",
    "Function",
    "Independent",
    "Index",
    "Kernel",
    "KernelBase",
    "KernelConstants",
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
