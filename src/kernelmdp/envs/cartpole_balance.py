"""Balance a pole on a cart, with noise: Gymnasium's cart-pole with a continuous force.

The cart has mass 1, the pole mass 0.1 and half-length 0.5; g = 9.8, no friction, force 10u with
|u| ≤ 1, steps of 0.02 s (MPC-PSRL, Fan and Ming 2021). An episode ends when the cart is more than
2.4 from the middle or the pole more than 12° from upright. Every step that starts within these
limits earns 1.
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from kernelmdp.domains import Box
from kernelmdp.envs.cartpole import CartPoleDynamics
from kernelmdp.envs.drawing import CartPoleDrawing
from kernelmdp.envs.environment import Environment
from kernelmdp.errors import UnknownPropertyError
from kernelmdp.kernels import Index, SquaredExponential
from kernelmdp.mdp import MDP, Gaussian, MeanModel, Value
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Key

#: The dynamics of Gymnasium's cart-pole.
DYNAMICS = CartPoleDynamics(
    cart_mass=1.0,
    pole_mass=0.1,
    length=1.0,
    friction=0.0,
    gravity=9.8,
    force=10.0,
    seconds=0.02,
)
#: The default number of periods. With more of them, the optimal value is unknown.
HORIZON = 200
#: The default standard deviation of the noise on states and on rewards. With more noise on states,
#: the optimal value is unknown.
NOISE = 0.01
#: The largest distance of the cart from the middle, as in Gymnasium.
MAX_POSITION = 2.4
#: The largest angle of the pole, as in Gymnasium.
MAX_ANGLE = math.radians(12)
#: The state space. It is twice as wide as the limits, so that the last state is not clipped.
STATES = Box(
    [-2 * MAX_POSITION, -10.0, -2 * MAX_ANGLE, -10.0],
    [2 * MAX_POSITION, 10.0, 2 * MAX_ANGLE, 10.0],
)
#: Episodes start with every coordinate uniform between ± this, as in Gymnasium.
START_RANGE = 0.05
#: The units of increments: how much a state changes in a step when the pole begins to fall.
SCALE = (0.02, 0.2, 0.02, 0.3)
#: Gains of a linear controller that keeps the pole upright. It bounds the optimum from below.
FEEDBACK_GAINS = (0.5, 1.0, 10.0, 2.0)
#: The most that this controller loses against the largest possible return, with 99 % confidence.
OPTIMUM_ERROR = 0.05


class UprightReward(Module):
    """The reward: 1 while cart and pole are within their limits, else 0; (n, 5) -> (n,)."""

    def __call__(self, points: Float[Array, "n 5"]) -> Float[Array, " n"]:
        return jnp.where(has_failed(points[:, :4]), 0.0, 1.0)


class FallenTermination(Module):
    """The termination: the cart or the pole of the next state is beyond its limit."""

    def __call__(
        self, points: Float[Array, "n 5"], next_states: Float[Array, "n 4"]
    ) -> Bool[Array, " n"]:
        return has_failed(next_states)


def has_failed(states: Float[Array, "n 4"]) -> Bool[Array, " n"]:
    """Return whether the cart or the pole is beyond its limit.

    Args:
        states: (x, ẋ, θ, θ̇), (n, 4).

    Returns:
        A truth value for each state, (n,).
    """
    return (jnp.abs(states[:, 0]) > MAX_POSITION) | (jnp.abs(states[:, 2]) > MAX_ANGLE)


def cartpole_balance(
    seed: int = 0, *, horizon: int = HORIZON, noise: float = NOISE, reward_noise: float = NOISE
) -> Environment:
    """Make the balancing task, with Gaussian noise on all coordinates and on rewards.

    Args:
        seed: Not used: there is one such environment.
        horizon: The number of periods, H.
        noise: The standard deviation of the noise on states.
        reward_noise: The standard deviation of the noise on rewards.

    Returns:
        The environment.
    """
    integer("seed", seed, least=0)
    mdp = MDP(
        MeanModel(UprightReward(), DYNAMICS),
        states=STATES,
        actions=Box([-1.0], [1.0]),
        horizon=integer("horizon", horizon, least=1),
        reward_noise=Gaussian(positive_number("reward_noise", reward_noise)),
        transition_noise=Gaussian(positive_number("noise", noise)),
        reward_range=(0.0, 1.0),
        metric=SCALE,
        termination=FallenTermination(),
    )
    # Only the termination depends on x.
    motion = SquaredExponential([10.0, 1.0, 10.0, 4.0]).on([1, 2, 3, 4])
    return Environment.of(
        name="cartpole-balance",
        mdp=mdp,
        start=_near_upright,
        reward_kernel=SquaredExponential([2.4, 0.2]).on([0, 2]),
        transition_kernel=motion @ Index(4),
        offset="identity",
        scale=SCALE,
        state_points=(9, 9, 9, 9),
        action_points=(5,),
        optimum_points=((9, 9, 9, 9), (5,)),
        lipschitz_rule="none: rewards end at once where the pole falls",
        accuracy=0.1,
        reference=BalanceOptimum(mdp.horizon, float(noise)),
        planner="mpc",
        drawing=CartPoleDrawing(DYNAMICS.length, reach=MAX_POSITION),
    )


class BalanceOptimum(Module):
    """The optimal value at the states in which episodes start.

    No policy earns more than H. The clipped controller u = ``FEEDBACK_GAINS`` · state let the pole
    fall in none of 20,000 episodes. With 99 % confidence it loses at most ``OPTIMUM_ERROR``.

    Attributes:
        horizon: The number of periods, H.
        noise: The standard deviation of the noise on states.
    """

    horizon: int
    noise: float

    def __call__(self, state: tuple[float, ...]) -> Value:
        if self.noise > NOISE or self.horizon > HORIZON or max(map(abs, state)) > START_RANGE:
            raise UnknownPropertyError(
                "cartpole-balance: the optimal value is known for states within "
                f"{START_RANGE} of 0, noise of at most {NOISE} and at most {HORIZON} steps"
            )
        return Value(float(self.horizon), OPTIMUM_ERROR, "interval")


def _near_upright(key: Key) -> Float[Array, " 4"]:
    return jax.random.uniform(key, (4,), minval=-START_RANGE, maxval=START_RANGE)
