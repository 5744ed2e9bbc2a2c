"""The pendulum in coarse time, noisy and with a smooth reward: 30 steps to swing up and hold."""

import math

from kernelmdp.domains import Box
from kernelmdp.envs.drawing import PendulumDrawing
from kernelmdp.envs.environment import Environment
from kernelmdp.envs.noise_lipschitz import with_lipschitz
from kernelmdp.envs.pendulum import HANGING, STATES, PendulumDynamics, SmoothReward
from kernelmdp.kernels import Index, Periodic, Quadratic, SquaredExponential
from kernelmdp.mdp import MDP, Gaussian, MeanModel
from kernelmdp.numerics.checks import integer, positive_number

SECONDS, SUBSTEPS, HORIZON = 0.1, 10, 30
#: The reward's bump in angle and speed, and its price of torque.
WIDTH, SPEED, PENALTY = 0.8, 5.0, 0.05
#: Typical changes of angle and speed in a step; noise on states is in their units.
SCALE = (0.5, 2.5)
NOISE, REWARD_NOISE = 0.05, 0.1


def pendulum_coarse(
    seed: int = 0,
    *,
    horizon: int = HORIZON,
    noise: float = NOISE,
    reward_noise: float = REWARD_NOISE,
) -> Environment:
    """One step is 0.1 s; ``noise`` on the state is in units of the scale (0.5, 2.5).

    There is one such environment: ``seed`` changes nothing.
    """
    integer("seed", seed, least=0)
    noise = positive_number("noise", noise)
    mdp = MDP(
        MeanModel(SmoothReward(WIDTH, SPEED, PENALTY), PendulumDynamics(SECONDS, SUBSTEPS)),
        states=STATES,
        actions=Box([-1.0], [1.0]),
        horizon=integer("horizon", horizon, least=1),
        reward_noise=Gaussian(positive_number("reward_noise", reward_noise)),
        transition_noise=Gaussian([noise * size for size in SCALE]),
        reward_range=(-PENALTY, 1.0),
        metric=SCALE,
    )
    mdp, rule = with_lipschitz(mdp, state_points=(121, 121), action_points=(11,))
    bump = Periodic(WIDTH).on(0) * SquaredExponential(SPEED).on(1)
    motion = Periodic(1.2).on(0) * SquaredExponential([12.0, 4.0]).on([1, 2])
    return Environment.of(
        name="pendulum-coarse",
        mdp=mdp,
        start=HANGING,
        reward_kernel=bump + Quadratic().on(2),
        transition_kernel=motion @ Index(2),
        offset="identity",
        scale=SCALE,
        state_points=(61, 61),
        action_points=(11,),
        optimum_points=((180, 181), (21,)),
        # The two parts share no function, so their norms, 1 and the penalty, add in squares.
        norm_reward=math.hypot(1.0, PENALTY),
        lipschitz_rule=rule,
        drawing=PendulumDrawing(),
    )
