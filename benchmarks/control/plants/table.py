"""Print what agents reached on the plants and tasks, from the files of run.py.

    .venv/bin/python benchmarks/control/plants/table.py runs/plants

Without a folder, it prints the list of the plants with their references.

Returns are measured on each plant's scale: 0 is the mean of random play, 1 the reference optimum.

- level: 0.95 on this scale. "first" is the episode that reaches it first, or inf.
- held: the share of later episodes at 0.85 or more, which is the level less 0.10. It is 0 if the
  level was never reached, and left out if it was reached in the last episode.
- predict held: the same share of the evaluation episodes of ``predict``, after an episode or the
  mean of an earlier evaluation has reached the level. It is 0 if neither ever did.
- worst: the lowest planned episode. Episodes of random actions are not planned.
- regret: the sum over all episodes of 1 less the return.
- safe: the share of runs in which no planned episode is below -0.5.

Numbers are medians over runs. Starts are narrow and noise is mild, so that the return of the
optimal controller varies by little: column "optimum's deviation" in README.md.
"""

import argparse
import json
import math
import pathlib
import warnings

import gymnasium
import numpy as np
from catalogue import DEVELOPMENT, HELD_BACK, PLANTS
from task_table import task_tables

REFERENCE = pathlib.Path(__file__).parent / "reference.json"
LEVEL, SLACK, UNSAFE = 0.95, 0.10, -0.5
COLUMNS = ("first", "held", "predict held", "worst", "regret", "safe")


def measures(run: dict, reference: dict) -> dict[str, float]:
    """Return the numbers of one run, by column. NaN means that there is nothing to measure."""
    low, gap = reference["random"], reference["optimum"] - reference["random"]
    scores = (np.array(run["returns"]) - low) / gap
    reached = np.flatnonzero(scores >= LEVEL)
    first = reached[0] + 1 if len(reached) else math.inf
    held = _share(scores[first:]) if len(reached) else 0.0
    after = np.array([each["after"] for each in run["evaluations"]])
    evaluated = np.array([each["returns"] for each in run["evaluations"]])
    evaluated = (evaluated.reshape(len(after), -1) - low) / gap
    good = after[evaluated.mean(axis=1) >= LEVEL] if len(after) else after
    since = (after >= first) | (after > (good[0] if len(good) else math.inf))
    predicted = _share(evaluated[since].ravel()) if len(reached) or len(good) else 0.0
    planned = scores[np.array(run["planned"], bool)]
    worst = planned.min() if len(planned) else math.nan
    safe = float(worst >= UNSAFE) if len(planned) else math.nan
    values = (first, held, predicted, worst, np.sum(1.0 - scores), safe)
    return dict(zip(COLUMNS, map(float, values), strict=True))


def _share(scores: np.ndarray) -> float:
    return float(np.mean(scores >= LEVEL - SLACK)) if len(scores) else math.nan


def summary(rows: list[dict[str, float]]) -> dict[str, float]:
    """Return medians over runs, and the share of runs that are safe."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column may be NaN in all runs
        medians = {name: float(np.nanmedian([row[name] for row in rows])) for name in COLUMNS}
        return medians | {"safe": float(np.nanmean([row["safe"] for row in rows]))}


def line(title: str, rows: list[dict[str, float]]) -> str:
    """Return a line of a table."""
    numbers = summary(rows)
    formats = ("{:.3g}", "{:.0%}", "{:.0%}", "{:.2f}", "{:.1f}", "{:.0%}")
    cells = [
        "" if math.isnan(numbers[name]) else text.format(numbers[name])
        for name, text in zip(COLUMNS, formats, strict=True)
    ]
    return " | ".join([f"| {title}", str(len(rows)), *cells]) + " |"


def header(title: str) -> str:
    """Return the first two lines of a table."""
    names = [title, "runs", *COLUMNS]
    return "| " + " | ".join(names) + " |\n" + "|---" * len(names) + "|"


def overview(reference: dict[str, dict]) -> str:
    """Return the list of the plants as a table."""
    names = ["plant", "domain", "m", "q", "horizon", "reward", "noise", "random", "optimum"]
    names += ["optimum's deviation", "half"]
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    for name, kind in PLANTS.items():
        numbers, plant = reference[name], kind()
        discrete = isinstance(plant.action_space, gymnasium.spaces.Discrete)
        cells = [name, plant.domain, plant.observation_space.shape[0]]
        cells += [f"{plant.action_space.n} choices" if discrete else plant.action_space.shape[0]]
        cells += [plant.horizon, plant.reward_type, "yes" if plant.noise_dimension else "no"]
        for key in ("random", "optimum"):
            cells.append(f"{numbers[key]:.2f} ± {numbers[f'{key}_error']:.2f}")
        cells.append(f"{numbers['optimum_deviation']:.1%}")
        cells.append("development" if name in DEVELOPMENT else "held back")
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def read(folder: pathlib.Path, partial: bool) -> dict[str, dict[str, list[dict]]]:
    """Read runs, by label and plant. Incomplete runs are left out unless ``partial``."""
    runs: dict[str, dict[str, list[dict]]] = {}
    for path in sorted(folder.glob("*/*.json")):
        run = json.loads(path.read_text())
        if run["complete"] or (partial and run["returns"]):
            runs.setdefault(run["label"], {}).setdefault(run["plant"], []).append(run)
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, nargs="?", help="the --out of run.py")
    parser.add_argument("--labels", nargs="+", help="only these variants")
    parser.add_argument("--partial", action="store_true", help="use incomplete runs too")
    chosen = parser.parse_args()
    reference = json.loads(REFERENCE.read_text())["plants"]
    if chosen.folder is None:
        print(overview(reference))
        return
    runs = read(chosen.folder, chosen.partial)
    if chosen.labels is not None:
        runs = {label: plants for label, plants in runs.items() if label in chosen.labels}
    table = {
        label: {
            plant: [measures(run, reference[plant]) for run in plants[plant]]
            for plant in PLANTS
            if plant in plants
        }
        for label, plants in runs.items()
    }
    for group, names in (("development", DEVELOPMENT), ("held back", HELD_BACK)):
        groups = {
            label: {plant: rows for plant, rows in plants.items() if plant in names}
            for label, plants in table.items()
        }
        groups = {label: plants for label, plants in groups.items() if plants}
        if not groups:
            continue
        print(f"\n## Plants: {group}\n\n{header('agent')}")
        for label, plants in groups.items():
            print(line(label, [row for rows in plants.values() for row in rows]))
        for label, plants in groups.items():
            print(f"\n### {label}, {group}\n\n{header('plant')}")
            for plant, rows in plants.items():
                print(line(plant, rows))
    if tasks := task_tables(runs):
        print(f"\n## Tasks\n\n{tasks}")


if __name__ == "__main__":
    main()
