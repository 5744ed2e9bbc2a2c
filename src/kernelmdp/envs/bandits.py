"""Kernel bandits: MDPs with H = 1 and one state, where only the reward of an action matters.

The transition is a table with one row. It is known, so ``norm_transition`` is 0.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float

from kernelmdp.domains import Box, Domain, FiniteSet
from kernelmdp.envs.environment import Environment
from kernelmdp.envs.rkhs import random_expansion
from kernelmdp.kernels import Index, Kernel, SquaredExponential
from kernelmdp.mdp import MDP, Categorical, Gaussian, MeanModel, Value
from kernelmdp.numerics.checks import integer, positive_number
from kernelmdp.numerics.modules import Module

#: The known maximum of the rescaled Branin function (Picheny et al. 2012).
BRANIN_OPTIMUM = 1.047394
#: The known maximum of Hartmann's function of six coordinates.
HARTMANN_OPTIMUM = 3.322368


class StayingTransition(Module):
    """The transition of the only state: to itself, with probability 1."""

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n 1"]:
        return jnp.ones((points.shape[0], 1), points.dtype)


class ActionReward(Module):
    """A function of actions, applied to points (state, action).

    Attributes:
        function: The function of actions, (n, q) -> (n,).
    """

    function: Callable[..., Any]

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, " n"]:
        return self.function(points[:, 1:])


def bandit(
    reward: Callable[..., Any],
    actions: Domain,
    kernel: Kernel,
    *,
    noise: float = 0.1,
    norm: float | None = None,
    optimum: float | None = None,
    name: str = "bandit",
) -> Environment:
    """Make a bandit from a mean reward function.

    Args:
        reward: The mean reward, a function of actions (n, q) -> (n,).
        actions: The action space.
        kernel: The kernel on actions with which agents learn the reward.
        noise: The standard deviation of the Gaussian noise on rewards.
        norm: The RKHS norm of the reward for this kernel; None if unknown.
        optimum: The largest mean reward. None means to compute it: exactly for finitely many
            actions, else by a search.
        name: The name of the environment.

    Returns:
        The environment.

    >>> arms = FiniteSet([[0.0], [0.5], [1.0]])
    >>> bandit(lambda a: a[:, 0], arms, SquaredExponential(0.5)).optimal_value().value
    1.0
    """
    states = FiniteSet([[0.0]])
    mdp = MDP(
        MeanModel(ActionReward(reward), StayingTransition()),
        states=states,
        actions=actions,
        horizon=1,
        reward_noise=Gaussian(positive_number("noise", noise)),
        transition_noise=Categorical(states),
        lipschitz=0.0,
    )
    q = actions.dimension
    if optimum is None and actions.finite:
        arms = jnp.asarray(actions.spread_points(1))
        optimal_value = Value(float(jnp.max(reward(arms))), 0.0, "exact")
    elif optimum is not None:
        optimal_value = Value(optimum, 1e-5, "certified")
    else:
        optimal_value = _maximise(reward, actions)
    return Environment.of(
        name=name,
        mdp=mdp,
        start=(0.0,),
        reward_kernel=kernel.on("action"),
        transition_kernel=Index(1).on("state") @ Index(1),
        offset="uniform",
        scale=(1.0,),
        state_points=(2,),
        action_points=(2,) * q,
        optimum_points=((2,), (2,) * q),
        norm_reward=norm,
        norm_transition=0.0,
        lipschitz_rule="exact: nothing follows",
        optimum=optimal_value,
        planner="arms",
    )


def _maximise(reward: Callable[..., Any], actions: Domain) -> Value:
    """Return the largest value found: the best ten of many arms are improved by gradients."""
    arms = actions.spread_points(20_000)
    values = np.asarray(reward(jnp.asarray(arms)))
    cost_and_gradient = jax.jit(
        jax.value_and_grad(lambda action: -jnp.sum(reward(action[None, :])))
    )
    low, high = actions.bounds
    maxima = [
        -scipy.optimize.minimize(
            cost_and_gradient, arms[i], jac=True, bounds=np.stack([low, high], axis=1)
        ).fun
        for i in np.argsort(values)[-10:]
    ]
    return Value(float(max(maxima)), 1e-6, "estimate")


def bandit_rkhs(
    seed: int = 0,
    *,
    dimension: int = 1,
    arms: int | None = None,
    noise: float = 0.1,
    norm: float = 1.5,
) -> Environment:
    """Make a bandit with a random reward of known norm on [−1, 1]^q.

    The kernel is squared exponential with lengthscale 0.5.

    Args:
        seed: Decides the reward.
        dimension: The number of coordinates of an action, q.
        arms: The number of actions, spread over the box. None means the whole box.
        noise: The standard deviation of the noise on rewards.
        norm: The RKHS norm of the reward.

    Returns:
        The environment.
    """
    q = integer("dimension", dimension, least=1)
    box, kernel = Box([-1.0] * q, [1.0] * q), SquaredExponential(0.5)
    norm = positive_number("norm", norm)
    key = jax.random.key(integer("seed", seed, least=0))
    reward = random_expansion(kernel, box, norm=norm, sup_range=(0.5 * norm, norm), key=key)
    actions = box if arms is None else FiniteSet(box.spread_points(integer("arms", arms, least=1)))
    return bandit(reward, actions, kernel, noise=noise, norm=norm, name="bandit-rkhs")


def bandit_branin(seed: int = 0, *, noise: float = 0.1) -> Environment:
    """Make a bandit of Branin's function on the unit square.

    The function is negated, and rescaled to mean 0 and variance about 1.

    Args:
        seed: Not used: there is one such environment.
        noise: The standard deviation of the noise on rewards.

    Returns:
        The environment.
    """
    kernel = SquaredExponential([0.25, 0.5])
    return bandit(
        branin,
        Box([0.0, 0.0], [1.0, 1.0]),
        kernel,
        noise=noise,
        optimum=BRANIN_OPTIMUM,
        name="bandit-branin",
    )


def bandit_hartmann6(seed: int = 0, *, noise: float = 0.1) -> Environment:
    """Make a bandit of Hartmann's function of six coordinates on the unit cube.

    Args:
        seed: Not used: there is one such environment.
        noise: The standard deviation of the noise on rewards.

    Returns:
        The environment.
    """
    kernel = SquaredExponential(0.4)
    return bandit(
        hartmann6,
        Box([0.0] * 6, [1.0] * 6),
        kernel,
        noise=noise,
        optimum=HARTMANN_OPTIMUM,
        name="bandit-hartmann6",
    )


def branin(actions: Float[Array, "n 2"]) -> Float[Array, " n"]:
    """Compute −(1/51.95)[(x₂ − 5.1x₁²/4π² + 5x₁/π − 6)² + (10 − 10/8π) cos x₁ − 44.81].

    Args:
        actions: Points of the unit square, (n, 2). They are rescaled to x₁ from −5 to 10 and x₂
            from 0 to 15.

    Returns:
        The values, (n,).
    """
    first, second = 15 * actions[:, 0] - 5, 15 * actions[:, 1]
    bowl = second - 5.1 / (4 * jnp.pi**2) * first**2 + 5 / jnp.pi * first - 6
    return -(bowl**2 + (10 - 10 / (8 * jnp.pi)) * jnp.cos(first) - 44.81) / 51.95


def hartmann6(actions: Float[Array, "n 6"]) -> Float[Array, " n"]:
    """Compute Σ_i c_i exp(−Σ_j A_ij (x_j − P_ij)²) with the usual constants.

    Args:
        actions: Points x of the unit cube, (n, 6).

    Returns:
        The values, (n,).
    """
    heights = jnp.array([1.0, 1.2, 3.0, 3.2])
    steepness = jnp.array(
        [
            [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
            [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
            [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
            [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
        ]
    )
    centres = 1e-4 * jnp.array(
        [
            [1312.0, 1696.0, 5569.0, 124.0, 8283.0, 5886.0],
            [2329.0, 4135.0, 8307.0, 3736.0, 1004.0, 9991.0],
            [2348.0, 1451.0, 3522.0, 2883.0, 3047.0, 6650.0],
            [4047.0, 8828.0, 8732.0, 5743.0, 1091.0, 381.0],
        ]
    )
    squares = (actions[:, None, :] - centres[None, :, :]) ** 2
    return jnp.exp(-jnp.sum(steepness[None, :, :] * squares, axis=2)) @ heights
