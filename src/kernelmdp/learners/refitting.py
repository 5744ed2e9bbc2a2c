"""Fits of kernel parameters to data, and their comparison with earlier parameters."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelmdp.gp.fitting import fit, fitting_blocks, linear_trend
from kernelmdp.gp.hyperpriors import HyperPrior
from kernelmdp.gp.kernel_families import KernelFamily
from kernelmdp.learners.fitted_data import LEAST_WIDTH, FittedData
from kernelmdp.learners.fitted_state import FittedState, is_flat_reward
from kernelmdp.types import Key


def refitted(state: FittedState) -> FittedState:
    """Fit all parameters of a state to its data.

    Args:
        state: The state. Its parameters are the starts of the searches.

    Returns:
        The state with fitted parameters.
    """
    state = dataclasses.replace(state, trend=_trend(state))
    data, settings = state.data, state.data.settings
    key = data.rows_key(len(data))
    dynamics = _fit(
        data,
        state.dynamics_family,
        settings.dynamics_prior,
        (data.points, data.residuals(state.trend)),
        state.dynamics_logs,
        key,
    )
    reward, family = state.reward_logs, data.reward_family
    if data.problem.reward is None:
        rows = data.reward_rows[0], data.reward_rows[1][:, None]
        reward = _fit(data, family, settings.reward_prior, rows, reward, key)
        if is_flat_reward(data, reward):
            reward = _fit(data, family, settings.sparse_prior, rows, reward, key)
    termination = state.termination_logs
    if data.learns_termination:
        rows = data.termination_rows
        family = data.termination_family
        termination = _fit(data, family, settings.termination_prior, rows, termination, key)
    return dataclasses.replace(
        state,
        dynamics_logs=dynamics,
        reward_logs=reward,
        termination_logs=termination,
        fitted_at=len(data),
    )


def _trend(state: FittedState) -> Float[np.ndarray, "d1 m"]:
    """Levels and slopes of increments that are a linear function plus noise; 0 for the others.

    A trend extrapolates where there are no data. A kernel returns to zero there, and planners
    exploit that, for example with a pole that turns fast and does not fall. Periodic axes have no
    trend.
    """
    data, settings = state.data, state.data.settings
    n, d = data.points.shape
    if not state.fitted_at or n < settings.trend_rows * (d + 1):
        return np.zeros_like(state.trend)
    low, high = data.bounds
    middle, width = (low + high) / 2, np.maximum(high - low, LEAST_WIDTH)
    not_periodic = np.array([j not in data.box.periodic for j in range(d)])
    line = linear_trend(
        (data.points - middle) / width * not_periodic, data.increments, config=settings.trend
    )
    slopes = line[1:] * (not_periodic / width)[:, None]
    trend = np.concatenate([(line[0] - middle @ slopes)[None, :], slopes])
    residuals = data.increments - trend[0] - data.points @ trend[1:]
    noise = state.noises[1].standard_deviations(residuals.shape[1])
    return trend * (np.sqrt(np.mean(residuals**2, axis=0)) <= settings.trend_noise * noise)


def better_predictor(new: FittedState, old: FittedState, *, rows: int) -> FittedState:
    """Choose between new and old parameters by their errors on the last rows of the data.

    Posteriors are computed without these rows. For every output, and for the reward, the new
    parameters are taken unless their error is larger than the old one's, and not by chance. A
    search that ended in a bad optimum is thus discarded.

    Args:
        new: The state with new parameters.
        old: The state with the same data and old parameters.
        rows: Number of the last rows that are new, such as an episode.

    Returns:
        The new state, with some of its parameters replaced by the old ones.
    """
    settings, count = new.data.settings, len(new.data)
    rows = max(rows, settings.comparison_rows)
    if not old.fitted_at or count < 2 * rows:
        return new
    (new_states, new_reward), (old_states, old_reward) = (
        _held_out_errors(state, rows) for state in (new, old)
    )
    worse = new_states > settings.refit_tolerance * old_states
    worse_reward = new_reward > settings.refit_tolerance * old_reward
    return dataclasses.replace(
        new,
        dynamics_logs=np.where(worse[:, None], old.dynamics_logs, new.dynamics_logs),
        trend=np.where(worse[None, :], old.trend, new.trend),
        reward_logs=old.reward_logs if worse_reward else new.reward_logs,
    )


def _held_out_errors(state: FittedState, rows: int) -> tuple[Float[np.ndarray, " m"], float]:
    """Root mean square errors of next states (m,) and rewards, on the last rows of the data."""
    data = state.data
    trial = dataclasses.replace(state, data=data.head(len(data) - rows))
    points = data.points[-rows:]
    # All episodes are padded to the same length. Then one compiled program serves them.
    missing = -rows % max(data.problem.horizon, data.settings.comparison_rows)
    padded = np.pad(points, ((0, missing), (0, 0)), mode="edge")
    prediction = data.problem.mdp(trial.beliefs.mean()).model(jnp.asarray(padded))
    increments = np.asarray(prediction.state)[:rows] - points[:, : data.increments.shape[1]]
    errors = np.sqrt(np.mean((increments - data.increments[-rows:]) ** 2, axis=0))
    if data.problem.reward is not None:
        return errors, 0.0
    reward_errors = np.asarray(prediction.reward)[:rows] - data.rewards[-rows:]
    return errors, float(np.sqrt(np.mean(reward_errors**2)))


def _fit(
    data: FittedData,
    family: KernelFamily,
    prior: HyperPrior,
    rows: tuple[np.ndarray, np.ndarray],
    start: np.ndarray,
    key: Key,
) -> np.ndarray:
    settings = data.settings
    blocks = fitting_blocks(*rows, most=settings.fit_rows, blocks=settings.fit_blocks, key=key)
    return fit(family, prior, *blocks, start, config=settings.search)
