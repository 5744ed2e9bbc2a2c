"""Laws from which sequences of decisions are drawn, and how they move to the best of them.

A sequence has T steps of a few numbers. Draws are correlated along time: white noise mostly cancels
itself out in a system with inertia, and its sequences all end near where they began (coloured
noise, Pinneri et al. 2020).
"""

import abc
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree


@functools.lru_cache(maxsize=32)
def colouring(steps: int, exponent: float) -> np.ndarray:
    """A matrix (T, 2T) that makes white noise one of spectrum f^−exponent, of variance 1.

    Half of a period of 2T steps: over a whole one the first and the last step would be alike.
    """
    period = 2 * steps
    time = np.arange(steps)[:, None]
    whole = np.arange(1, steps)[None, :]
    angles = 2 * np.pi * whole * time / period
    waves = [np.ones((steps, 1)), np.cos(angles), np.sin(angles), np.cos(np.pi * time)]
    basis = np.concatenate(waves, axis=1)
    turns = np.concatenate([[1], whole[0], whole[0], [steps]])  # a constant like the slowest wave
    basis = basis * (turns / period) ** (-exponent / 2)
    return basis / np.sqrt((basis**2).sum(axis=1, keepdims=True))


@dataclasses.dataclass(frozen=True)
class ProposalDistribution(abc.ABC):
    """A law of sequences (T, width) with parameters that change; the rest is fixed."""

    steps: int

    @property
    @abc.abstractmethod
    def width(self) -> int:
        """Numbers in a decision."""

    @abc.abstractmethod
    def start(self) -> Any:
        """Parameters when nothing is known."""

    @abc.abstractmethod
    def drawn(self, parameters: PyTree, noise: Float[Array, "n T w"]) -> Float[Array, "n T w"]:
        """Sequences from coloured noise of variance 1."""

    @abc.abstractmethod
    def centre(self, parameters: PyTree) -> Float[Array, "T w"]:
        """The most typical sequence."""

    @abc.abstractmethod
    def towards(self, parameters: PyTree, best: Float[Array, "k T w"], momentum: float) -> Any:
        """Parameters fitted to the best sequences; ``momentum`` is the share of the old ones."""

    @abc.abstractmethod
    def later(self, parameters: PyTree) -> Any:
        """Parameters one step later, open again to change."""

    @abc.abstractmethod
    def values(self, decisions: Float[Array, "... w"]) -> Float[Array, "... q"]:
        """What the decisions stand for: actions."""


@dataclasses.dataclass(frozen=True)
class ColouredGaussian(ProposalDistribution):
    """A Gaussian around a mean sequence, clipped to a box; parameters are means and deviations.

    ``spread`` is the first deviation in each coordinate.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    middle: tuple[float, ...]
    spread: tuple[float, ...]

    @property
    def width(self) -> int:
        return len(self.low)

    def start(self) -> tuple[Array, Array]:
        shape = (self.steps, self.width)
        return (
            jnp.broadcast_to(jnp.asarray(self.middle)[None, :], shape),
            jnp.broadcast_to(jnp.asarray(self.spread)[None, :], shape),
        )

    def drawn(self, parameters: PyTree, noise: Float[Array, "n T w"]) -> Float[Array, "n T w"]:
        mean, deviation = parameters
        low, high = (jnp.asarray(end)[None, None, :] for end in (self.low, self.high))
        return jnp.clip(mean[None] + deviation[None] * noise, low, high)

    def centre(self, parameters: PyTree) -> Float[Array, "T w"]:
        return parameters[0]

    def towards(
        self, parameters: PyTree, best: Float[Array, "k T w"], momentum: float
    ) -> tuple[Array, Array]:
        mean, deviation = parameters
        return (
            momentum * mean + (1 - momentum) * jnp.mean(best, axis=0),
            momentum * deviation + (1 - momentum) * jnp.std(best, axis=0),
        )

    def later(self, parameters: PyTree) -> tuple[Array, Array]:
        return shifted(parameters[0]), self.start()[1]

    def values(self, decisions: Float[Array, "... w"]) -> Float[Array, "... q"]:
        return decisions


@dataclasses.dataclass(frozen=True)
class CategoricalProposal(ProposalDistribution):
    """One of finitely many options at each step, by number; parameters are their shares (T, A).

    Draws are correlated along time and have these shares all the same: coloured noise, brought to
    [0, 1], is looked up in the cumulated shares. Options next to each other in the list then
    follow each other.
    """

    options: tuple[tuple[float, ...], ...]
    #: Least share of an option that is not drawn among the best, so that none dies out.
    minimum_share: float = 0.02
    #: Share of the frequencies that is kept from one period of an episode to the next.
    carry_over: float = 0.5

    @property
    def width(self) -> int:
        return 1

    def start(self) -> Array:
        count = len(self.options)
        return jnp.full((self.steps, count), 1 / count)

    def drawn(self, parameters: PyTree, noise: Float[Array, "n T w"]) -> Float[Array, "n T w"]:
        level = jax.scipy.special.ndtr(noise)
        ends = jnp.cumsum(parameters, axis=1)[None, :, :-1]
        return jnp.sum(level > ends, axis=2, keepdims=True).astype(level.dtype)

    def centre(self, parameters: PyTree) -> Float[Array, "T w"]:
        return jnp.argmax(parameters, axis=1)[:, None].astype(parameters.dtype)

    def towards(self, parameters: PyTree, best: Float[Array, "k T w"], momentum: float) -> Array:
        numbers = best[:, :, 0].astype(jnp.int32)
        seen = jnp.mean(jax.nn.one_hot(numbers, len(self.options), dtype=best.dtype), axis=0)
        fitted = momentum * parameters + (1 - momentum) * seen
        return (1 - self.minimum_share) * fitted + self.minimum_share * self.start()

    def later(self, parameters: PyTree) -> Array:
        return self.carry_over * shifted(parameters) + (1 - self.carry_over) * self.start()

    def values(self, decisions: Float[Array, "... w"]) -> Float[Array, "... q"]:
        return jnp.asarray(np.array(self.options))[decisions[..., 0].astype(jnp.int32)]


def shifted(rows: Float[Array, "T w"]) -> Float[Array, "T w"]:
    """Each step's row one step earlier; the last stays as well."""
    return jnp.concatenate([rows[1:], rows[-1:]])
