"""What a log tells before anything is learned from it: coverage, gaps, noise and delays."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from kernelmdp.domains import Domain
from kernelmdp.logs.logged_episodes import LoggedEpisode

#: Longest delay of an action that is looked for, in steps.
LONGEST_DELAY = 5
#: How much more of the changes a later action must explain than the present one.
DELAY_GAIN = 0.1
#: A share of the changes below this is rounding.
ROUNDING = 1e-12
#: A column whose spread is below this share of its axis is constant.
CONSTANT = 1e-6


@dataclasses.dataclass(frozen=True)
class LogReport:
    """What is in a log. Print it before you let an agent learn from it.

    Attributes:
        rows: The number of steps.
        episodes: The number of pieces that they form.
        names: The names of the columns: states first, then actions.
        lowest: Their lowest values.
        highest: Their highest values.
        coverage: The share of the axis between these values. NaN for axes without bounds.
        noise: For each state column, the standard deviation of noise that changes from row to row,
            at most. Fast motion counts as noise here.
        constant: Names of columns that do not change.
        outside: For each column, the number of values outside the bounds of its axis.
        delays: By state column, the delay of the action that explains its changes best, if that is
            not 0.

    >>> from kernelmdp.domains import Box
    >>> steps = np.arange(12.0)[:, None]
    >>> piece = LoggedEpisode(steps, np.zeros((11, 1)), np.zeros(11), False)
    >>> print(LogReport.of([piece], ("x",), ("u",), Box([0], [22]), Box([-1], [1])))
    11 steps in 1 episode
    x: 0 to 11, 50 % of its axis, noise at most 0
    u: 0 to 0, 0 % of its axis, constant
    """

    rows: int
    episodes: int
    names: tuple[str, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    coverage: tuple[float, ...]
    noise: tuple[float, ...]
    constant: tuple[str, ...]
    outside: tuple[int, ...]
    delays: dict[str, int]

    @staticmethod
    def of(
        episodes: Sequence[LoggedEpisode],
        states: tuple[str, ...],
        actions: tuple[str, ...],
        state_space: Domain,
        action_space: Domain,
        unbounded: Sequence[int] = (),
    ) -> "LogReport":
        """Look at the pieces of a log.

        Args:
            episodes: The pieces.
            states: The names of the state's columns.
            actions: The names of the action's columns.
            state_space: The state space, for bounds.
            action_space: The action space.
            unbounded: Axes of the state without bounds.

        Returns:
            The report.
        """
        m = len(states)
        visited = np.concatenate([each.states for each in episodes] or [np.zeros((0, m))])
        taken = np.concatenate([each.actions for each in episodes] or [np.zeros((0, len(actions)))])
        low, high = (
            np.concatenate(ends)
            for ends in zip(state_space.bounds, action_space.bounds, strict=True)
        )
        columns = [*visited.T, *taken.T]
        lowest, highest = ([float(f(c)) if len(c) else np.nan for c in columns] for f in (min, max))
        widths = np.array(highest) - np.array(lowest)
        axes = high - low
        axes[list(unbounded)] = np.nan
        usual = np.where(np.isnan(axes), np.maximum(np.abs(highest), 1e-300), axes)
        names = (*states, *actions)
        beyond = [
            0 if np.isnan(axis) else int(np.sum((c < a - 1e-9) | (c > b + 1e-9)))
            for c, a, b, axis in zip(columns, low, high, axes, strict=True)
        ]
        return LogReport(
            rows=len(taken),
            episodes=len(episodes),
            names=names,
            lowest=tuple(lowest),
            highest=tuple(highest),
            coverage=tuple(np.minimum(widths / axes, 1.0).tolist()),
            noise=tuple(_noise(episodes, j) for j in range(m)),
            constant=tuple(n for n, w in zip(names, widths / usual, strict=True) if w < CONSTANT),
            outside=tuple(beyond),
            delays={
                name: delay for j, name in enumerate(states) if (delay := _delay(episodes, j)) > 0
            },
        )

    def __str__(self) -> str:
        pieces = "episode" if self.episodes == 1 else "episodes"
        lines = [f"{self.rows} steps in {self.episodes} {pieces}"]
        for j, name in enumerate(self.names):
            text = f"{name}: {self.lowest[j]:.4g} to {self.highest[j]:.4g}"
            if np.isfinite(self.coverage[j]):
                text += f", {100 * self.coverage[j]:.0f} % of its axis"
            if name in self.constant:
                text += ", constant"
            elif j < len(self.noise):
                text += f", noise at most {self.noise[j]:.2g}"
            if self.outside[j]:
                text += f", {self.outside[j]} values outside of its axis"
            if name in self.delays:
                steps = "1 step" if self.delays[name] == 1 else f"{self.delays[name]} steps"
                text += f", actions act {steps} later: try delay="
                text += str(self.delays[name])
            lines.append(text)
        return "\n".join(lines)


def _noise(episodes: Sequence[LoggedEpisode], axis: int) -> float:
    """The deviation of white noise, from second differences, whose variance is six times as large.

    Smooth motion has small second differences.
    """
    seconds = [np.diff(each.states[:, axis], 2) for each in episodes]
    values = np.concatenate(seconds or [np.zeros(0)])
    return float(np.sqrt(np.mean(values**2) / 6.0)) if len(values) else np.nan


def _delay(episodes: Sequence[LoggedEpisode], axis: int) -> int:
    """The lag of the actions that explain the changes of a coordinate best; 0 if it is unclear."""
    shares = []
    for lag in range(LONGEST_DELAY + 1):
        first = max(lag, 1)  # the last change tells a velocity that is not measured
        used = [each for each in episodes if len(each.actions) > first + 1]
        if not used:
            break
        changes = np.concatenate([np.diff(each.states[:, axis])[first:] for each in used])
        last_changes = [np.diff(each.states, axis=0)[first - 1 : -1] for each in used]
        states = np.concatenate([each.states[first:-1] for each in used])
        states = np.hstack([states, np.concatenate(last_changes)])
        acts = np.concatenate([e.actions[first - lag : len(e.actions) - lag] for e in used])
        shares.append(_explained(changes, states, acts))
    best = int(np.argmax(shares)) if shares else 0
    return best if shares and shares[best] > shares[0] + DELAY_GAIN else 0


def _explained(changes: np.ndarray, states: np.ndarray, actions: np.ndarray) -> float:
    """The share of what states leave of the changes, in a linear regression, that actions explain.

    It is corrected for the number of coefficients.
    """
    n, d, k = len(changes), states.shape[1] + 1, actions.shape[1]
    if n <= 2 * (d + k):
        return 0.0
    ones = np.ones((n, 1))
    squares = []
    for design in (np.hstack([ones, states]), np.hstack([ones, states, actions])):
        scaled = design / np.maximum(np.abs(design).max(axis=0), 1e-300)
        rest = changes - scaled @ np.linalg.lstsq(scaled, changes, rcond=1e-10)[0]
        squares.append(float(rest @ rest))
    if squares[0] <= ROUNDING * float(changes @ changes):
        return 0.0  # there is nothing left to explain
    return 1 - squares[1] / squares[0] * (n - d) / (n - d - k)
