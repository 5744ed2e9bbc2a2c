"""How close runs came to their limits, from the file ``safety.npz`` of a run's folder."""

import dataclasses
import pathlib
from typing import Any

import numpy as np

from kernelmdp import archive
from kernelmdp.errors import ArgumentError
from kernelmdp.experiments.safety_record import SAFETY_FILE
from kernelmdp.report.figures import label_axes, line_colour, shortened

#: The colour of episodes and states that break a limit.
BROKEN_COLOUR = "#D55E00"
#: The colour of what keeps its limits.
KEPT_COLOUR = "#0072B2"
#: Up to this many episodes each has a bar of its own. More of them are drawn as a band.
MAX_BARS = 60


@dataclasses.dataclass(frozen=True)
class SafetyRecord:
    """Q constrained quantities over E episodes, with their limits, and K episodes in full.

    Attributes:
        quantities: Names of the quantities, with units.
        state_coordinates: The number of each one's coordinate of the state; −1 for others, (Q,).
        lows: The least value in each episode, (E, Q).
        highs: The largest value in each episode, (E, Q).
        limit_quantities: The number of the quantity of each limit, (L,).
        limit_names: The limits as text.
        limits: The limits, (L,).
        limit_signs: 1 for upper limits, −1 for lower ones, (L,).
        path_episodes: Numbers of the episodes in full, (K,).
        paths: Values at the visited states, or at the steps, (K, H + 1, Q). Missing ones are NaN.
        fallback_acts: Whether the fallback acted at each step, (K, H). NaN if that is unknown.
    """

    quantities: tuple[str, ...]
    state_coordinates: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    limit_quantities: np.ndarray
    limit_names: tuple[str, ...]
    limits: np.ndarray
    limit_signs: np.ndarray
    path_episodes: np.ndarray
    paths: np.ndarray
    fallback_acts: np.ndarray

    def limits_of(self, quantity: int) -> list[tuple[str, float, float]]:
        """List the limits of a quantity.

        Args:
            quantity: The number of the quantity.

        Returns:
            The text, the value and the sign of each limit.
        """
        numbers = np.flatnonzero(self.limit_quantities == quantity)
        return [
            (self.limit_names[n], float(self.limits[n]), float(self.limit_signs[n]))
            for n in numbers
        ]

    def broken(self, quantity: int) -> np.ndarray:
        """Tell in which episodes a quantity breaks one of its limits.

        Args:
            quantity: The number of the quantity.

        Returns:
            Whether a limit is broken, (E,).
        """
        broken = np.zeros(len(self.lows), bool)
        for _, limit, sign in self.limits_of(quantity):
            ends = self.highs if sign > 0 else self.lows
            broken |= sign * (ends[:, quantity] - limit) > 0
        return broken

    def describe(self, quantity: int) -> str:
        """Describe the range of a quantity in words, for readers who cannot see its figure.

        Args:
            quantity: The number of the quantity.

        Returns:
            The text.
        """
        low, high = self.lows[:, quantity].min(), self.highs[:, quantity].max()
        names = ", ".join(name for name, _, _ in self.limits_of(quantity))
        broken = int(self.broken(quantity).sum())
        return (
            f"{self.quantities[quantity]} over {len(self.lows)} episodes: from {low:.3g} to "
            f"{high:.3g}. Limits: {names}. Episodes beyond a limit: {broken}."
        )


def read_safety(folder: Any) -> SafetyRecord | None:
    """Read the record of a run.

    Args:
        folder: The run's folder.

    Returns:
        The record, or None if it has none.

    Raises:
        ArgumentError: If the file cannot be read.
    """
    path = pathlib.Path(folder) / SAFETY_FILE
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {field.name: file[field.name] for field in dataclasses.fields(SafetyRecord)}
    except archive.READ_ERRORS as error:
        raise ArgumentError("folder", f"a record that can be read ({error})", path) from None
    for name in ("quantities", "limit_names"):
        arrays[name] = tuple(map(str, arrays[name]))
    return SafetyRecord(**arrays)


def draw_ranges(axes: Any, record: SafetyRecord, quantity: int) -> None:
    """Draw the range of a quantity in each episode, with its limits.

    Args:
        axes: Axes of Matplotlib to draw on.
        record: The record.
        quantity: The number of the quantity.
    """
    low, high = record.lows[:, quantity], record.highs[:, quantity]
    episodes, broken = np.arange(1, len(low) + 1), record.broken(quantity)
    if len(low) <= MAX_BARS:
        for which, colour, name in (
            (~broken, KEPT_COLOUR, "range, limits kept"),
            (broken, BROKEN_COLOUR, "range, a limit broken"),
        ):
            if which.any():
                bars = (episodes[which], low[which], high[which])
                axes.vlines(*bars, color=colour, linewidth=3, label=name)
                # A bar without length would be invisible.
                ends = np.r_[low[which], high[which]]
                axes.plot(np.tile(episodes[which], 2), ends, "_", color=colour, ms=7)
    else:
        axes.fill_between(episodes, low, high, color=KEPT_COLOUR, alpha=0.35, label="range")
        label = "a limit broken"
        for _, limit, sign in record.limits_of(quantity):
            ends = high if sign > 0 else low
            beyond = sign * (ends - limit) > 0
            if beyond.any():
                axes.plot(episodes[beyond], ends[beyond], "x", color=BROKEN_COLOUR, label=label)
                label = "_nolegend_"
    draw_limits(axes, record, quantity)
    label_axes(axes, shortened(record.quantities[quantity]))


def draw_paths(axes: Any, record: SafetyRecord, quantity: int) -> None:
    """Draw the paths of a quantity in a few episodes, with marks where the fallback acted.

    Args:
        axes: Axes of Matplotlib to draw on.
        record: The record.
        quantity: The number of the quantity.
    """
    periods = np.arange(1, record.paths.shape[1] + 1)
    mark: Any = {"linestyle": "", "marker": "o", "mfc": "white", "mew": 1.2, "ms": 5}
    for number, (episode, path) in enumerate(
        zip(record.path_episodes, record.paths[:, :, quantity], strict=True)
    ):
        colour = line_colour(number)
        axes.plot(periods, path, color=colour, label=f"episode {episode}")
        acts = np.flatnonzero(record.fallback_acts[number] == 1)
        axes.plot(periods[acts], path[acts], mec=colour, **mark)
    if np.isfinite(record.fallback_acts).any():
        axes.plot([], [], mec="black", label="the fallback acts", **mark)
    draw_limits(axes, record, quantity)
    label_axes(axes, shortened(record.quantities[quantity]))
    axes.set_xlabel("period")


def draw_limits(axes: Any, record: SafetyRecord, quantity: int) -> None:
    """Draw the limits of a quantity as dashed lines.

    Args:
        axes: Axes of Matplotlib to draw on.
        record: The record.
        quantity: The number of the quantity.
    """
    for number, (name, limit, _) in enumerate(record.limits_of(quantity)):
        style = {"color": "black", "linewidth": 1.2, "linestyle": ("--", ":")[number % 2]}
        axes.axhline(limit, label=shortened(name), **style)
