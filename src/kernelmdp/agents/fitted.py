"""Beliefs whose kernels fit themselves to the data (``kernel="auto"``).

Increments of the state and rewards get squared exponentials with a lengthscale for every
coordinate, fitted as ``gp.fitting`` says and refitted when a seventh more data have come. No
theorem is about kernels chosen by the data they are used on.
"""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from kernelmdp.agents.limits import Ends, Ranged
from kernelmdp.agents.problem import STEP, Problem
from kernelmdp.confidence import Beliefs
from kernelmdp.domains import Box, join
from kernelmdp.gp import Posterior
from kernelmdp.gp.fitting import (
    DYNAMICS,
    ENDINGS,
    REWARD,
    SPARSE,
    Habits,
    Units,
    affine,
    fit,
    in_blocks,
    some_rows,
    usual,
)
from kernelmdp.gp.inducing import inducing_posterior, spread_out
from kernelmdp.gp.means import Trend
from kernelmdp.mdp import MDP, Gaussian, Noise
from kernelmdp.numerics.modules import changed

#: Centres of a posterior, and rows taken at once.
CENTRES, BLOCK = 192, 256
#: Kernels are fitted to so many blocks of so many rows. Where noise is as large as what there is to
#: learn, one block may find short lengthscales that explain noise.
BLOCKS, ROWS = 4, 160
#: An output is a straight line when one leaves no more than so many deviations of the noise, of so
#: many rows for each number of the line.
STRAIGHT, ENOUGH = 1.2, 10
#: Fitted anew when data have grown by this share, and by this many rows.
SHARE, FEW = 0.15, 5
#: Room beyond what was seen, on axes without bounds, as a share of half their length.
MARGIN = 0.5
#: Rewards depend on the state when they change with it by this share of their range.
FLAT = 0.05
#: Steps before an end that ends are told from.
CLOSE = 10
#: No output is taken to be smaller than this share of its scale.
SMALL = 1e-3


@dataclasses.dataclass(frozen=True)
class Fitted:
    """All data, the parameters fitted to them, and beliefs made of both. Never changes.

    ``increments`` are outcome − state; ``ended`` says which outcomes ended their episode for good.
    ``tables`` is for planners that lay tables over the states, and do not stop where an episode
    ends. ``box`` is where states are taken to be: on axes without bounds where they have been, with
    a margin.
    """

    problem: Problem
    seed: int
    tables: bool
    points: Float[np.ndarray, "n d"]
    rewards: Float[np.ndarray, " n"]
    increments: Float[np.ndarray, "n m"]
    ended: Bool[np.ndarray, " n"]
    dynamics_logs: Float[np.ndarray, "m k"]
    reward_logs: Float[np.ndarray, "1 k"]
    ending_logs: Float[np.ndarray, "1 k"]
    trend: Float[np.ndarray, "d1 m"]  # of the increments: levels, then slopes
    box: Box
    fitted_at: int = 0

    @staticmethod
    def prior(problem: Problem, *, seed: int, tables: bool) -> "Fitted":
        """No data yet."""
        d, m = problem.points.dimension, problem.states.dimension
        empty = Fitted(
            problem,
            seed,
            tables,
            np.zeros((0, d)),
            np.zeros(0),
            np.zeros((0, m)),
            np.zeros(0, bool),
            np.zeros((m, d + 2)),
            np.zeros((1, d + 2)),
            np.zeros((1, d + 2)),
            np.zeros((d + 1, m)),
            _around(problem, np.zeros((0, m))),
        )
        return dataclasses.replace(
            empty,
            dynamics_logs=usual(empty.dynamics_units, DYNAMICS),
            reward_logs=usual(empty.reward_units, REWARD),
            ending_logs=usual(empty.ending_units, ENDINGS),
        )

    def after(
        self,
        points: Float[np.ndarray, "h d"],
        rewards: Float[np.ndarray, " h"],
        outcomes: Float[np.ndarray, "h m"],
        *,
        ended: bool = False,
    ) -> "Fitted":
        """With these rows too; ``ended`` when the last outcome ended the episode for good."""
        m = self.problem.states.dimension
        last = np.zeros(len(points), bool)
        last[-1:] = ended
        more = dataclasses.replace(
            self,
            points=np.concatenate([self.points, points]),
            rewards=np.concatenate([self.rewards, rewards]),
            increments=np.concatenate([self.increments, outcomes - points[:, :m]]),
            ended=np.concatenate([self.ended, last]),
        )
        due = self.fitted_at + max(FEW, SHARE * self.fitted_at)
        open_axes = list(self.problem.unbounded)
        beyond = self.box.distance_outside(np.concatenate([points[:, :m], outcomes]))[:, open_axes]
        if not len(self.points) or (beyond > 0).any():
            where = np.concatenate([more.points[:, :m], outcomes])
            more = dataclasses.replace(more, box=_around(self.problem, where))
            due = 0
        return more.refitted() if len(more.points) >= due else more

    @property
    def scale(self) -> np.ndarray:
        """Increments are learned in these units: a share of the width of every axis."""
        low, high = self.box.bounds
        return STEP * (high - low)

    def refitted(self) -> "Fitted":
        """With parameters fitted to the data as they are."""
        return dataclasses.replace(self, trend=self._trend())._with_kernels()

    def _with_kernels(self) -> "Fitted":
        key = jax.random.fold_in(jax.random.key(self.seed), len(self.points))
        dynamics = self._fit(
            self.dynamics_units, DYNAMICS, self.points, self._residuals, self.dynamics_logs, key
        )
        reward = self.reward_logs
        if self.problem.reward is None:
            x, y = self._reward_rows
            reward = self._fit(self.reward_units, REWARD, x, y[:, None], reward, key)
            if self._flat(reward):
                reward = self._fit(self.reward_units, SPARSE, x, y[:, None], reward, key)
        ending = self.ending_logs
        if self._learns_endings:
            rows = self._ending_rows
            ending = self._fit(self.ending_units, ENDINGS, *rows, ending, key)
        return dataclasses.replace(
            self,
            dynamics_logs=dynamics,
            reward_logs=reward,
            ending_logs=ending,
            fitted_at=len(self.points),
        )

    @functools.cached_property
    def beliefs(self) -> Beliefs:
        """What the data say with these parameters."""
        reward: Any = self.problem.reward
        if reward is None:
            x, y = self._reward_rows
            reward = self._posterior(self.reward_units, self.reward_logs, x, y[:, None], True)
        return Beliefs(
            reward=reward,
            transition=self._posterior(
                self.dynamics_units, self.dynamics_logs, self.points, self._residuals, False
            ),
            offset=Trend(jnp.asarray(self.trend[1:]), jnp.asarray(self.trend[0])),
            scale=jnp.asarray(self.scale),
        )

    @property
    def noises(self) -> tuple[Noise, Noise]:
        """Fitted noise of rewards and transitions, in their own units."""
        sizes = [
            np.asarray(units.sizes) * np.exp(logs[:, -1])
            for units, logs in (
                (self.reward_units, self.reward_logs),
                (self.dynamics_units, self.dynamics_logs),
            )
        ]
        rewards, states = sizes
        return Gaussian(rewards, estimated=True), Gaussian(states * self.scale, estimated=True)

    def ranged(self, mdp: MDP) -> MDP:
        """The MDP with rewards that are not far from any seen; known ones are as they are.

        A planner with tables gets states of ``box``. For others neither they nor the metric change
        with the data, and nothing is compiled again.
        """
        if self.tables:
            mdp = changed(mdp, states=self.box, metric=tuple(map(float, self.scale)))
        else:
            mdp = changed(mdp, states=self.problem.states, metric=(1.0,) * len(self.scale))
        if self._learns_endings:
            mdp = changed(mdp, termination=self._ends)
        if self.problem.reward is not None or not len(self.rewards):
            return mdp
        low, high = self._reward_range
        return changed(mdp, model=Ranged(mdp.model, jnp.asarray(low), jnp.asarray(high)))

    @property
    def _reward_range(self) -> tuple[float, float]:
        """What rewards are taken to be within: what is known, or was seen and as much again.

        Where to end is to lose, "as much" is by how much rewards have differed, never their size;
        and if all that was seen is one reward and noise, plans have no differences to chase.
        """
        noise = self.noises[0].standard_deviations(1)[0]
        if self._ends_cost and np.std(self.rewards) <= STRAIGHT * noise:
            return (float(np.mean(self.rewards)),) * 2
        if self.problem.reward_bounds is not None:
            return self.problem.reward_bounds
        _, seen = self._reward_rows
        room = float(np.ptp(seen))
        if not self._ends_cost:
            room = max(room, float(self.reward_units.sizes[0]))
        return float(seen.min()) - room, float(seen.max()) + room

    @property
    def dynamics_units(self) -> Units:
        """Widths of the axes, and root mean squares of the scaled increments."""
        sizes = np.ones(self.problem.states.dimension)
        if len(self.points):
            sizes = np.maximum(np.sqrt(np.mean(self._residuals**2, axis=0)), SMALL)
        return self._units(sizes)

    @property
    def reward_units(self) -> Units:
        """Widths of the axes, and the largest of rewards: it is what others may be worth.

        A mean would fall with every quiet episode, and with it the hope for better places.
        """
        seen = self._reward_rows[1]
        size = float(np.abs(seen).max()) if len(seen) else 0.0
        # Rewards that were all 0 say nothing of what others may be.
        return self._units(np.array([size if size > 1e-9 else 1.0]))

    def _flat(self, logs: np.ndarray) -> bool:
        """Whether rewards, explained so, have not depended on the state at all."""
        x, y = self._reward_rows
        known = self._posterior(self.reward_units, logs, x, y[:, None], True)
        key = jax.random.fold_in(jax.random.key(self.seed), len(x))
        rows, m = x[some_rows(len(x), ROWS, key=key)], self.problem.states.dimension
        middle = np.tile(np.mean(rows[:, m:], axis=0), (ROWS, 1))
        states = np.pad(rows[:, :m], ((0, ROWS - len(rows)), (0, 0)), mode="edge")
        mean, _ = known.predict(np.concatenate([states, middle], axis=1))
        return float(np.ptp(np.asarray(mean))) <= FLAT * float(np.ptp(y))

    @property
    def _residuals(self) -> np.ndarray:
        straight = self.trend[0][None, :] + self.points @ self.trend[1:]
        return (self.increments - straight) / self.scale[None, :]

    def _trend(self) -> np.ndarray:
        """Levels and slopes of those increments that are a straight line and noise, as far as
        the data tell; along the axes that are no circles.

        A line goes on where there are no data. A kernel returns to zero there, and planners find
        such places: a pole that turns fast and does not fall.
        """
        n, d = self.points.shape
        if not self.fitted_at or n < ENOUGH * (d + 1):
            return np.zeros_like(self.trend)
        low, high = join(state=self.box, action=self.problem.actions).bounds
        middle, width = (low + high) / 2, np.maximum(high - low, 1e-9)
        straight = np.array([j not in self.box.periodic for j in range(d)])
        found = affine((self.points - middle) / width * straight, self.increments)
        slopes = found[1:] * (straight / width)[:, None]
        trend = np.concatenate([(found[0] - middle @ slopes)[None, :], slopes])
        left = self.increments - trend[0] - self.points @ trend[1:]
        noise = self.noises[1].standard_deviations(left.shape[1])
        return trend * (np.sqrt(np.mean(left**2, axis=0)) <= STRAIGHT * noise)

    def _units(self, sizes: np.ndarray) -> Units:
        """An axis that is an angle is as wide as its circle."""
        low, high = join(state=self.box, action=self.problem.actions).bounds
        turns, widths = np.ones(len(low)), np.maximum(high - low, 1e-9)
        for axis in self.box.periodic:
            turns[axis] = 2 * np.pi / (high[axis] - low[axis])
            widths[axis] = 2.0
        own = jnp.asarray(widths), jnp.asarray(sizes), jnp.asarray(turns)
        return Units(*own, self.box.periodic)

    @property
    def _reward_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Rewards seen and, where a planner does not stop there, the nothing after the end."""
        if self._learns_endings or (self.problem.termination is not None and not self.tables):
            return self.points, self.rewards
        actions = self.problem.actions.spread(3)
        states = np.repeat(self._last_states, len(actions), axis=0)
        after = np.concatenate([states, np.tile(actions, (len(self._last_states), 1))], axis=1)
        return (
            np.concatenate([self.points, after]),
            np.concatenate([self.rewards, np.zeros(len(after))]),
        )

    @property
    def _outcomes(self) -> np.ndarray:
        low, high = (np.array(end) for end in self.problem.states.bounds)
        for axis in self.box.periodic:  # kernels see no difference
            low[axis], high[axis] = -np.inf, np.inf
        return np.clip(self.points[:, : len(low)] + self.increments, low, high)

    @property
    def _last_states(self) -> np.ndarray:
        return self._outcomes[self.ended]

    @property
    def _ends_cost(self) -> bool:
        """Whether to end is to lose: what steps earn. Where they cost, an end is a goal."""
        return bool(self.ended.any()) and float(np.mean(self.rewards)) > 0

    @property
    def _learns_endings(self) -> bool:
        """Whether plans stop where episodes seem to end.

        An end that is a goal is left to the reward, whose kernel draws plans to it from afar.
        """
        return self._ends_cost and self.problem.termination is None and not self.tables

    @property
    def ending_units(self) -> Units:
        """Widths of the axes; an end is 1."""
        return self._units(np.ones(1))

    @property
    def _ending_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """All ends, the steps before each, and others from all over the data."""
        before = np.convolve(self.ended[::-1], np.ones(CLOSE))[: len(self.ended)][::-1] > 0
        key = jax.random.fold_in(jax.random.key(self.seed), len(self.ended))
        close, others = np.flatnonzero(before)[-ROWS:], np.flatnonzero(~before)
        others = others[some_rows(len(others), BLOCKS * ROWS - len(close), key=key)]
        rows = np.concatenate([others, close])
        x = np.concatenate([self._outcomes[rows], self._resting(len(rows))], axis=1)
        return x, 1.0 - self.ended[rows].astype(float)[:, None]

    def _resting(self, count: int) -> np.ndarray:
        low, high = self.problem.actions.extent
        return np.tile((low + high) / 2, (count, 1))

    @functools.cached_property
    def _ends(self) -> Ends:
        known = self._posterior(self.ending_units, self.ending_logs, *self._ending_rows, True)
        return Ends(known.mean_function(), jnp.asarray(self._resting(1)[0]))

    def _fit(
        self,
        units: Units,
        habits: Habits,
        points: np.ndarray,
        targets: np.ndarray,
        start: np.ndarray,
        key: Any,
    ) -> np.ndarray:
        rows = in_blocks(points, targets, most=ROWS, blocks=BLOCKS, key=key)
        return fit(units, habits, *rows, start)

    def _posterior(
        self, units: Units, logs: np.ndarray, points: np.ndarray, targets: np.ndarray, scalar: bool
    ) -> Posterior:
        shape = units.shape(jnp.asarray(logs))
        count = len(points)
        if count > CENTRES:
            key = jax.random.fold_in(jax.random.key(self.seed), count)
            candidates = points[some_rows(count, 4 * CENTRES, key=key)]
            padded = np.pad(candidates, ((0, 4 * CENTRES - len(candidates)), (0, 0)), mode="edge")
            centres = padded[np.asarray(spread_out(shape, jnp.asarray(padded), CENTRES))]
            used = np.ones(CENTRES)
        else:
            centres = np.pad(points, ((0, CENTRES - count), (0, 0)))
            used = np.concatenate([np.ones(count), np.zeros(CENTRES - count)])
        return inducing_posterior(shape, centres, used, points, targets, scalar=scalar, block=BLOCK)


def _around(problem: Problem, states: Float[np.ndarray, "n m"]) -> Box:
    """The state space; on axes without bounds as far as states have been, and half as far again."""
    assert isinstance(problem.states, Box)
    low, high = (end.copy() for end in problem.states.bounds)
    for axis in problem.unbounded:
        own = states[:, axis] if len(states) else np.array([-1.0, 1.0])
        middle, half = (own.max() + own.min()) / 2, (own.max() - own.min()) / 2
        reach = (1 + MARGIN) * max(half, 1e-3)
        low[axis], high[axis] = middle - reach, middle + reach
    return Box(low, high, problem.states.periodic)
