"""Gaussian-process posteriors: exact, finite rank and compiled.

>>> import kernelmdp as km
>>> km.gp.posterior(km.kernel("linear"), noise_variance=0.1, dimension=2).engine
'finite rank'
"""

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
