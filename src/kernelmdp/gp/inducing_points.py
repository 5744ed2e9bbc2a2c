"""Selection of inducing points among data points."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from kernelmdp.gp.fit_config import INDUCING, InducingConfig
from kernelmdp.gp.kernel_families import BatchedKernels
from kernelmdp.numerics.modules import matrix_jit


@matrix_jit
def select_inducing_points(
    kernels: BatchedKernels,
    points: Float[Array, "n d"],
    count: int,
    *,
    config: InducingConfig = INDUCING,
) -> Int[Array, " count"]:
    """Select points greedily: each has the largest variance given those selected before.

    The variance is that of ``kernels.selection_kernel``, one kernel for all outputs.

    Args:
        kernels: The kernels of all outputs.
        points: The candidates, (n, d).
        count: The number of points to select.
        config: Numerical settings.

    Returns:
        Indices of the selected points.
    """
    kernel = kernels.selection_kernel(points)
    x = kernel.embed(points)

    def select_one(carry: tuple[Array, Array, Array], step: Array) -> tuple[Any, Array]:
        variances, columns, unused = carry
        best = jnp.argmax(variances)
        column = kernel.gram(x, x[best][None, :])[0, :, 0] - columns @ columns[best]
        column = column / jnp.sqrt(jnp.maximum(variances[best], config.least_variance))
        variances = jnp.maximum(variances - column**2, 0.0).at[best].set(-1.0)
        return (variances, columns.at[:, step].set(column), unused), best

    prior_variances = jnp.broadcast_to(kernel.variances(x)[:, 0], x.shape[:1])
    start = (prior_variances, jnp.zeros((x.shape[0], count)), jnp.zeros(()))
    return jax.lax.scan(select_one, start, jnp.arange(count))[1]
