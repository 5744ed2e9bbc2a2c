"""Environments on S = [−1, 1]^m and A = [−1, 1] with smooth random means and additive noise."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.domains import Box, ProductDomain, join
from kernelmdp.envs.environment import Environment
from kernelmdp.envs.noise_lipschitz import with_lipschitz, with_reward_range
from kernelmdp.kernels import Index, Kernel
from kernelmdp.mdp import MDP, Gaussian, MeanModel, StudentT
from kernelmdp.numerics.checks import choice, integer, positive_number
from kernelmdp.numerics.modules import Module

#: The lengthscale of the kernels: a quarter of the width of the box.
LENGTHSCALE = 0.5
#: The default size of the noise on rewards and states.
NOISE = 0.1
#: The default number of periods.
HORIZON = 10
#: Nodes along each axis of states and of actions for planning, then the same for the optimal value,
#: by the number of state coordinates. More nodes are more exact and slower.
GRID_POINTS = {1: (61, 11, 241, 41), 2: (31, 11, 61, 21)}
#: Laws of the noise, by name.
NOISE_LAWS = {"gaussian": Gaussian, "student-t": StudentT}


class StackedFunctions(Module):
    """Stacks m functions of points (n, d) -> (n,) into one function (n, d) -> (n, m).

    Attributes:
        parts: The functions.
    """

    parts: tuple[Callable[..., Any], ...]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return jnp.stack([part(points) for part in self.parts], axis=1)


def unit_domain(dimension: int) -> ProductDomain:
    """Return the domain of points z = (s, a).

    Args:
        dimension: The number of state coordinates, m.

    Returns:
        [−1, 1]^m × [−1, 1].
    """
    states = Box([-1.0] * dimension, [1.0] * dimension)
    return join(state=states, action=Box([-1.0], [1.0]))


def unit_environment(
    *,
    name: str,
    dimension: int,
    model: MeanModel,
    reward_kernel: Kernel,
    transition_kernel: Kernel,
    horizon: int,
    noise: float,
    norms: tuple[float | None, float | None],
    noise_law: str = "gaussian",
    drawn_from_prior: bool = False,
) -> Environment:
    """Make an environment from a model on the unit box. Episodes start at 0.

    For Gaussian noise, L is computed from the solution. For other laws there is no rule.

    Args:
        name: The name of the environment.
        dimension: The number of state coordinates, m.
        model: The true mean reward and mean transition.
        reward_kernel: The kernel of the reward.
        transition_kernel: The kernel of each coordinate of the transition.
        horizon: The number of periods, H.
        noise: The size of the noise on rewards and states: the standard deviation of a Gaussian,
            or the scale of a Student t.
        norms: The RKHS norms of reward and transition; None if unknown.
        noise_law: "gaussian", or "student-t" with 3 degrees of freedom.
        drawn_from_prior: Whether the means are draws of GPs with these kernels.

    Returns:
        The environment.
    """
    law = NOISE_LAWS[choice("noise_law", noise_law, tuple(NOISE_LAWS))](
        positive_number("noise", noise)
    )
    m = dimension
    (_, states), (_, actions) = unit_domain(m).factors
    nodes, choices, fine_nodes, fine_choices = GRID_POINTS[m]
    mdp = with_reward_range(
        MDP(
            model,
            states=states,
            actions=actions,
            horizon=integer("horizon", horizon, least=1),
            reward_noise=law,
            transition_noise=law,
        )
    )
    rule = "none"
    if law.gaussian:
        mdp, rule = with_lipschitz(mdp, state_points=(fine_nodes,) * m, action_points=(choices,))
    return Environment.of(
        name=name,
        mdp=mdp,
        start=(0.0,) * m,
        reward_kernel=reward_kernel,
        transition_kernel=transition_kernel @ Index(m),
        offset="zero",
        scale=(1.0,) * m,
        state_points=(nodes,) * m,
        action_points=(choices,),
        optimum_points=((fine_nodes,) * m, (fine_choices,)),
        norm_reward=norms[0],
        norm_transition=norms[1],
        lipschitz_rule=rule,
        drawn_from_prior=drawn_from_prior,
    )
