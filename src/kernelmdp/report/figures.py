"""Figures as functions that take Matplotlib axes and the runs of one environment.

A line is the mean over all seeds of an agent with its setting, the band its 95 % interval. Where
only some seeds have come so far the line is dotted, and has no band. ``axes.legend()`` names them.
"""

import functools
import math
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.report.atomic_files import write_beside
from kernelmdp.report.reading import Runs, read
from kernelmdp.report.rendering import FORMATS, rendered
from kernelmdp.report.statistics import band
from kernelmdp.report.summaries import measure

#: A bound this many times the regret is drawn on a logarithmic axis.
FAR = 10.0
#: Distinct for the colour-blind too (Okabe and Ito), with a dash pattern of their own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A6D00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = "osD^vPX*"
#: Resamples of a band: its ends are drawn, not printed.
RESAMPLES = 500


def regret(axes: Any, runs: Runs) -> None:
    """Cumulative regret with the theorem's bound, or the words "not covered"."""
    _require_one(runs)
    if measure(runs) != "cumulative regret":
        return _said(axes, "cumulative regret", "no regret: the optimum is not known")
    tops = _lines(axes, runs, "cumulative_regret")
    uncovered, far = [], False
    for number, (name, trials) in enumerate(runs.contenders.items()):
        bounds = runs.bounds[runs.bounds["run"].isin(trials["run"])]
        if len(bounds):
            # Truths differ by the seed, and so do bounds: the largest holds for all of them.
            curve = bounds.groupby("episode")["bound"].max()
            curve = curve[np.isfinite(curve)]
            theorem = ", ".join(str(trials["bound"].iloc[0]).split(", ")[:2])
            label = f"{_cut(theorem)}: bound of {_cut(name)}"
            # Between two of its points the later one holds.
            style = {"linestyle": "--", "drawstyle": "steps-pre", "linewidth": 1.2}
            axes.plot(curve.index, curve, color=_colour(number), label=label, **style)
            far = far or bool(len(curve) and curve.iloc[-1] > FAR * tops[name] > 0)
        else:
            uncovered.append(name)
    if uncovered:
        who = "" if len(uncovered) == len(runs.contenders) else ", ".join(uncovered) + ": "
        axes.plot([], [], " ", label=f"{_cut(who)}bound: not covered")
    if far:
        _logarithmic(axes, positive=bool((runs.episodes["cumulative_regret"] > 0).all()))
    _finish(axes, "cumulative regret")


def returns(axes: Any, runs: Runs) -> None:
    """Return of every episode, and the optimum where one is known."""
    _require_one(runs)
    _lines(axes, runs, "return")
    optima = runs.curves("optimal_value")
    best = np.concatenate([curves.ravel() for curves in optima.values()])
    best = best[np.isfinite(best)]
    if len(best):
        # One line where all starts are worth the same; else the mean over what was met.
        many = np.ptp(best) > 1e-9 * (1 + np.abs(best).max())
        label = "optimum, mean over starts and seeds" if many else "optimum"
        axes.axhline(best.mean(), color="black", linestyle="--", linewidth=1.2, label=label)
    else:
        axes.plot([], [], " ", label="optimum: not known")
    _finish(axes, "return of the episode")


def gains(axes: Any, runs: Runs, role: str = "both") -> None:
    """Information gained about "reward", "transition" or both, and its certified maximum."""
    _require_one(runs)
    column = "gain" if role == "both" else f"gain_{role}"
    what = "gain" if role == "both" else f"gain about the {role}"
    if not (runs.episodes[column] > 0).any():
        return _said(axes, what, "nothing to gain, or no agent stores it")
    _lines(axes, runs, column)
    top = f"maximum_{column}"
    known = runs.bounds.dropna(subset=[top]) if top in runs.bounds else runs.bounds[:0]
    for number, (name, trials) in enumerate(runs.contenders.items()):
        own = known[known["run"].isin(trials["run"])]
        if len(own):
            curve = own.groupby("episode")[top].max()
            style = {"linestyle": "--", "drawstyle": "steps-pre", "linewidth": 1.2}
            label = f"certified maximum for {_cut(name)}"
            axes.plot(curve.index, curve, color=_colour(number), label=label, **style)
    if len(known):
        _logarithmic(axes)
    else:
        axes.plot([], [], " ", label="certified maximum: not computed")
    return _finish(axes, f"{what} (nats)")


def widths(axes: Any, runs: Runs, role: str = "transition") -> None:
    """How little was known of the reward or the transition where the episode went."""
    _require_one(runs)
    if not (runs.episodes[f"width_{role}"] > 0).any():
        return _said(axes, f"width for the {role}", "nothing unknown, or no agent stores it")
    _lines(axes, runs, f"width_{role}")
    _logarithmic(axes)
    return _finish(axes, f"width for the {role}")


def coverage(axes: Any, runs: Runs) -> None:
    """Share of seeds whose confidence sets, reward and transition, hold the truth."""
    _require_one(runs)
    if not _lines(axes, runs, "covered", bands=False):
        return _said(axes, "coverage", "no confidence sets, or no known truth")
    axes.set_ylim(-0.05, 1.05)
    return _finish(axes, "share of seeds inside both sets")


def times(axes: Any, runs: Runs) -> None:
    """Seconds of planning and learning in every episode."""
    _require_one(runs)
    if not _lines(axes, runs, "seconds", bands=False, middle=np.nanmedian):
        return _said(axes, "time", "no times are stored")
    _logarithmic(axes)
    return _finish(axes, "seconds an episode, median")


class Figure(NamedTuple):
    """A figure of the page: how it is drawn, and in words."""

    title: str
    caption: str
    column: str
    draw: Callable[..., None]


FIGURES = {
    "regret": Figure(
        "Cumulative regret",
        "Mean over seeds with its 95 % interval; dashed, the theorem's bound.",
        "cumulative_regret",
        regret,
    ),
    "return": Figure(
        "Return against the optimum",
        "Of every episode, with noise; dashed, the value of the best policy.",
        "return",
        returns,
    ),
    "gain": Figure(
        "Information gain",
        "What was learned so far of reward and transition, and the most that could have been.",
        "gain",
        gains,
    ),
    "width-transition": Figure(
        "Confidence width, transition",
        "Half-widths where the episode went, added up; standard deviations without sets.",
        "width_transition",
        widths,
    ),
    "width-reward": Figure(
        "Confidence width, reward",
        "The same for the reward.",
        "width_reward",
        functools.partial(widths, role="reward"),
    ),
    "coverage": Figure(
        "Coverage of the confidence sets",
        "Share of seeds whose sets of reward and transition both hold the truth.",
        "covered",
        coverage,
    ),
    "time": Figure(
        "Time per episode",
        "Planning and learning, median over seeds; the first episodes compile.",
        "seconds",
        times,
    ),
}


def described(figure: Figure, runs: Runs) -> str:
    """What a figure shows, for those who do not see it."""
    parts = []
    for name, curves in runs.curves(figure.column).items():
        known = np.isfinite(curves).any(axis=0)
        if known.any():
            last = int(np.flatnonzero(known)[-1])
            parts.append(f"{name} {np.nanmean(curves[:, last]):.3g} in episode {last + 1}")
    return f"{figure.title} by episode, a line for each agent. Last: {'; '.join(parts) or 'none'}."


def draw_regret(folders: Sequence[Any], path: Any) -> None:
    """Cumulative regret of runs of one environment as a file, or returns without an optimum.

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
    draw = regret if measure(runs) == "cumulative regret" else returns

    def titled(axes: Any) -> None:
        draw(axes, runs)
        axes.set_title(runs.envs[0])

    place = pathlib.Path(path)
    form = place.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        raise ArgumentError("path", "a file that ends in " + ", ".join(FORMATS), str(path))
    write_beside(place, rendered(titled, [form], width=7)[form])


def _require_one(runs: Runs) -> None:
    if len(runs.envs) != 1:
        raise ArgumentError("runs", "those of one environment", ", ".join(runs.envs) or "none")


def _lines(
    axes: Any,
    runs: Runs,
    column: str,
    *,
    bands: bool = True,
    middle: Callable[..., Any] = np.nanmean,
) -> dict[str, float]:
    """One line a contender; what it ends with. Contenders without such numbers have none."""
    last = {}
    for number, (name, curves) in enumerate(runs.curves(column).items()):
        curves = curves[np.isfinite(curves).any(axis=1)]
        if not curves.size:
            continue
        counts = np.isfinite(curves).sum(axis=0)
        episodes = np.arange(1, curves.shape[1] + 1)
        whole = counts == len(curves)
        values = np.full(len(episodes), math.nan)
        values[counts > 0] = middle(curves[:, counts > 0], axis=0)
        colour, seeds = _colour(number), len(runs.contenders[name])
        label = f"{_cut(name)}, {seeds} seed{'s' if seeds > 1 else ''}"
        style = {
            "marker": MARKERS[number % len(MARKERS)],
            "markersize": 4,
            # Off each other, and few: curves are told apart without their colours.
            "markevery": (number % 8 * max(1, len(episodes) // 40), max(1, len(episodes) // 5)),
        }
        inside = np.where(whole, values, math.nan)
        axes.plot(episodes, inside, color=colour, label=label, **style)
        if not whole.all():
            from_last = max(int(whole.sum()) - 1, 0)
            axes.plot(episodes[from_last:], values[from_last:], ":", color=colour)
        if bands and len(curves) > 1 and whole.any():
            found = band(curves[:, whole], seed=0, resamples=RESAMPLES)
            low_high = (found.low, found.high)
            axes.fill_between(episodes[whole], *low_high, color=colour, alpha=0.18, linewidth=0)
        last[name] = float(values[counts > 0][-1])
    return last


def _logarithmic(axes: Any, *, positive: bool = True) -> None:
    """A logarithmic axis with plain numbers at its ticks, also within one decade.

    One that goes on linearly below 1 where some numbers are not positive, as an oracle's regret.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    if not positive:
        axes.set_yscale("symlog", linthresh=1.0)
        return
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    decades = math.log10(high / low) if 0 < low < high else 0
    ticks = LogLocator(subs=(1,) if decades > 3 else (1, 2, 5)) if decades > 1 else MaxNLocator(5)
    axes.yaxis.set_major_locator(ticks)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def _finish(axes: Any, label: str) -> None:
    axes.set_xlabel("episode")
    axes.set_ylabel(label)
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=6)
    if axes.get_yscale() == "linear":
        axes.yaxis.get_major_locator().set_params(nbins=6)


def _said(axes: Any, label: str, words: str) -> None:
    """A figure that says why it is empty."""
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes, color="0.35")
    axes.set_xlabel("episode")
    axes.set_ylabel(label)
    axes.set_xticks([])
    axes.set_yticks([])


def _colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def _cut(text: str, most: int = 44) -> str:
    """A name short enough for a legend, in which nothing is mathematics or hidden."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    return (" " if short.startswith("_") else "") + short.replace("$", r"\$")
