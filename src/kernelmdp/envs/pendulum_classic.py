"""Gymnasium's pendulum as two tasks: swing up from anywhere, and from hanging with noise.

θ = 0 is upright, ω = θ̇, and with g = 10, m = l = 1, a step of 0.05 s and |u| ≤ 2
ω' = ω + (3g/(2l) sin θ + 3u/(m l²)) 0.05  and  θ' = θ + 0.05 ω'.
|ω| ≤ 8 is the projection's work: as in the older versions of Gymnasium's file, with which the
published results were found, θ' takes the speed before its clip. Points are z = (θ, ω, u).
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.domains import Box
from kernelmdp.envs.drawing import PendulumDrawing
from kernelmdp.envs.environment import Environment
from kernelmdp.kernels import Index, Periodic, SquaredExponential
from kernelmdp.mdp import MDP, NO_NOISE, Gaussian, MeanModel, Noise, Value
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Key

GRAVITY, SECONDS, HORIZON = 10.0, 0.05, 200
STATES = Box([-math.pi, -8.0], [math.pi, 8.0], periodic=[0])
TORQUES = Box([-2.0], [2.0])
#: What changes in a step at 5 rad/s and 15 rad/s².
SCALE = (5 * SECONDS, 15 * SECONDS)
#: The largest cost: hanging at full speed under full torque.
DEAREST = math.pi**2 + 0.1 * 8.0**2 + 0.001 * 2.0**2
#: Hanging, all but still, as in MPC-PSRL's experiments (Fan and Ming 2021).
HANGING = (-math.pi, -0.02816067)
NOISE = 0.01
#: V* of ``pendulum_noisy``: on 480 × 321 nodes and 21 torques −304.9, 4.4 more than on half the
#: cells, and its policy earned −303.6 ± 0.7 in 256 episodes.
NOISY_OPTIMUM = Value(-302.5, 2.0, "estimate")


class ClassicPendulumDynamics(Module):
    """The state one step later: (n, 3) -> (n, 2), neither wrapped nor clipped."""

    def __call__(self, points: Float[Array, "n 3"]) -> Float[Array, "n 2"]:
        angle, speed, torque = points.T
        speed = speed + SECONDS * (1.5 * GRAVITY * jnp.sin(angle) + 3 * torque)
        return jnp.stack([angle + SECONDS * speed, speed], axis=1)


class PendulumCost(Module):
    """−(θ² + 0.1 ω² + 0.001 u²): (n, 3) -> (n,), θ in [−π, π], at the state or at the next one."""

    after: bool = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n 3"]) -> Float[Array, " n"]:
        where = ClassicPendulumDynamics()(points) if self.after else points[:, :2]
        angle, speed = STATES.nearest(where).T
        return -(angle**2 + 0.1 * speed**2 + 0.001 * points[:, 2] ** 2)


def pendulum(seed: int = 0, *, horizon: int = HORIZON) -> Environment:
    """From θ uniform on [−π, π], ω on [−1, 1]; the cost is that of the next state; no noise.

    As in TIP's experiments (Mehta et al. 2022). There is one such environment: ``seed`` changes
    nothing.
    """
    integer("seed", seed, least=0)
    return _environment("pendulum", PendulumCost(after=True), horizon, start=_anywhere)


def pendulum_noisy(
    seed: int = 0, *, horizon: int = HORIZON, noise: float = NOISE, reward_noise: float = NOISE
) -> Environment:
    """From hanging; Gaussian ``noise`` on θ and ω, and ``reward_noise`` on rewards.

    The cost is that of the state itself. Seen as (cos θ, sin θ, ω), as in MPC-PSRL's experiments
    and in the Gymnasium form, noise on θ is no additive noise; seen as an angle it is, and an angle
    on a circle is the same information. There is one such environment: ``seed`` changes nothing.
    """
    integer("seed", seed, least=0)
    size, size_reward = (
        positive_number("noise", noise),
        positive_number("reward_noise", reward_noise),
    )
    typical = (horizon, size, size_reward) == (HORIZON, NOISE, NOISE)
    return _environment(
        "pendulum-noisy",
        PendulumCost(after=False),
        horizon,
        start=HANGING,
        noise=Gaussian(size),
        reward_noise=Gaussian(size_reward),
        optimum=NOISY_OPTIMUM if typical else None,
    )


def _anywhere(key: Key) -> Float[Array, " 2"]:
    ends = jnp.array([math.pi, 1.0])
    return STATES.nearest(jax.random.uniform(key, (1, 2), minval=-ends, maxval=ends))[0]


def _environment(
    name: str,
    cost: PendulumCost,
    horizon: int,
    *,
    start: tuple[float, ...] | Callable[[Key], Any],
    noise: Noise = NO_NOISE,
    reward_noise: Noise = NO_NOISE,
    optimum: Value | None = None,
) -> Environment:
    mdp = MDP(
        MeanModel(cost, ClassicPendulumDynamics()),
        states=STATES,
        actions=TORQUES,
        horizon=integer("horizon", horizon, least=1),
        reward_noise=reward_noise,
        transition_noise=noise,
        reward_range=(-DEAREST, 0.0),
        metric=SCALE,
    )
    # Squared exponentials of (cos θ, sin θ, ω, u).
    smooth = Periodic(1.0).on(0) * SquaredExponential([8.0, 4.0]).on([1, 2])
    return Environment.of(
        name=name,
        mdp=mdp,
        start=start,
        reward_kernel=30.0 * smooth,
        transition_kernel=smooth @ Index(2),
        offset="identity",
        scale=SCALE,
        state_points=(120, 81),
        action_points=(11,),
        # Halved, the torques still have 0 among them.
        optimum_points=((240, 161), (13,)),
        lipschitz_rule="none: motion near upright is unstable",
        noise_floors=(3e-3, 3e-3),
        accuracy=0.1,
        optimum=optimum,
        drawing=PendulumDrawing(),
    )
