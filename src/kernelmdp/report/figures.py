"""Figures: functions that take Matplotlib axes and the runs of one environment.

A line is the mean over all seeds of an agent with its setting, and the band is its 95 % interval.
At episodes that only some seeds have reached, the line is dotted and has no band. Call
``axes.legend()`` to show the names.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.report.axis_scales import checked_scale, make_logarithmic, set_scale
from kernelmdp.report.figure_files import SINGLE_WIDTH, write_figure
from kernelmdp.report.reading import Frame, Runs, read
from kernelmdp.report.statistics import confidence_band
from kernelmdp.report.summaries import measure

#: If a bound exceeds this many times the regret, the axis is logarithmic. On a linear axis the
#: regret would then hardly be visible.
LOG_RATIO = 10.0
#: Colours of lines. Colour-blind readers can tell them apart too (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A6D00", "#56B4E9", "#000000", "#7F7F7F")
#: Markers of lines, for print without colours.
MARKERS = "osD^vPX*"
#: Bootstrap resamples of a band. Fewer than for printed intervals suffice for a drawing.
RESAMPLES = 500


def regret(axes: Any, runs: Runs, *, vacuous: bool = False) -> None:
    """Draw cumulative regret with the theorem's bound, or the note "not covered".

    Args:
        axes: Axes of Matplotlib to draw on.
        runs: The runs of one environment.
        vacuous: Whether to draw bounds above all that can be lost too. By default only the legend
            tells of them.
    """
    _require_one_environment(runs)
    if measure(runs) != "cumulative regret":
        return _empty(axes, "cumulative regret", "no regret: the optimum is not known")
    last_regrets = draw_lines(axes, runs, "cumulative_regret")
    uncovered, far = [], False
    for number, (name, trials) in enumerate(runs.contenders.items()):
        bounds = runs.bounds[runs.bounds["run"].isin(trials["run"])]
        if len(bounds):
            # Truths and bounds may differ by seed. The largest bound holds for all of them.
            curve = bounds.groupby("episode")["bound"].max()
            curve = curve[np.isfinite(curve)]
            theorem = ", ".join(str(trials["bound"].iloc[0]).split(";")[0].split(", ")[:2])
            label = f"{shortened(theorem)}: bound of {shortened(name)}"
            if not vacuous and _is_vacuous(bounds):
                label += f" is vacuous ({curve.iloc[-1]:,.0f})" if len(curve) else " is vacuous"
                axes.plot([], [], " ", label=label)
                continue
            # Between two points of the curve, the later one holds.
            style = {"linestyle": "--", "drawstyle": "steps-pre", "linewidth": 1.2}
            axes.plot(curve.index, curve, color=line_colour(number), label=label, **style)
            far = far or bool(len(curve) and curve.iloc[-1] > LOG_RATIO * last_regrets[name] > 0)
        else:
            uncovered.append(name)
    if uncovered:
        prefix = "" if len(uncovered) == len(runs.contenders) else ", ".join(uncovered) + ": "
        axes.plot([], [], " ", label=f"{shortened(prefix)}bound: not covered")
    if far:
        make_logarithmic(axes, positive=bool((runs.episodes["cumulative_regret"] > 0).all()))
    label_axes(axes, "cumulative regret")


def _is_vacuous(bounds: Frame) -> bool:
    """Whether a bound says no more than that an episode cannot lose more than there is."""
    last = bounds.sort_values("episode").groupby("run", observed=True).tail(1)
    return "trivial" in last and bool((last["bound"] >= last["trivial"]).all())


def returns(axes: Any, runs: Runs) -> None:
    """Draw the return of every episode, and the optimal value if it is known.

    Where the optimal value differs between seeds or starts, the return relative to it is drawn.

    Args:
        axes: Axes of Matplotlib to draw on.
        runs: The runs of one environment.
    """
    _require_one_environment(runs)
    curves_by_name = runs.curves("optimal_value")
    optima = np.concatenate([curves.ravel() for curves in curves_by_name.values()])
    optima = optima[np.isfinite(optima)]
    several = len(optima) > 0 and np.ptp(optima) > 1e-9 * (1 + np.abs(optima).max())
    draw_lines(axes, runs, "return_gap" if several else "return")
    if len(optima):
        height, label = (0.0, "optimum of each instance") if several else (optima[0], "optimum")
        axes.axhline(height, color="black", linestyle="--", linewidth=1.2, label=label)
    else:
        axes.plot([], [], " ", label="optimum: not known")
    label_axes(axes, "return less the optimum" if several else "return of the episode")


def gains(axes: Any, runs: Runs, role: str = "both") -> None:
    """Draw the information gain, and its certified maximum if it is known.

    Args:
        axes: Axes of Matplotlib to draw on.
        runs: The runs of one environment.
        role: "reward", "transition" or "both".
    """
    _require_one_environment(runs)
    column = "gain" if role == "both" else f"gain_{role}"
    quantity = "gain" if role == "both" else f"gain about the {role}"
    if not (runs.episodes[column] > 0).any():
        return _empty(axes, quantity, "nothing to gain, or no agent stores it")
    draw_lines(axes, runs, column)
    maximum = f"maximum_{column}"
    known = runs.bounds.dropna(subset=[maximum]) if maximum in runs.bounds else runs.bounds[:0]
    for number, (name, trials) in enumerate(runs.contenders.items()):
        bounds = known[known["run"].isin(trials["run"])]
        if len(bounds):
            curve = bounds.groupby("episode")[maximum].max()
            style = {"linestyle": "--", "drawstyle": "steps-pre", "linewidth": 1.2}
            label = f"certified maximum for {shortened(name)}"
            axes.plot(curve.index, curve, color=line_colour(number), label=label, **style)
    if len(known):
        make_logarithmic(axes)
    else:
        axes.plot([], [], " ", label="certified maximum: not computed")
    return label_axes(axes, f"{quantity} (nats)")


def widths(axes: Any, runs: Runs, role: str = "transition") -> None:
    """Draw the uncertainty at the points that an episode visited, summed over its periods.

    Args:
        axes: Axes of Matplotlib to draw on.
        runs: The runs of one environment.
        role: "reward" or "transition".
    """
    _require_one_environment(runs)
    if not (runs.episodes[f"width_{role}"] > 0).any():
        return _empty(axes, f"width for the {role}", "nothing unknown, or no agent stores it")
    draw_lines(axes, runs, f"width_{role}")
    make_logarithmic(axes)
    return label_axes(axes, f"width for the {role}")


def coverage(axes: Any, runs: Runs) -> None:
    """Draw the share of seeds whose confidence sets of reward and transition contain the truth.

    Args:
        axes: Axes of Matplotlib to draw on.
        runs: The runs of one environment.
    """
    _require_one_environment(runs)
    if not draw_lines(axes, runs, "covered", bands=False):
        return _empty(axes, "coverage", "no confidence sets, or no known truth")
    axes.set_ylim(-0.05, 1.05)
    return label_axes(axes, "share of seeds inside both sets")


def times(axes: Any, runs: Runs) -> None:
    """Draw the seconds of planning and learning in every episode.

    Args:
        axes: Axes of Matplotlib to draw on.
        runs: The runs of one environment.
    """
    _require_one_environment(runs)
    if not draw_lines(axes, runs, "seconds", bands=False, average=np.nanmedian):
        return _empty(axes, "time", "no times are stored")
    make_logarithmic(axes)
    return label_axes(axes, "seconds an episode, median")


class Figure(NamedTuple):
    """A figure of the page.

    Attributes:
        title: The title.
        caption: What it shows.
        column: The column of ``episodes.csv`` that is drawn.
        draw: A function that draws it, from axes and runs.
        if_empty: Why a figure may have nothing to show.
        above_zero: Whether zeros say nothing.
        without_optimum: Another title and caption for runs whose optimum is not known.
    """

    title: str
    caption: str
    column: str
    draw: Callable[..., None]
    if_empty: str = "no episodes"
    above_zero: bool = False
    without_optimum: tuple[str, str] | None = None

    def texts(self, runs: Runs) -> tuple[str, str]:
        """Return the title and the caption.

        Args:
            runs: The runs of one environment.

        Returns:
            The texts that fit the runs.
        """
        if self.without_optimum is None or np.isfinite(runs.episodes["optimal_value"]).any():
            return self.title, self.caption
        return self.without_optimum

    def is_empty(self, runs: Runs) -> bool:
        """Return whether there is nothing to draw.

        Args:
            runs: The runs of one environment.

        Returns:
            Whether the column has no number, or only zeros where these say nothing.
        """
        values = runs.episodes[self.column]
        return not (values > 0 if self.above_zero else np.isfinite(values)).any()


#: The figures of the page, by the name of their files.
FIGURES = {
    "regret": Figure(
        "Cumulative regret",
        "Mean over seeds with its 95 % interval. Dashed: the theorem's bound.",
        "cumulative_regret",
        regret,
        if_empty="the optimum is not known",
    ),
    "return": Figure(
        "Return against the optimum",
        "The return of every episode, with noise. Dashed: the value of the optimal policy.",
        "return",
        returns,
        without_optimum=("Return", "The return of every episode. The optimum is not known."),
    ),
    "gain": Figure(
        "Information gain",
        "Information gained about reward and transition. Dashed: its certified maximum.",
        "gain",
        gains,
        if_empty="nothing to gain, or no agent stores it",
        above_zero=True,
    ),
    "width-transition": Figure(
        "Confidence width, transition",
        "Half-widths of the sets, summed over an episode; standard deviations without sets.",
        "width_transition",
        widths,
        if_empty="nothing unknown, or no agent stores it",
        above_zero=True,
    ),
    "width-reward": Figure(
        "Confidence width, reward",
        "The same for the reward.",
        "width_reward",
        functools.partial(widths, role="reward"),
        if_empty="nothing unknown, or no agent stores it",
        above_zero=True,
    ),
    "coverage": Figure(
        "Coverage of the confidence sets",
        "Share of seeds whose sets of reward and transition both contain the truth.",
        "covered",
        coverage,
        if_empty="no confidence sets, or no known truth",
    ),
    "time": Figure(
        "Time per episode",
        "Planning and learning, median over seeds. The first episodes compile programs.",
        "seconds",
        times,
        if_empty="no times are stored",
    ),
}


def alternative_text(figure: Figure, runs: Runs) -> str:
    """Describe a figure in words, for readers who cannot see it.

    Args:
        figure: The figure.
        runs: The runs that it shows.

    Returns:
        The text.
    """
    parts = []
    for name, curves in runs.curves(figure.column).items():
        known = np.isfinite(curves).any(axis=0)
        if known.any():
            last = int(np.flatnonzero(known)[-1])
            parts.append(f"{name} {np.nanmean(curves[:, last]):.3g} in episode {last + 1}")
    title, last_values = figure.texts(runs)[0], "; ".join(parts) or "none"
    return f"{title} by episode, a line for each agent. Last: {last_values}."


def draw_regret(
    folders: Sequence[Any],
    path: Any,
    *,
    scale: str = "auto",
    vacuous: bool = False,
    width: float = SINGLE_WIDTH,
) -> None:
    """Draw the cumulative regret of runs into a file; the returns if the optimum is unknown.

    Args:
        folders: Folders of runs of one environment, or folders that contain them.
        path: The file to write. Its name ends in .pdf, .svg or .png.
        scale: "linear", "log" or "log-log" axes; "auto" chooses.
        vacuous: Whether to draw bounds above all that can be lost too.
        width: The width in inches.

    Raises:
        ArgumentError: If there is no episode, or the name of the file has another ending.

    >>> import pathlib, tempfile
    >>> from kernelmdp.experiments import RunConfig, run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = run(RunConfig("riverswim", "random"), folder, episodes=2)
    ...     draw_regret([folder], f"{folder}/regret.svg")
    ...     pathlib.Path(folder, "regret.svg").exists()
    True
    """
    runs = read(*folders)
    if not len(runs.episodes):
        raise ArgumentError(
            "folders", "a run of at least one episode", ", ".join(map(str, folders))
        )
    checked_scale(scale)
    known = measure(runs) == "cumulative regret"
    draw = functools.partial(regret, vacuous=vacuous) if known else returns

    def draw_with_title(axes: Any) -> None:
        draw(axes, runs)
        set_scale(axes, scale)
        axes.set_title(runs.envs[0])

    write_figure(draw_with_title, path, width=width)


def _require_one_environment(runs: Runs) -> None:
    if len(runs.envs) != 1:
        raise ArgumentError("runs", "those of one environment", ", ".join(runs.envs) or "none")


def draw_lines(
    axes: Any,
    runs: Runs,
    column: str,
    *,
    bands: bool = True,
    average: Callable[..., Any] = np.nanmean,
) -> dict[str, float]:
    """Draw a line for each contender that has such numbers.

    Args:
        axes: Axes of Matplotlib to draw on.
        runs: The runs of one environment.
        column: The column of the episodes.
        bands: Whether to draw the 95 % intervals over seeds.
        average: How seeds are averaged.

    Returns:
        The last value of each contender.
    """
    last = {}
    for number, (name, curves) in enumerate(runs.curves(column).items()):
        curves = curves[np.isfinite(curves).any(axis=1)]
        if not curves.size:
            continue
        counts = np.isfinite(curves).sum(axis=0)
        episodes = np.arange(1, curves.shape[1] + 1)
        all_seeds = counts == len(curves)
        values = np.full(len(episodes), math.nan)
        values[counts > 0] = average(curves[:, counts > 0], axis=0)
        colour, seeds = line_colour(number), len(runs.contenders[name])
        label = f"{shortened(name)}, {seeds} seed{'s' if seeds > 1 else ''}"
        style = {
            "marker": MARKERS[number % len(MARKERS)],
            "markersize": 4,
            # Few markers, at different episodes for each line.
            "markevery": (number % 8 * max(1, len(episodes) // 40), max(1, len(episodes) // 5)),
        }
        solid = np.where(all_seeds, values, math.nan)
        axes.plot(episodes, solid, color=colour, label=label, **style)
        if not all_seeds.all():
            dotted_from = max(int(all_seeds.sum()) - 1, 0)
            axes.plot(episodes[dotted_from:], values[dotted_from:], ":", color=colour)
        if bands and len(curves) > 1 and all_seeds.any():
            band = confidence_band(curves[:, all_seeds], seed=0, resamples=RESAMPLES)
            low_high = (band.low, band.high)
            axes.fill_between(episodes[all_seeds], *low_high, color=colour, alpha=0.18, linewidth=0)
        last[name] = float(values[counts > 0][-1])
    return last


def label_axes(axes: Any, label: str) -> None:
    """Name the axes of a figure over episodes, with few ticks.

    Args:
        axes: Axes of Matplotlib.
        label: What is drawn upwards.
    """
    axes.set_xlabel("episode")
    axes.set_ylabel(label)
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=6)
    if axes.get_yscale() == "linear":
        axes.yaxis.get_major_locator().set_params(nbins=6)


def _empty(axes: Any, label: str, reason: str) -> None:
    """Draw an empty figure that says why it is empty."""
    axes.text(0.5, 0.5, reason, ha="center", va="center", transform=axes.transAxes, color="0.35")
    axes.set_xlabel("episode")
    axes.set_ylabel(label)
    axes.set_xticks([])
    axes.set_yticks([])


def line_colour(number: int) -> str:
    """Return the colour of a line.

    Args:
        number: The number of the line.

    Returns:
        The colour. Lines beyond the last colour start again with the first.
    """
    return COLOURS[number % len(COLOURS)]


def shortened(text: str, length: int = 44) -> str:
    """Shorten a name for a legend. Matplotlib must not read it as mathematics or hide it.

    Args:
        text: The name.
        length: The most letters.

    Returns:
        The name, cut at the end if it is longer.

    >>> shortened("a long name", 6)
    'a lon…'
    """
    short = text if len(text) <= length else text[: length - 1] + "…"
    return (" " if short.startswith("_") else "") + short.replace("$", r"\$")
