"""MDPs whose mean reward and mean transition are random functions of known RKHS norm.

f = Σ_i α_i k(·, x_i) with centres x_i uniform on the box. With the Gram matrix K of the centres, α
is rescaled so that αᵀKα = B². The norm of f is then exactly B. Functions are drawn until sup |f| on
a net lies in a range. So mean next states stay in S, which note B14 needs, and no problem is flat.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.envs.environment import Environment
from kernelmdp.envs.unit_box import (
    HORIZON,
    LENGTHSCALE,
    NOISE,
    StackedFunctions,
    unit_domain,
    unit_environment,
)
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels import Kernel, SquaredExponential
from kernelmdp.kernels.base import gram
from kernelmdp.mdp import MeanModel
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Key

#: The number of centres of a function. More of them make richer functions.
CENTRES = 30
#: Default norms of the reward and of each coordinate of the transition, by the number of state
#: coordinates. With them, draws often have a sup in the ranges below.
NORMS = {1: (1.5, 1.25), 2: (1.8, 1.5)}
#: The range of sup |R̄| on a net: not flat, and of size about 1.
REWARD_SUP_RANGE = (0.8, 1.3)
#: The range of sup |P̄| on a net: not flat, and inside S.
TRANSITION_SUP_RANGE = (0.7, 0.98)
#: Most draws of a function before an error. Ranges that are met so rarely are a mistake.
ATTEMPTS = 1000


class KernelExpansion(Module):
    """The function Σ_i α_i k(·, x_i): points (n, d) -> (n,).

    Attributes:
        kernel: k.
        centres: x_1, …, x_c, (c, d).
        weights: α, (c,).
    """

    kernel: Kernel
    centres: Float[Array, "c d"]
    weights: Float[Array, " c"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, " n"]:
        return gram(self.kernel, points, self.centres) @ self.weights

    @property
    def norm(self) -> float:
        """The RKHS norm √(αᵀKα)."""
        matrix = gram(self.kernel, self.centres, self.centres)
        return float(jnp.sqrt(self.weights @ (matrix @ self.weights)))


def random_expansion(
    kernel: Kernel,
    domain: Domain,
    *,
    norm: float,
    sup_range: tuple[float, float],
    key: Key,
    attempts: int = ATTEMPTS,
) -> KernelExpansion:
    """Draw a function of a given norm whose sup on a net lies in a range.

    Args:
        kernel: The kernel.
        domain: The domain of the function.
        norm: The RKHS norm.
        sup_range: The least and the largest sup |f|.
        key: Decides the draw.
        attempts: The most functions to draw.

    Returns:
        The function.

    Raises:
        ArgumentError: If no draw has its sup in the range.
    """
    low, high = (jnp.asarray(end)[None, :] for end in domain.bounds)
    net = jnp.asarray(domain.net(5_000)[0])
    for attempt in range(attempts):
        centre_key, weight_key = jax.random.split(jax.random.fold_in(key, attempt))
        uniform = jax.random.uniform(centre_key, (CENTRES, domain.dimension))
        sample = KernelExpansion(
            kernel, low + (high - low) * uniform, jax.random.normal(weight_key, (CENTRES,))
        )
        sample = KernelExpansion(kernel, sample.centres, sample.weights * (norm / sample.norm))
        if sup_range[0] <= float(jnp.max(jnp.abs(sample(net)))) <= sup_range[1]:
            return sample
    raise ArgumentError("norm", f"one with which sup |f| in {sup_range} happens", norm)


def rkhs(
    seed: int = 0,
    *,
    dimension: int = 1,
    horizon: int = HORIZON,
    noise: float = NOISE,
    reward_norm: float | None = None,
    transition_norm: float | None = None,
    noise_law: str = "gaussian",
) -> Environment:
    """Make an environment with random functions of known norm.

    S = [−1, 1]^m, A = [−1, 1], and the kernels are SE with lengthscale 0.5. Episodes start at 0.

    Args:
        seed: Decides the functions.
        dimension: The number of state coordinates m, 1 or 2.
        horizon: The number of periods, H.
        noise: The size of the noise on rewards and states: the standard deviation of a Gaussian,
            or the scale of a Student t.
        reward_norm: The norm of the reward. None means a default.
        transition_norm: The norm of each coordinate of the transition. None means a default. The
            allowed ranges of the sup grow in proportion to the norms.
        noise_law: "gaussian", or "student-t" with 3 degrees of freedom.

    Returns:
        The environment.

    Raises:
        ArgumentError: If ``dimension`` is not 1 or 2.
    """
    m = integer("dimension", dimension, least=1)
    if m not in NORMS:
        raise ArgumentError("dimension", "1 or 2", dimension)
    points = unit_domain(m)
    kernel = SquaredExponential(LENGTHSCALE)

    def draw(
        argument: str,
        value: float | None,
        default: float,
        sup_range: tuple[float, float],
        key: Key,
    ) -> KernelExpansion:
        norm = default if value is None else positive_number(argument, value)
        scaled = (sup_range[0] * norm / default, sup_range[1] * norm / default)
        return random_expansion(kernel, points, norm=norm, sup_range=scaled, key=key)

    keys = jax.random.split(jax.random.key(integer("seed", seed, least=0)), m + 1)
    reward = draw("reward_norm", reward_norm, NORMS[m][0], REWARD_SUP_RANGE, keys[0])
    parts = tuple(
        draw("transition_norm", transition_norm, NORMS[m][1], TRANSITION_SUP_RANGE, key)
        for key in keys[1:]
    )
    return unit_environment(
        name="rkhs" if m == 1 else f"rkhs-{m}d",
        dimension=m,
        model=MeanModel(reward, StackedFunctions(parts)),
        reward_kernel=kernel,
        transition_kernel=kernel,
        horizon=horizon,
        noise=noise,
        noise_law=noise_law,
        # For k ⊗ identity, the squared norms of the coordinates add.
        norms=(reward.norm, math.sqrt(sum(part.norm**2 for part in parts))),
    )
