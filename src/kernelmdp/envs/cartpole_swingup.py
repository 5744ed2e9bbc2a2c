"""Swing up a pole by pushing its cart, in 25 steps of 0.1 s: PILCO's task (Deisenroth 2011).

Cart and pole have mass 0.5; length 0.6, friction 0.1, g = 9.82, force 10u with |u| ≤ 1, Euler's
rule, no noise. Episodes start hanging at rest, with N(0, 0.02²) added to every coordinate.

The reward is that of the next state: −(1 − exp(−d²/(2 · 0.25²))). Here d is the distance of the
pole's tip from its target, upright over the middle of the track. The reward does not depend on the
action, because Euler's rule moves positions with the old velocities.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Box
from kernelmdp.envs.cartpole import CartPoleDynamics
from kernelmdp.envs.drawing import CartPoleDrawing
from kernelmdp.envs.environment import Environment
from kernelmdp.errors import UnknownPropertyError
from kernelmdp.kernels import Index, Periodic, SquaredExponential
from kernelmdp.mdp import MDP, NO_NOISE, MeanModel, Value
from kernelmdp.numerics.checks import integer
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Key

#: The dynamics of PILCO's task.
DYNAMICS = CartPoleDynamics(
    cart_mass=0.5,
    pole_mass=0.5,
    length=0.6,
    friction=0.1,
    gravity=9.82,
    force=10.0,
    seconds=0.1,
)
#: The default number of periods, that of PILCO's task.
HORIZON = 25
#: The width w of the reward's bump, that of PILCO's task.
REWARD_WIDTH = 0.25
#: The published bounds. A policy that swings the pole up stays far from those of the cart.
STATES = Box([-10.0, -10.0, -math.pi, -25.0], [10.0, 10.0, math.pi, 25.0], periodic=[2])
#: The mean of the first state: hanging at rest.
HANGING = (0.0, 0.0, math.pi, 0.0)
#: The standard deviation of every coordinate of the first state.
START_DEVIATION = 0.02
#: The units of increments: how much a state changes in a step while the pole swings.
SCALE = (0.2, 1.0, 0.5, 2.0)
#: The best plan found from hanging at rest, with a return of −7.467. It was found by
#: ``MPCPlanner(first_rounds=80, polish=1)`` in 3 of 14 searches; the others reached −7.79 to −7.72.
#: The return is rugged, so the plan needs this many digits.
PLAN = (
    *(1.0, -0.253957, -1.0, 0.386731, -1.0, -0.999217, 1.0, 1.0, 1.0, -0.138247, -0.13241),
    *(-0.931866, -1.0, 0.364851, -0.197287, 0.102272, 0.187859, 0.209482, 0.178581, 0.152099),
    *(0.089611, -0.030407, -0.158082, -0.265211, 0.216241),
)
#: The optimal value. From a dozen first states, the best returns found are −7.58 to −7.27.
OPTIMUM = Value(-7.4, 0.2, "estimate")


class TipReward(Module):
    """The reward −(1 − exp(−d²/(2 w²))) of the next state: (n, 5) -> (n,).

    Attributes:
        side: 1, or −1 to mirror the pole in the reward but not in the motion. The published code
            of BARL and TIP does this.
    """

    side: int = eqx.field(static=True, default=1)

    def __call__(self, points: Float[Array, "n 5"]) -> Float[Array, " n"]:
        position, angle = (points[:, i] + DYNAMICS.seconds * points[:, i + 1] for i in (0, 2))
        across = position + self.side * DYNAMICS.length * jnp.sin(angle)
        below = DYNAMICS.length * (1 - jnp.cos(angle))
        return jnp.exp(-(across**2 + below**2) / (2 * REWARD_WIDTH**2)) - 1


def cartpole_swingup(
    seed: int = 0, *, horizon: int = HORIZON, mirrored: bool = False
) -> Environment:
    """Make the swing-up task.

    Args:
        seed: Not used: there is one such environment.
        horizon: The number of periods, H.
        mirrored: Whether to use the reward of the published code of TIP, see ``TipReward``.

    Returns:
        The environment.
    """
    integer("seed", seed, least=0)
    mdp = MDP(
        MeanModel(TipReward(-1 if mirrored else 1), DYNAMICS),
        states=STATES,
        actions=Box([-1.0], [1.0]),
        horizon=integer("horizon", horizon, least=1),
        reward_noise=NO_NOISE,
        transition_noise=NO_NOISE,
        reward_range=(-1.0, 0.0),
        metric=SCALE,
    )
    # Squared exponentials of (ẋ, cos θ, sin θ, θ̇, u). Only the reward depends on x.
    turns = Periodic(1.0).on(2)
    return Environment.of(
        name="cartpole-swingup",
        mdp=mdp,
        start=_hanging,
        reward_kernel=turns * SquaredExponential([0.6, 6.0, 12.0]).on([0, 1, 3]),
        transition_kernel=(turns * SquaredExponential([30.0, 25.0, 4.0]).on([1, 3, 4])) @ Index(4),
        offset="identity",
        scale=SCALE,
        state_points=(9, 9, 9, 9),
        action_points=(5,),
        optimum_points=((9, 9, 9, 9), (5,)),
        lipschitz_rule="infinite: no noise, and motion near upright is unstable",
        noise_floors=(3e-3, 3e-3),
        # The box is wide. With a smaller error than the noise, the rank would be 600, not 420.
        accuracy=1.0,
        reference=SwingUpOptimum(horizon == HORIZON and not mirrored),
        planner="mpc",
        drawing=CartPoleDrawing(DYNAMICS.length, reach=1.5),
    )


def _hanging(key: Key) -> Float[Array, " 4"]:
    state = jnp.asarray(HANGING) + START_DEVIATION * jax.random.normal(key, (4,))
    return STATES.nearest(state[None, :])[0]


class SwingUpOptimum(Module):
    """The optimal value at states close to hanging at rest.

    It is the return of the best plans that were found from several such states, and its error
    covers all of them. Without noise, plans are as good as policies.

    Attributes:
        known: Whether reward and horizon are those for which plans were searched.
    """

    known: bool

    def __call__(self, state: tuple[float, ...]) -> Value:
        difference = jnp.asarray(state) - jnp.asarray(HANGING)
        distances = np.abs(np.asarray(STATES.nearest(difference[None, :])))
        if not self.known or distances.max() > 5 * START_DEVIATION:
            raise UnknownPropertyError(
                "cartpole-swingup: the optimal value is known for the usual reward and horizon and "
                f"states within {5 * START_DEVIATION} of hanging at rest"
            )
        return OPTIMUM
