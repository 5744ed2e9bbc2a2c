"""Models as planners see them: one function from points z = (s, a) to predictions.

A plain MDP has one mean reward and one mean next state at every z. A family of plausible MDPs has
a centre and a width at every z instead. Its confidence sets are defined point by point, so the best
member can be chosen at each z separately (note D1). A plain MDP is a family of width zero. So the
same planner serves as both of the paper's planners.
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.errors import ShapeError, UnknownPropertyError
from kernelmdp.numerics.modules import Module


class Prediction(NamedTuple):
    """Mean rewards and mean next states at n points, with widths for families.

    At most one of ``radius``, ``root`` and ``sides`` is set. A width of None is zero.

    Attributes:
        reward: Mean rewards, (n,).
        state: Mean next states, (n, m).
        reward_width: Every plausible mean reward is in ``reward`` ± ``reward_width``, (n,).
        radius: The plausible mean next states form a ball of this radius around ``state``, in the
            metric of the MDP, (n,).
        root: They form the ellipsoid ``state`` + root·(unit ball), (n, m, m).
        sides: They form the box ``state`` ± sides, (n, m).
        divergence: Of the distributions in that ball, only those p with KL(state‖p) of at most this
            are plausible, (n,). For tables.

    >>> Prediction(reward=jnp.zeros(1), state=jnp.zeros((1, 2))).certain  # a plain MDP
    True
    """

    reward: Float[Array, " n"]
    state: Float[Array, "n m"]
    reward_width: Float[Array, " n"] | None = None
    radius: Float[Array, " n"] | None = None
    root: Float[Array, "n m m"] | None = None
    sides: Float[Array, "n m"] | None = None
    divergence: Float[Array, " n"] | None = None

    @property
    def certain(self) -> bool:
        """Whether only one mean next state is plausible."""
        return self.radius is None and self.root is None and self.sides is None


class FunctionFamily(Module):
    """A family whose members are whole functions, and not a choice at each point.

    It is smaller than the family of all models within the widths of a prediction, because one
    function cannot be extreme everywhere.
    """

    @abc.abstractmethod
    def best(
        self,
        points: Float[Array, "n d"],
        reward_weights: Float[Array, " n"],
        state_weights: Float[Array, "n m"],
    ) -> Any:
        """Find the member that maximises Σ_i (w_i R(z_i) + ⟨v_i, P(z_i)⟩).

        Args:
            points: z, (n, d).
            reward_weights: w.
            state_weights: v.

        Returns:
            What names the member, a pytree of a few arrays.
        """

    @abc.abstractmethod
    def member(self, name: Any) -> "Model":
        """Return a member.

        Args:
            name: The result of ``best``.

        Returns:
            Its model, without widths.
        """


class Model(Module):
    """A function from points z = (s, a) to predictions.

    >>> isinstance(MeanModel(lambda z: z[:, 0], lambda z: z[:, :1]), Model)
    True
    """

    @abc.abstractmethod
    def __call__(self, points: Float[Array, "n d"]) -> Prediction: ...

    def whole_functions(self) -> FunctionFamily | None:
        """Return the plausible models as whole functions.

        Returns:
            The family, or None for a model without widths.

        Raises:
            UnknownPropertyError: If the model has widths, but knows no such family.
        """
        return None

    def quadratic_width(self) -> Float[Array, " d"]:
        """Return u such that the reward width is at most Σ_j u_j z_j² at every z.

        Returns:
            u, (d,).

        Raises:
            UnknownPropertyError: If the model knows no such u.
        """  # noqa: DOC202  (an override returns)
        raise UnknownPropertyError(
            f"{type(self).__name__} has no quadratic bound of its reward's width: "
            "the Riccati planner needs a reward kernel of quadratic forms, or a known reward"
        )


class MeanModel(Model):
    """One mean reward function and one mean transition function: a plain MDP.

    Attributes:
        reward: From points (n, d) to mean rewards (n,).
        transition: From points (n, d) to mean next states (n, m).

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
    """A function that reads table[s, a], for states and actions numbered from 0.

    Attributes:
        table: The values, (S, A, ...).
    """

    table: Float[Array, "S A ..."]

    def __call__(self, points: Float[Array, "n 2"]) -> Float[Array, "n ..."]:
        state, action = (jnp.round(points[:, i]).astype(jnp.int32) for i in (0, 1))
        return self.table[state, action]


def reward_values(reward: Callable[..., Any], points: Float[Array, "n d"]) -> Float[Array, " n"]:
    """Evaluate a known reward function, and check the shape of its values.

    Args:
        reward: From points (n, d) to rewards (n,).
        points: The points, (n, d).

    Returns:
        The rewards, (n,).

    Raises:
        ShapeError: If the values have another shape.
    """
    values = jnp.asarray(reward(points), points.dtype)
    if values.shape != points.shape[:1]:
        raise ShapeError(
            "reward",
            f"a function of points (n, d) with values (n,), here {points.shape[:1]}",
            f"shape {values.shape}",
        )
    return values
