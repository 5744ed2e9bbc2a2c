"""Distributions from which sequences of decisions are drawn, and their fit to the best sequences.

A sequence has T steps of a few numbers. Draws are correlated along time (coloured noise, Pinneri et
al. 2020). White noise mostly cancels in a system with inertia, and all its sequences end near their
beginning.
"""

import abc
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from kernelmdp.domains import Domain


@functools.lru_cache(maxsize=32)
def colouring_matrix(steps: int, exponent: float) -> np.ndarray:
    """Make the matrix that turns white noise into noise of spectrum f^−exponent and variance 1.

    The noise has a period of 2T steps, of which T are used. With a period of T steps, the first and
    the last step would be alike.

    Args:
        steps: The number of steps T.
        exponent: The exponent of the spectrum. 0 is white noise.

    Returns:
        The matrix, (T, 2T).
    """
    period = 2 * steps
    time = np.arange(steps)[:, None]
    cycles = np.arange(1, steps)[None, :]
    angles = 2 * np.pi * cycles * time / period
    waves = [np.ones((steps, 1)), np.cos(angles), np.sin(angles), np.cos(np.pi * time)]
    basis = np.concatenate(waves, axis=1)
    # The constant has frequency 0. It gets the weight of the slowest wave instead.
    frequencies = np.concatenate([[1], cycles[0], cycles[0], [steps]])
    basis = basis * (frequencies / period) ** (-exponent / 2)
    return basis / np.sqrt((basis**2).sum(axis=1, keepdims=True))


@dataclasses.dataclass(frozen=True)
class ProposalDistribution(abc.ABC):
    """A distribution of sequences of decisions, (T, width).

    Only its parameters change during a search. They are passed to each method.

    Attributes:
        steps: The number of steps T.
    """

    steps: int

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """How many numbers a decision has."""

    @abc.abstractmethod
    def initial(self) -> Any:
        """Return the parameters before any search.

        Returns:
            The parameters, a pytree.
        """

    @abc.abstractmethod
    def from_noise(self, parameters: PyTree, noise: Float[Array, "n T w"]) -> Float[Array, "n T w"]:
        """Turn noise into draws of sequences.

        Args:
            parameters: The parameters of the distribution.
            noise: Coloured noise of variance 1, (n, T, width).

        Returns:
            The sequences, (n, T, width).
        """

    @abc.abstractmethod
    def centre(self, parameters: PyTree) -> Float[Array, "T w"]:
        """Return the most typical sequence.

        Args:
            parameters: The parameters of the distribution.

        Returns:
            The sequence, (T, width).
        """

    @abc.abstractmethod
    def fit(self, parameters: PyTree, best: Float[Array, "k T w"], momentum: float) -> Any:
        """Fit the parameters to the best sequences.

        Args:
            parameters: The parameters before.
            best: The best sequences, (k, T, width).
            momentum: The share of the parameters before in the new ones.

        Returns:
            The new parameters.
        """

    @abc.abstractmethod
    def next_period(self, parameters: PyTree) -> Any:
        """Shift the parameters by one step, and widen the distribution for a new search.

        Args:
            parameters: The parameters after a search.

        Returns:
            The parameters with which the search of the next period begins.
        """

    @abc.abstractmethod
    def decode(self, decisions: Float[Array, "... w"]) -> Float[Array, "... q"]:
        """Turn decisions into actions.

        Args:
            decisions: Decisions, (..., width).

        Returns:
            The actions, (..., q).
        """

    @abc.abstractmethod
    def encode(self, values: Float[Array, "T q"]) -> Float[Array, "T w"]:
        """Turn values, such as actions, into decisions.

        Args:
            values: The values, (T, q).

        Returns:
            The decisions that stand for them, or for the nearest values, (T, w).
        """


@dataclasses.dataclass(frozen=True)
class ColouredGaussian(ProposalDistribution):
    """A Gaussian around a mean sequence, clipped to a box.

    Its parameters are means and standard deviations, each (T, width).

    Attributes:
        low: Lower bounds of the box, one for each coordinate.
        high: Upper bounds of the box, one for each coordinate.
        middle: The first mean in each coordinate.
        initial_std: The first standard deviation in each coordinate.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    middle: tuple[float, ...]
    initial_std: tuple[float, ...]

    @property
    def width(self) -> int:
        return len(self.low)

    def initial(self) -> tuple[Array, Array]:
        shape = (self.steps, self.width)
        return (
            jnp.broadcast_to(jnp.asarray(self.middle)[None, :], shape),
            jnp.broadcast_to(jnp.asarray(self.initial_std)[None, :], shape),
        )

    def from_noise(self, parameters: PyTree, noise: Float[Array, "n T w"]) -> Float[Array, "n T w"]:
        mean, deviation = parameters
        low, high = (jnp.asarray(end)[None, None, :] for end in (self.low, self.high))
        return jnp.clip(mean[None] + deviation[None] * noise, low, high)

    def centre(self, parameters: PyTree) -> Float[Array, "T w"]:
        return parameters[0]

    def fit(
        self, parameters: PyTree, best: Float[Array, "k T w"], momentum: float
    ) -> tuple[Array, Array]:
        mean, deviation = parameters
        return (
            momentum * mean + (1 - momentum) * jnp.mean(best, axis=0),
            momentum * deviation + (1 - momentum) * jnp.std(best, axis=0),
        )

    def next_period(self, parameters: PyTree) -> tuple[Array, Array]:
        return shifted(parameters[0]), self.initial()[1]

    def decode(self, decisions: Float[Array, "... w"]) -> Float[Array, "... q"]:
        return decisions

    def encode(self, values: Float[Array, "T q"]) -> Float[Array, "T w"]:
        low, high = (jnp.asarray(end)[None, :] for end in (self.low, self.high))
        return jnp.clip(values, low, high)


@dataclasses.dataclass(frozen=True)
class CategoricalProposal(ProposalDistribution):
    """One of finitely many options at each step. A decision is the number of the option.

    Its parameters are the probabilities of the options, (T, A). Draws are correlated along time and
    still have these probabilities. For that, coloured noise is mapped to [0, 1] and looked up in
    the cumulative probabilities. Successive draws are therefore neighbours in the list of options.

    Attributes:
        options: The actions, in order.
        minimum_share: The share of the uniform distribution in a fit, so that no option dies out.
        carry_over: The share of the probabilities that carries over to the next period. The rest
            is uniform.
    """

    options: tuple[tuple[float, ...], ...]
    minimum_share: float = 0.02
    carry_over: float = 0.5

    @property
    def width(self) -> int:
        return 1

    def initial(self) -> Array:
        count = len(self.options)
        return jnp.full((self.steps, count), 1 / count)

    def from_noise(self, parameters: PyTree, noise: Float[Array, "n T w"]) -> Float[Array, "n T w"]:
        level = jax.scipy.special.ndtr(noise)
        boundaries = jnp.cumsum(parameters, axis=1)[None, :, :-1]
        return jnp.sum(level > boundaries, axis=2, keepdims=True).astype(level.dtype)

    def centre(self, parameters: PyTree) -> Float[Array, "T w"]:
        return jnp.argmax(parameters, axis=1)[:, None].astype(parameters.dtype)

    def fit(self, parameters: PyTree, best: Float[Array, "k T w"], momentum: float) -> Array:
        numbers = best[:, :, 0].astype(jnp.int32)
        frequencies = jnp.mean(jax.nn.one_hot(numbers, len(self.options), dtype=best.dtype), axis=0)
        fitted = momentum * parameters + (1 - momentum) * frequencies
        return (1 - self.minimum_share) * fitted + self.minimum_share * self.initial()

    def next_period(self, parameters: PyTree) -> Array:
        return self.carry_over * shifted(parameters) + (1 - self.carry_over) * self.initial()

    def decode(self, decisions: Float[Array, "... w"]) -> Float[Array, "... q"]:
        return jnp.asarray(np.array(self.options))[decisions[..., 0].astype(jnp.int32)]

    def encode(self, values: Float[Array, "T q"]) -> Float[Array, "T w"]:
        distances = jnp.abs(values[:, None, :] - jnp.asarray(np.array(self.options))[None])
        return jnp.argmin(jnp.sum(distances, axis=2), axis=1)[:, None].astype(values.dtype)


def decision_proposals(
    actions: Domain,
    control_dimension: int,
    steps: int,
    *,
    initial_std: float,
    minimum_share: float,
    carry_over: float,
) -> tuple[ProposalDistribution, ProposalDistribution]:
    """Make the distributions of actions and of hallucinated controls, which are in [−1, 1].

    Args:
        actions: The action space: a box or a finite set.
        control_dimension: The number of hallucinated controls at each step.
        steps: The number of steps T.
        initial_std: First standard deviation of the draws, as a share of half the range.
        minimum_share: The share of the uniform distribution in a fit, for finite actions.
        carry_over: The share of the probabilities that carries over to the next period, for finite
            actions.

    Returns:
        The two distributions.
    """

    def coloured(
        bounds: tuple[np.ndarray, np.ndarray], extent: tuple[np.ndarray, np.ndarray]
    ) -> ColouredGaussian:
        low, high = extent
        rows = (*bounds, (low + high) / 2, initial_std * (high - low) / 2)
        return ColouredGaussian(steps, *(tuple(map(float, row)) for row in rows))

    control_bounds = -np.ones(control_dimension), np.ones(control_dimension)
    controls = coloured(control_bounds, control_bounds)
    if actions.points is None:
        return coloured(actions.bounds, actions.extent), controls
    return CategoricalProposal(steps, actions.points, minimum_share, carry_over), controls


def shifted(rows: Float[Array, "T w"]) -> Float[Array, "T w"]:
    """Move each row one step earlier, and repeat the last.

    Args:
        rows: One row for each step, (T, w).

    Returns:
        The shifted rows, (T, w).
    """
    return jnp.concatenate([rows[1:], rows[-1:]])
