"""An MDP whose mean reward and mean transition are drawn from Gaussian process priors.

The kernels are compiled on S × A and weights are drawn. This is exact in law for the compiled
kernel. In the limit of full rank such functions have no finite RKHS norm (note B22), so the norms
are unknown.
"""

import jax

from kernelmdp.envs.environment import Environment
from kernelmdp.envs.unit_box import (
    HORIZON,
    LENGTHSCALE,
    NOISE,
    StackedFunctions,
    unit_domain,
    unit_environment,
)
from kernelmdp.gp import posterior
from kernelmdp.kernels import Kernel, SquaredExponential
from kernelmdp.mdp import MeanModel
from kernelmdp.numerics.checks import integer

#: Prior variance of reward and transition. With it, sup |f| of a draw is about 1. A mean next state
#: outside S is projected. Both have the same kernel, which is compiled once.
VARIANCE = 0.2
#: Largest error |k − k_r| of the compiled kernel from which the truth is drawn. A smaller one needs
#: a higher rank.
TOLERANCE = 1e-6


def gp_prior(
    seed: int = 0,
    *,
    reward_kernel: Kernel | None = None,
    transition_kernel: Kernel | None = None,
    horizon: int = HORIZON,
    noise: float = NOISE,
) -> Environment:
    """Make an environment on S = A = [−1, 1] with R̄ and P̄ drawn from GP priors.

    Args:
        seed: Decides the draw.
        reward_kernel: The kernel of the reward. None means SE with variance 0.2 and lengthscale
            0.5.
        transition_kernel: The kernel of the transition, with the same default.
        horizon: The number of periods, H.
        noise: The standard deviation of the noise on states and rewards.

    Returns:
        The environment.
    """
    points = unit_domain(1)
    default = VARIANCE * SquaredExponential(LENGTHSCALE)
    kernels = (
        default if reward_kernel is None else reward_kernel,
        default if transition_kernel is None else transition_kernel,
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
        drawn_from_prior=True,
    )
