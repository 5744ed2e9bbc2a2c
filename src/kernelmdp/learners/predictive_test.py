"""How far an episode is from what was predicted for it."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.confidence import Beliefs
from kernelmdp.learners.fitted_state import FittedState
from kernelmdp.mdp import Episode
from kernelmdp.numerics.modules import jit


class Deviations(NamedTuple):
    """How far an episode is from its predictions, in predicted standard deviations, squared.

    A number is the mean of error² / (posterior variance + noise variance) over the steps. It is 1
    if model and parameters are right.

    Attributes:
        state: The largest one of a learned coordinate of the next state.
        reward: That of the reward; 0 if it is known.
        errors: Outcomes less their predictions, of the learned coordinates, (n, p).
    """

    state: float
    reward: float
    errors: Float[np.ndarray, "n p"]


def squared_deviations(state: FittedState, episode: Episode) -> Deviations:
    """Compare the errors of predictions with the deviations that were predicted for them.

    Args:
        state: The state before it learns from the episode.
        episode: The episode, of at most H periods.

    Returns:
        The mean squares, and the errors.
    """
    problem, beliefs = state.data.problem, state.beliefs
    points, count = np.asarray(episode.points), len(episode)
    # All episodes are padded to the same length. Then one compiled program serves them.
    z = jnp.asarray(np.pad(points, ((0, problem.horizon - count), (0, 0)), mode="edge"))
    reward_noise, state_noise = state.noises
    (reward, reward_deviation), (mean, deviation) = _predicted(beliefs, z)
    scale = np.asarray(beliefs.scale)
    noise = state_noise.standard_deviations(mean.shape[1]) / scale
    errors = (np.asarray(episode.outcomes) - np.asarray(mean)[:count]) / scale
    variances = np.asarray(deviation)[:count] ** 2 + noise**2
    learned = state.data.learned  # the others are known, or follow from these
    learned_errors = (errors * scale)[:, learned]
    squares = errors[:, learned] ** 2 / variances[:, learned]
    largest = float(np.mean(squares, axis=0).max())
    if problem.reward is not None:
        return Deviations(largest, 0.0, learned_errors)
    errors = np.asarray(episode.rewards) - np.asarray(reward)[:count]
    noise = reward_noise.standard_deviations(1)
    squares = errors**2 / (np.asarray(reward_deviation)[:count] ** 2 + noise**2)
    return Deviations(largest, float(np.mean(squares)), learned_errors)


@jit
def _predicted(beliefs: Beliefs, points: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    return beliefs.predict_reward(points), beliefs.predict_state(points)
