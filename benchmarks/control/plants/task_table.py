"""Tables of the well-known tasks of tasks.py, from the files of run.py."""

import math

import numpy as np
from tasks import TASKS, Task

#: Episodes of FrozenLake-v1 over which the mean success is reported, counted from 1.
LATE_EPISODES = (250, 400)


def solved_numbers(task: Task, run: dict) -> np.ndarray:
    """Return the number of each episode that the task's criterion is about."""
    return np.array(run["values"] if task.exact else run["returns"], float)


def later_share(task: Task, numbers: np.ndarray) -> float:
    """Return the share of later episodes that are solved; NaN if none were played."""
    if task.later is None:
        return math.nan
    first, last = task.later
    offset = task.first_solved(numbers) if task.steps is not None else 0
    if not math.isfinite(offset):
        return 0.0
    rows = numbers[int(offset) + first - 1 : int(offset) + last]
    return float(np.mean(rows >= task.solved)) if len(rows) else math.nan


def cells(name: str, runs: list[dict]) -> list[str]:
    """Return the cells of a line: one number a seed in every cell."""
    task, firsts, steps, later = TASKS[name], [], [], []
    for run in sorted(runs, key=lambda run: run["seed"]):
        numbers = solved_numbers(task, run)
        first = task.first_solved(numbers)
        firsts.append(f"{first:.0f}")
        count = sum(run["steps"][: int(first)]) if math.isfinite(first) else math.inf
        steps.append(f"{count:,.0f}")
        later.append(later_share(task, numbers))
    shares = "" if task.later is None else ", ".join(f"{share:.0%}" for share in later)
    return [", ".join(firsts), "" if task.steps is None else ", ".join(steps), shares]


def success(runs: list[dict]) -> str:
    """Return the mean return of late episodes over runs, with the range over runs."""
    begin, end = LATE_EPISODES
    means = [float(np.mean(run["returns"][begin - 1 : end])) for run in runs]
    return f"{np.mean(means):.3f} ({min(means):.3f} to {max(means):.3f})"


def task_tables(runs: dict[str, dict[str, list[dict]]]) -> str:
    """Return the tables of all tasks that were played.

    Args:
        runs: Runs by label and task.

    Returns:
        A table with a line for each task and label, and one for FrozenLake-v1.
    """
    titles = ("task", "agent", "runs", "first solved, by seed", "steps until then")
    lines = ["| " + " | ".join([*titles, "later episodes solved"]) + " |", "|---" * 6 + "|"]
    lakes = []
    for name in TASKS:
        for label, tasks in runs.items():
            if name not in tasks:
                continue
            title = f"| {name} | {label} | {len(tasks[name])}"
            if name == "FrozenLake-v1":
                lakes.append(f"{title} | {success(tasks[name])} |")
            else:
                lines.append(" | ".join([title, *cells(name, tasks[name])]) + " |")
    tables = ["\n".join(lines)] if len(lines) > 2 else []
    if lakes:
        begin, end = LATE_EPISODES
        head = (
            f"| task | agent | runs | mean success, episodes {begin} to {end} |\n|---|---|---|---|"
        )
        tables.append("\n".join([head, *lakes]))
    return "\n\n".join(tables)
