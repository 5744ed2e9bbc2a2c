"""The data that kernels are fitted to: rows of all episodes, and what follows from them."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Float

from kernelmdp.domains import Box, join
from kernelmdp.gp.ard import ARDFamily
from kernelmdp.gp.fitting import fitting_blocks
from kernelmdp.gp.free_kernels import free_kernel
from kernelmdp.gp.hyperpriors import HyperPrior
from kernelmdp.gp.kernel_families import KernelFamily
from kernelmdp.gp.row_selection import spread_rows
from kernelmdp.gp.used_inputs import on_inputs
from kernelmdp.learners.fitted_settings import FittedSettings
from kernelmdp.learners.survival_limits import survival_limits
from kernelmdp.mdp import Episode, Problem, state_action
from kernelmdp.mdp.measured_cost import limit_size
from kernelmdp.numerics.modules import Module
from kernelmdp.numerics.tracing import as_array
from kernelmdp.types import Key

#: Smallest width of an axis. It only prevents a division by zero.
LEAST_WIDTH = 1e-9


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
        ended: Whether the system ended the episode with this row, (n,).
        excluded: Rows that regressions of the motion leave out, (n,). See ``surprising_rows``.
        box: The state space. Axes without bounds span the visited states and a margin.
    """

    problem: Problem = eqx.field(static=True)
    settings: FittedSettings = eqx.field(static=True)
    uses_grid: bool = eqx.field(static=True)
    key: Key
    points: Float[np.ndarray, "n d"]
    rewards: Float[np.ndarray, " n"]
    increments: Float[np.ndarray, "n m"]
    ended: Bool[np.ndarray, " n"]
    excluded: Bool[np.ndarray, " n"]
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
        rows = np.zeros((0, d)), np.zeros(0), np.zeros((0, m)), none, none
        box = _bounding_box(problem, np.zeros((0, m)), settings.extrapolation_margin)
        return FittedData(problem, settings, uses_grid, key, *rows, box)

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
            flags = np.concatenate([self.excluded, excluded])
            longer = dataclasses.replace(longer, excluded=flags)
        m, outcomes = self.problem.states.dimension, np.asarray(episode.outcomes)
        states = np.concatenate([np.asarray(episode.points)[:, :m], outcomes])
        outside = self.box.distance_outside(states)[:, list(self.problem.unbounded)]
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
        if not episodes:
            return self
        m = self.problem.states.dimension
        points = np.concatenate([np.asarray(each.points) for each in episodes])
        points[:, list(self.problem.measured)] = 0.0
        outcomes = np.concatenate([np.asarray(each.outcomes) for each in episodes])
        ended = np.zeros(len(points), bool)
        lengths = np.array([len(each) for each in episodes])
        ended[np.cumsum(lengths) - 1] = [each.terminated for each in episodes]
        return dataclasses.replace(
            self,
            points=np.concatenate([self.points, points]),
            rewards=np.concatenate(
                [self.rewards, *(np.asarray(each.rewards) for each in episodes)]
            ),
            increments=np.concatenate([self.increments, outcomes - points[:, :m]]),
            ended=np.concatenate([self.ended, ended]),
            excluded=np.concatenate([self.excluded, np.zeros(len(points), bool)]),
        )

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

    def motion_rows(
        self, trend: Float[np.ndarray, "d1 m"]
    ) -> tuple[Float[np.ndarray, "k d"], Float[np.ndarray, "k m"]]:
        """Return points and residuals for the regression of the motion.

        Args:
            trend: The linear trend of the increments: a row of levels, then d rows of slopes.

        Returns:
            The points that are not excluded, (k, d), and their increments less the trend in units
            of ``scale``, (k, m).
        """
        points = self.points[~self.excluded]
        line = trend[0][None, :] + points @ trend[1:]
        return points, (self.increments[~self.excluded] - line) / self.scale[None, :]

    def dynamics_family(self, trend: Float[np.ndarray, "d1 m"]) -> KernelFamily:
        """Make the kernel family of the increments minus their trend.

        Its units are the widths of the axes and the root mean squares of the residuals.

        Args:
            trend: A row of levels, then d rows of slopes.

        Returns:
            The family.
        """
        sizes = np.ones(self.problem.states.dimension)
        if len(self):
            sizes = np.sqrt(np.mean(self.motion_rows(trend)[1] ** 2, axis=0))
            least = np.full(len(sizes), self.settings.minimum_scale)
            for axis in self.problem.measured:
                # Costs that were low so far do not tell how high they are elsewhere.
                least[axis] = limit_size(self.problem, axis) / self.scale[axis]
            sizes = np.maximum(sizes, least)
        return self._family(self.settings.transition_kernel, sizes)

    @property
    def reward_family(self) -> KernelFamily:
        """The kernel family of the reward.

        Its units are the widths of the axes and the largest observed absolute reward. A mean
        instead of the maximum would shrink with every episode without reward, and exploration
        with it.
        """
        rewards = self.reward_rows[1]
        size = float(np.abs(rewards).max()) if len(rewards) else 0.0
        # If all rewards were 0, they do not tell the size of rewards elsewhere.
        sizes = np.array([size if size > 1e-9 else 1.0])
        return self._family(self.settings.reward_kernel, sizes)

    @property
    def reward_prior(self) -> HyperPrior:
        """The prior of the parameters of the reward's kernel."""
        settings = self.settings
        many = len(self.problem.inputs) >= settings.relevance_inputs
        return settings.relevance_prior if many else settings.reward_prior

    @property
    def termination_family(self) -> KernelFamily:
        """The kernel family of termination, whose targets are 0 and 1."""
        return self._ard_family(np.ones(1))

    def _family(self, expression: Any, sizes: np.ndarray) -> KernelFamily:
        """Squared exponentials with a lengthscale for every axis, or the user's expression."""
        if expression is None:
            return self._ard_family(sizes)
        inputs, low_high = self.problem.inputs, self.settings.expression_bounds
        names = {
            name: [inputs.index(j) for j in places if j in inputs]
            for name, places in self.problem.points.names.items()
        }
        family = free_kernel(
            expression.bind(names).parts(),
            sizes=sizes,
            dimension=len(inputs),
            spread=self.settings.expression_spread,
            bounds=(low_high[0], low_high[1]),
        )
        return self._on_inputs(family)

    def _ard_family(self, sizes: np.ndarray) -> KernelFamily:
        """Squared exponentials. An angle is embedded in a circle, whose diameter is its width."""
        low, high = self.bounds
        angular, widths = np.ones(len(low)), np.maximum(high - low, LEAST_WIDTH)
        for axis in self.box.periodic:
            angular[axis] = 2 * np.pi / (high[axis] - low[axis])
            widths[axis] = 2.0
        inputs = self.problem.inputs
        used, angles = list(inputs), tuple(inputs.index(axis) for axis in self.box.periodic)
        family = ARDFamily(as_array(widths[used]), as_array(sizes), as_array(angular[used]), angles)
        return self._on_inputs(family)

    def _on_inputs(self, family: KernelFamily) -> KernelFamily:
        """Kernels of points, of which measured costs are no input.

        A cost is learned with the prior of a reward: it is often flat where an agent has been. And
        its signal is at least as large as its limit. An indicator that was always 0 suggests less.
        """
        problem, count, prior = self.problem, len(family.sizes), self.reward_prior
        signal = prior.signal._replace(low=1.0)
        prior = HyperPrior(prior.lengthscale, signal, prior.noise)
        priors = {j: prior for j in problem.measured if count > 1}
        return on_inputs(family, problem.inputs, problem.points.dimension, priors)

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

    def head(self, count: int) -> "FittedData":
        """Return the first rows, in the box of all of them.

        Args:
            count: The number of rows.

        Returns:
            The shorter data.
        """
        names = ("points", "rewards", "increments", "ended", "excluded")
        return dataclasses.replace(self, **{name: getattr(self, name)[:count] for name in names})

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


def _bounding_box(problem: Problem, states: Float[np.ndarray, "n m"], margin: float) -> Box:
    """The state space. Axes without bounds span the visited states and a margin."""
    low, high = (end.copy() for end in problem.states.bounds)
    for axis in problem.unbounded:
        values = states[:, axis] if len(states) else np.array([-1.0, 1.0])
        if axis in problem.measured:
            # Plans must see costs beyond a limit before there were any.
            size = limit_size(problem, axis)
            values = np.concatenate([values, [-size, size]])
        middle, half = (values.max() + values.min()) / 2, (values.max() - values.min()) / 2
        half_width = (1 + margin) * max(half, 1e-3)
        low[axis], high[axis] = middle - half_width, middle + half_width
    return Box(low, high, problem.states.periodic)
