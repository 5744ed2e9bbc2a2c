"""A policy of states with a memory, for users who see observations only."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.memory import Memory
from kernelmdp.mdp.policy import Policy, PolicyPlayer
from kernelmdp.types import Period


class RememberingPolicy(Policy):
    """A policy of complete states that takes observations, and remembers what it needs.

    Attributes:
        policy: The policy of complete states.
        memory: The coordinates.
    """

    policy: Policy
    memory: Memory = eqx.field(static=True)

    def actions(self, states: Float[Array, "n k"], period: Period) -> Float[Array, "n q"]:
        if states.shape[1] == self.memory.observed and self.memory.remembers:
            names = f"a state of {self.memory.dimension} numbers"
            raise ArgumentError(
                "state",
                f"{names}, as the state tells the past; policy.player() and agent.controller() "
                "remember it for you",
                f"an observation of {self.memory.observed}",
            )
        return self.policy.actions(self._with_clock(states, period), period)

    def _with_clock(self, states: Any, period: Period) -> Any:
        if states.shape[1] == self.memory.dimension:
            return states
        return self.memory.complete(states, *self.memory.nothing(states.shape[0]), period)

    def reset(self, count: int) -> Any:
        observed = jnp.zeros((count, self.memory.observed))
        return self.policy.reset(count), observed, self.memory.nothing(count)

    def decide(
        self, memory: Any, states: Float[Array, "n k"], period: Period
    ) -> tuple[Float[Array, "n q"], Any]:
        inner, last, (differences, past) = memory
        form, k = self.memory, self.memory.observed
        observed = states[:, :k]
        if states.shape[1] == k:
            if form.history > 1:
                newest = form.change(last, observed).astype(differences.dtype)
                older = differences[:, : differences.shape[1] - k]
                differences = jnp.concatenate([newest, older], axis=1)
            # An episode begins: nothing was before.
            nothing, is_first = form.nothing(observed.shape[0]), jnp.asarray(period) == 0
            differences, past = (
                jnp.where(is_first, empty, part)
                for empty, part in zip(nothing, (differences, past), strict=True)
            )
            states = form.complete(observed, differences, past, period)
        actions, inner = self.policy.decide(inner, states, period)
        if form.past_actions:
            q = form.actions.dimension
            older = past[:, : past.shape[1] - q]
            past = jnp.concatenate([actions.astype(past.dtype), older], axis=1)
        return actions, (inner, observed.astype(last.dtype), (differences, past))

    def planned_actions(self, memory: Any) -> Float[Array, "T q"] | None:
        return self.policy.planned_actions(memory[0])

    def later_period(self, horizon: int) -> int:
        return max(1, self.policy.later_period(horizon))  # nothing is forgotten after the end

    def player(self) -> PolicyPlayer:
        return PolicyPlayer(self)
