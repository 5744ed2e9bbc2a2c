"""The learner for linear-quadratic control by least squares.

It is written in NumPy, independently of kernels and posteriors, for the classics of LQR. It learns
transitions, and costs when the reward is not known. All coefficients have N(0, 1) priors; the
regulariser is the noise variance.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelmdp.errors import ArgumentError
from kernelmdp.learners.learner import GAINS, Learner
from kernelmdp.mdp import MDP, Episode, MeanModel, Problem
from kernelmdp.numerics.modules import Module, replace_fields
from kernelmdp.types import Key


class LeastSquares(Module):
    """Ridge regression of k columns on r features.

    Attributes:
        precision: V = λI + ΣφφT, (r, r).
        moment: Σφy, (r, k).
        noise: λ, the noise variance.
    """

    precision: Float[np.ndarray, "r r"]
    moment: Float[np.ndarray, "r k"]
    noise: float

    @staticmethod
    def prior(features: int, columns: int, noise: float) -> "LeastSquares":
        """Make a regression without data.

        Args:
            features: r.
            columns: k.
            noise: λ, the noise variance.

        Returns:
            The regression.
        """
        return LeastSquares(noise * np.eye(features), np.zeros((features, columns)), noise)

    def after(self, rows: np.ndarray, targets: np.ndarray) -> "LeastSquares":
        """Add data.

        Args:
            rows: Features, (n, r).
            targets: Targets, (n, k).

        Returns:
            The regression with these rows.
        """
        return LeastSquares(
            self.precision + rows.T @ rows, self.moment + rows.T @ targets, self.noise
        )

    @property
    def mean(self) -> np.ndarray:
        """The estimate, (r, k)."""
        return np.linalg.solve(self.precision, self.moment)

    @property
    def spread(self) -> np.ndarray:
        """A root of V⁻¹, (r, r)."""
        values, vectors = np.linalg.eigh(self.precision)
        return vectors / np.sqrt(values)

    @property
    def gain(self) -> float:
        """½ ln det(V/λ) for each column."""
        r, k = self.moment.shape
        return k / 2 * float(np.linalg.slogdet(self.precision)[1] - r * math.log(self.noise))

    def draws(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw coefficients from the posterior N(mean, λV⁻¹).

        Args:
            count: The number of draws.
            rng: The random generator.

        Returns:
            The draws, (count, r, k).
        """
        noise = rng.normal(size=(count, *self.moment.shape))
        return self.mean + math.sqrt(self.noise) * (self.spread @ noise)

    def boundary(self, count: int, radius: float, rng: np.random.Generator) -> np.ndarray:
        """Draw points of the ellipsoid's surface, tr (X − mean)ᵀV(X − mean) = radius².

        Args:
            count: The number of points.
            radius: The radius in the norm of V.
            rng: The random generator.

        Returns:
            Points in random directions, (count, r, k).
        """
        directions = rng.normal(size=(count, *self.moment.shape))
        directions /= np.sqrt((directions**2).sum(axis=(1, 2), keepdims=True))
        return self.mean + radius * (self.spread @ directions)


class LinearQuadraticState(Module):
    """The state of ``LinearQuadratic``.

    Attributes:
        transition: The regression of Θ = [A B].
        cost: The regression of the cost matrix C.
        known_cost: C where the reward is known, else None.
        pairs: Rows and columns of the entries of C that are learned.
        problem: The problem that is learned.
    """

    transition: LeastSquares
    cost: LeastSquares
    known_cost: Float[np.ndarray, "d d"] | None
    pairs: tuple[np.ndarray, np.ndarray]
    problem: Problem = eqx.field(static=True)

    @property
    def has_data(self) -> bool:
        """Whether there are any data."""
        return bool(self.transition.moment.any())

    def features(self, points: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n r"]:
        """Compute the features of the cost regression.

        Args:
            points: z = (s, a), (n, d).

        Returns:
            Products of two coordinates, (n, r). Mixed products are multiplied by √2, as in the
            quadratic kernel.
        """
        rows, columns = self.pairs
        weight = np.where(rows == columns, 1.0, math.sqrt(2.0))
        return weight * points[:, rows] * points[:, columns]

    def costs(self, weights: Float[np.ndarray, "n r 1"]) -> Float[np.ndarray, "n d d"]:
        """Convert regression weights to cost matrices.

        Args:
            weights: Weights of the features, (n, r, 1).

        Returns:
            Symmetric matrices C, (n, d, d); copies of the known one where the reward is known.
        """
        d, (rows, columns) = self.problem.points.dimension, self.pairs
        if self.known_cost is not None:
            return np.broadcast_to(self.known_cost, (len(weights), d, d))
        entries = weights[:, :, 0] / np.where(rows == columns, 1.0, math.sqrt(2.0))
        matrices = np.zeros((len(weights), d, d))
        matrices[:, rows, columns] = entries
        matrices[:, columns, rows] = entries
        return matrices


@dataclasses.dataclass(frozen=True)
class LinearQuadratic(Learner):
    """Learns linear transitions and quadratic costs by ridge regression.

    Attributes:
        name: "linear-quadratic".
        columns: The information gains.
    """

    name: ClassVar[str] = "linear-quadratic"
    columns: ClassVar[tuple[str, ...]] = GAINS

    def init(self, problem: Problem, *, key: Key) -> LinearQuadraticState:
        m, d = problem.states.dimension, problem.points.dimension
        reward_noise, transition_noise = problem.noise_variances
        rows, columns = np.triu_indices(d)
        if str(problem.reward_kernel) != "quadratic":  # no cross term
            same_block = (rows < m) == (columns < m)
            rows, columns = rows[same_block], columns[same_block]
        return LinearQuadraticState(
            LeastSquares.prior(d, m, transition_noise),
            LeastSquares.prior(len(rows), 1, reward_noise),
            None if problem.reward is None else quadratic_form_of(problem.reward, d),
            (rows, columns),
            problem,
        )

    def update(
        self, state: LinearQuadraticState, episode: Episode, *, key: Key
    ) -> LinearQuadraticState:
        points = np.asarray(episode.points)
        rewards = np.asarray(episode.rewards)
        return replace_fields(
            state,
            transition=state.transition.after(points, np.asarray(episode.outcomes)),
            cost=state.cost.after(state.features(points), -rewards[:, None]),
        )

    def mean(self, state: LinearQuadraticState) -> MDP:
        return _mdp(state, state.transition.mean, state.costs(state.cost.mean[None])[0])

    def sample(self, state: LinearQuadraticState, *, key: Key) -> MDP:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
        dynamics = state.transition.draws(1, rng)[0]
        return _mdp(state, dynamics, state.costs(state.cost.draws(1, rng))[0])

    def info(self, state: LinearQuadraticState) -> dict[str, float]:
        reward = 0.0 if state.known_cost is not None else state.cost.gain
        return {"gain_reward": reward, "gain_transition": state.transition.gain}


class LinearTransition(Module):
    """Mean next states zΘ.

    Attributes:
        weights: Θ as (d, m).
    """

    weights: Float[jax.Array, "d m"]

    def __call__(self, points: Float[jax.Array, "n d"]) -> Float[jax.Array, "n m"]:
        return points @ self.weights


class QuadraticReward(Module):
    """The mean reward −zᵀCz.

    Attributes:
        cost: C, (d, d).
    """

    cost: Float[jax.Array, "d d"]

    def __call__(self, points: Float[jax.Array, "n d"]) -> Float[jax.Array, " n"]:
        return -jnp.einsum("ni,ij,nj->n", points, self.cost, points)


def _mdp(state: LinearQuadraticState, dynamics: np.ndarray, cost: np.ndarray) -> MDP:
    reward, transition = QuadraticReward(jnp.asarray(cost)), LinearTransition(jnp.asarray(dynamics))
    return state.problem.mdp(MeanModel(reward, transition))


def quadratic_form_of(reward: Callable[..., Any], dimension: int) -> Float[np.ndarray, "d d"]:
    """Compute C of a known reward −zᵀCz from its values at e_i + e_j.

    Args:
        reward: A function of points (n, d).
        dimension: d.

    Returns:
        The symmetric matrix C, (d, d).

    Raises:
        ArgumentError: If the reward is not a quadratic form.
    """
    d = dimension
    unit = np.eye(d)
    sums = (unit[:, None, :] + unit[None, :, :]).reshape(-1, d)
    values = -np.asarray(reward(jnp.asarray(sums))).reshape(d, d)
    diagonal = np.diag(values) / 4
    cost = (values - diagonal[:, None] - diagonal[None, :]) / 2
    probe = np.linspace(-1.0, 2.0, d)
    value = -float(np.asarray(reward(jnp.asarray(probe[None, :])))[0])
    if not math.isclose(value, probe @ cost @ probe, rel_tol=1e-6, abs_tol=1e-9):
        raise ArgumentError("reward", "a quadratic form, for least squares", "another function")
    return cost
