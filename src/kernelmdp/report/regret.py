"""Cumulative regret of stored runs as a figure, and its growth."""

import csv
import math
import pathlib
import tomllib
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError

#: A bound this many times the regret is drawn on a logarithmic axis.
FAR = 50.0


def read_columns(folder: Any) -> dict[str, np.ndarray]:
    """The columns of a run's ``episodes.csv``."""
    path = pathlib.Path(folder) / "episodes.csv"
    if not path.is_file():
        raise ArgumentError("folder", "the folder of a run, with episodes.csv", str(folder))
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = rows[0].keys() if rows else ()
    return {name: np.array([float(row[name]) for row in rows]) for name in names}


def read_bound(folder: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """A theorem's curve beside a run: numbers of episodes and the bound after each."""
    path = pathlib.Path(folder) / "bound.csv"
    if not path.is_file():
        return None
    with path.open(newline="") as file:
        rows = [(float(row["episode"]), float(row["bound"])) for row in csv.DictReader(file)]
    return np.array([row[0] for row in rows]), np.array([row[1] for row in rows])


def slope(episodes: np.ndarray, cumulative: np.ndarray) -> float:
    """Of log cumulative regret against log episode over the last half; 1 is linear growth."""
    half = len(episodes) // 2
    x, y = episodes[half:], cumulative[half:]
    good = y > 0
    if good.sum() < 2:
        return math.nan
    return float(np.polyfit(np.log(x[good]), np.log(y[good]), 1)[0])


def draw_regret(folders: Sequence[Any], path: Any) -> None:
    """One line a run: cumulative regret, or returns where no optimum is known.

    A dashed one beside it is the bound of the theorem that covers the run; of a single run that
    none covers the figure says why.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    label, far = "cumulative regret", False
    for folder in folders:
        columns = read_columns(folder)
        with (pathlib.Path(folder) / "config.toml").open("rb") as file:
            config = tomllib.load(file)
        values = columns["cumulative_regret"]
        if not np.isfinite(values).all():
            values, label = columns["return"], "return"
        name = f"{config['run']['agent']}, seed {config['run']['seed']}"
        (line,) = axes.plot(columns["episode"], values, label=name)
        axes.set_title(config["run"]["env"])
        text, bound = str(config["found"].get("bound", "")), read_bound(folder)
        if bound is not None and label != "return":
            name = ", ".join(text.split(", ")[:2])
            colour = line.get_color()
            # Between two of its points the later one holds.
            axes.plot(*bound, "--", drawstyle="steps-pre", color=colour, label=name)
            far = far or bound[1][-1] > FAR * values[-1] > 0
        elif len(folders) == 1 and text.startswith("not covered"):
            figure.supxlabel("regret bound: " + text, fontsize=6, wrap=True)
    axes.set_xlabel("episode")
    axes.set_ylabel(label)
    if far:
        axes.set_yscale("log")
    axes.legend()
    axes.grid(alpha=0.3)
    place = pathlib.Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(place, dpi=150)
    plt.close(figure)
