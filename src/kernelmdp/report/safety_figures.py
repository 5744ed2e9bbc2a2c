"""Figures of runs with constraints: the fallback, risks and violations, and sets believed safe."""

from typing import Any

import numpy as np

from kernelmdp.experiments.safe_sets import SAFE_LAYER
from kernelmdp.report.figures import Figure, draw_lines, label_axes, line_colour, shortened
from kernelmdp.report.maps import Maps
from kernelmdp.report.reading import Runs
from kernelmdp.report.safety_records import SafetyRecord

#: Colours of states that are believed safe, and of others.
SAFE_COLOURS = ("#E3E6EA", "#009E73")


def has_constraints(runs: Runs) -> bool:
    """Tell whether a run was judged by constraints.

    Args:
        runs: The runs.

    Returns:
        Whether some run counted violations.
    """
    return "violations" in runs.episodes and bool(runs.episodes["violations"].notna().any())


def with_totals(runs: Runs) -> Runs:
    """Add sums over episodes: of planned risks, and of episodes with a violation.

    An episode whose plan knows no risk adds 0, as in the agent's own sum. A run in which no plan
    knows a risk has no sum.

    Args:
        runs: Runs with constraints.

    Returns:
        The runs, whose episodes have the columns ``total_risk`` and ``total_violations`` too.
    """
    episodes = runs.episodes.copy()
    by_run = episodes.groupby("run", observed=True, sort=False)
    known = by_run["planned_risk"].transform("count") > 0
    risks = episodes["planned_risk"].fillna(0.0).where(known)
    broken = (episodes["violations"] > 0).astype(float).where(episodes["violations"].notna())
    for name, column in (("total_risk", risks), ("total_violations", broken)):
        episodes[name] = column.groupby(episodes["run"], observed=True, sort=False).cumsum()
    return Runs(episodes, runs.trials, runs.bounds, runs.notes, runs.studies)


def risks(axes: Any, runs: Runs) -> None:
    """Draw the sum of planned risks, and the number of episodes with a violation.

    Args:
        axes: Axes of Matplotlib to draw on.
        runs: Runs of one environment, from ``with_totals``.
    """
    draw_lines(axes, runs, "total_violations")
    for number, (name, curves) in enumerate(runs.curves("total_risk").items()):
        known = curves[np.isfinite(curves).any(axis=1)]
        if known.size:
            means = known.mean(axis=0)  # NaN where a seed has not come so far
            label = f"planned risk of {shortened(name)}"
            episodes = np.arange(1, len(means) + 1)
            axes.plot(episodes, means, "--", color=line_colour(number), label=label)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    label_axes(axes, "sum over episodes")


def fallback_shares(axes: Any, runs: Runs) -> None:
    """Draw the share of steps in which the fallback acted.

    Args:
        axes: Axes of Matplotlib to draw on.
        runs: Runs of one environment, with constraints.
    """
    draw_lines(axes, runs, "fallback_share")
    axes.set_ylim(-0.05, 1.05)
    label_axes(axes, "share of steps")


#: Figures of runs with constraints, by the name of their files.
SAFETY_FIGURES = {
    "risk": Figure(
        "Planned risk and violations",
        "Number of episodes with a violation so far, mean over seeds. Dashed: the sum of the "
        "planned probabilities of a violation. If these are valid bounds, it is above on average.",
        "total_violations",
        risks,
    ),
    "fallback": Figure(
        "Where the fallback acted",
        "Share of the steps of every episode, mean over seeds.",
        "fallback_share",
        fallback_shares,
    ),
}


def draw_safe_set(axes: Any, maps: Maps, record: SafetyRecord | None, *, frame: int) -> None:
    """Draw the set of states believed safe, over two coordinates, after some episodes.

    Args:
        axes: Axes of Matplotlib to draw on.
        maps: The maps, with the layer of safe states.
        record: The record of the run, whose limits are drawn; or None.
        frame: Which number of episodes: a position in ``maps.episodes``.
    """
    from matplotlib.colors import ListedColormap

    values = maps.layers[frame, maps.names.index(SAFE_LAYER)]
    style: Any = {"cmap": ListedColormap(SAFE_COLOURS), "vmin": 0, "vmax": 1}
    if maps.shape is None:
        axes.scatter(*maps.states.T, c=values, **style)
    else:
        grid = [column.reshape(maps.shape) for column in maps.states.T]
        image = axes.pcolormesh(*grid, values.reshape(maps.shape), shading="nearest", **style)
        image.set_rasterized(True)
    visited = maps.visited[maps.visited_episode <= maps.episodes[frame]]
    axes.plot(*visited.T, "o", color="white", mec="black", mew=0.4, ms=2)
    for coordinate, limit in _state_limits(record):
        draw = axes.axvline if coordinate == 0 else axes.axhline
        draw(limit, color="black", linestyle="--", linewidth=1.2)
    axes.grid(False)
    axes.set_title(f"after {maps.episodes[frame]} episodes")
    axes.set_xlabel(_name_of(record, 0, "state[0]"))
    axes.set_ylabel(_name_of(record, 1, "state[1]"))


def draw_safe_interval(axes: Any, maps: Maps, record: SafetyRecord | None) -> None:
    """Draw the sets of states believed safe, for states of one coordinate: a row for each map.

    Args:
        axes: Axes of Matplotlib to draw on.
        maps: The maps, with the layer of safe states.
        record: The record of the run, whose limits are drawn; or None.
    """
    layer = maps.layers[:, maps.names.index(SAFE_LAYER)]
    order = np.argsort(maps.states[:, 0])
    states = maps.states[order, 0]
    edges = np.r_[states[0], (states[1:] + states[:-1]) / 2, states[-1]]
    names = ("not believed safe", "believed safe")
    for number, (name, colour) in enumerate(zip(names, SAFE_COLOURS, strict=True)):
        for row, values in enumerate(layer):
            spans = _spans(values[order] == number, edges)
            label = name if row == 0 else None
            axes.broken_barh(spans, (row - 0.35, 0.7), color=colour, linewidth=0, label=label)
    for row, episodes in enumerate(maps.episodes):
        first = 0 if row == 0 else maps.episodes[row - 1]
        since = (maps.visited_episode > first) & (maps.visited_episode <= episodes)
        label = "visited since the row below" if row == 0 else None
        visited = maps.visited[since, 0]
        axes.plot(visited, np.full(len(visited), row), "k|", ms=6, mew=0.8, label=label)
    for _, limit in _state_limits(record):
        axes.axvline(limit, color="black", linestyle="--", linewidth=1.2)
    axes.set_yticks(np.arange(len(maps.episodes)), [str(each) for each in maps.episodes])
    axes.set_xlabel(_name_of(record, 0, "state"))
    axes.set_ylabel("after episodes")
    axes.grid(False)


def _spans(which: np.ndarray, edges: np.ndarray) -> list[tuple[float, float]]:
    """Return the beginnings and widths of the runs of True among cells with these edges."""
    changes = np.flatnonzero(np.diff(np.r_[False, which, False].astype(int)))
    pairs = zip(edges[changes[::2]], edges[changes[1::2]], strict=True)
    return [(float(left), float(right - left)) for left, right in pairs]


def _name_of(record: SafetyRecord | None, coordinate: int, default: str) -> str:
    """Return the name of a coordinate of the state, if it is constrained."""
    if record is None or coordinate not in record.state_coordinates:
        return default
    return shortened(record.quantities[record.state_coordinates.tolist().index(coordinate)])


def _state_limits(record: SafetyRecord | None) -> list[tuple[int, float]]:
    """Return coordinates of the state with their limits."""
    if record is None:
        return []
    coordinates = record.state_coordinates[record.limit_quantities]
    pairs = zip(coordinates.tolist(), record.limits.tolist(), strict=True)
    return [(coordinate, limit) for coordinate, limit in pairs if coordinate >= 0]
