"""The part of a page about constraints: a table, and figures of limits, fallback and risk."""

import functools
import pathlib
from typing import Any

import numpy as np

from kernelmdp.experiments.safe_sets import SAFE_LAYER
from kernelmdp.report.figure_files import embed_figure
from kernelmdp.report.figures import alternative_text
from kernelmdp.report.maps import Maps, read_maps
from kernelmdp.report.reading import Runs
from kernelmdp.report.rendering import render, render_panels
from kernelmdp.report.safety_figures import (
    SAFETY_FIGURES,
    draw_safe_interval,
    draw_safe_set,
    has_constraints,
    with_totals,
)
from kernelmdp.report.safety_records import SafetyRecord, draw_paths, draw_ranges, read_safety

#: What the page says of the ranges by episode.
RANGE_CAPTION = "Least and largest value of every episode, with the limits (black)."
#: What it says of the paths by period.
PATH_CAPTION = "Some episodes in full. Circles: steps of the fallback, if they are known."
#: What it says of the sets believed safe.
SAFE_CAPTION = (
    "States from which the planned risk of a violation is within what the coming episode may "
    "take. Dashed: limits of the state."
)


def safety_section(runs: Runs, folder: pathlib.Path, name: str) -> dict[str, Any] | None:
    """Make the part of a page about the constraints of an environment's runs.

    Args:
        runs: The runs of one environment.
        folder: The folder of the figures. They are written.
        name: The beginning of the names of their files.

    Returns:
        Rows of the table, figures, and figures of one seed of each contender. None if the runs
        have no constraints.
    """
    if not has_constraints(runs):
        return None
    totals = with_totals(runs)
    figures = []
    for key, figure in SAFETY_FIGURES.items():
        files = render(functools.partial(figure.draw, runs=totals))
        alt = alternative_text(figure, totals)
        fields: Any = {"title": figure.title, "caption": figure.caption, "alt": alt}
        figures.append(embed_figure(files, folder, f"{name}-{key}", **fields))
    return {"rows": _rows(totals), "figures": figures, "records": _records(runs, folder, name)}


def count_figures(section: dict[str, Any] | None) -> int:
    """Count the figures of a part about constraints.

    Args:
        section: What ``safety_section`` returned.

    Returns:
        The number of figures.

    >>> count_figures(None)
    0
    """
    if section is None:
        return 0
    return len(section["figures"]) + sum(len(record["figures"]) for record in section["records"])


def _rows(runs: Runs) -> list[dict[str, Any]]:
    """Return a row for each contender that counted violations."""
    rows = []
    by_run = runs.episodes.groupby("run", observed=True, sort=False)
    last_risks = by_run["total_risk"].last()
    for name, trials in runs.contenders.items():
        episodes = runs.episodes[runs.episodes["run"].isin(trials["run"])]
        judged = episodes[episodes["violations"].notna()]
        if len(judged):
            rows.append(
                {
                    "agent": name,
                    "seeds": judged["run"].nunique(),
                    "episodes": len(judged),
                    "broken": int((judged["violations"] > 0).sum()),
                    "steps": int(judged["violations"].sum()),
                    "risk": float(last_risks.reindex(judged["run"].unique()).mean()),
                    "fallback": float(judged["fallback_share"].mean()),
                }
            )
    return rows


def _records(runs: Runs, folder: pathlib.Path, name: str) -> list[dict[str, Any]]:
    """Return the figures of one seed for each contender that has a record."""
    sections: list[dict[str, Any]] = []
    for contender, trials in runs.contenders.items():
        for trial in trials.sort_values("seed").itertuples():
            record = read_safety(trial.folder)
            if record is not None:
                files = f"{name}-limits-{len(sections) + 1}"
                figures = _limit_figures(record, folder, files)
                maps = read_maps(trial.folder)
                if maps is not None and SAFE_LAYER in maps.names:
                    figures.append(_safe_figure(maps, record, folder, f"{files}-safe"))
                sections.append({"agent": contender, "seed": trial.seed, "figures": figures})
                break
    return sections


def _limit_figures(record: SafetyRecord, folder: pathlib.Path, name: str) -> list[dict[str, Any]]:
    figures = []
    for number, quantity in enumerate(record.quantities):
        shown = ", ".join(map(str, record.path_episodes))
        texts = {
            "range": ("by episode", RANGE_CAPTION, record.describe(number)),
            "path": ("by period", PATH_CAPTION, f"{quantity} by period in episodes {shown}."),
        }
        draws = {"range": draw_ranges, "path": draw_paths}
        for kind, (what, caption, alt) in texts.items():
            files = render(functools.partial(draws[kind], record=record, quantity=number))
            fields: Any = {"title": f"{quantity}, {what}", "caption": caption, "alt": alt}
            figures.append(embed_figure(files, folder, f"{name}-{number + 1}-{kind}", **fields))
    return figures


def _safe_figure(
    maps: Maps, record: SafetyRecord, folder: pathlib.Path, name: str
) -> dict[str, Any]:
    plane = maps.states.shape[1] == 2
    if not plane:
        files = render(functools.partial(draw_safe_interval, maps=maps, record=record))
    else:
        frames = range(len(maps.episodes))
        draw = functools.partial(draw_safe_set, maps=maps, record=record)
        files = render_panels([functools.partial(draw, frame=frame) for frame in frames])
    shares = np.nanmean(maps.layers[:, maps.names.index(SAFE_LAYER)], axis=1)
    pairs = zip(maps.episodes, shares, strict=True)
    parts = [f"{share:.0%} of the states after {episodes} episodes" for episodes, share in pairs]
    alt = "Believed safe: " + ", ".join(parts) + "."
    fields: Any = {"title": "The set believed safe", "caption": SAFE_CAPTION, "alt": alt}
    return embed_figure(files, folder, name, wide=plane, **fields)
