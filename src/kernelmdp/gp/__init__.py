"""Gaussian-process posteriors: exact, finite rank and compiled."""

from kernelmdp.gp.compilation import Compilation, compile_kernel
from kernelmdp.gp.construction import posterior
from kernelmdp.gp.posterior import Posterior
from kernelmdp.gp.samples import FunctionSample, LazySample

__all__ = [
    "Compilation",
    "FunctionSample",
    "LazySample",
    "Posterior",
    "compile_kernel",
    "posterior",
]
