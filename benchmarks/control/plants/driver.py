"""Runs in processes of their own: each is a JSON file, and complete ones are skipped."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time


def write(path: pathlib.Path, content: dict) -> None:
    """Replace a file at once: a crash leaves the old content or the new one."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content) + "\n")
    part.replace(path)


def is_complete(path: pathlib.Path, run: dict, identity: tuple[str, ...]) -> bool:
    """Return whether a run is complete. Another run under the same label is an error.

    Args:
        path: The file of the run.
        run: What it should be a run of.
        identity: The keys of ``run`` that say so.
    """
    if not path.exists():
        return False
    stored = json.loads(path.read_text())
    if any(stored[key] != run[key] for key in ("agent", "settings")):
        stored_settings = f"{stored['agent']} with {stored['settings']}"
        raise SystemExit(f"label: expected a new one, as {path} is a run of {stored_settings}")
    return stored["complete"] and all(stored[key] == run[key] for key in identity)


def parse_setting(text: str) -> tuple[str, object]:
    """Parse ``name=value``. The value is JSON, or else text."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def start(script: str, run: dict, path: pathlib.Path) -> subprocess.Popen:
    """Start a run in a process with one thread. Its messages are in a file beside the run."""
    from kernelmdp.experiments.trial_worker import single_core_environment

    command = [sys.executable, script, "--worker", json.dumps(run), str(path), str(os.getpid())]
    with path.with_suffix(".log").open("w") as log:
        return subprocess.Popen(
            command, stdout=log, stderr=log, env=os.environ | single_core_environment()
        )


def play_all(script: str, runs: list[tuple[dict, pathlib.Path]], jobs: int) -> int:
    """Play runs by ``script --worker``, at most ``jobs`` at once. Return how many failed."""
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
