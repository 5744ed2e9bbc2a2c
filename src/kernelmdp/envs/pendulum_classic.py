"""Gymnasium's pendulum as two tasks: swing up from anywhere, and from hanging with noise.

With θ = 0 upright, ω = θ̇, g = 10, m = l = 1, a step of 0.05 s and |u| ≤ 2:

    ω' = ω + (3g/(2l) sin θ + 3u/(m l²)) 0.05  and  θ' = θ + 0.05 ω'.

The projection clips the speed to |ω| ≤ 8. So θ' uses the speed before it is clipped, as in the
older versions of Gymnasium with which the published results were found. Points are z = (θ, ω, u).
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

#: g, as in Gymnasium.
GRAVITY = 10.0
#: The duration of a step, as in Gymnasium.
SECONDS = 0.05
#: The default number of periods, as in Gymnasium.
HORIZON = 200
#: The state space: a periodic angle, and the speeds of Gymnasium.
STATES = Box([-math.pi, -8.0], [math.pi, 8.0], periodic=[0])
#: The action space: the torques of Gymnasium.
TORQUES = Box([-2.0], [2.0])
#: The units of increments: how much a state changes in a step at 5 rad/s and 15 rad/s².
SCALE = (5 * SECONDS, 15 * SECONDS)
#: The largest cost: hanging at full speed with full torque.
MAX_COST = math.pi**2 + 0.1 * 8.0**2 + 0.001 * 2.0**2
#: Hanging, almost at rest, as in the experiments of MPC-PSRL (Fan and Ming 2021).
HANGING = (-math.pi, -0.02816067)
#: The default standard deviation of the noise on states and on rewards.
NOISE = 0.01
#: V* of ``pendulum_noisy``. A grid of 480 × 321 nodes and 21 torques gives −304.9, 4.4 more than
#: half as many cells. Its policy earned −303.6 ± 0.7 in 256 episodes.
NOISY_OPTIMUM = Value(-302.5, 2.0, "estimate")


class ClassicPendulumDynamics(Module):
    """The state one step later: (n, 3) -> (n, 2), neither wrapped nor clipped."""

    def __call__(self, points: Float[Array, "n 3"]) -> Float[Array, "n 2"]:
        angle, speed, torque = points.T
        speed = speed + SECONDS * (1.5 * GRAVITY * jnp.sin(angle) + 3 * torque)
        return jnp.stack([angle + SECONDS * speed, speed], axis=1)


class PendulumCost(Module):
    """The reward −(θ² + 0.1 ω² + 0.001 u²) with θ in [−π, π]: (n, 3) -> (n,).

    Attributes:
        at_next_state: Whether θ and ω are those of the next state, and not of the state.
    """

    at_next_state: bool = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n 3"]) -> Float[Array, " n"]:
        states = ClassicPendulumDynamics()(points) if self.at_next_state else points[:, :2]
        angle, speed = STATES.nearest(states).T
        return -(angle**2 + 0.1 * speed**2 + 0.001 * points[:, 2] ** 2)


def pendulum(seed: int = 0, *, horizon: int = HORIZON) -> Environment:
    """Make the swing-up task of TIP (Mehta et al. 2022), without noise.

    Episodes start with θ uniform on [−π, π] and ω on [−1, 1]. The cost is that of the next state.

    Args:
        seed: Not used: there is one such environment.
        horizon: The number of periods, H.

    Returns:
        The environment.
    """
    integer("seed", seed, least=0)
    return _environment("pendulum", PendulumCost(at_next_state=True), horizon, start=_draw_start)


def pendulum_noisy(
    seed: int = 0, *, horizon: int = HORIZON, noise: float = NOISE, reward_noise: float = NOISE
) -> Environment:
    """Make the swing-up task from hanging, with Gaussian noise.

    The cost is that of the state itself. MPC-PSRL's experiments and the Gymnasium form observe
    (cos θ, sin θ, ω), in which noise on θ is not additive. As an angle on a circle, the state holds
    the same information and the noise is additive.

    Args:
        seed: Not used: there is one such environment.
        horizon: The number of periods, H.
        noise: The standard deviation of the noise on θ and on ω.
        reward_noise: The standard deviation of the noise on rewards.

    Returns:
        The environment.
    """
    integer("seed", seed, least=0)
    state_deviation, reward_deviation = (
        positive_number("noise", noise),
        positive_number("reward_noise", reward_noise),
    )
    default = (horizon, state_deviation, reward_deviation) == (HORIZON, NOISE, NOISE)
    return _environment(
        "pendulum-noisy",
        PendulumCost(at_next_state=False),
        horizon,
        start=HANGING,
        noise=Gaussian(state_deviation),
        reward_noise=Gaussian(reward_deviation),
        optimum=NOISY_OPTIMUM if default else None,
    )


def _draw_start(key: Key) -> Float[Array, " 2"]:
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
        reward_range=(-MAX_COST, 0.0),
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
        # A grid of half as many torques still contains 0.
        optimum_points=((240, 161), (13,)),
        lipschitz_rule="none: motion near upright is unstable",
        noise_floors=(3e-3, 3e-3),
        accuracy=0.1,
        optimum=optimum,
        drawing=PendulumDrawing(),
    )
