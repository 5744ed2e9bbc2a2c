"""Whether an episode contradicts what was learned before it."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from kernelmdp.confidence import Beliefs
from kernelmdp.learners.fitted_state import FittedState
from kernelmdp.mdp import Episode
from kernelmdp.numerics.modules import jit


def contradicts(state: FittedState, episode: Episode) -> bool:
    """Compare the errors of predictions with the deviations that were predicted for them.

    For every output, the mean of error² / (posterior variance + noise variance) over the steps of
    an episode is 1 if model and parameters are right.

    Args:
        state: The state before it learns from the episode.
        episode: The episode, of at most H periods.

    Returns:
        Whether the mean exceeds ``refit_contradiction`` for some coordinate or for the reward.
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
    squares = errors**2 / (np.asarray(deviation)[:count] ** 2 + noise**2)
    largest = float(np.mean(squares, axis=0).max())
    if problem.reward is None:
        errors = np.asarray(episode.rewards) - np.asarray(reward)[:count]
        noise = reward_noise.standard_deviations(1)
        squares = errors**2 / (np.asarray(reward_deviation)[:count] ** 2 + noise**2)
        largest = max(largest, float(np.mean(squares)))
    return not largest <= state.data.settings.refit_contradiction


@jit
def _predicted(beliefs: Beliefs, points: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    return beliefs.predict_reward(points), beliefs.predict_state(points)
