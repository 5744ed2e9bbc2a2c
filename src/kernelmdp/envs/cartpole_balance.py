"""Keep a pole upright on a cart, with noise: Gymnasium's cart-pole under a continuous force.

Cart 1, pole 0.1, half-length 0.5, g = 9.8, no friction, force 10u with |u| ≤ 1, steps of 0.02 s
(MPC-PSRL, Fan and Ming 2021). An episode ends when the cart is 2.4 from the middle or the pole 12°
from upright; every step that is begun between them earns 1.
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

MOTION = CartPoleDynamics(
    cart=1.0, pole=0.1, length=1.0, friction=0.0, gravity=9.8, force=10.0, seconds=0.02
)
HORIZON, NOISE = 200, 0.01
#: How far the cart and the pole may go.
TRACK, LEAN = 2.4, math.radians(12)
#: Twice as far, so that the state in which an episode ends is not clipped.
STATES = Box([-2 * TRACK, -10.0, -2 * LEAN, -10.0], [2 * TRACK, 10.0, 2 * LEAN, 10.0])
#: Episodes start with every coordinate uniform between ± this.
START = 0.05
#: What changes in a step of a pole that is about to fall.
SCALE = (0.02, 0.2, 0.02, 0.3)
#: A linear controller that does not let the pole fall, and what it may lose at most all the same.
GAINS, SHORT = (0.5, 1.0, 10.0, 2.0), 0.05


class UprightReward(Module):
    """1 between the ends of the track with the pole upright, else 0: (n, 5) -> (n,)."""

    def __call__(self, points: Float[Array, "n 5"]) -> Float[Array, " n"]:
        return jnp.where(outside(points[:, :4]), 0.0, 1.0)


class FallenTermination(Module):
    """Whether the episode is over: the next state is past the end of the track or of balance."""

    def __call__(
        self, points: Float[Array, "n 5"], after: Float[Array, "n 4"]
    ) -> Bool[Array, " n"]:
        return outside(after)


def outside(states: Float[Array, "n 4"]) -> Bool[Array, " n"]:
    """Whether the cart or the pole has gone too far."""
    return (jnp.abs(states[:, 0]) > TRACK) | (jnp.abs(states[:, 2]) > LEAN)


def cartpole_balance(
    seed: int = 0, *, horizon: int = HORIZON, noise: float = NOISE, reward_noise: float = NOISE
) -> Environment:
    """200 steps, Gaussian ``noise`` on all four coordinates and ``reward_noise`` on rewards.

    There is one such environment: ``seed`` changes nothing.
    """
    integer("seed", seed, least=0)
    mdp = MDP(
        MeanModel(UprightReward(), MOTION),
        states=STATES,
        actions=Box([-1.0], [1.0]),
        horizon=integer("horizon", horizon, least=1),
        reward_noise=Gaussian(positive_number("reward_noise", reward_noise)),
        transition_noise=Gaussian(positive_number("noise", noise)),
        reward_range=(0.0, 1.0),
        metric=SCALE,
        termination=FallenTermination(),
    )
    # Nothing depends on x but when the episode ends.
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
        drawing=CartPoleDrawing(MOTION.length, reach=TRACK),
    )


class BalanceOptimum(Module):
    """V* where episodes start: no policy earns more than H, and u = ``GAINS`` · state, clipped,
    let the pole fall in none of 20,000 episodes: at most ``SHORT`` is lost, 99 % sure."""

    horizon: int
    noise: float

    def __call__(self, state: tuple[float, ...]) -> Value:
        if self.noise > NOISE or self.horizon > HORIZON or max(map(abs, state)) > START:
            raise UnknownPropertyError(
                f"cartpole-balance: the optimal value is known for states within {START} of 0, "
                f"noise of at most {NOISE} and at most {HORIZON} steps"
            )
        return Value(float(self.horizon), SHORT, "interval")


def _near_upright(key: Key) -> Float[Array, " 4"]:
    return jax.random.uniform(key, (4,), minval=-START, maxval=START)
