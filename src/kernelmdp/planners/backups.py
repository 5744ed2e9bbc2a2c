"""What is done after an action that is checked: the fallback, or the rest of the plan."""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from kernelmdp.mdp.fallback import Fallback
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Period


class Backup(Module):
    """Acts in n parallel episodes, from the step after the checked action on."""

    @abc.abstractmethod
    def reset(self) -> Any:
        """Return the memory with which the backup begins.

        Returns:
            A pytree of arrays.
        """

    @abc.abstractmethod
    def decide(
        self, memory: Any, states: Float[Array, "n m"], step: Int[Array, ""]
    ) -> tuple[Float[Array, "n q"], Bool[Array, " n"], Any]:
        """Choose actions.

        Args:
            memory: The memory, from ``reset`` or from the step before.
            states: The states, (n, m).
            step: The step, counted from 0 after the checked action.

        Returns:
            The actions (n, q), whether the backup is trusted from here on (n,), and the memory.
        """


class FallbackBackup(Backup):
    """The fallback acts.

    Attributes:
        fallback: The fallback.
        memory: The memory of its policy after the checked action, for n episodes.
        period: The period of the checked action.
    """

    fallback: Fallback = eqx.field(static=True)
    memory: Any
    period: Period

    def reset(self) -> Any:
        return self.memory

    def decide(
        self, memory: Any, states: Float[Array, "n m"], step: Int[Array, ""]
    ) -> tuple[Float[Array, "n q"], Bool[Array, " n"], Any]:
        actions, memory = self.fallback.policy.decide(memory, states, self.period + 1 + step)
        return actions, self.fallback.is_trusted(states), memory


class PlanBackup(Backup):
    """The rest of a plan is followed. It is never trusted.

    Attributes:
        sequences: The actions after the checked one, (n, T, q).
    """

    sequences: Float[Array, "n T q"]

    def reset(self) -> Any:
        return ()

    def decide(
        self, memory: Any, states: Float[Array, "n m"], step: Int[Array, ""]
    ) -> tuple[Float[Array, "n q"], Bool[Array, " n"], Any]:
        # The end of a plan is repeated, if the backup is longer.
        last = self.sequences.shape[1] - 1
        trusted = jnp.zeros(states.shape[0], bool)
        return self.sequences[:, jnp.minimum(step, last)], trusted, memory


def repeated(memory: Any, times: int) -> Any:
    """Repeat every row of a memory, for several actions in the same state.

    Args:
        memory: A pytree of arrays with one row for each episode.
        times: How often each row is repeated.

    Returns:
        The memory of ``times`` as many episodes.
    """
    return jax.tree.map(lambda leaf: jnp.repeat(leaf, times, axis=0), memory)
