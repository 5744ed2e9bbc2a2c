"""What ``FittedKernels`` has learned: data, fitted parameters, and the posteriors they give."""

import dataclasses
import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from kernelmdp.confidence import Beliefs
from kernelmdp.gp import Posterior
from kernelmdp.gp.inducing_points import select_inducing_points
from kernelmdp.gp.inducing_posterior import inducing_posterior, with_truncated_variances
from kernelmdp.gp.kernel_families import KernelFamily
from kernelmdp.gp.laplace import ParameterLaw
from kernelmdp.gp.mean_functions import TrendMean
from kernelmdp.gp.output_layouts import MixedLayout
from kernelmdp.gp.row_selection import spread_rows
from kernelmdp.learners.fitted_data import FittedData
from kernelmdp.learners.fitted_families import dynamics_family, reward_family, termination_family
from kernelmdp.learners.free_coordinates import free_coordinates
from kernelmdp.learners.model_wrappers import TerminationModel
from kernelmdp.learners.survival_limits import familiar_limits
from kernelmdp.mdp import Gaussian, Noise
from kernelmdp.mdp.known_motion import KnownMotion
from kernelmdp.numerics.modules import Module, quick_jit, replace_fields
from kernelmdp.numerics.tracing import as_array
from kernelmdp.types import Key


class PredictedEpisode(NamedTuple):
    """An episode as it was predicted before it was learned.

    Attributes:
        points: z = (s, a), (n, d).
        increments: Outcome minus state, (n, m).
        errors: Outcomes less their predictions, of the learned coordinates, (n, p).
    """

    points: Float[np.ndarray, "n d"]
    increments: Float[np.ndarray, "n m"]
    errors: Float[np.ndarray, "n p"]


class FittedState(Module):
    """The state of ``FittedKernels``: all data and the parameters fitted to them.

    Attributes:
        data: All rows seen so far.
        dynamics_law: The law of the parameters of the p kernels of increments.
        reward_law: The law of the parameters of the reward's kernel.
        termination_law: The law of the parameters of the kernel of termination.
        trend: Linear trend of the residuals: a row of levels, then d rows of slopes.
        errors: Numbers of all episodes but the first, before each was learned: errors one step and
            several steps ahead, deviations, and the error of the prior model.
        fitted_at: The number of rows at the last fit.
        searched_at: The number of rows at the last fit that searched from the prior medians too.
        predicted: The last episodes as they were predicted before they were learned.
        lag_warning: What the last warning of an insufficient state named, or "".
        scheduled_motion: ``Problem.motion`` with the schedules of the next episode; None if they
            are those of the problem.
    """

    data: FittedData
    dynamics_law: ParameterLaw
    reward_law: ParameterLaw
    termination_law: ParameterLaw
    trend: Float[np.ndarray, "d1 m"]
    errors: Float[np.ndarray, "l 4"]
    fitted_at: int = eqx.field(static=True, default=0)
    searched_at: int = eqx.field(static=True, default=0)
    predicted: tuple[PredictedEpisode, ...] = ()
    lag_warning: str = eqx.field(static=True, default="")
    scheduled_motion: KnownMotion | None = None

    @property
    def motion(self) -> KnownMotion:
        """What is known of how the state moves, with the schedules of the next episode."""
        return self.scheduled_motion or self.data.problem.known_motion

    @property
    def dynamics_family(self) -> KernelFamily:
        """The kernel family of the increments minus their trend."""
        return dynamics_family(self.data, self.trend)

    @property
    def dynamics_logs(self) -> Float[np.ndarray, "m k"]:
        """Logarithms of the parameters of the p kernels of increments."""
        return self.dynamics_law.logs

    @property
    def reward_logs(self) -> Float[np.ndarray, "1 k"]:
        """Logarithms of the parameters of the reward's kernel."""
        return self.reward_law.logs

    @functools.cached_property
    def beliefs(self) -> Beliefs:
        """Posteriors of reward and transition, given the data and the fitted parameters."""
        data = self.data
        reward: Any = data.problem.reward
        if reward is None:
            x, y = data.reward_rows
            reward = _posterior(data, reward_family(data), self.reward_logs, x, y[:, None], True)
        rows, motion = data.motion_rows(self.trend, data.used), self.motion
        transition = _posterior(
            data,
            self.dynamics_family,
            self.dynamics_logs,
            *rows,
            scalar=False,
            weights=data.weights[data.used],
            layout=self._layout,
        )
        level, slopes = motion.spread(self.trend[:1, data.learned])[0], self._slopes
        return Beliefs(
            reward=reward,
            transition=transition,
            offset=TrendMean(as_array(slopes), as_array(level), motion.function),
            scale=as_array(data.scale),
        )

    @property
    def _layout(self) -> MixedLayout | None:
        """How next states follow from what is learned; None if every coordinate is learned."""
        data, motion = self.data, self.data.problem.motion
        if motion is None:
            return None
        mixing = as_array(motion.mixing(data.scale))
        return MixedLayout(motion.dimension, mixing, motion.learned)

    @property
    def _slopes(self) -> Float[np.ndarray, "d m"]:
        """Slopes of the trend of the next state less the state: a cost begins again from 0."""
        data = self.data
        slopes = data.problem.known_motion.spread(self.trend[1:, data.learned])
        for axis in self.data.problem.measured:
            slopes[axis, axis] = -1.0
        return slopes

    @functools.cached_property
    def plausible_beliefs(self) -> Beliefs:
        """The beliefs with cheaper and slightly larger variances, for families of MDPs."""
        beliefs, tolerance = self.beliefs, self.data.settings.variance_tolerance
        truncated = {
            name: with_truncated_variances(posterior, tolerance)
            for name, posterior in beliefs.learned.items()
        }
        return replace_fields(beliefs, **truncated)

    def with_drawn_parameters(self, *, key: Key) -> "FittedState":
        """Draw the kernel parameters of increments and of the reward.

        Args:
            key: Decides the draw.

        Returns:
            The state with drawn parameters. Data, trend and termination are the same.
        """
        dynamics_key, reward_key = jax.random.split(key)
        dynamics, reward = self.dynamics_law, self.reward_law
        return dataclasses.replace(
            self,
            dynamics_law=replace_fields(dynamics, logs=dynamics.sample(key=dynamics_key)),
            reward_law=replace_fields(reward, logs=reward.sample(key=reward_key)),
        )

    @property
    def noises(self) -> tuple[Noise, Noise]:
        """Fitted noise of rewards and of transitions, in units of rewards and of states."""
        data = self.data
        rewards, learned = (
            np.asarray(family.sizes) * np.exp(logs[:, -1])
            for family, logs in (
                (reward_family(data), self.reward_logs),
                (self.dynamics_family, self.dynamics_logs),
            )
        )
        states = data.problem.known_motion.spread((learned * data.scale[data.learned])[None, :])[0]
        return Gaussian(rewards, estimated=True), Gaussian(states, estimated=True)

    @functools.cached_property
    def termination(self) -> TerminationModel:
        """The regression that predicts where episodes end."""
        data = self.data
        rows = data.termination_rows
        regression = _posterior(
            data, termination_family(data), self.termination_law.logs, *rows, True
        )
        low, high = map(jnp.asarray, data.survival_limits)
        return TerminationModel(
            regression.mean_function(),
            action=jnp.asarray(data.middle_action),
            threshold=jnp.asarray(data.settings.continuation_threshold),
            low=low,
            high=high,
            is_goal=data.is_race,
        )

    @functools.cached_property
    def preferred_limits(self) -> tuple[Array, Array]:
        """Lower and upper limits of the coordinates within which plans prefer to stay, (m,) each.

        They are survival limits. If all that matters is to last, they are also the ends of what
        was visited of coordinates on which the motion does not depend.
        """
        data = self.data
        low, high = data.survival_limits
        if self.has_one_reward and not data.is_race:
            visited = np.concatenate([data.points[:, : len(low)], data.outcomes])
            free = free_coordinates(data, self.beliefs, self.trend)
            margin = data.settings.extrapolation_margin
            low, high = familiar_limits(visited, low, high, free=free, margin=margin)
        return jnp.asarray(low), jnp.asarray(high)

    @property
    def reward_range(self) -> tuple[float, float]:
        """The interval to which predicted rewards are clipped.

        It is the user's ``reward_bounds``, or the observed range extended on both sides. The
        extension is the width of the observed range. Unless termination loses rewards, it is at
        least the largest observed absolute reward. If all that matters is to last or to end,
        the interval is the mean reward of a step.
        """
        data = self.data
        rewards = data.reward_rows[1]
        if self.has_one_reward:
            return (float(np.mean(rewards)),) * 2
        if data.problem.reward_bounds is not None:
            return data.problem.reward_bounds
        extension = float(np.ptp(rewards))
        if not data.termination_costs:
            extension = max(extension, float(reward_family(data).sizes[0]))
        return float(rewards.min()) - extension, float(rewards.max()) + extension

    @property
    def has_one_reward(self) -> bool:
        """Whether all that matters is to last or to end: all steps earn one number.

        There is nothing to fear from such a reward. A plan that stays where it was observed would
        repeat the episodes that ended.
        """
        if not self.data.termination_costs:
            return self.data.is_race
        noise = float(self.noises[0].standard_deviations(1)[0])
        spread = float(np.std(self.data.reward_rows[1]))
        return spread <= self.data.settings.trend_noise * noise

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
        if is_flat_reward(data, self.reward_logs):
            return worst, highest
        ceiling = best + data.settings.reward_extension * (best - worst)
        return worst, min(highest, ceiling if best > 0 else 0.0)


def is_flat_reward(data: FittedData, logs: np.ndarray) -> bool:
    """Decide whether the fitted mean reward hardly changes with the state, at the mean action.

    Args:
        data: The data.
        logs: Logarithms of the parameters of the reward's kernel.

    Returns:
        Whether it changes by less than a share of the observed range.
    """
    x, y = data.reward_rows
    count, m = data.settings.fit_rows, data.problem.states.dimension
    posterior = _posterior(data, reward_family(data), logs, x, y[:, None], True)
    rows = x[spread_rows(x, count, key=data.rows_key(len(x)))]
    actions = np.tile(np.mean(rows[:, m:], axis=0), (count, 1))
    states = np.pad(rows[:, :m], ((0, count - len(rows)), (0, 0)), mode="edge")
    mean, _ = posterior.predict(np.concatenate([states, actions], axis=1))
    return float(np.ptp(np.asarray(mean))) <= data.settings.flat_reward_threshold * float(np.ptp(y))


@quick_jit
def _kernels_at(family: KernelFamily, logs: Any) -> Any:
    return family.kernels_at(jnp.asarray(logs))


def _posterior(
    data: FittedData,
    family: KernelFamily,
    logs: np.ndarray,
    points: np.ndarray,
    targets: np.ndarray,
    scalar: bool,
    weights: np.ndarray | None = None,
    layout: MixedLayout | None = None,
) -> Posterior:
    """The posterior with these parameters, on inducing points among the data.

    Drawn parameters change every term of its sums, so no sum serves two episodes. What bounds the
    time are the rows: so many, spread over the visited points, determine all inducing values.
    """
    kernels, config = _kernels_at(family, logs), data.settings.inducing
    if len(points) > (most := data.settings.posterior_rows):
        rows = spread_rows(points, most, key=data.rows_key(len(points)))
        points, targets = points[rows], targets[rows]
        weights = None if weights is None else weights[rows]
    count, limit = len(points), data.settings.inducing_points
    if count > limit:
        candidates = points[spread_rows(points, 4 * limit, key=data.rows_key(count))]
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
        weights=weights if data.problem.forgetting else None,
        layout=layout,
    )
