"""Episodes, the data that agents learn from: checks of user input, and arrays for files."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelmdp.domains import Domain
from kernelmdp.errors import DataError, ShapeError
from kernelmdp.numerics.checks import float_array
from kernelmdp.numerics.modules import Module, replace_fields
from kernelmdp.numerics.tracing import array_library, as_float
from kernelmdp.types import AnyArray, ArrayLike

A = TypeVar("A", bound=AnyArray)


def state_action(states: A, actions: A) -> A:
    """Concatenate states and actions to points z = (s, a).

    Both arrays are NumPy arrays, or both are JAX arrays.

    Args:
        states: The states, (n, m).
        actions: The actions, (n, q).

    Returns:
        The points, (n, m + q).

    >>> state_action(np.zeros((2, 1)), np.ones((2, 1))).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    library = np if isinstance(states, np.ndarray) else jnp
    return library.concatenate([states, actions], axis=1)


class Episode(Module):
    """One episode: H + 1 states, and the actions, rewards and outcomes of the H periods.

    Attributes:
        states: The visited states, (H + 1, m).
        actions: The actions, (H, q).
        rewards: The rewards, (H,).
        outcomes: The next states before their projection to the state space, (H, m).
        terminated: Whether the system ended the episode. It may then have fewer than H periods.

    >>> states, actions, outcomes = jnp.zeros((3, 1)), jnp.ones((2, 1)), jnp.zeros((2, 1))
    >>> episode = Episode(states, actions, jnp.array([1.0, 2.0]), outcomes)
    >>> episode.total, episode.points.shape
    (3.0, (2, 2))
    """

    states: Float[AnyArray, "H1 m"]
    actions: Float[AnyArray, "H q"]
    rewards: Float[AnyArray, " H"]
    outcomes: Float[AnyArray, "H m"]
    terminated: bool = eqx.field(static=True, default=False, kw_only=True)

    @property
    def points(self) -> Float[AnyArray, "H d"]:
        """The points z = (s, a) of all periods, (H, d)."""
        return state_action(self.states[:-1], self.actions)

    @property
    def total(self) -> float:
        """The return: the sum of rewards."""
        library = array_library(self.rewards)
        return as_float(library.sum(library.asarray(self.rewards)))

    def __len__(self) -> int:
        return len(self.rewards)

    def step(self, number: int) -> "Episode":
        """Return one period as a separate episode.

        Args:
            number: The period, counted from 0.

        Returns:
            The episode of one period.
        """
        return Episode(
            self.states[number : number + 2],
            self.actions[number : number + 1],
            self.rewards[number : number + 1],
            self.outcomes[number : number + 1],
            terminated=self.terminated and number + 1 == len(self),
        )

    def without_first(self, number: int) -> "Episode":
        """Return the episode without its first periods.

        Args:
            number: The number of periods left out.

        Returns:
            The rest, which is the episode itself for 0.
        """
        if number == 0:
            return self
        rows = {name: getattr(self, name)[number:] for name in ("actions", "rewards", "outcomes")}
        return replace_fields(self, states=self.states[number:], **rows)

    def on_host(self) -> "Episode":
        """Copy the arrays to NumPy.

        Returns:
            The same episode with NumPy arrays.
        """
        names = ("states", "actions", "rewards", "outcomes")
        return replace_fields(self, **{name: np.asarray(getattr(self, name)) for name in names})


#: A template whose arrays ``checked_episode`` replaces. The constructor would take longer than the
#: checks.
_TEMPLATE = Episode(np.zeros((2, 1)), np.zeros((1, 1)), np.zeros(1), np.zeros((1, 1)))


@runtime_checkable
class EpisodeSpaces(Protocol):
    """What determines the shape of an episode: state space, action space and horizon.

    Attributes:
        states: The state space.
        actions: The action space.
        horizon: The number of periods H.
    """

    @property
    def states(self) -> Domain: ...

    @property
    def actions(self) -> Domain: ...

    @property
    def horizon(self) -> int: ...


def checked_episode(
    states: ArrayLike,
    actions: ArrayLike,
    rewards: ArrayLike,
    outcomes: ArrayLike | None = None,
    *,
    spaces: EpisodeSpaces,
    terminated: bool = False,
    truncated: bool = False,
) -> Episode:
    """Check the data of a user, and copy them to an episode in double precision.

    Args:
        states: H + 1 states, (H + 1, m).
        actions: H actions, (H, q).
        rewards: H rewards, (H,).
        outcomes: Next states before their projection to the state space, (H, m). None takes the
            next states, unwrapped along periodic axes.
        spaces: An MDP or a problem, which defines the spaces and H.
        terminated: Whether the system ended the episode, which may then be shorter.
        truncated: Whether the episode was cut off, and may be shorter.

    Returns:
        The episode.

    Raises:
        ShapeError: If an array has another shape.
        DataError: If a number is not finite.
        ArgumentError: If a state or an action lies outside its space.
    """
    m, q = spaces.states.dimension, spaces.actions.dimension
    periods = np.size(rewards)
    H = periods if (terminated or truncated) and 1 <= periods <= spaces.horizon else spaces.horizon
    arrays = {}
    for name, values, shape in (
        ("states", states, (H + 1, m)),
        ("actions", actions, (H, q)),
        ("rewards", rewards, (H,)),
        ("outcomes", outcomes, (H, m)),
    ):
        if values is None:
            continue
        array = np.array(float_array(values, name), dtype=float)
        if array.shape != shape:
            expected = f"shape {shape} for an episode of {H} periods"
            raise ShapeError(name, expected, f"shape {array.shape}")
        _require_finite(name, array)
        arrays[name] = array
    spaces.states.require_inside("states", arrays["states"])
    spaces.actions.require_inside("actions", arrays["actions"])
    if "outcomes" not in arrays:
        arrays["outcomes"] = unwrapped(spaces.states, arrays["states"])
    return replace_fields(_TEMPLATE, **arrays, terminated=bool(terminated))


def checked_step(
    state: np.ndarray,
    action: ArrayLike,
    reward: ArrayLike,
    outcome: np.ndarray,
    *,
    spaces: EpisodeSpaces,
    terminated: bool = False,
) -> Episode:
    """Check one step of a user, and copy it to an episode of one period.

    Args:
        state: The state before the step, (m,).
        action: The action, (q,).
        reward: The reward, one number.
        outcome: The next state before its projection to the state space, (m,).
        spaces: An MDP or a problem, which defines the spaces and H.
        terminated: Whether the system ended the episode.

    Returns:
        The episode.
    """
    after = np.asarray(spaces.states.nearest(jnp.asarray(outcome[None])))[0]
    data = (np.stack([state, after]), [action], [reward], outcome[None])
    return checked_episode(*data, spaces=spaces, terminated=terminated, truncated=True)


def unwrapped(space: Domain, states: Float[np.ndarray, "H1 m"]) -> Float[np.ndarray, "H m"]:
    """Undo the wrapping of periodic axes: next states that are nearest to the states before.

    Args:
        space: The state space.
        states: The visited states, (H + 1, m).

    Returns:
        The next states, (H, m). On periodic axes they may lie outside the space.
    """
    after = states[1:].copy()
    low, high = space.bounds
    for axis in space.periodic:
        period = high[axis] - low[axis]
        change = after[:, axis] - states[:-1, axis]
        after[:, axis] -= period * np.round(change / period)
    return after


def as_arrays(
    history: Sequence[Episode], *, state_dimension: int, action_dimension: int, horizon: int
) -> dict[str, np.ndarray]:
    """Stack episodes to arrays for a file. Shorter episodes are padded with NaN.

    Args:
        history: The E episodes.
        state_dimension: The dimension m of a state.
        action_dimension: The dimension q of an action.
        horizon: The number of periods H.

    Returns:
        Arrays by name: states (E, H + 1, m), actions (E, H, q), rewards (E, H), outcomes (E, H, m)
        and terminated (E,).
    """
    H = horizon
    shapes = {
        "states": (H + 1, state_dimension),
        "actions": (H, action_dimension),
        "rewards": (H,),
        "outcomes": (H, state_dimension),
    }
    arrays = {}
    for name, shape in shapes.items():
        arrays[name] = np.full((len(history), *shape), np.nan)
        for padded_rows, episode in zip(arrays[name], history, strict=True):
            rows = getattr(episode, name)
            padded_rows[: len(rows)] = rows
    arrays["terminated"] = np.array([episode.terminated for episode in history], bool)
    return arrays


def recorded_episode(episode: Episode, *, spaces: EpisodeSpaces) -> Episode:
    """Check an episode that was recorded before.

    Args:
        episode: The episode.
        spaces: The spaces and the horizon of the problem.

    Returns:
        The checked episode.
    """
    data = (episode.states, episode.actions, episode.rewards, episode.outcomes)
    full_length = len(episode) == spaces.horizon and not episode.terminated
    ending = {} if full_length else {"terminated" if episode.terminated else "truncated": True}
    return checked_episode(*data, spaces=spaces, **ending)


def from_arrays(arrays: Mapping[str, np.ndarray]) -> list[Episode]:
    """Restore episodes from the arrays of ``as_arrays``, without the padding.

    Args:
        arrays: The arrays by name.

    Returns:
        The episodes.

    Raises:
        ShapeError: If the arrays have different numbers of periods.
    """
    episodes = []
    names = ("states", "actions", "rewards", "outcomes", "terminated")
    periods = np.shape(arrays["states"])[1] - 1
    for name in ("actions", "rewards", "outcomes"):
        if np.shape(arrays[name])[1] != periods:
            expected = f"shape (episodes, {periods}, …), as the states have"
            raise ShapeError(name, expected, f"shape {np.shape(arrays[name])}")
    for states, actions, rewards, outcomes, terminated in zip(
        *(arrays[n] for n in names), strict=True
    ):
        # An episode of NaN only keeps its length, so that ``checked_episode`` refuses it.
        length = int(np.isfinite(rewards).sum()) or len(rewards)
        data = (states[: length + 1], actions[:length], rewards[:length], outcomes[:length])
        episodes.append(Episode(*data, terminated=bool(terminated)))
    return episodes


def _require_finite(argument: str, array: np.ndarray) -> None:
    """Raise a DataError that names the step, and the coordinate if there are several."""
    if np.isfinite(array).all():
        return
    index = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
    location = f"step {index[0]}" + "".join(f", coordinate {i}" for i in index[1:])
    raise DataError(argument, "finite numbers", f"{array[index]} at {location}")
