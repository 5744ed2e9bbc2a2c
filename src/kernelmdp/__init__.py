"""kernelmdp: GP-UCRL and PSRL for kernelised Markov decision processes.

Importing this package switches JAX to 64-bit floats (``jax_enable_x64``): posteriors and
information gains lose digits to cancellation that 32 bits do not have. 32 bits are available where
asked for, as in ``kernelmdp.gp.posterior(..., dtype="float32")``.
"""

import jax

jax.config.update("jax_enable_x64", True)

from kernelmdp import errors, gp, information, kernels  # noqa: E402  (64 bits first)
from kernelmdp.domains import Box, Domain, FiniteSet, join  # noqa: E402
from kernelmdp.kernels import kernel  # noqa: E402

__version__ = "0.1.0"
__all__ = ["Box", "Domain", "FiniteSet", "errors", "gp", "information", "join", "kernel", "kernels"]
