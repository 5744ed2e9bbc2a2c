"""Fits of kernel parameters to data, and their comparison with earlier parameters."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from kernelmdp.gp.fitting import linear_trend
from kernelmdp.gp.hyperpriors import HyperPrior
from kernelmdp.gp.kernel_families import KernelFamily
from kernelmdp.gp.laplace import ParameterLaw, fitted_law
from kernelmdp.learners.fitted_families import (
    LEAST_WIDTH,
    reward_family,
    reward_prior,
    termination_family,
)
from kernelmdp.learners.fitted_state import FittedState, is_flat_reward

#: Points (n, d) and targets (n, m) of a regression.
Rows = tuple[np.ndarray, np.ndarray]


def refitted(state: FittedState, *, rows: int, thorough: bool = True) -> FittedState:
    """Fit all parameters of a state to its data, and keep old ones that predict better.

    If rows are excluded, parameters are also fitted to all rows. All rows are used again if the
    rest is then predicted as well.

    Args:
        state: The state. Its parameters are the starts of the searches.
        rows: Number of the last rows that are new, such as an episode.
        thorough: Whether to search from the prior medians too.

    Returns:
        The state with the parameters that predict best.
    """
    chosen = better_predictor(fitted_state(state, thorough=thorough), state, rows=rows)
    if not state.data.excluded.any() or not _comparable(state, rows):
        return chosen
    everything = dataclasses.replace(state, data=state.data.with_all_rows())
    everything = better_predictor(fitted_state(everything), everything, rows=rows)
    used = ~state.data.excluded
    errors, all_errors = (_held_out_errors(each, rows, used)[0] for each in (chosen, everything))
    as_good = all_errors <= state.data.settings.refit_tolerance * errors
    return everything if as_good.all() else chosen


def fitted_state(state: FittedState, *, thorough: bool = True) -> FittedState:
    """Fit all parameters of a state to its data.

    Args:
        state: The state. Its parameters are the starts of the searches.
        thorough: Whether to search from the prior medians too.

    Returns:
        The state with fitted parameters.
    """
    state = dataclasses.replace(state, trend=_trend(state))
    data, settings = state.data, state.data.settings

    def fitted(family: KernelFamily, prior: HyperPrior, rows: Rows, law: ParameterLaw) -> Any:
        blocks, search = data.blocks(*rows), settings.search
        return fitted_law(family, prior, *blocks, law, thorough=thorough, config=search)

    motion = data.motion_rows(state.trend, data.fitted)
    dynamics = fitted(state.dynamics_family, settings.dynamics_prior, motion, state.dynamics_law)
    reward, family = state.reward_law, reward_family(data)
    if data.problem.reward is None:
        rows = data.reward_rows[0], data.reward_rows[1][:, None]
        reward = fitted(family, reward_prior(data), rows, reward)
        if is_flat_reward(data, reward.logs):
            reward = fitted(family, settings.sparse_prior, rows, reward)
    termination = state.termination_law
    if data.learns_termination:
        prior = settings.termination_prior
        termination = fitted(termination_family(data), prior, data.termination_rows, termination)
    return dataclasses.replace(
        state,
        dynamics_law=dynamics,
        reward_law=reward,
        termination_law=termination,
        fitted_at=len(data),
        searched_at=len(data) if thorough else state.searched_at,
    )


def _trend(state: FittedState) -> Float[np.ndarray, "d1 m"]:
    """Levels and slopes of increments that are a linear function plus noise; 0 for the others.

    A trend extrapolates where there are no data. A kernel returns to zero there, and planners
    exploit that, for example with a pole that turns fast and does not fall. There is no trend along
    periodic axes, nor along a measured cost.
    """
    data, settings = state.data, state.data.settings
    points, residuals = data.points[data.fitted], data.residuals[data.fitted]
    n, d = points.shape
    if not state.fitted_at or n < settings.trend_rows * (d + 1):
        return np.zeros_like(state.trend)
    low, high = data.bounds
    middle, width = (low + high) / 2, np.maximum(high - low, LEAST_WIDTH)
    without_trend = (*data.box.periodic, *data.problem.measured)
    has_trend = np.array([j not in without_trend for j in range(d)])
    has_trend &= np.isin(np.arange(d), data.problem.motion_inputs)
    line = linear_trend((points - middle) / width * has_trend, residuals, config=settings.trend)
    slopes = line[1:] * (has_trend / width)[:, None]
    trend = np.concatenate([(line[0] - middle @ slopes)[None, :], slopes])
    rest = residuals - trend[0] - points @ trend[1:]
    noise = state.noises[1].standard_deviations(rest.shape[1])
    is_line = np.sqrt(np.mean(rest**2, axis=0)) <= settings.trend_noise * noise
    # What moves with a learned coordinate has its trend. What is known exactly has none.
    return trend * (is_line & np.isin(np.arange(len(is_line)), data.learned))


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
    settings = new.data.settings
    if not _comparable(old, rows) or _distance(new, old) <= settings.refit_distance:
        return new
    (new_states, new_reward), (old_states, old_reward) = (
        _held_out_errors(state, rows, ~new.data.excluded) for state in (new, old)
    )
    worse = new_states > settings.refit_tolerance * old_states
    worse_reward = new_reward > settings.refit_tolerance * old_reward
    laws = new.dynamics_law.with_outputs(worse[new.data.learned], old.dynamics_law)
    return dataclasses.replace(
        new,
        dynamics_law=laws,
        trend=np.where(worse[None, :], old.trend, new.trend),
        reward_law=old.reward_law if worse_reward else new.reward_law,
    )


def _distance(new: FittedState, old: FittedState) -> float:
    """By how many standard deviations parameters differ, and trends by how many of the noise."""
    data, learned = new.data, new.data.learned
    noise = new.noises[1].standard_deviations(new.trend.shape[1])[learned]
    change = (new.trend - old.trend)[:, learned]
    trends = np.sqrt(np.mean((change[0] + data.points @ change[1:]) ** 2, axis=0)) / noise
    laws = (new.dynamics_law, old.dynamics_law), (new.reward_law, old.reward_law)
    return max(float(trends.max()), *(law.distance(other) for law, other in laws))


def _comparable(state: FittedState, rows: int) -> bool:
    """Whether parameters can be compared: without the compared rows, half of the data are left."""
    rows = max(rows, state.data.settings.comparison_rows)
    return bool(state.fitted_at) and len(state.data) >= 2 * rows


def _held_out_errors(
    state: FittedState, rows: int, used: Bool[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " m"], float]:
    """Root mean square errors of next states (m,) and rewards, on the last rows of the data.

    Next states are compared only in rows that are ``used``.
    """
    data = state.data
    rows = max(rows, data.settings.comparison_rows)
    trial = dataclasses.replace(state, data=data.head(len(data) - rows))
    points = data.points[-rows:]
    # All episodes are padded to the same length. Then one compiled program serves them.
    missing = -rows % max(data.problem.horizon, data.settings.comparison_rows)
    padded = np.pad(points, ((0, missing), (0, 0)), mode="edge")
    prediction = data.problem.mdp(trial.beliefs.mean()).model(jnp.asarray(padded))
    increments = np.asarray(prediction.state)[:rows] - points[:, : data.increments.shape[1]]
    squares = (increments - data.increments[-rows:])[used[-rows:]] ** 2
    errors = np.sqrt(np.sum(squares, axis=0) / max(len(squares), 1))
    if data.problem.reward is not None:
        return errors, 0.0
    reward_errors = np.asarray(prediction.reward)[:rows] - data.rewards[-rows:]
    return errors, float(np.sqrt(np.mean(reward_errors**2)))
