"""What is known of how the state moves, before and beside what is learned.

    next state = f(z) + E·g(z),

with a known function f of points z = (s, a), and learned functions g_1, …, g_p. Without knowledge,
f is the state itself and E the identity: increments are learned. With a rough simulator, f is its
prediction, and the residual is learned. A clock, a schedule and past observations move exactly as
f says: their rows of E are zero. A difference of two observations changes with the newer one:
both have the same learned part.
"""

from collections.abc import Callable

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.numerics.modules import Module


class KnownMotion(Module):
    """The known part f of the motion, and which coordinates the learned part changes.

    Attributes:
        function: f, from points (n, d) to next states (n, m). It is written with ``jax.numpy``.
        dimension: m.
        learned: The p coordinates whose next values are learned: f plus a learned function.
        followers: Pairs (coordinate, learned coordinate): the first has the same learned part as
            the second.
        ignored: Coordinates of points on which no learned motion depends.
        is_prior: Whether f tells more than that the state stays, or goes on moving as it does.

    >>> import jax.numpy as jnp
    >>> clock = KnownMotion(lambda z: z[:, :2] + jnp.array([[0.0, 1.0]]), 2, learned=(0,))
    >>> clock.mixing(np.ones(2)).tolist(), clock(jnp.array([[5.0, 3.0, 0.0]])).tolist()
    ([[1.0], [0.0]], [[5.0, 4.0]])
    """

    function: Callable[[Float[Array, "n d"]], Float[Array, "n m"]]
    dimension: int = eqx.field(static=True)
    learned: tuple[int, ...] = eqx.field(static=True)
    followers: tuple[tuple[int, int], ...] = eqx.field(static=True, default=())
    ignored: tuple[int, ...] = eqx.field(static=True, default=())
    is_prior: bool = eqx.field(static=True, default=False)

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return self.function(points)

    def mixing(self, scale: Float[np.ndarray, " m"]) -> Float[np.ndarray, "m p"]:
        """Compute E for next states in units of a scale.

        Args:
            scale: The unit of each coordinate.

        Returns:
            E. A learned function is in the unit of its learned coordinate.
        """
        matrix = np.zeros((self.dimension, len(self.learned)))
        matrix[list(self.learned), np.arange(len(self.learned))] = 1.0
        for follower, leader in self.followers:
            matrix[follower, self.learned.index(leader)] = scale[leader] / scale[follower]
        return matrix

    def spread(self, columns: Float[np.ndarray, "n p"]) -> Float[np.ndarray, "n m"]:
        """Write numbers of learned coordinates, in units of the state, to all coordinates.

        Args:
            columns: A column for each learned coordinate.

        Returns:
            A column for each coordinate: those of followers are those of their leaders, and those
            of coordinates that move exactly as f says are 0.
        """
        return columns @ self.mixing(np.ones(self.dimension)).T


def increments_learned(dimension: int) -> KnownMotion:
    """Return the motion of which nothing is known: the state stays, and all changes are learned.

    Args:
        dimension: m.

    Returns:
        The motion.

    >>> import jax.numpy as jnp
    >>> increments_learned(1)(jnp.array([[0.5, 1.0]])).tolist()
    [[0.5]]
    """
    return KnownMotion(UnchangedState(dimension), dimension, tuple(range(dimension)))


class UnchangedState(Module):
    """The function from points to their states.

    Attributes:
        dimension: m.
    """

    dimension: int = eqx.field(static=True)

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        return points[:, : self.dimension]
