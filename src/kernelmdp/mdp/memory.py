"""States that remember: past observations and actions, and the time, as further coordinates.

Where a velocity is not measured, or actions take effect later, the observation is not the state.
What is remembered makes it one (``history``, ``delay``). The state is then

    (x_t, x_t − x_{t−1}, x_{t−1} − x_{t−2}, …, a_{t−1}, a_{t−2}, …, t).

Differences and not the older observations themselves are coordinates, because a velocity is their
size. Only x is learned: a difference has the learned part of x, and the rest moves as it must.
Users see observations only. ``RememberingPolicy`` remembers for them.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.domains import Box, Domain
from kernelmdp.errors import ArgumentError
from kernelmdp.mdp.episode import Episode, unwrapped
from kernelmdp.numerics.checks import integer
from kernelmdp.numerics.modules import Module, replace_fields
from kernelmdp.numerics.tracing import array_library

#: Provisional bound of a difference of observations without bounds. Data replace it.
LARGEST_DIFFERENCE = 1e6


@dataclasses.dataclass(frozen=True)
class Memory:
    """Which coordinates a state has besides the observation.

    Attributes:
        states: The space of observations, as vectors.
        actions: The action space.
        horizon: H.
        history: The number of last observations that the state tells, with the actions between.
        delay: The number of periods after which an action takes effect.
        clock: Whether the last coordinate is the period.

    >>> memory = Memory(Box([-1.0], [1.0]), Box([0.0], [1.0]), horizon=20, history=2)
    >>> memory.names(("angle",))
    ('angle', 'change(angle)', 'action[-1]')
    """

    states: Domain
    actions: Domain
    horizon: int
    history: int = 1
    delay: int = 0
    clock: bool = False

    def __post_init__(self) -> None:
        integer("history", self.history, least=1)
        integer("delay", self.delay, least=0)
        if self.states.finite:
            got = f"history={self.history}, delay={self.delay}"
            raise ArgumentError("history", "1 and delay=0 where states are a table", got)
        if not np.isfinite(self.states.bounds).all():
            expected = "1, delay=0 and no schedule where states have no bounds"
            raise ArgumentError("history", expected, self.states)
        if self.past_actions >= self.horizon:
            expected = f"history − 1 + delay below the horizon of {self.horizon}"
            got = f"history={self.history}, delay={self.delay}"
            raise ArgumentError("history and delay", expected, got)

    @property
    def observed(self) -> int:
        """The number of coordinates of an observation, m₀."""
        return self.states.dimension

    @property
    def past_actions(self) -> int:
        """How many past actions the state tells."""
        return self.history - 1 + self.delay

    @property
    def remembers(self) -> bool:
        """Whether the state tells more than the observation and the period."""
        return self.history > 1 or self.delay > 0

    @property
    def dimension(self) -> int:
        """The number of coordinates of a state, m."""
        past = self.past_actions * self.actions.dimension
        return self.observed * self.history + past + self.clock

    @property
    def actions_at(self) -> int:
        """The first coordinate of past actions. The newest action comes first."""
        return self.observed * self.history

    def names(self, observed: tuple[str, ...]) -> tuple[str, ...]:
        """Name the coordinates of a state.

        Args:
            observed: The names of the coordinates of an observation.

        Returns:
            The names.
        """
        names, q = list(observed), self.actions.dimension
        for lag in range(self.history - 1):
            names += [f"change({name})" + (f"[-{lag}]" if lag else "") for name in observed]
        for lag in range(1, self.past_actions + 1):
            names += [f"action[-{lag}]" + (f"[{j}]" if q > 1 else "") for j in range(q)]
        return (*names, *(["clock"] if self.clock else []))

    @functools.cached_property
    def space(self) -> Box:
        """The state space. Bounds of differences are provisional."""
        low, high = self.states.bounds
        action_low, action_high = self.actions.bounds
        far = np.full(self.observed * (self.history - 1), LARGEST_DIFFERENCE)
        clock = np.zeros(int(self.clock)), np.full(int(self.clock), float(self.horizon))
        return Box(
            [*low, *-far, *np.tile(action_low, self.past_actions), *clock[0]],
            [*high, *far, *np.tile(action_high, self.past_actions), *clock[1]],
            self.states.periodic,
        )

    @property
    def seen(self) -> tuple[int, ...]:
        """The coordinates of points (s, a) that are the observation or the action."""
        m = self.dimension
        return (*range(self.observed), *range(m, m + self.actions.dimension))

    @property
    def differences(self) -> tuple[int, ...]:
        """The coordinates that are differences of observations."""
        return tuple(range(self.observed, self.actions_at))

    @property
    def ignored(self) -> tuple[int, ...]:
        """Coordinates of points (s, a) on which the motion does not depend.

        These are the clock, and with a delay the actions that do not act yet.
        """
        q, m = self.actions.dimension, self.dimension
        firsts = [m] + [self.actions_at + lag * q for lag in range(self.delay - 1)]
        ignored = {first + j for first in firsts[: self.delay] for j in range(q)}
        if self.clock:
            ignored.add(m - 1)
        return tuple(sorted(ignored))

    def first(self, state: Float[np.ndarray, " k"], period: int = 0) -> Float[np.ndarray, " m"]:
        """Make the state of an observation with nothing before it.

        Args:
            state: The observation, (m₀,), or a complete state, which is returned.
            period: The period.

        Returns:
            The state, (m,): nothing has changed, and past actions are 0, or the nearest ones.
        """
        if state.shape != (self.observed,):
            return state
        row = self.complete(jnp.asarray(state)[None], *self.nothing(1), jnp.asarray(period))
        return np.asarray(row)[0]

    def nothing(self, count: int) -> tuple[Array, Array]:
        """Return differences and past actions before the first period.

        Args:
            count: The number of episodes.

        Returns:
            Differences (count, (history − 1) m₀) and actions (count, past · q).
        """
        low, high = self.actions.bounds
        idle = np.tile(np.clip(0.0, low, high), self.past_actions)
        differences = jnp.zeros((count, len(self.differences)))
        return differences, jnp.broadcast_to(jnp.asarray(idle)[None], (count, len(idle)))

    def complete(
        self,
        observed: Float[Array, "n k"],
        differences: Float[Array, "n c"],
        actions: Float[Array, "n b"],
        period: Any,
    ) -> Float[Array, "n m"]:
        """Put the parts of states together.

        Args:
            observed: Observations, (n, m₀).
            differences: Differences of observations, the newest first.
            actions: Past actions, the newest first.
            period: The period.

        Returns:
            The states, (n, m).
        """
        time = jnp.full((observed.shape[0], int(self.clock)), period, observed.dtype)
        parts = (differences, actions, time)
        return jnp.concatenate([observed, *(part.astype(observed.dtype) for part in parts)], axis=1)

    def change(self, before: Any, after: Any) -> Any:
        """Compute differences of observations, along periodic axes the shortest one.

        Args:
            before: Observations, (n, m₀).
            after: Later observations, (n, m₀).

        Returns:
            The differences, (n, m₀).
        """
        change, (low, high) = after - before, self.states.bounds
        turn, periodic = np.ones((1, len(low))), list(self.states.periodic)
        turn[0, periodic] = (high - low)[periodic]
        is_angle = np.isin(np.arange(len(low)), periodic).astype(float)[None, :]
        return change - is_angle * turn * array_library(after).round(change / turn)

    def later_states(
        self, states: Float[np.ndarray, "n1 k"], actions: Float[np.ndarray, "n q"], past: int
    ) -> Float[np.ndarray, "later m"]:
        """Complete the states of steps that are not the first ones.

        Args:
            states: Observations, also of the steps before.
            actions: The actions between them.
            past: The number of steps before.

        Returns:
            The complete states after these steps. The clock begins with them.
        """
        outcomes = unwrapped(self.states, states)
        whole = self.episode(Episode(states, actions, np.zeros(len(actions)), outcomes))
        later = np.array(whole.states)[past:]
        if self.clock:
            later[:, -1] = np.arange(len(later))
        return later

    def episode(self, episode: Episode) -> Episode:
        """Complete the states of an episode.

        Args:
            episode: The episode with observations as states, or with complete states, which is
                returned.

        Returns:
            The episode with complete states.
        """
        seen = np.asarray(episode.states, float)
        if seen.shape[1] == self.dimension:
            return episode
        actions, moved = np.asarray(episode.actions, float), np.asarray(episode.outcomes, float)
        count, q = len(actions), self.actions.dimension
        change = unwrapped(self.states, seen) - seen[:-1]
        idle = np.asarray(self.nothing(1)[1])[0, :q]

        def before(rows: np.ndarray, lag: int, missing: np.ndarray) -> np.ndarray:
            """Row t is row t − lag, for t = 0, …, count."""
            padded = np.concatenate([np.tile(missing, (lag, 1)), rows])
            return padded[: count + 1]

        nothing = np.zeros(self.observed)
        differences = [before(change, lag, nothing) for lag in range(1, self.history)]
        past = [before(actions, lag, idle) for lag in range(1, self.past_actions + 1)]
        time = [np.arange(count + 1.0)[:, None]] if self.clock else []
        states = np.concatenate([seen, *differences, *past, *time], axis=1)
        outcomes = states[1:].copy()
        outcomes[:, : self.observed] = moved
        if self.history > 1:
            outcomes[:, self.observed : 2 * self.observed] = moved - seen[:-1]
        return replace_fields(episode, states=states, actions=actions, outcomes=outcomes)


class RememberedMotion(Module):
    """How states with a memory move, as far as it is known.

    Attributes:
        memory: The coordinates.
        function: What is known of the motion of observations: of points (n, m₀ + q), the next
            observations if nothing were known, and the period. None if nothing is known.
    """

    memory: Memory = eqx.field(static=True)
    function: Callable[..., Any] | None = None

    def __call__(self, points: Float[Array, "n d"]) -> Float[Array, "n m"]:
        memory = self.memory
        k, q, m = memory.observed, memory.actions.dimension, memory.dimension
        observed, actions = points[:, :k], points[:, m:]
        differences = points[:, k : memory.actions_at]
        past = points[:, memory.actions_at : memory.actions_at + memory.past_actions * q]
        # Without a force, velocities stay.
        following = observed + differences[:, :k] if memory.history > 1 else observed
        if self.function is not None:
            every = jnp.concatenate([actions, past], axis=1)  # the newest one first
            acting = every[:, memory.delay * q : (memory.delay + 1) * q]
            time = points[:, m - 1] if memory.clock else None
            following = self.function(jnp.concatenate([observed, acting], axis=1), following, time)
        parts = [following]
        if memory.history > 1:
            parts += [following - observed, differences[:, : differences.shape[1] - k]]
        if memory.past_actions:
            parts += [actions, past[:, : past.shape[1] - q]]
        if memory.clock:
            parts += [points[:, m - 1 : m] + 1.0]
        return jnp.concatenate(parts, axis=1)
