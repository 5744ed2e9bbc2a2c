"""Kill -9 at random moments of a run, go on each time, and compare with a run never stopped.

python benchmarks/durability/kill.py --agents gp-ucrl psrl greedy random --episodes 60 --kills 20

Everything must be equal byte for byte, but for the times in episodes.csv.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from kernelmdp.agents.records import COLUMNS

TIMES = [COLUMNS.index(name) for name in ("plan_seconds", "update_seconds")]


def rows(folder: pathlib.Path) -> int:
    """How many rows are in the folder now."""
    path = folder / "episodes.csv"
    return max(0, path.read_bytes().count(b"\n") - 1) if path.exists() else 0


def timeless(folder: pathlib.Path) -> list[list[str]]:
    """episodes.csv without the columns that are times."""
    lines = (folder / "episodes.csv").read_text().splitlines()
    return [
        [cell for place, cell in enumerate(line.split(",")) if place not in TIMES] for line in lines
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="rkhs")
    parser.add_argument("--agents", nargs="+", default=["gp-ucrl", "psrl", "greedy", "random"])
    parser.add_argument("--episodes", type=int, default=60)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    wrong = 0
    for agent in options.agents:
        with tempfile.TemporaryDirectory() as home:
            wrong += not survives(agent, options, pathlib.Path(home), draw)
    raise SystemExit(1 if wrong else 0)


def survives(
    agent: str, options: argparse.Namespace, home: pathlib.Path, draw: random.Random
) -> bool:
    """Whether the killed run ends as the whole one does."""

    def start(folder: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "kernelmdp.cli", "run", options.env, "--agent", agent]
        command += ["--episodes", str(options.episodes), "--out", str(home / folder)]
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    begin = time.monotonic()
    whole = start("whole")
    if whole.wait() != 0:
        raise SystemExit(whole.stderr.read())
    killed, notes = [], 0
    for moment in sorted(draw.uniform(0, options.episodes - 1) for _ in range(options.kills)):
        process = start("killed")
        while rows(home / "killed") < moment and process.poll() is None:
            time.sleep(0.0005)
        time.sleep(draw.uniform(0, 0.01))
        process.kill()
        notes += "kmdp: " in process.communicate()[1]
        killed.append(rows(home / "killed"))
    last = start("killed")
    notes += "kmdp: " in last.communicate()[1]
    same = {
        "episodes.csv": timeless(home / "whole") == timeless(home / "killed"),
        "checkpoint": (home / "whole" / "checkpoint").read_bytes()
        == (home / "killed" / "checkpoint").read_bytes(),
    }
    good = last.returncode == 0 and all(same.values())
    print(
        f"{agent:<10} {'equal' if good else 'NOT EQUAL'} {same}; killed after episodes {killed}; "
        f"{notes} said so; {time.monotonic() - begin:.0f} s",
        flush=True,
    )
    return good


if __name__ == "__main__":
    main()
