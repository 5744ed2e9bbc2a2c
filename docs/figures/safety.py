"""How conservative the bound W of safe plans on grids is, from stored runs.

First ``benchmarks/safety/grid.py NAME --runs 200`` for each system. Then
``python docs/figures/safety.py heater draught``.
"""

import csv
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from shrink import shrunk

from kernelmdp.report.figures import COLOURS, MARKERS

HERE = pathlib.Path(__file__).parent
RESULTS = HERE.parent.parent / "benchmarks" / "safety" / "results"
#: The least probability on the axes. Smaller ones, and zeros, are drawn there.
FLOOR, TOP = 1e-6, 0.1
#: Ticks of both axes, of which the first is the floor.
TICKS = {FLOOR: "0", 1e-5: "$10^{-5}$", 1e-4: "$10^{-4}$", 1e-3: "$10^{-3}$", 1e-2: "$10^{-2}$"}


def read(name: str) -> dict[str, np.ndarray]:
    """The columns that are drawn."""
    with (RESULTS / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    return {
        column: np.array([float(row[column]) for row in rows])
        for column in ("episode", "planned_risk", "true_risk")
    }


def by_episode(table: dict[str, np.ndarray], column: str) -> tuple[np.ndarray, np.ndarray]:
    """The episodes, and the mean of a column over the runs of each."""
    episodes = np.unique(table["episode"])
    means = [table[column][table["episode"] == number].mean() for number in episodes]
    return episodes, np.maximum(means, FLOOR)


def main(names: list[str]) -> None:
    """Draw the figure."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for number, name in enumerate(names):
        table, colour = read(name), COLOURS[number]
        bound = np.maximum(table["planned_risk"], FLOOR)
        risk = np.maximum(table["true_risk"], FLOOR)
        style = {"color": colour, "marker": MARKERS[number], "linestyle": "none"}
        left.plot(risk, bound, ms=3, alpha=0.2, mew=0, rasterized=True, **style)
        episodes, bounds = by_episode(table, "planned_risk")
        risks = by_episode(table, "true_risk")[1]
        left.plot(risks, bounds, ms=6, mec="white", mew=0.5, label=name, **style)
        right.plot(episodes, bounds, color=colour, label=f"{name}: W")
        right.plot(episodes, risks, color=colour, ls=":", label=f"{name}: simulated")
    left.plot([FLOOR, TOP], [FLOOR, TOP], "k--", lw=1, label="W = probability")
    left.set_xscale("log")
    left.set_xlim(FLOOR / 1.5, TOP)
    left.set_xticks(list(TICKS), list(TICKS.values()))
    left.set(xlabel="simulated probability of a violation", ylabel="W, the planned bound")
    left.set_title("dots: single episodes; markers: means over runs", fontsize=9)
    right.set(xlabel="episode", ylabel="probability of a violation")
    right.set_title("means over runs", fontsize=9)
    for axes in (left, right):
        axes.set_yscale("log")
        axes.set_ylim(FLOOR / 1.5, TOP)
        axes.set_yticks(list(TICKS), list(TICKS.values()))
        axes.minorticks_off()
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.savefig(HERE / "safety-conservative.png", dpi=85)
    shrunk(HERE / "safety-conservative.png")
    plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:] or ["heater", "draught"])
