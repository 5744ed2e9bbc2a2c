"""The pendulum with long steps, noise and a smooth reward: 30 steps to swing up and stay there."""

import math

from kernelmdp.domains import Box
from kernelmdp.envs.drawing import PendulumDrawing
from kernelmdp.envs.environment import Environment
from kernelmdp.envs.noise_lipschitz import with_lipschitz
from kernelmdp.envs.pendulum import HANGING, STATES, PendulumDynamics, SmoothReward
from kernelmdp.kernels import Index, Periodic, Quadratic, SquaredExponential
from kernelmdp.mdp import MDP, Gaussian, MeanModel
from kernelmdp.numerics.checks import integer, positive_number

#: The duration of a step. A swing-up then takes few steps, and dynamic programming is fast.
SECONDS = 0.1
#: Steps of the integrator in a step. More of them are more exact.
SUBSTEPS = 10
#: The default number of periods: enough to swing up and stay upright.
HORIZON = 30
#: The width of the reward's bump in the angle. A wider bump is easier to find.
WIDTH = 0.8
#: The width of the reward's bump in the speed.
SPEED = 5.0
#: The penalty on torque.
PENALTY = 0.05
#: The units of increments and of the noise on states: typical changes of angle and speed in a step.
SCALE = (0.5, 2.5)
#: The default standard deviation of the noise on states, in these units.
NOISE = 0.05
#: The default standard deviation of the noise on rewards.
REWARD_NOISE = 0.1


def pendulum_coarse(
    seed: int = 0,
    *,
    horizon: int = HORIZON,
    noise: float = NOISE,
    reward_noise: float = REWARD_NOISE,
) -> Environment:
    """Make the task, with steps of 0.1 s.

    Args:
        seed: Not used: there is one such environment.
        horizon: The number of periods, H.
        noise: The standard deviation of the noise on states, in units of the scale (0.5, 2.5).
        reward_noise: The standard deviation of the noise on rewards.

    Returns:
        The environment.
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
        # The two kernels have no function in common. So the squares of the norms, 1 and the
        # penalty, add.
        norm_reward=math.hypot(1.0, PENALTY),
        lipschitz_rule=rule,
        drawing=PendulumDrawing(),
    )
