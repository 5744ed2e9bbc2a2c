"""The learner that fits kernels to the data (``learner="fitted"``).

Increments of the state and rewards get squared exponential kernels with one lengthscale for every
coordinate. ``gp.fitting`` fits them, again whenever the data have grown enough. No theorem covers
kernels that are chosen with the data they are used on.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from kernelmdp.confidence import Beliefs, ConfidenceRule, ConfidenceSets
from kernelmdp.domains import Box
from kernelmdp.gp.laplace import ParameterLaw, prior_law
from kernelmdp.kernels import Kernel
from kernelmdp.learners.fitted_data import FittedData
from kernelmdp.learners.fitted_families import (
    dynamics_family,
    reward_family,
    reward_prior,
    termination_family,
    undrawable_expression,
)
from kernelmdp.learners.fitted_settings import FittedSettings
from kernelmdp.learners.fitted_state import FittedState
from kernelmdp.learners.insufficient_state import with_lag_warning, with_prediction
from kernelmdp.learners.learner import GAINS, Learner, LearnerRequirements
from kernelmdp.learners.model_wrappers import (
    CentredReward,
    ClippedReward,
    NearnessToLimits,
    RescaledModel,
)
from kernelmdp.learners.predictive_test import squared_deviations
from kernelmdp.learners.prior_error import prior_model_error
from kernelmdp.learners.refitting import refitted
from kernelmdp.learners.surprises import surprising_steps, warn_if_changed, warn_if_surprised
from kernelmdp.mdp import MDP, Episode, Model, Problem
from kernelmdp.mdp.prediction_errors import prediction_errors
from kernelmdp.mdp.prior_motion import scheduled_values, with_schedules
from kernelmdp.numerics.modules import replace_fields
from kernelmdp.numerics.threads import with_one_thread
from kernelmdp.numerics.tracing import as_array
from kernelmdp.types import ArrayLike, Key

#: Columns for the last episode before it was learned: errors of its prediction one step and several
#: steps ahead, its distance in predicted standard deviations, and the error of the prior model.
ERROR_COLUMNS = ("one_step_error", "rollout_error", "deviations", "prior_model_error")
#: The fields of the state that hold fitted parameters.
LAWS = ("dynamics_law", "reward_law", "termination_law")


@dataclasses.dataclass(frozen=True, eq=False)
class FittedKernels(Learner):
    """Learns with Gaussian processes on inducing points, with kernels fitted to the data.

    Attributes:
        name: "fitted".
        columns: The information gains, and how well the last episode was predicted before it was
            learned (``mdp.prediction_errors``).
        update_columns: The same.
        broken_assumptions: That kernels are fitted to the data they are used on.
        needs_data: True: a fit needs data.
        learns_costs: True.
        uses_motion: True.
        forgets: True.
        settings: All numerical settings.
        uses_grid: Whether the planner tabulates values on a grid of states.
        visited_states: Number of visited states that MDPs carry; 0 for none.

    >>> FittedKernels().settings.inducing_points
    192
    """

    name: ClassVar[str] = "fitted"
    columns: ClassVar[tuple[str, ...]] = (*GAINS, *ERROR_COLUMNS)
    update_columns: ClassVar[tuple[str, ...]] = (*GAINS, *ERROR_COLUMNS)
    broken_assumptions: ClassVar[tuple[str, ...]] = (
        "kernels are fitted to the data they are used on",
    )
    needs_data: ClassVar[bool] = True
    learns_costs: ClassVar[bool] = True
    uses_motion: ClassVar[bool] = True
    forgets: ClassVar[bool] = True

    settings: FittedSettings = FittedSettings()
    uses_grid: bool = False
    visited_states: int = 0

    @classmethod
    def for_problem(cls, problem: Problem, requirements: LearnerRequirements) -> "FittedKernels":
        return cls(uses_grid=requirements.uses_grid, visited_states=requirements.visited_states)

    def with_settings(self, changes: Mapping[str, object]) -> "FittedKernels":
        return dataclasses.replace(self, settings=FittedSettings.of(changes))

    def init(self, problem: Problem, *, key: Key) -> FittedState:
        settings = self.settings
        data = FittedData.empty(problem, settings, uses_grid=self.uses_grid, key=key)
        trend = np.zeros((problem.points.dimension + 1, problem.states.dimension))
        return FittedState(
            data,
            dynamics_law=prior_law(dynamics_family(data, trend), settings.dynamics_prior),
            reward_law=prior_law(reward_family(data), reward_prior(data)),
            termination_law=prior_law(termination_family(data), settings.termination_prior),
            trend=trend,
            errors=np.zeros((0, len(ERROR_COLUMNS))),
        )

    @with_one_thread
    def update(self, state: FittedState, episode: Episode, *, key: Key) -> FittedState:
        settings, before, problem = self.settings, state.data, state.data.problem
        excluded, thorough = None, True
        if len(before) and len(episode) > problem.warm_up + 1:
            squares = squared_deviations(state, episode)
            thorough = not max(squares.state, squares.reward) <= settings.refit_contradiction
            errors, deviations = prediction_errors(self.mean(state), episode), squares.state**0.5
            state = with_prediction(state, episode, squares.errors)
            warn_if_surprised(errors, state.errors, settings)
            warn_if_changed(deviations, errors.one_step, state.errors[:, 2], settings)
            if before.learns_termination and before.termination_costs:
                # Plans that must last do not go where steps are left out. Others might.
                excluded = surprising_steps(errors, settings)
            prior = prior_model_error(state, episode)
            numbers = [[errors.one_step, errors.rollout, deviations, prior]]
            state = dataclasses.replace(state, errors=np.concatenate([state.errors, numbers]))
        data = before.with_episode(episode, excluded)
        if not len(data):  # shorter than the memory
            return dataclasses.replace(state, data=data)
        refit_at = state.fitted_at + max(
            settings.refit_rows, settings.refit_growth * state.fitted_at
        )
        box_changed = not len(before) or data.box != before.box
        first_end = data.learns_termination and not before.learns_termination
        after = dataclasses.replace(state, data=data)
        forgets = problem.forgetting > 0  # the number of rows then says nothing
        if not (box_changed or first_end or forgets) and len(data) < refit_at:
            return with_lag_warning(after)
        has_doubled = len(data) >= 2 * state.searched_at
        thorough = thorough or has_doubled or box_changed or first_end
        new_rows = int(np.sum(data.episodes == data.episode_count - 1))
        return with_lag_warning(refitted(after, rows=new_rows, thorough=thorough))

    @with_one_thread
    def mean(self, state: FittedState) -> MDP:
        return self._limited(state, state.data.problem.mdp(state.beliefs.mean()))

    def pessimistic(self, state: FittedState, *, deviations: float) -> MDP:
        data = state.data
        if data.problem.reward is not None or not len(data) or state.has_one_reward:
            return self.mean(state)
        mdp = super().pessimistic(state, deviations=deviations)
        highest = jnp.asarray(state.reward_limits[1])
        return replace_fields(mdp, model=ClippedReward(mdp.model, jnp.asarray(-jnp.inf), highest))

    def undrawable(self, state: FittedState) -> Kernel | None:
        return undrawable_expression(state.data)

    @with_one_thread
    def sample(self, state: FittedState, *, key: Key) -> MDP:
        # Limits and termination are those of the fitted parameters.
        drawn = state
        if self.settings.draws_parameters and len(state.data):
            drawn = state.with_drawn_parameters(key=jax.random.fold_in(key, 1))
        return self._limited(state, state.data.problem.mdp(drawn.beliefs.sample(key=key)))

    def with_schedules(self, state: FittedState, schedules: Mapping[str, ArrayLike]) -> FittedState:
        motion = with_schedules(state.motion, schedules, state.data.problem.horizon)
        return dataclasses.replace(state, scheduled_motion=motion)

    def noise_deviations(self, state: FittedState) -> np.ndarray | None:
        noise = state.noises[1]
        return np.asarray(noise.standard_deviations(state.data.problem.states.dimension))

    @with_one_thread
    def plausible(
        self, state: FittedState, confidence: ConfidenceRule, *, episode: int
    ) -> tuple[ConfidenceSets, MDP]:
        problem = state.data.problem
        reward_noise, transition_noise = state.noises
        sets = confidence.sets(
            state.plausible_beliefs,
            episode=episode,
            horizon=problem.horizon,
            domain=problem.points,
            reward_noise=reward_noise,
            transition_noise=transition_noise,
        )
        return sets, self._limited(state, sets.family(problem.mdp(sets.plausible)))

    def saved_arrays(self, state: FittedState) -> dict[str, np.ndarray]:
        low, high = state.data.box.bounds
        arrays = {
            "trend": state.trend,
            "errors": state.errors,
            "fitted_at": np.array(state.fitted_at),
            "searched_at": np.array(state.searched_at),
            "excluded": state.data.excluded,
            "box": np.stack([low, high]),
        }
        if state.scheduled_motion is not None:
            arrays["schedules"] = np.stack(list(scheduled_values(state.motion).values()))
        for name in LAWS:
            arrays |= {
                f"{name}_{part}": array for part, array in vars(getattr(state, name)).items()
            }
        return arrays

    def restored(
        self,
        initial: FittedState,
        episodes: Sequence[Episode],
        arrays: Mapping[str, np.ndarray],
    ) -> FittedState:
        data = initial.data.with_history(episodes)
        excluded, (low, high) = np.asarray(arrays["excluded"], bool), arrays["box"]
        if len(excluded) != len(data):
            raise ValueError(f"{len(excluded)} rows, and episodes of {len(data)} steps")
        for name, array in self.saved_arrays(initial).items():
            if name not in ("errors", "excluded") and arrays[name].shape != array.shape:
                raise ValueError(f"{name} of shape {arrays[name].shape}")
        parts = vars(initial.dynamics_law)
        laws: dict[str, Any] = {
            name: ParameterLaw(**{part: arrays[f"{name}_{part}"] for part in parts})
            for name in LAWS
        }
        if "schedules" in arrays:
            names = scheduled_values(initial.motion)
            schedules = dict(zip(names, arrays["schedules"], strict=True))
            initial = self.with_schedules(initial, schedules)
        return dataclasses.replace(
            initial,
            data=dataclasses.replace(
                data, excluded=excluded, box=Box(low, high, data.box.periodic)
            ),
            trend=arrays["trend"],
            errors=arrays["errors"],
            fitted_at=int(arrays["fitted_at"]),
            searched_at=int(arrays["searched_at"]),
            **laws,
        )

    def info(self, state: FittedState) -> dict[str, float]:
        errors = state.errors[-1] if len(state.errors) else np.full(len(ERROR_COLUMNS), math.nan)
        numbers = (*state.beliefs.gains, *map(float, errors))
        return dict(zip(self.columns, numbers, strict=True))

    def beliefs(self, state: FittedState) -> Beliefs:
        return state.beliefs

    def deviation_beliefs(self, state: FittedState) -> Beliefs:
        return state.plausible_beliefs

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
        if self.visited_states and len(data):
            mdp = replace_fields(mdp, visited=as_array(data.visited(self.visited_states)))
        if data.learns_termination:
            nearness = NearnessToLimits(*state.termination.limits)
            mdp = mdp.with_signals(termination=state.termination, nearness=nearness)
        if data.problem.reward is not None or not len(data):
            return mdp
        low, high = state.reward_range
        model: Model = ClippedReward(mdp.model, jnp.asarray(low), jnp.asarray(high))
        if data.learns_termination:
            # Without a loss it has no effect. It is there so that one compiled program serves all.
            must_last = state.has_one_reward and not data.is_race
            loss = data.settings.centring * abs(high) if must_last else 0.0
            model = CentredReward(model, *state.preferred_limits, loss=jnp.asarray(loss))
        return replace_fields(mdp, model=model)
