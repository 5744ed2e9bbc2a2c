"""What a planner sees of a model: one function from points z = (s, a) to an outlook.

A plain MDP has one mean reward and one mean next state at every z. A family of plausible MDPs has
a centre and a width at every z instead (math D1: the confidence sets are pointwise tubes, so the
best member can be chosen at each z separately). Width zero is a plain MDP, so one planner serves
both of the paper's planners.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.errors import ShapeError, UnknownPropertyError
from kernelmdp.numerics.modules import Module


class Prediction(NamedTuple):
    """What may happen at n points: arrays over points.

    ``reward`` ± ``reward_width`` holds every plausible mean reward; the plausible mean next
    states are ``state`` + the ball of radius ``radius`` (in the metric of the MDP), or, when
    ``root`` is given, the ellipsoid ``state`` + root·(unit ball), or, when ``sides`` are, the box
    ``state`` ± sides. None means width zero.

    >>> Prediction(reward=jnp.zeros(1), state=jnp.zeros((1, 2))).certain  # a plain MDP
    True
    """

    reward: Float[Array, " n"]
    state: Float[Array, "n m"]
    reward_width: Float[Array, " n"] | None = None
    radius: Float[Array, " n"] | None = None
    root: Float[Array, "n m m"] | None = None
    sides: Float[Array, "n m"] | None = None

    @property
    def certain(self) -> bool:
        """Whether there is one plausible next state only."""
        return self.radius is None and self.root is None and self.sides is None


class Model(Module):
    """From points z = (s, a) to what may happen there.

    >>> isinstance(MeanModel(lambda z: z[:, 0], lambda z: z[:, :1]), Model)
    True
    """

    @abc.abstractmethod
    def __call__(self, points: Float[Array, "n d"]) -> Prediction: ...

    def quadratic_width(self) -> Float[Array, " d"]:
        """u with reward width at most Σ_j u_j z_j² at every z, where the model knows one."""
        raise UnknownPropertyError(
            f"{type(self).__name__} has no quadratic bound of its reward's width: "
            "the Riccati planner needs a reward kernel of quadratic forms, or a known reward"
        )


class MeanModel(Model):
    """One mean reward function and one mean transition function: a plain MDP.

    Both take points (n, d) and give (n,) and (n, m).

    >>> model = MeanModel(lambda z: z[:, 0], lambda z: z[:, :1] + z[:, 1:])
    >>> model(jnp.array([[1.0, 2.0]])).state
    Array([[3.]], dtype=float64)
    """

    reward: Callable[..., Any]
    transition: Callable[..., Any]

    def __call__(self, points: Float[Array, "n d"]) -> Prediction:
        return Prediction(
            reward=reward_values(self.reward, points), state=jnp.asarray(self.transition(points))
        )


class LookupTable(Module):
    """table[s, a] at points (s, a), for states and actions that are numbers 0, 1, …"""

    table: Float[Array, "S A ..."]

    def __call__(self, points: Float[Array, "n 2"]) -> Float[Array, "n ..."]:
        state, action = (jnp.round(points[:, i]).astype(jnp.int32) for i in (0, 1))
        return self.table[state, action]


def reward_values(reward: Callable[..., Any], points: Float[Array, "n d"]) -> Float[Array, " n"]:
    """A known reward at points, with its shape checked."""
    values = jnp.asarray(reward(points), points.dtype)
    if values.shape != points.shape[:1]:
        raise ShapeError(
            "reward",
            f"a function of points (n, d) with values (n,), here {points.shape[:1]}",
            f"shape {values.shape}",
        )
    return values
