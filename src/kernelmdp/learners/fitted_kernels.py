"""The learner that fits kernels to the data (``learner="fitted"``).

Increments of the state and rewards get squared exponential kernels with one lengthscale for every
coordinate. ``gp.fitting`` fits them, again whenever the data have grown enough. No theorem covers
kernels that are chosen with the data they are used on.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from kernelmdp.confidence import Beliefs, ConfidenceRule, ConfidenceSets
from kernelmdp.gp import Posterior
from kernelmdp.gp.fitting import fit, fitting_blocks, linear_trend, prior_median, subsample_rows
from kernelmdp.gp.hyperpriors import HyperPrior
from kernelmdp.gp.inducing_engine import inducing_posterior
from kernelmdp.gp.inducing_points import select_inducing_points
from kernelmdp.gp.kernel_families import KernelFamily
from kernelmdp.gp.mean_functions import TrendMean
from kernelmdp.learners.fitted_data import LEAST_WIDTH, FittedData
from kernelmdp.learners.fitted_settings import FittedSettings
from kernelmdp.learners.learner import GAINS, Learner, LearnerRequirements
from kernelmdp.learners.model_wrappers import ClippedReward, RescaledModel, TerminationModel
from kernelmdp.mdp import MDP, Episode, Gaussian, Noise, Problem
from kernelmdp.numerics.modules import Module, replace_fields
from kernelmdp.types import Key


class FittedState(Module):
    """The state of ``FittedKernels``: all data and the parameters fitted to them.

    Attributes:
        data: All rows seen so far.
        dynamics_logs: Logarithms of the parameters of the m kernels of increments.
        reward_logs: Logarithms of the parameters of the reward's kernel.
        termination_logs: Logarithms of the parameters of the kernel of termination.
        trend: Linear trend of the increments: a row of levels, then d rows of slopes.
        fitted_at: The number of rows at the last fit.
    """

    data: FittedData
    dynamics_logs: Float[np.ndarray, "m k"]
    reward_logs: Float[np.ndarray, "1 k"]
    termination_logs: Float[np.ndarray, "1 k"]
    trend: Float[np.ndarray, "d1 m"]
    fitted_at: int = eqx.field(static=True, default=0)

    @property
    def dynamics_family(self) -> KernelFamily:
        """The kernel family of the increments minus their trend."""
        return self.data.dynamics_family(self.trend)

    @functools.cached_property
    def beliefs(self) -> Beliefs:
        """Posteriors of reward and transition, given the data and the fitted parameters."""
        data = self.data
        reward: Any = data.problem.reward
        if reward is None:
            x, y = data.reward_rows
            reward = _posterior(data, data.reward_family, self.reward_logs, x, y[:, None], True)
        residuals = data.residuals(self.trend)
        return Beliefs(
            reward=reward,
            transition=_posterior(
                data, self.dynamics_family, self.dynamics_logs, data.points, residuals, False
            ),
            offset=TrendMean(jnp.asarray(self.trend[1:]), jnp.asarray(self.trend[0])),
            scale=jnp.asarray(data.scale),
        )

    @property
    def noises(self) -> tuple[Noise, Noise]:
        """Fitted noise of rewards and of transitions, in units of rewards and of states."""
        rewards, states = (
            np.asarray(family.sizes) * np.exp(logs[:, -1])
            for family, logs in (
                (self.data.reward_family, self.reward_logs),
                (self.dynamics_family, self.dynamics_logs),
            )
        )
        return Gaussian(rewards, estimated=True), Gaussian(states * self.data.scale, estimated=True)

    @functools.cached_property
    def termination(self) -> TerminationModel:
        """The regression that predicts where episodes end."""
        data = self.data
        rows = data.termination_rows
        regression = _posterior(data, data.termination_family, self.termination_logs, *rows, True)
        action = jnp.asarray(data.middle_action)
        threshold = jnp.asarray(data.settings.continuation_threshold)
        return TerminationModel(regression.mean_function(), action, threshold)

    @property
    def reward_range(self) -> tuple[float, float]:
        """The interval to which predicted rewards are clipped.

        It is the user's ``reward_bounds``, or the observed range extended on both sides. The
        extension is the width of the observed range. Unless termination loses rewards, it is at
        least the largest observed absolute reward. If all observed rewards are one number plus
        noise and termination loses rewards, the interval is that number.
        """
        data = self.data
        noise = self.noises[0].standard_deviations(1)[0]
        if data.termination_costs and np.std(data.rewards) <= data.settings.trend_noise * noise:
            return (float(np.mean(data.rewards)),) * 2
        if data.problem.reward_bounds is not None:
            return data.problem.reward_bounds
        _, rewards = data.reward_rows
        extension = float(np.ptp(rewards))
        if not data.termination_costs:
            extension = max(extension, float(data.reward_family.sizes[0]))
        return float(rewards.min()) - extension, float(rewards.max()) + extension

    @functools.cached_property
    def reward_limits(self) -> tuple[float, float]:
        """The lowest mean reward worth fearing and the highest worth hoping for.

        The lowest is the worst observed reward. As long as rewards do not depend on the state, a
        goal may be anywhere, and the highest is that of ``reward_range``. Later it is the best
        observed reward plus a share of the range. If all rewards are costs, it is 0.
        """
        data, highest = self.data, self.reward_range[1]
        rewards = data.reward_rows[1]
        worst, best = float(rewards.min()), float(rewards.max())
        if _is_flat(data, self.reward_logs):
            return worst, highest
        ceiling = best + data.settings.reward_extension * (best - worst)
        return worst, min(highest, ceiling if best > 0 else 0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class FittedKernels(Learner):
    """Learns with Gaussian processes on inducing points, with kernels fitted to the data.

    Attributes:
        name: "fitted".
        columns: The information gains.
        broken_assumptions: That kernels are fitted to the data they are used on.
        needs_data: True: a fit needs data.
        settings: All numerical settings.
        uses_grid: Whether the planner tabulates values on a grid of states.

    >>> FittedKernels().settings.inducing_points
    192
    """

    name: ClassVar[str] = "fitted"
    columns: ClassVar[tuple[str, ...]] = GAINS
    broken_assumptions: ClassVar[tuple[str, ...]] = (
        "kernels are fitted to the data they are used on",
    )
    needs_data: ClassVar[bool] = True

    settings: FittedSettings = FittedSettings()
    uses_grid: bool = False

    @classmethod
    def for_problem(cls, problem: Problem, requirements: LearnerRequirements) -> "FittedKernels":
        return cls(uses_grid=requirements.uses_grid)

    def with_settings(self, changes: Mapping[str, object]) -> "FittedKernels":
        return dataclasses.replace(self, settings=FittedSettings.of(changes))

    def init(self, problem: Problem, *, key: Key) -> FittedState:
        settings = self.settings
        data = FittedData.empty(problem, settings, uses_grid=self.uses_grid, key=key)
        trend = np.zeros((problem.points.dimension + 1, problem.states.dimension))
        return FittedState(
            data,
            dynamics_logs=prior_median(data.dynamics_family(trend), settings.dynamics_prior),
            reward_logs=prior_median(data.reward_family, settings.reward_prior),
            termination_logs=prior_median(data.termination_family, settings.termination_prior),
            trend=trend,
        )

    def update(self, state: FittedState, episode: Episode, *, key: Key) -> FittedState:
        settings, before = self.settings, state.data
        data = before.with_episode(episode)
        refit_at = state.fitted_at + max(
            settings.refit_rows, settings.refit_growth * state.fitted_at
        )
        box_changed = not len(before) or data.box != before.box
        after = dataclasses.replace(state, data=data)
        return refitted(after) if box_changed or len(data) >= refit_at else after

    def mean(self, state: FittedState) -> MDP:
        return self._limited(state, state.data.problem.mdp(state.beliefs.mean()))

    def sample(self, state: FittedState, *, key: Key) -> MDP:
        return self._limited(state, state.data.problem.mdp(state.beliefs.sample(key=key)))

    def plausible(
        self, state: FittedState, confidence: ConfidenceRule, *, episode: int
    ) -> tuple[ConfidenceSets, MDP]:
        problem = state.data.problem
        reward_noise, transition_noise = state.noises
        sets = confidence.sets(
            state.beliefs,
            episode=episode,
            horizon=problem.horizon,
            domain=problem.points,
            reward_noise=reward_noise,
            transition_noise=transition_noise,
        )
        return sets, self._limited(state, sets.family(problem.mdp(sets.plausible)))

    def info(self, state: FittedState) -> dict[str, float]:
        return dict(zip(GAINS, state.beliefs.gains, strict=True))

    def beliefs(self, state: FittedState) -> Beliefs:
        return state.beliefs

    def reward_limits(self, state: FittedState) -> tuple[float, float]:
        known = state.data.problem.reward is not None or not len(state.data)
        return super().reward_limits(state) if known else state.reward_limits

    def _limited(self, state: FittedState, mdp: MDP) -> MDP:
        """Clip the rewards of an MDP and add the learned termination.

        Fitted kernels predict little far from all data. A grid planner gets the box of the data
        as its states. For other planners neither spaces nor metric change with the data, so
        nothing is compiled again.
        """
        data = state.data
        if data.uses_grid:
            mdp = replace_fields(mdp, states=data.box, metric=tuple(map(float, data.scale)))
        else:
            scaled = RescaledModel(mdp.model, jnp.asarray(data.scale))
            mdp = replace_fields(
                mdp, model=scaled, states=data.problem.states, metric=(1.0,) * len(data.scale)
            )
        if data.learns_termination:
            mdp = mdp.with_signals(termination=state.termination)
        if data.problem.reward is not None or not len(data):
            return mdp
        low, high = state.reward_range
        return replace_fields(
            mdp, model=ClippedReward(mdp.model, jnp.asarray(low), jnp.asarray(high))
        )


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
        if _is_flat(data, reward):
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


def _is_flat(data: FittedData, logs: np.ndarray) -> bool:
    """Whether the fitted mean reward hardly changes with the state, at the mean action."""
    x, y = data.reward_rows
    count, m = data.settings.fit_rows, data.problem.states.dimension
    posterior = _posterior(data, data.reward_family, logs, x, y[:, None], True)
    rows = x[subsample_rows(len(x), count, key=data.rows_key(len(x)))]
    actions = np.tile(np.mean(rows[:, m:], axis=0), (count, 1))
    states = np.pad(rows[:, :m], ((0, count - len(rows)), (0, 0)), mode="edge")
    mean, _ = posterior.predict(np.concatenate([states, actions], axis=1))
    return float(np.ptp(np.asarray(mean))) <= data.settings.flat_reward_threshold * float(np.ptp(y))


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


def _posterior(
    data: FittedData,
    family: KernelFamily,
    logs: np.ndarray,
    points: np.ndarray,
    targets: np.ndarray,
    scalar: bool,
) -> Posterior:
    """The posterior with these parameters, on inducing points among the data."""
    kernels, count = family.kernels_at(jnp.asarray(logs)), len(points)
    limit, config = data.settings.inducing_points, data.settings.inducing
    if count > limit:
        candidates = points[subsample_rows(count, 4 * limit, key=data.rows_key(count))]
        padded = np.pad(candidates, ((0, 4 * limit - len(candidates)), (0, 0)), mode="edge")
        chosen = select_inducing_points(kernels, jnp.asarray(padded), limit, config=config)
        inducing_points = padded[np.asarray(chosen)]
        used = np.ones(limit)
    else:
        inducing_points = np.pad(points, ((0, limit - count), (0, 0)))
        used = np.concatenate([np.ones(count), np.zeros(limit - count)])
    return inducing_posterior(
        kernels,
        inducing_points,
        used,
        points,
        targets,
        scalar=scalar,
        block=data.settings.batch_rows,
        config=config,
    )
