"""An MDP whose mean reward and mean transition are drawn from Gaussian process priors.

The kernels are compiled on S × A and weights drawn, which is exact in law for the compiled kernel.
Such functions have no finite RKHS norm in the limit of full rank (math B22), so none is stated.
"""

import jax

from kernelmdp.envs.environment import Environment
from kernelmdp.envs.unit_box import (
    HORIZON,
    LENGTHSCALE,
    NOISE,
    StackedFunctions,
    unit_environment,
    unit_points,
)
from kernelmdp.gp import posterior
from kernelmdp.kernels import Kernel, SquaredExponential
from kernelmdp.mdp import MeanModel
from kernelmdp.numerics.checks import integer

#: Prior variance of both: sup |f| of a draw is about 1. A mean next state outside S is projected.
#: One kernel for both is compiled once.
VARIANCE = 0.2
#: How far |k − k_r| may go in drawing the truth.
TOLERANCE = 1e-6


def gp_prior(
    seed: int = 0,
    *,
    reward_kernel: Kernel | None = None,
    transition_kernel: Kernel | None = None,
    horizon: int = HORIZON,
    noise: float = NOISE,
) -> Environment:
    """S = A = [−1, 1], R̄ and P̄ drawn from the kernels (scaled SE of lengthscale 0.5)."""
    points = unit_points(1)
    typical = VARIANCE * SquaredExponential(LENGTHSCALE)
    kernels = (
        typical if reward_kernel is None else reward_kernel,
        typical if transition_kernel is None else transition_kernel,
    )
    keys = jax.random.split(jax.random.key(integer("seed", seed, least=0)))
    reward, transition = (
        posterior(kernel, noise_variance=1.0, domain=points, tolerance=TOLERANCE).sample(key=key)
        for kernel, key in zip(kernels, keys, strict=True)
    )
    return unit_environment(
        name="gp-prior",
        dimension=1,
        model=MeanModel(reward, StackedFunctions((transition,))),
        reward_kernel=kernels[0],
        transition_kernel=kernels[1],
        horizon=horizon,
        noise=noise,
        norms=(None, None),
    )
