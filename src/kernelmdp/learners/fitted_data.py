"""The data that kernels are fitted to: rows of all episodes, and what follows from them."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from kernelmdp.domains import Box, join
from kernelmdp.gp.fitting import fitting_blocks
from kernelmdp.gp.row_selection import spread_rows
from kernelmdp.learners.fitted_settings import FittedSettings
from kernelmdp.learners.forgetting import FIT_WEIGHT, age_weights
from kernelmdp.learners.known_increments import known_increments
from kernelmdp.learners.survival_limits import survival_limits
from kernelmdp.mdp import Episode, Problem, state_action
from kernelmdp.mdp.measured_cost import limit_size
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Key


class FittedData(Module):
    """Points, rewards and increments of all steps.

    Attributes:
        problem: The problem that is learned.
        settings: The learner's settings.
        uses_grid: Whether the planner tabulates values on a grid. Such planners do not use the
            learned termination.
        key: Decides which rows are used for fits.
        points: z = (s, a), (n, d). Measured costs are 0, as nothing depends on them.
        rewards: Rewards, (n,).
        increments: Outcome minus state, (n, m). For a measured cost it is the cost.
        known_increments: What ``Problem.motion`` says of the increments, (n, m); else 0.
        ended: Whether the system ended the episode with this row, (n,).
        excluded: Rows that regressions of the motion leave out, (n,). See ``surprising_steps``.
        episodes: The number of the episode of each row, counted from 0, (n,).
        episode_count: The number of all episodes, with those that were forgotten.
        box: The state space. Axes without bounds span the visited states and a margin.
    """

    problem: Problem = eqx.field(static=True)
    settings: FittedSettings = eqx.field(static=True)
    uses_grid: bool = eqx.field(static=True)
    key: Key
    points: Float[np.ndarray, "n d"]
    rewards: Float[np.ndarray, " n"]
    increments: Float[np.ndarray, "n m"]
    known_increments: Float[np.ndarray, "n m"]
    ended: Bool[np.ndarray, " n"]
    excluded: Bool[np.ndarray, " n"]
    episodes: Int[np.ndarray, " n"]
    episode_count: int = eqx.field(static=True)
    box: Box = eqx.field(static=True)

    @staticmethod
    def empty(
        problem: Problem, settings: FittedSettings, *, uses_grid: bool, key: Key
    ) -> "FittedData":
        """Make data without rows.

        Args:
            problem: The problem to learn.
            settings: The learner's settings.
            uses_grid: Whether the planner tabulates values on a grid of states.
            key: Decides which rows are used for fits.

        Returns:
            The data.
        """
        d, m = problem.points.dimension, problem.states.dimension
        none = np.zeros(0, bool)
        rows = np.zeros((0, d)), np.zeros(0), np.zeros((0, m)), np.zeros((0, m)), none, none
        box = _bounding_box(problem, np.zeros((0, m)), settings.extrapolation_margin)
        numbers = np.zeros(0, int), 0
        return FittedData(problem, settings, uses_grid, key, *rows, *numbers, box)

    def with_episode(
        self, episode: Episode, excluded: Bool[np.ndarray, " k"] | None = None
    ) -> "FittedData":
        """Append the rows of an episode. The box grows where states left it.

        Args:
            episode: The episode.
            excluded: Rows of it that regressions of the motion leave out. The default is none.

        Returns:
            The longer data.
        """
        longer = self.with_history([episode])
        if excluded is not None:
            flags = np.concatenate([self.excluded, excluded[self.problem.warm_up :]])
            longer = dataclasses.replace(longer, excluded=flags)
        m, outcomes = self.problem.states.dimension, np.asarray(episode.outcomes)
        states = np.concatenate([np.asarray(episode.points)[:, :m], outcomes])
        outside = self.box.distance_outside(states)[:, _open_axes(self.problem)]
        if len(self.points) and not (outside > 0).any():
            return longer
        states = np.concatenate([longer.points[:, :m], outcomes])
        margin = self.settings.extrapolation_margin
        return dataclasses.replace(longer, box=_bounding_box(self.problem, states, margin))

    def with_history(self, episodes: Sequence[Episode]) -> "FittedData":
        """Append the rows of all episodes at once. The box stays, and no row is excluded.

        Args:
            episodes: The episodes.

        Returns:
            The longer data.
        """
        episodes = [each.without_first(self.problem.warm_up) for each in episodes]
        count = self.episode_count + len(episodes)
        if not any(map(len, episodes)):
            return dataclasses.replace(self, episode_count=count)
        m = self.problem.states.dimension
        points = np.concatenate([np.asarray(each.points) for each in episodes])
        points[:, list(self.problem.measured)] = 0.0
        outcomes = np.concatenate([np.asarray(each.outcomes) for each in episodes])
        ended = np.zeros(len(points), bool)
        lengths = np.array([len(each) for each in episodes])
        last = np.cumsum(lengths) - 1
        ended[last[lengths > 0]] = [each.terminated for each in episodes if len(each)]
        numbers = self.episode_count + np.repeat(np.arange(len(episodes)), lengths)
        longer = dataclasses.replace(
            self,
            points=np.concatenate([self.points, points]),
            rewards=np.concatenate(
                [self.rewards, *(np.asarray(each.rewards) for each in episodes)]
            ),
            increments=np.concatenate([self.increments, outcomes - points[:, :m]]),
            known_increments=np.concatenate(
                [self.known_increments, known_increments(self.problem, points)]
            ),
            ended=np.concatenate([self.ended, ended]),
            excluded=np.concatenate([self.excluded, np.zeros(len(points), bool)]),
            episodes=np.concatenate([self.episodes, numbers]),
            episode_count=count,
        )
        return longer

    @property
    def weights(self) -> Float[np.ndarray, " n"]:
        """The weight of each row in regressions of the motion: less where it is forgotten, (n,)."""
        return age_weights(self.episode_count - 1 - self.episodes, self.problem.forgetting)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def scale(self) -> np.ndarray:
        """Units in which increments are learned: a share of the width of every axis, (m,)."""
        low, high = self.box.bounds
        return self.settings.increment_unit * (high - low)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the axes of z = (s, a), each (d,)."""
        return join(state=self.box, action=self.problem.actions).bounds

    def rows_key(self, count: int) -> Key:
        """Derive the key for a choice among rows.

        Args:
            count: The number of rows to choose from.

        Returns:
            The key.
        """
        return jax.random.fold_in(self.key, count)

    def blocks(
        self, points: Float[np.ndarray, "n d"], targets: Float[np.ndarray, "n m"]
    ) -> tuple[Float[Array, "b r d"], Float[Array, "b r m"], Float[Array, "b r"]]:
        """Arrange rows for a fit: a subset that is spread, or all rows and padding.

        Args:
            points: (n, d).
            targets: (n, m).

        Returns:
            Points, targets, and 1 for rows that count, 0 for padding.
        """
        most, blocks = self.settings.fit_rows, self.settings.fit_blocks
        key = self.rows_key(len(self))
        return fitting_blocks(points, targets, most=most, blocks=blocks, key=key)

    @property
    def used(self) -> Bool[np.ndarray, " n"]:
        """The rows that regressions of the motion use, (n,)."""
        return ~self.excluded & (self.weights > 0)

    @property
    def fitted(self) -> Bool[np.ndarray, " n"]:
        """The rows that kernels of the motion are fitted to, (n,)."""
        return ~self.excluded & (self.weights >= FIT_WEIGHT)

    def motion_rows(
        self, trend: Float[np.ndarray, "d1 m"], chosen: Bool[np.ndarray, " n"]
    ) -> tuple[Float[np.ndarray, "k d"], Float[np.ndarray, "k p"]]:
        """Return points and residuals for the regression of the motion.

        Args:
            trend: The linear trend of the residuals: a row of levels, then d rows of slopes.
            chosen: Which rows: ``used`` or ``fitted``.

        Returns:
            The points, (k, d), and the residuals of the p learned coordinates less the trend in
            units of ``scale``, (k, p).
        """
        points = self.points[chosen]
        line = trend[0][None, :] + points @ trend[1:]
        residuals = (self.residuals[chosen] - line) / self.scale[None, :]
        return points, residuals[:, self.learned]

    @property
    def residuals(self) -> Float[np.ndarray, "n m"]:
        """Increments less what is known of them, (n, m)."""
        return self.increments - self.known_increments

    @property
    def learned(self) -> list[int]:
        """The coordinates whose motion is learned."""
        return list(self.problem.known_motion.learned)

    @functools.cached_property
    def reward_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Points and rewards for the reward's regression.

        For planners that do not stop at termination, terminal states are added with reward 0. For
        the others, rewards of terminal steps are left out where termination costs more than they
        do: a jump at the border of the terminal region would disturb the regression around it.
        """
        known_termination = self.problem.termination is not None and not self.uses_grid
        if self.learns_termination or known_termination:
            rows = ~self._small_terminal_rewards
            return self.points[rows], self.rewards[rows]
        if not self.ended.any():
            return self.points, self.rewards
        actions = self.problem.actions.spread_points(3)
        terminal = self.outcomes[self.ended]
        absorbing = state_action(
            np.repeat(terminal, len(actions), axis=0), np.tile(actions, (len(terminal), 1))
        )
        return (
            np.concatenate([self.points, absorbing]),
            np.concatenate([self.rewards, np.zeros(len(absorbing))]),
        )

    @property
    def outcomes(self) -> Float[np.ndarray, "n m"]:
        """Next states, clipped to the state space except on periodic axes, (n, m)."""
        low, high = (np.array(end) for end in self.problem.states.bounds)
        for axis in self.box.periodic:
            low[axis], high[axis] = -np.inf, np.inf
        return np.clip(self.points[:, : len(low)] + self.increments, low, high)

    def visited(self, count: int) -> Float[np.ndarray, "count m"]:
        """Choose visited states that are spread. Some are repeated if there are too few.

        Args:
            count: The number of states.

        Returns:
            The states, (count, m).
        """
        states = np.asarray(self.points)[:, : self.problem.states.dimension]
        rows = spread_rows(states, count, key=self.rows_key(len(self)))
        return states[np.resize(rows, count)]

    @property
    def termination_costs(self) -> bool:
        """Whether termination loses rewards: steps earn. Where steps cost, it is a goal."""
        return bool(self.ended.any()) and float(np.mean(self.rewards)) > 0

    @property
    def _small_terminal_rewards(self) -> np.ndarray:
        """Which rows are terminal and differ from the mean reward by at most a few steps' worth."""
        usual = float(np.mean(self.rewards[~self.ended])) if (~self.ended).any() else 0.0
        most = self.settings.terminal_reward_steps * abs(usual)
        return self.ended & (np.abs(self.rewards - usual) <= most)

    @property
    def is_race(self) -> bool:
        """Whether all that matters is to end soon: all steps cost the same, and episodes ended.

        On grids it is no race: the learned reward shows them the goal.
        """
        rewards = self.rewards[~self._small_terminal_rewards]
        if self.uses_grid or not self.ended.any() or not len(rewards):
            return False
        return bool(rewards[0] < 0 and np.all(rewards == rewards[0]))

    @property
    def learns_termination(self) -> bool:
        """Whether termination is learned and plans stop there.

        Where termination is a goal with a reward of its own, or steps cost different amounts, the
        learned reward represents it: its kernel attracts plans from a distance.
        """
        matters = self.termination_costs or self.is_race
        return matters and self.problem.termination is None and not self.uses_grid

    @property
    def termination_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Points and targets for the regression of termination.

        The rows are terminations, the steps before each, and steps from all over the data.
        Targets are 0 where an episode ended and 1 elsewhere; in a race it is the reverse.
        """
        settings = self.settings
        window = np.ones(settings.steps_before_termination)
        is_near = np.convolve(self.ended[::-1], window)[: len(self)][::-1] > 0
        near, others = np.flatnonzero(is_near)[-settings.fit_rows :], np.flatnonzero(~is_near)
        room = settings.fit_blocks * settings.fit_rows - len(near)
        candidates = self.outcomes[others]
        others = others[spread_rows(candidates, room, key=self.rows_key(len(self)))]
        rows = np.concatenate([others, near])
        x = state_action(self.outcomes[rows], np.tile(self.middle_action, (len(rows), 1)))
        return x, (self.ended[rows] == self.is_race).astype(float)[:, None]

    @property
    def survival_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits of coordinates beyond which episodes ended, (m,) each.

        Sides without such limits get limits beyond which the motion is not understood, as at an
        end stop. Plans that must last do not go there either. In a race, the goal is beyond a
        limit; it has no mirror image.
        """
        m, outcomes = self.problem.states.dimension, self.outcomes
        states, starts = self.points[:, :m], np.concatenate([[True], self.ended[:-1]])
        centre = None if self.is_race else np.mean(states[starts], axis=0)
        survived = np.concatenate([states, outcomes[~self.ended]])
        low, high = survival_limits(survived, outcomes[self.ended], centre)
        # A soft end stop acts for some steps before the model is surprised.
        lead = np.ones(self.settings.outlier_lead + 1)
        excluded = np.convolve(self.excluded[::-1], lead)[: len(self)][::-1] > 0
        understood = np.concatenate([states[~excluded], outcomes[~excluded]])
        others = survival_limits(understood, outcomes[excluded], centre)
        low, high = (
            np.where(np.isinf(end), other, end)
            for end, other in zip((low, high), others, strict=True)
        )
        for axis in (*self.box.periodic, *self.problem.measured):
            low[axis], high[axis] = -np.inf, np.inf
        return low, high

    @property
    def open_axes(self) -> list[int]:
        """The axes of the state whose bounds are provisional, or infinite."""
        return _open_axes(self.problem)

    def head(self, count: int) -> "FittedData":
        """Return the first rows, in the box of all of them.

        Args:
            count: The number of rows.

        Returns:
            The shorter data.
        """
        return self.rows(slice(count))

    def rows(self, chosen: Any) -> "FittedData":
        """Return some rows, in the box of all of them.

        Args:
            chosen: A slice, or a mask (n,).

        Returns:
            The data of these rows.
        """
        names = ("points", "rewards", "increments", "known_increments", "ended", "excluded")
        columns = {name: getattr(self, name)[chosen] for name in (*names, "episodes")}
        return dataclasses.replace(self, **columns)

    def with_all_rows(self) -> "FittedData":
        """Return the same data with no row excluded.

        Returns:
            The data.
        """
        return dataclasses.replace(self, excluded=np.zeros(len(self), bool))

    @property
    def middle_action(self) -> Float[np.ndarray, " q"]:
        """The action at which termination is regressed. Any constant action would do."""
        low, high = self.problem.actions.extent
        return (low + high) / 2


def _open_axes(problem: Problem) -> list[int]:
    """The axes of the state whose bounds are provisional, or infinite."""
    low, high = problem.states.bounds
    endless = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high)))
    return sorted({*problem.unbounded, *endless.tolist()})


def _bounding_box(problem: Problem, states: Float[np.ndarray, "n m"], margin: float) -> Box:
    """The state space. Axes without bounds span the visited states and a margin."""
    low, high = (end.copy() for end in problem.states.bounds)
    for axis in _open_axes(problem):
        values = states[:, axis] if len(states) else np.array([-1.0, 1.0])
        if axis in problem.measured:
            # Plans must see costs beyond a limit before there were any.
            size = limit_size(problem, axis)
            values = np.concatenate([values, [-size, size]])
        middle, half = (values.max() + values.min()) / 2, (values.max() - values.min()) / 2
        half_width = (1 + margin) * max(half, 1e-3)
        low[axis], high[axis] = middle - half_width, middle + half_width
    return Box(low, high, problem.states.periodic)
