"""Runs as processes and files: what run.py and sac.py share."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from tasks import TASKS, Task

ROOT = pathlib.Path(__file__).resolve().parents[2]


def interpreter(task: Task) -> pathlib.Path:
    """Return the interpreter of the task's virtual environment."""
    return ROOT / f".venv-{task.venv}" / "bin" / "python"


def select(names: list[str]) -> list[Task]:
    """Return tasks by name. Those without their virtual environment are left out, and named."""
    unknown = sorted(set(names) - set(TASKS) - {"all"})
    if unknown:
        raise SystemExit(f"--tasks: expected {', '.join(TASKS)} or all, got {', '.join(unknown)}")
    chosen = []
    for task in TASKS.values() if "all" in names else [TASKS[name] for name in names]:
        if interpreter(task).exists():
            chosen.append(task)
        else:
            print(
                f"{task.name}: skipped, as there is no .venv-{task.venv} (make .venv-{task.venv})"
            )
    return chosen


def write(path: pathlib.Path, content: dict) -> None:
    """Replace a file at once: a crash leaves the old content or the new one."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content) + "\n")
    part.replace(path)


class Record:
    """The results of a run, written after every episode.

    Attributes:
        content: What the file holds. ``steps`` counts all steps of the environment so far.
            ``reached`` is the number of steps at which the level was first reached, and
            ``before_window`` the number before the first episode of that window. Both are None if
            it was not. ``ended`` is level, budget or minutes.
    """

    def __init__(self, run: dict, path: pathlib.Path, driver: int) -> None:
        self.task, self.path, self.driver = TASKS[run["task"]], path, driver
        lists = {"returns": [], "scores": [], "steps": [], "seconds": [], "decision_ms": []}
        self.content = run | lists | {"reached": None, "before_window": None}
        self.content |= {"complete": False, "ended": None}
        self.begin = self.last = time.perf_counter()

    def add(self, total: float, score: float, steps: int, decision_ms: float | None) -> bool:
        """Add an episode, and return whether the run has ended."""
        now, content, task = time.perf_counter(), self.content, self.task
        content["returns"].append(float(total))
        content["scores"].append(float(score))
        content["steps"].append(int(steps))
        content["seconds"].append(round(now - self.last, 3))
        content["decision_ms"].append(decision_ms)
        self.last = now
        count, minutes = task.reached(content["scores"]), content["minutes"]
        if count is not None:
            content["reached"] = content["steps"][count - 1]
            content["before_window"] = ([0, *content["steps"]])[count - task.window]
            content["ended"] = "level"
        elif steps >= content["budget"]:
            content["ended"] = "budget"
        elif minutes is not None and now - self.begin >= 60 * minutes:
            content["ended"] = "minutes"
        content["complete"] = content["ended"] is not None
        write(self.path, content)
        if os.getppid() != self.driver:
            raise SystemExit("the process that started this run has ended")
        return content["complete"]


def is_complete(path: pathlib.Path, run: dict) -> bool:
    """Return whether a run is complete. Another run under the same label is an error."""
    if not path.exists():
        return False
    stored = json.loads(path.read_text())
    if any(stored[key] != run[key] for key in ("agent", "settings")):
        stored_settings = f"{stored['agent']} with {stored['settings']}"
        raise SystemExit(f"label: expected a new one, as {path} is a run of {stored_settings}")
    if stored["ended"] == "minutes":  # a longer limit plays the run again
        return run["minutes"] is not None and run["minutes"] <= stored["minutes"]
    return stored["complete"] and stored["budget"] == run["budget"]


def start(script: str, run: dict, path: pathlib.Path) -> subprocess.Popen:
    """Start a run in a process with one thread. Its messages are in a file beside the run."""
    from kernelmdp.experiments.trial_worker import single_core_environment

    python = str(interpreter(TASKS[run["task"]]))
    command = [python, script, "--worker", json.dumps(run), str(path), str(os.getpid())]
    environment = os.environ | {"MUJOCO_GL": "disabled"} | single_core_environment()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".log").open("w") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


def play_all(script: str, runs: list[tuple[dict, pathlib.Path]], jobs: int) -> int:
    """Play runs, at most ``jobs`` at once. Return how many failed."""
    # A terminated driver ends its runs too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    waiting, running, failed, ended = list(runs), [], 0, 0
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                run, path = waiting.pop(0)
                running.append((start(script, run, path), path))
            time.sleep(0.5)
            for process, path in [each for each in running if each[0].poll() is not None]:
                running.remove((process, path))
                ended += 1
                failed += process.returncode != 0
                state = "done" if process.returncode == 0 else f"failed, see {path.stem}.log"
                print(f"{ended}/{len(runs)} {path.parent.name}/{path.stem}: {state}", flush=True)
    finally:
        for process, _ in running:
            process.terminate()
    return failed
