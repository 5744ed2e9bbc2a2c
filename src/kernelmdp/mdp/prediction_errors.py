"""How well an MDP predicted an episode that it was not learned from."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.mdp.episode import Episode
from kernelmdp.mdp.mdp import MDP
from kernelmdp.numerics.modules import jit

#: Steps that are predicted in a row. Plans look ahead three times as far, but errors that grow are
#: large after ten steps already.
ROLLOUT_STEPS = 10


class PredictionErrors(NamedTuple):
    """Errors of predicted states, in units of the change of the state over as many steps.

    Attributes:
        one_step: Root mean square over steps and coordinates, one step ahead.
        rollout: The same, ``ROLLOUT_STEPS`` ahead; NaN if the episode is too short.
        steps: For every step, the error one step ahead of the worst coordinate, (n,).
    """

    one_step: float
    rollout: float
    steps: Float[np.ndarray, " n"]


def prediction_errors(mdp: MDP, episode: Episode) -> PredictionErrors:
    """Measure the errors of predicted states, one step and ``ROLLOUT_STEPS`` steps ahead.

    Predictions are those of the mean, with the actions of the episode. The unit is the change of
    the state over as many steps: 0 is a perfect prediction, and 1 is as bad as the prediction that
    nothing changes. Coordinates that did not change are left out.

    Args:
        mdp: The MDP. Its states are vectors.
        episode: The episode, of at most H periods.

    Returns:
        The errors.

    >>> import kernelmdp as km
    >>> from kernelmdp.mdp import play
    >>> from kernelmdp.mdp.policy import UniformPolicy
    >>> env, key = km.make("cartpole-swingup"), jax.random.key(0)
    >>> policy = UniformPolicy(env.mdp.actions, key)
    >>> episode = play(env.mdp, policy, env.draw_start(key), key=key)
    >>> [round(error, 6) for error in prediction_errors(env.mdp, episode)[:2]]  # it has no noise
    [0.0, 0.0]
    """
    states, actions = np.asarray(episode.states), np.asarray(episode.actions)
    count = len(actions)
    # All episodes are padded to the same length. Then one compiled program serves them.
    missing = mdp.horizon + ROLLOUT_STEPS - count
    padded = np.pad(actions, ((0, missing), (0, 0)), mode="edge")
    starts = np.pad(states[:-1], ((0, mdp.horizon - count), (0, 0)), mode="edge")
    first, last = _predicted(mdp, jnp.asarray(starts), jnp.asarray(padded))
    squares = _squared_errors(mdp, np.asarray(first)[:count], states[:-1], states[1:])
    one_step, steps = _root_mean(squares), np.sqrt(squares.max(axis=1, initial=0.0))
    length = count - ROLLOUT_STEPS + 1
    if length < 1:
        return PredictionErrors(one_step, float("nan"), steps)
    predicted, after = np.asarray(last)[:length], states[ROLLOUT_STEPS:]
    rollout = _root_mean(_squared_errors(mdp, predicted, states[:length], after))
    return PredictionErrors(one_step, rollout, steps)


@jit
def _predicted(
    mdp: MDP, starts: Float[Array, "H m"], actions: Float[Array, "K q"]
) -> tuple[Float[Array, "H m"], Float[Array, "H m"]]:
    """Predicted states after one step and after the last one, from every step of an episode."""

    def one_step(states: Array, lag: Array) -> tuple[Array, None]:
        chosen = jax.lax.dynamic_slice_in_dim(actions, lag, starts.shape[0])
        prediction = mdp.model(jnp.concatenate([states, chosen], axis=1))
        return mdp.states.nearest(prediction.state), None

    first, _ = one_step(starts, jnp.asarray(0))
    last, _ = jax.lax.scan(one_step, first, jnp.arange(1, ROLLOUT_STEPS))
    return first, last


def _squared_errors(
    mdp: MDP, predicted: np.ndarray, before: np.ndarray, after: np.ndarray
) -> np.ndarray:
    """Squared errors of n predictions, for each coordinate in units of its mean squared change."""
    difference = mdp.states.difference
    errors, changes = (
        np.asarray(difference(jnp.asarray(after), jnp.asarray(each))) ** 2
        for each in (predicted, before)
    )
    unit = np.mean(changes, axis=0)
    return errors[:, unit > 0] / unit[unit > 0]


def _root_mean(squares: np.ndarray) -> float:
    return float(np.sqrt(np.mean(squares))) if squares.size else 0.0
