"""MDPs whose mean reward and mean transition are random functions of known RKHS norm.

f = Σ_i α_i k(·, x_i) with centres x_i uniform on the box and α rescaled so that αᵀKα = B², K the
matrix of the centres: the norm of f is exactly B. Drawn again until sup |f| on a net lies in a
band, so that mean next states stay in S (math B14 wants that) and no problem is dull.
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
    unit_environment,
    unit_points,
)
from kernelmdp.errors import ArgumentError
from kernelmdp.kernels import Kernel, SquaredExponential
from kernelmdp.kernels.base import gram
from kernelmdp.mdp import MeanModel
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Key

CENTRES = 30
#: Norms of reward and of each coordinate of the transition, by the number of state coordinates,
#: and the bands of their sup on a net.
NORMS = {1: (1.5, 1.25), 2: (1.8, 1.5)}
REWARD_BAND, TRANSITION_BAND = (0.8, 1.3), (0.7, 0.98)
ATTEMPTS = 1000


class KernelExpansion(Module):
    """Σ_i α_i k(·, x_i): points (n, d) -> (n,)."""

    kernel: Kernel
    centres: Float[Array, "c d"]
    weights: Float[Array, " c"]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, " n"]:
        return gram(self.kernel, points, self.centres) @ self.weights

    @property
    def norm(self) -> float:
        """√(αᵀKα), the RKHS norm."""
        matrix = gram(self.kernel, self.centres, self.centres)
        return float(jnp.sqrt(self.weights @ (matrix @ self.weights)))


def expansion(
    kernel: Kernel,
    domain: Domain,
    *,
    norm: float,
    band: tuple[float, float],
    key: Key,
    attempts: int = ATTEMPTS,
) -> KernelExpansion:
    """A random function of this norm whose sup on a net lies in the band."""
    low, high = (jnp.asarray(end)[None, :] for end in domain.bounds)
    net = jnp.asarray(domain.net(5_000)[0])
    for attempt in range(attempts):
        centre_key, weight_key = jax.random.split(jax.random.fold_in(key, attempt))
        places = jax.random.uniform(centre_key, (CENTRES, domain.dimension))
        drawn = KernelExpansion(
            kernel, low + (high - low) * places, jax.random.normal(weight_key, (CENTRES,))
        )
        drawn = KernelExpansion(kernel, drawn.centres, drawn.weights * (norm / drawn.norm))
        if band[0] <= float(jnp.max(jnp.abs(drawn(net)))) <= band[1]:
            return drawn
    raise ArgumentError("norm", f"one with which sup |f| in {band} happens", norm)


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
    """S = [−1, 1]^m with m = ``dimension`` 1 or 2, A = [−1, 1], SE kernels of lengthscale 0.5.

    ``transition_norm`` is that of each coordinate; bands of the sup grow in proportion to norms.
    Episodes start at 0. ``noise_law`` is "gaussian" or "student-t" (3 degrees of freedom), for
    rewards and states, of size ``noise``: a standard deviation, or the scale of the t.
    """
    m = integer("dimension", dimension, least=1)
    if m not in NORMS:
        raise ArgumentError("dimension", "1 or 2", dimension)
    points = unit_points(m)
    kernel = SquaredExponential(LENGTHSCALE)

    def draw(
        argument: str, given: float | None, typical: float, band: tuple[float, float], key: Key
    ) -> KernelExpansion:
        norm = typical if given is None else positive_number(argument, given)
        scaled = (band[0] * norm / typical, band[1] * norm / typical)
        return expansion(kernel, points, norm=norm, band=scaled, key=key)

    keys = jax.random.split(jax.random.key(integer("seed", seed, least=0)), m + 1)
    reward = draw("reward_norm", reward_norm, NORMS[m][0], REWARD_BAND, keys[0])
    parts = tuple(
        draw("transition_norm", transition_norm, NORMS[m][1], TRANSITION_BAND, key)
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
        # Norms for k ⊗ identity: coordinates add in squares.
        norms=(reward.norm, math.sqrt(sum(part.norm**2 for part in parts))),
    )
