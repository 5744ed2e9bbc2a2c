"""Environments on S = [−1, 1]^m, A = [−1, 1] with smooth random means and additive noise."""

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

LENGTHSCALE, NOISE, HORIZON = 0.5, 0.1, 10
#: By the number of state coordinates: nodes an axis for states and for actions, then the same
#: for the optimal value.
COUNTS = {1: (61, 11, 241, 41), 2: (31, 11, 61, 21)}
#: Laws of the noise, by name.
LAWS = {"gaussian": Gaussian, "student-t": StudentT}


class StackedFunctions(Module):
    """m functions of points (n, d) -> (n,) as one with values (n, m)."""

    parts: tuple[Callable[..., Any], ...]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return jnp.stack([part(points) for part in self.parts], axis=1)


def unit_points(dimension: int) -> ProductDomain:
    """Where z = (s, a) lives for that many state coordinates."""
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
) -> Environment:
    """The environment of a model on the unit box; it starts at 0.

    ``noise`` is the size of the law on rewards and states: a standard deviation when it is
    "gaussian", the scale of t_3 when it is "student-t". L comes from the solution when noise is
    Gaussian; there is no rule for other laws.
    """
    law = LAWS[choice("noise_law", noise_law, tuple(LAWS))](positive_number("noise", noise))
    m = dimension
    (_, states), (_, actions) = unit_points(m).factors
    nodes, choices, fine_nodes, fine_choices = COUNTS[m]
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
    )
