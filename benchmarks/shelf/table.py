"""Print what agents reached on the shelf, from the files of run.py and sac.py.

    .venv-shelf/bin/python benchmarks/shelf/table.py runs/shelf

A run that reached its level shows the number of environment steps until then. Any other run shows
its best window mean, the steps played, and "minutes" if the limit of minutes ended it. The median
counts runs that did not reach the level as infinite. A bar is met if the median is at most the bar.
"""

import argparse
import json
import math
import pathlib

import numpy as np
from tasks import TASKS, Task

HEADER = ("task", "m + q", "level", "bar", "steps by seed", "median", "bar met", "published", "SAC")


def outcome(task: Task, run: dict) -> str:
    """Describe a run in a few words."""
    if run["reached"] is not None:
        return f"{run['reached']:,}"
    scores, steps = np.array(run["scores"]), run["steps"][-1]
    width = min(task.window, len(scores))
    best = np.convolve(scores, np.full(width, 1.0 / width), mode="valid").max()
    ending = {"minutes": ", minutes", None: ", unfinished"}.get(run["ended"], "")
    return f"({best:.4g}{task.unit} in {steps:,}{ending})"


def row(task: Task, runs: list[dict], peers: list[dict]) -> str:
    """Return the line of a task."""
    reached = [math.inf if run["reached"] is None else run["reached"] for run in runs]
    # With an even number of runs, the larger of the two in the middle: no mean with infinity.
    median = sorted(reached)[len(reached) // 2] if reached else math.inf
    cells = [task.name, f"{runs[0]['m']} + {runs[0]['q']}" if runs else ""]
    cells += ["none" if task.level is None else f"{task.level:,g}{task.unit}"]
    cells += ["none" if task.bar is None else f"{task.bar:,}"]
    cells += [", ".join(outcome(task, run) for run in runs)]
    cells += [f"{median:,}" if math.isfinite(median) else ""]
    cells += [("yes" if median <= task.bar else "no") if runs and task.bar is not None else ""]
    cells += [task.published, ", ".join(outcome(task, run) for run in peers)]
    return "| " + " | ".join(cells) + " |"


def read(folder: pathlib.Path) -> dict[str, dict[str, list[dict]]]:
    """Read runs with at least one episode, by label and task, in the order of seeds."""
    runs: dict[str, dict[str, list[dict]]] = {}
    for path in folder.glob("*/*.json"):
        run = json.loads(path.read_text())
        if run["returns"]:
            runs.setdefault(run["label"], {}).setdefault(run["task"], []).append(run)
    for tasks in runs.values():
        for each in tasks.values():
            each.sort(key=lambda run: run["seed"])
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="the --out of run.py")
    parser.add_argument("--labels", nargs="+", help="only these variants")
    chosen = parser.parse_args()
    runs = read(chosen.folder)
    peers = runs.pop("sac", {})
    for label in chosen.labels or sorted(runs) or ["frugal"]:
        ours = runs.get(label, {})
        print(f"\n## {label}\n\n| " + " | ".join(HEADER) + " |\n" + "|---" * len(HEADER) + "|")
        for name, task in TASKS.items():
            if name in ours or name in peers:
                print(row(task, ours.get(name, []), peers.get(name, [])))


if __name__ == "__main__":
    main()
