"""Which data points a posterior is built on: those that say most about the others."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from kernelmdp.gp.fit_config import INDUCING, InducingConfig
from kernelmdp.gp.kernel_families import BatchedKernels
from kernelmdp.numerics.modules import jit


@jit
def select_inducing_points(
    shape: BatchedKernels,
    points: Float[Array, "n d"],
    count: int,
    *,
    config: InducingConfig = INDUCING,
) -> Int[Array, " count"]:
    """Places of points that say most about the others: greedy in the variance not yet explained.

    The variance is that of ``shape.selection_kernel``: one kernel for all outputs.
    """
    tight = shape.selection_kernel(points)
    x = tight.embed(points)

    def one(carry: tuple[Array, Array, Array], step: Array) -> tuple[Any, Array]:
        left, columns, chosen = carry
        best = jnp.argmax(left)
        column = tight.gram(x, x[best][None, :])[0, :, 0] - columns @ columns[best]
        column = column / jnp.sqrt(jnp.maximum(left[best], config.least_variance))
        left = jnp.maximum(left - column**2, 0.0).at[best].set(-1.0)
        return (left, columns.at[:, step].set(column), chosen), best

    first = jnp.broadcast_to(tight.variances(x)[:, 0], x.shape[:1])
    start = (first, jnp.zeros((x.shape[0], count)), jnp.zeros(()))
    return jax.lax.scan(one, start, jnp.arange(count))[1]
