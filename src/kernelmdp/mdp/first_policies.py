"""Policies of a first episode that is not planned: random actions, or an excited fallback.

Independent random actions cancel each other: most systems hardly move. Actions that last move a
system through more of its states. They begin small and grow.
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Domain
from kernelmdp.mdp.policy import OpenLoopPolicy, Policy, UniformPolicy, player_of
from kernelmdp.mdp.problem import Problem
from kernelmdp.numerics.random_keys import numpy_generator
from kernelmdp.types import Key, Period

#: About how often smooth actions change in an episode. Fewer changes leave too few different
#: actions for a fit; with many more they are independent ones.
CHANGES = 10
#: The size of the first actions, as a share of the range. It grows to 1: what is far from the
#: start is reached only after small actions have shown how the system reacts.
FIRST_SIZE = 0.2
#: Size of the excitation of a fallback's first episode, as a share of half the action space.
EXCITATION = 0.1


def first_policy(kind: str, problem: Problem, *, key: Key) -> Policy:
    """Make the policy of a first episode.

    Args:
        kind: "random" for independent uniform actions, "smooth", or "fallback" for the fallback
            with small random changes in trusted states.
        problem: The problem.
        key: Decides the draw.

    Returns:
        The policy.
    """
    if kind == "fallback":
        assert problem.fallback is not None
        fallback = problem.fallback
        return ExcitedPolicy(fallback.policy, fallback.is_trusted, problem.actions, key)
    if kind == "smooth":
        return smooth_policy(problem.actions, problem.horizon, key=key)
    return UniformPolicy(problem.actions, key)


class ExcitedPolicy(Policy):
    """A fallback with small random changes of its actions in trusted states.

    Attributes:
        policy: The fallback's policy.
        trusted: Tells which states are trusted, (n, m) to (n,).
        space: The action space. Actions of a finite set are not changed.
        key: Decides the changes.
    """

    policy: Policy
    trusted: Callable[..., Any] = eqx.field(static=True)
    space: Domain = eqx.field(static=True)
    key: Key

    def actions(self, states: Float[Array, "n m"], period: Period) -> Float[Array, "n q"]:
        return self._excited(self.policy.actions(states, period), states, period)

    def reset(self, count: int) -> Any:
        return self.policy.reset(count)

    def decide(
        self, memory: Any, states: Float[Array, "n m"], period: Period
    ) -> tuple[Float[Array, "n q"], Any]:
        actions, memory = self.policy.decide(memory, states, period)
        return self._excited(actions, states, period), memory

    def player(self) -> Callable[[Any, int], np.ndarray]:
        return player_of(self)

    def _excited(self, actions: Array, states: Array, period: Period) -> Array:
        if self.space.finite or not self.space.bounded:
            return actions
        low, high = (jnp.asarray(end)[None, :] for end in self.space.bounds)
        unit = jax.random.uniform(
            jax.random.fold_in(self.key, period), actions.shape, minval=-1.0, maxval=1.0
        )
        changed = jnp.clip(actions + EXCITATION * unit * (high - low) / 2, low, high)
        return jnp.where(self.trusted(states)[:, None], changed, actions)


def smooth_policy(actions: Domain, horizon: int, *, key: Key) -> OpenLoopPolicy:
    """Draw a smooth sequence of random actions.

    For a box it is a stationary autoregressive sequence, whose size grows. From a finite set, each
    action is repeated for a random number of steps.

    Args:
        actions: The action space.
        horizon: The number of periods.
        key: Decides the draw.

    Returns:
        The policy, which does not depend on the state.

    >>> import jax
    >>> from kernelmdp import Box
    >>> policy = smooth_policy(Box([-2.0], [2.0]), 50, key=jax.random.key(0))
    >>> policy.sequence.shape, bool(abs(policy([0.0], 0)[0]) < 2.0)
    ((50, 1), True)
    """
    steps = max(horizon / CHANGES, 1.0)
    correlation = np.exp(-1 / steps)
    rng = numpy_generator(key)
    if actions.points is not None:
        points = np.asarray(actions.points)
        changes = rng.random(horizon) > correlation
        chosen = rng.integers(len(points), size=horizon)
        rows = np.maximum.accumulate(np.where(changes, np.arange(horizon), 0))
        return OpenLoopPolicy(jnp.asarray(points[chosen[rows]], float))
    low, high = (np.asarray(end) for end in actions.extent)
    noise = rng.standard_normal((horizon, len(low)))
    values = [noise[0]]
    for row in noise[1:]:
        values.append(correlation * values[-1] + np.sqrt(1 - correlation**2) * row)
    size = np.linspace(FIRST_SIZE, 1.0, horizon)[:, None]
    shares = np.clip(size * np.array(values), -1.0, 1.0)
    return OpenLoopPolicy(jnp.asarray((low + high) / 2 + shares * (high - low) / 2))
