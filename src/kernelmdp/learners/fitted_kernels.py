"""Kernels that fit themselves to the data (``learner="fitted"``).

Increments of the state and rewards get squared exponentials with a lengthscale for every
coordinate, fitted as ``gp.fitting`` says and refitted when enough data have come. No theorem is
about kernels chosen by the data they are used on.
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
from kernelmdp.numerics.modules import Module, changed
from kernelmdp.types import Key


class FittedState(Module):
    """All data, the parameters fitted to them, and beliefs made of both."""

    data: FittedData
    dynamics_logs: Float[np.ndarray, "m k"]
    reward_logs: Float[np.ndarray, "1 k"]
    termination_logs: Float[np.ndarray, "1 k"]
    trend: Float[np.ndarray, "d1 m"]  # of the increments: levels, then slopes
    fitted_at: int = eqx.field(static=True, default=0)

    @property
    def dynamics_family(self) -> KernelFamily:
        """Of the increments that the trend leaves."""
        return self.data.dynamics_family(self.trend)

    @functools.cached_property
    def beliefs(self) -> Beliefs:
        """What the data say with these parameters."""
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
        """Fitted noise of rewards and transitions, in their own units."""
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
        """Where episodes end, by a regression."""
        data = self.data
        rows = data.termination_rows
        known = _posterior(data, data.termination_family, self.termination_logs, *rows, True)
        middle = jnp.asarray(data.middle_action)
        return TerminationModel(
            known.mean_function(), middle, jnp.asarray(data.settings.continuation_threshold)
        )

    @property
    def reward_range(self) -> tuple[float, float]:
        """What rewards are taken to be within: what is known, or was seen and as much again.

        Where an end loses rewards, "as much" is the range of the rewards seen and never their size.
        If all that was seen is one reward and noise, plans have no differences to chase.
        """
        data = self.data
        noise = self.noises[0].standard_deviations(1)[0]
        if data.ends_cost and np.std(data.rewards) <= data.settings.trend_noise * noise:
            return (float(np.mean(data.rewards)),) * 2
        if data.problem.reward_bounds is not None:
            return data.problem.reward_bounds
        _, seen = data.reward_rows
        room = float(np.ptp(seen))
        if not data.ends_cost:
            room = max(room, float(data.reward_family.sizes[0]))
        return float(seen.min()) - room, float(seen.max()) + room


@dataclasses.dataclass(frozen=True, eq=False)
class FittedKernels(Learner):
    """Gaussian processes on a few centres, with kernels fitted to the data.

    Attributes:
        settings: Every number it goes by.
        tabulates: Whether the planner lays tables over the states.

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
        """With some of its numbers changed."""
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
        due = state.fitted_at + max(settings.refit_rows, settings.refit_growth * state.fitted_at)
        grown = not len(before) or data.box != before.box
        after = dataclasses.replace(state, data=data)
        return refitted(after) if grown or len(data) >= due else after

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

    def _limited(self, state: FittedState, mdp: MDP) -> MDP:
        """The MDP with rewards that are not far from any seen, and with learned ends.

        Kernels that were fitted say little far from all data. A planner with tables gets states of
        the data's box. For others neither spaces nor metric change with the data, and nothing is
        compiled again.
        """
        data = state.data
        if data.uses_grid:
            mdp = changed(mdp, states=data.box, metric=tuple(map(float, data.scale)))
        else:
            scaled = RescaledModel(mdp.model, jnp.asarray(data.scale))
            mdp = changed(
                mdp, model=scaled, states=data.problem.states, metric=(1.0,) * len(data.scale)
            )
        if data.learns_termination:
            mdp = mdp.with_signals(termination=state.termination)
        if data.problem.reward is not None or not len(data):
            return mdp
        low, high = state.reward_range
        return changed(mdp, model=ClippedReward(mdp.model, jnp.asarray(low), jnp.asarray(high)))


def refitted(state: FittedState) -> FittedState:
    """The state with parameters fitted to its data as they are."""
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
        if _flat(data, reward):
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
    """Levels and slopes of those increments that are a straight line and noise, as far as the data
    tell; along the axes that are no circles.

    A line goes on where there are no data. A kernel returns to zero there, and planners find such
    places: a pole that turns fast and does not fall.
    """
    data, settings = state.data, state.data.settings
    n, d = data.points.shape
    if not state.fitted_at or n < settings.trend_rows * (d + 1):
        return np.zeros_like(state.trend)
    low, high = data.bounds
    middle, width = (low + high) / 2, np.maximum(high - low, LEAST_WIDTH)
    straight = np.array([j not in data.box.periodic for j in range(d)])
    line = linear_trend(
        (data.points - middle) / width * straight, data.increments, config=settings.trend
    )
    slopes = line[1:] * (straight / width)[:, None]
    trend = np.concatenate([(line[0] - middle @ slopes)[None, :], slopes])
    left = data.increments - trend[0] - data.points @ trend[1:]
    noise = state.noises[1].standard_deviations(left.shape[1])
    return trend * (np.sqrt(np.mean(left**2, axis=0)) <= settings.trend_noise * noise)


def _flat(data: FittedData, logs: np.ndarray) -> bool:
    """Whether rewards, explained so, have not depended on the state at all."""
    x, y = data.reward_rows
    count, m = data.settings.fit_rows, data.problem.states.dimension
    known = _posterior(data, data.reward_family, logs, x, y[:, None], True)
    rows = x[subsample_rows(len(x), count, key=data.rows_key(len(x)))]
    middle = np.tile(np.mean(rows[:, m:], axis=0), (count, 1))
    states = np.pad(rows[:, :m], ((0, count - len(rows)), (0, 0)), mode="edge")
    mean, _ = known.predict(np.concatenate([states, middle], axis=1))
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
    """The posterior with these parameters, on centres among the points."""
    shape, count, most = family.shape(jnp.asarray(logs)), len(points), data.settings.inducing_points
    inducing = data.settings.inducing
    if count > most:
        candidates = points[subsample_rows(count, 4 * most, key=data.rows_key(count))]
        padded = np.pad(candidates, ((0, 4 * most - len(candidates)), (0, 0)), mode="edge")
        inducing_points = padded[
            np.asarray(select_inducing_points(shape, jnp.asarray(padded), most, config=inducing))
        ]
        used = np.ones(most)
    else:
        inducing_points = np.pad(points, ((0, most - count), (0, 0)))
        used = np.concatenate([np.ones(count), np.zeros(most - count)])
    return inducing_posterior(
        shape,
        inducing_points,
        used,
        points,
        targets,
        scalar=scalar,
        block=data.settings.batch_rows,
        config=inducing,
    )
