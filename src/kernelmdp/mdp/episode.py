"""One episode: the data that agents learn from, checked, and as arrays for files."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelmdp.domains import Domain
from kernelmdp.errors import DataError, ShapeError
from kernelmdp.numerics.checks import float_array
from kernelmdp.numerics.modules import Module, changed
from kernelmdp.types import AnyArray, ArrayLike

A = TypeVar("A", bound=AnyArray)


def state_action(states: A, actions: A) -> A:
    """Points z = (s, a): rows of states (n, m) beside rows of actions (n, q), both of one library.

    >>> state_action(np.zeros((2, 1)), np.ones((2, 1))).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    library = np if isinstance(states, np.ndarray) else jnp
    return library.concatenate([states, actions], axis=1)


class Episode(Module):
    """One episode: H + 1 states, and what happened in each of the H periods.

    ``outcomes`` are next states before their projection to the state space.

    >>> states, actions, outcomes = jnp.zeros((3, 1)), jnp.ones((2, 1)), jnp.zeros((2, 1))
    >>> episode = Episode(states, actions, jnp.array([1.0, 2.0]), outcomes)
    >>> episode.total, episode.points.shape
    (3.0, (2, 2))
    """

    states: Float[AnyArray, "H1 m"]
    actions: Float[AnyArray, "H q"]
    rewards: Float[AnyArray, " H"]
    outcomes: Float[AnyArray, "H m"]
    #: Whether the system itself ended it; an episode may then have fewer than H periods.
    terminated: bool = eqx.field(static=True, default=False, kw_only=True)

    @property
    def points(self) -> Float[AnyArray, "H d"]:
        """z = (s, a) of every period."""
        return state_action(self.states[:-1], self.actions)

    @property
    def total(self) -> float:
        """The return: the sum of rewards."""
        return float(np.sum(np.asarray(self.rewards)))

    def __len__(self) -> int:
        return len(self.rewards)

    def step(self, number: int) -> "Episode":
        """The episode of one of its periods, counted from 0."""
        return Episode(
            self.states[number : number + 2],
            self.actions[number : number + 1],
            self.rewards[number : number + 1],
            self.outcomes[number : number + 1],
            terminated=self.terminated and number + 1 == len(self),
        )

    def on_host(self) -> "Episode":
        """The same with NumPy arrays."""
        names = ("states", "actions", "rewards", "outcomes")
        return changed(self, **{name: np.asarray(getattr(self, name)) for name in names})


#: Copied with other arrays: a constructor costs more than the check of an episode.
_BLANK = Episode(np.zeros((2, 1)), np.zeros((1, 1)), np.zeros(1), np.zeros((1, 1)))


@runtime_checkable
class EpisodeSpaces(Protocol):
    """What the shape of an episode follows from."""

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
    """An episode from what a user passes, as copies of 64 bits.

    Args:
        states: H + 1 states, (H + 1, m).
        actions: H actions, (H, q).
        rewards: H rewards, (H,).
        outcomes: Next states before their projection to the state space, (H, m). Without them the
            next states are taken, unwrapped along periodic axes.
        spaces: Where states and actions lie, and H: an MDP or a problem.
        terminated: Whether the system ended the episode; it may then be shorter.
        truncated: Whether the episode was cut off; it may then be shorter.

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
    for name, given, shape in (
        ("states", states, (H + 1, m)),
        ("actions", actions, (H, q)),
        ("rewards", rewards, (H,)),
        ("outcomes", outcomes, (H, m)),
    ):
        if given is None:
            continue
        array = np.array(float_array(given, name), dtype=float)
        if array.shape != shape:
            expected = f"shape {shape} for an episode of {H} periods"
            raise ShapeError(name, expected, f"shape {array.shape}")
        _require_finite(name, array)
        arrays[name] = array
    spaces.states.require_inside("states", arrays["states"])
    spaces.actions.require_inside("actions", arrays["actions"])
    if "outcomes" not in arrays:
        arrays["outcomes"] = unwrapped(spaces.states, arrays["states"])
    return changed(_BLANK, **arrays, terminated=bool(terminated))


def checked_step(
    state: np.ndarray,
    action: ArrayLike,
    reward: ArrayLike,
    outcome: np.ndarray,
    *,
    spaces: EpisodeSpaces,
    terminated: bool = False,
) -> Episode:
    """An episode of one step, from what a user passes; the arguments are as those of an episode."""
    after = np.asarray(spaces.states.nearest(jnp.asarray(outcome[None])))[0]
    data = (np.stack([state, after]), [action], [reward], outcome[None])
    return checked_episode(*data, spaces=spaces, terminated=terminated, truncated=True)


def unwrapped(space: Domain, states: Float[np.ndarray, "H1 m"]) -> Float[np.ndarray, "H m"]:
    """Next states as if no periodic axis had wrapped: the nearest of the equal places."""
    after = states[1:].copy()
    low, high = space.bounds
    for axis in space.periodic:
        turn = high[axis] - low[axis]
        change = after[:, axis] - states[:-1, axis]
        after[:, axis] -= turn * np.round(change / turn)
    return after


def as_arrays(
    history: Sequence[Episode], *, states: int, actions: int, horizon: int
) -> dict[str, np.ndarray]:
    """Episodes as arrays of one shape, for a file: NaN follows the end of a shorter episode.

    Args:
        history: The episodes.
        states: Coordinates m of a state.
        actions: Coordinates q of an action.
        horizon: H.
    """
    H = horizon
    shapes = {
        "states": (H + 1, states),
        "actions": (H, actions),
        "rewards": (H,),
        "outcomes": (H, states),
    }
    arrays = {}
    for name, shape in shapes.items():
        arrays[name] = np.full((len(history), *shape), np.nan)
        for place, episode in zip(arrays[name], history, strict=True):
            rows = getattr(episode, name)
            place[: len(rows)] = rows
    arrays["terminated"] = np.array([episode.terminated for episode in history], bool)
    return arrays


def from_arrays(arrays: Mapping[str, np.ndarray]) -> list[Episode]:
    """The episodes of ``as_arrays``, without the NaN behind their ends."""
    episodes = []
    names = ("states", "actions", "rewards", "outcomes", "terminated")
    periods = np.shape(arrays["states"])[1] - 1
    for name in ("actions", "rewards", "outcomes"):
        if np.shape(arrays[name])[1] != periods:
            expected = f"shape (episodes, {periods}, …), as the states have"
            raise ShapeError(name, expected, f"shape {np.shape(arrays[name])}")
    for states, actions, rewards, outcomes, ended in zip(*(arrays[n] for n in names), strict=True):
        # An episode without any number is left as it is: ``checked_episode`` refuses it.
        length = int(np.isfinite(rewards).sum()) or len(rewards)
        data = (states[: length + 1], actions[:length], rewards[:length], outcomes[:length])
        episodes.append(Episode(*data, terminated=bool(ended)))
    return episodes


def _require_finite(argument: str, array: np.ndarray) -> None:
    """DataError that names the step, and the coordinate where there are several."""
    if np.isfinite(array).all():
        return
    place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
    where = f"step {place[0]}" + "".join(f", coordinate {i}" for i in place[1:])
    raise DataError(argument, "finite numbers", f"{array[place]} at {where}")
