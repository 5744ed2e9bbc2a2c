"""The data that kernels are fitted to: rows of all episodes, and what is derived from them."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from kernelmdp.domains import Box, join
from kernelmdp.gp.ard import ARDFamily
from kernelmdp.gp.fitting import subsample_rows
from kernelmdp.gp.free_kernels import free_kernel
from kernelmdp.gp.kernel_families import KernelFamily
from kernelmdp.learners.fitted_settings import FittedSettings
from kernelmdp.mdp import Episode, Problem, state_action
from kernelmdp.numerics.modules import Module
from kernelmdp.types import Key

#: Least width of an axis: it only prevents a division by zero.
LEAST_WIDTH = 1e-9


class FittedData(Module):
    """Points, rewards and increments of all steps, and where states are taken to be.

    ``increments`` are outcome − state; ``ended`` says which outcomes ended their episode for good.
    ``box`` is the state space; on axes without bounds it is where states have been, with a margin.
    ``uses_grid`` is for planners that lay tables over the states: those do not stop where an
    episode seems to end.
    """

    problem: Problem = eqx.field(static=True)
    settings: FittedSettings = eqx.field(static=True)
    uses_grid: bool = eqx.field(static=True)
    key: Key  # of the choice of rows
    points: Float[np.ndarray, "n d"]
    rewards: Float[np.ndarray, " n"]
    increments: Float[np.ndarray, "n m"]
    ended: Bool[np.ndarray, " n"]
    box: Box = eqx.field(static=True)

    @staticmethod
    def empty(
        problem: Problem, settings: FittedSettings, *, uses_grid: bool, key: Key
    ) -> "FittedData":
        """No rows yet."""
        d, m = problem.points.dimension, problem.states.dimension
        rows = np.zeros((0, d)), np.zeros(0), np.zeros((0, m)), np.zeros(0, bool)
        box = _around(problem, np.zeros((0, m)), settings.extrapolation_margin)
        return FittedData(problem, settings, uses_grid, key, *rows, box)

    def with_episode(self, episode: Episode) -> "FittedData":
        """With the rows of an episode too, in a larger box where states left it."""
        m = self.problem.states.dimension
        points = np.asarray(episode.points)
        rewards, outcomes = np.asarray(episode.rewards), np.asarray(episode.outcomes)
        last = np.zeros(len(points), bool)
        last[-1:] = episode.terminated
        longer = dataclasses.replace(
            self,
            points=np.concatenate([self.points, points]),
            rewards=np.concatenate([self.rewards, rewards]),
            increments=np.concatenate([self.increments, outcomes - points[:, :m]]),
            ended=np.concatenate([self.ended, last]),
        )
        seen = np.concatenate([points[:, :m], outcomes])
        outside = self.box.distance_outside(seen)[:, list(self.problem.unbounded)]
        if len(self.points) and not (outside > 0).any():
            return longer
        seen = np.concatenate([longer.points[:, :m], outcomes])
        return dataclasses.replace(
            longer, box=_around(self.problem, seen, self.settings.extrapolation_margin)
        )

    def __len__(self) -> int:
        return len(self.points)

    @property
    def scale(self) -> np.ndarray:
        """Increments are learned in these units: a share of the width of every axis."""
        low, high = self.box.bounds
        return self.settings.increment_unit * (high - low)

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the axes of z = (s, a)."""
        return join(state=self.box, action=self.problem.actions).bounds

    def rows_key(self, count: int) -> Key:
        """Of a choice among so many rows."""
        return jax.random.fold_in(self.key, count)

    def residuals(self, trend: Float[np.ndarray, "d1 m"]) -> Float[np.ndarray, "n m"]:
        """Scaled increments without a trend of levels and slopes."""
        line = trend[0][None, :] + self.points @ trend[1:]
        return (self.increments - line) / self.scale[None, :]

    def dynamics_family(self, trend: Float[np.ndarray, "d1 m"]) -> KernelFamily:
        """Widths of the axes, and root mean squares of the scaled increments."""
        sizes = np.ones(self.problem.states.dimension)
        if len(self):
            sizes = np.sqrt(np.mean(self.residuals(trend) ** 2, axis=0))
            sizes = np.maximum(sizes, self.settings.minimum_scale)
        return self._family(self.settings.transition_kernel, sizes)

    @property
    def reward_family(self) -> KernelFamily:
        """Widths of the axes, and the largest of rewards: it is what others may be worth.

        A mean would fall with every quiet episode, and with it the hope for better places.
        """
        seen = self.reward_rows[1]
        size = float(np.abs(seen).max()) if len(seen) else 0.0
        # Rewards that were all 0 say nothing of what others may be.
        sizes = np.array([size if size > 1e-9 else 1.0])
        return self._family(self.settings.reward_kernel, sizes)

    @property
    def termination_family(self) -> ARDFamily:
        """Widths of the axes; an end is 1."""
        return self._ard_family(np.ones(1))

    def _family(self, expression: Any, sizes: np.ndarray) -> KernelFamily:
        """Squared exponentials with a lengthscale for every axis, or the user's expression."""
        if expression is None:
            return self._ard_family(sizes)
        parts = expression.bind(self.problem.points.names).parts()
        low, high = self.settings.expression_bounds
        return free_kernel(
            parts,
            sizes=sizes,
            dimension=self.problem.points.dimension,
            spread=self.settings.expression_spread,
            bounds=(low, high),
        )

    def _ard_family(self, sizes: np.ndarray) -> ARDFamily:
        """An axis that is an angle is as wide as its circle."""
        low, high = self.bounds
        periodic, widths = np.ones(len(low)), np.maximum(high - low, LEAST_WIDTH)
        for axis in self.box.periodic:
            periodic[axis] = 2 * np.pi / (high[axis] - low[axis])
            widths[axis] = 2.0
        return ARDFamily(
            jnp.asarray(widths), jnp.asarray(sizes), jnp.asarray(periodic), self.box.periodic
        )

    @functools.cached_property
    def reward_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Points and rewards; where a planner does not stop there, zeros after the end too."""
        known = self.problem.termination is not None and not self.uses_grid
        if self.learns_termination or known:
            return self.points, self.rewards
        actions = self.problem.actions.spread(3)
        last = self.outcomes[self.ended]
        after = state_action(
            np.repeat(last, len(actions), axis=0), np.tile(actions, (len(last), 1))
        )
        return (
            np.concatenate([self.points, after]),
            np.concatenate([self.rewards, np.zeros(len(after))]),
        )

    @property
    def outcomes(self) -> Float[np.ndarray, "n m"]:
        """Next states, within the state space but on circles, where kernels see no difference."""
        low, high = (np.array(end) for end in self.problem.states.bounds)
        for axis in self.box.periodic:
            low[axis], high[axis] = -np.inf, np.inf
        return np.clip(self.points[:, : len(low)] + self.increments, low, high)

    @property
    def ends_cost(self) -> bool:
        """Whether to end is to lose: what steps earn. Where they cost, an end is a goal."""
        return bool(self.ended.any()) and float(np.mean(self.rewards)) > 0

    @property
    def learns_termination(self) -> bool:
        """Whether plans stop where episodes seem to end.

        An end that is a goal is left to the reward, whose kernel draws plans to it from afar.
        """
        return self.ends_cost and self.problem.termination is None and not self.uses_grid

    @property
    def termination_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """All ends, the steps before each, and others from all over the data: 0 where one ended."""
        settings = self.settings
        window = np.ones(settings.steps_before_termination)
        before = np.convolve(self.ended[::-1], window)[: len(self)][::-1] > 0
        close, others = np.flatnonzero(before)[-settings.fit_rows :], np.flatnonzero(~before)
        room = settings.fit_blocks * settings.fit_rows - len(close)
        others = others[subsample_rows(len(others), room, key=self.rows_key(len(self)))]
        rows = np.concatenate([others, close])
        x = state_action(self.outcomes[rows], np.tile(self.middle_action, (len(rows), 1)))
        return x, 1.0 - self.ended[rows].astype(float)[:, None]

    @property
    def middle_action(self) -> Float[np.ndarray, " q"]:
        """The action at which ends are regressed; it does not matter which."""
        low, high = self.problem.actions.extent
        return (low + high) / 2


def _around(problem: Problem, states: Float[np.ndarray, "n m"], margin: float) -> Box:
    """The state space; on axes without bounds as far as states have been, and a margin."""
    low, high = (end.copy() for end in problem.states.bounds)
    for axis in problem.unbounded:
        seen = states[:, axis] if len(states) else np.array([-1.0, 1.0])
        middle, half = (seen.max() + seen.min()) / 2, (seen.max() - seen.min()) / 2
        reach = (1 + margin) * max(half, 1e-3)
        low[axis], high[axis] = middle - reach, middle + reach
    return Box(low, high, problem.states.periodic)
