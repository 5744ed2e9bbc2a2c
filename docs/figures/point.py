"""The figure of the README: swing-up with a price of torque, short and long lengthscales.

From the stored runs of benchmarks/control/swingup.py, all seeds.

    python docs/figures/point.py
"""

import json
import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from shrink import shrunk

HERE = pathlib.Path(__file__).parent
RUNS = HERE.parents[1] / "benchmarks" / "control" / "results" / "swingup.json"
NAMES = {
    "gp-ucrl": ("GP-UCRL", "#0072b2"),
    "psrl": ("PSRL", "#d55e00"),
    "greedy": ("greedy", "#555555"),
}
PENALTY, OPTIMUM = 0.2, 276.4


def main() -> None:
    """Two panels: where the mean alone never moves, and where it is the fastest."""
    runs = json.loads(RUNS.read_text())
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
    for axis, short in zip(axes, (True, False), strict=True):
        for agent, (name, colour) in NAMES.items():
            wanted = {
                "agent": agent,
                "reward": "known",
                "confidence": "practical",
                "macro": 4,
                "short": short,
                "penalty": PENALTY,
            }
            own = [r["returns"] for r in runs if all(r[k] == v for k, v in wanted.items())]
            assert len(own) == 10, (agent, short, len(own))
            episodes = np.arange(1, len(own[0]) + 1)
            axis.plot(episodes, np.transpose(own), color=colour, alpha=0.25, lw=0.7)
            axis.plot(episodes, np.median(own, axis=0), color=colour, lw=2.2, label=name)
        axis.axhline(OPTIMUM, color="black", ls=":", lw=1)
        axis.text(20, OPTIMUM + 8, "optimum", ha="right", fontsize=9)
        axis.set(xlabel="episode", xticks=[1, 5, 10, 15, 20], ylim=(-100, 315))
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_title("rough beliefs: lengthscales are short", fontsize=10)
    axes[1].set_title("smooth beliefs: lengthscales are long", fontsize=10)
    axes[0].set_ylabel("return of the episode")
    axes[0].legend(frameon=False, loc="center right")
    figure.savefig(HERE / "point.png", dpi=110)
    shrunk(HERE / "point.png")


if __name__ == "__main__":
    main()
