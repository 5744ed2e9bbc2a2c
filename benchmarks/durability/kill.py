"""Kill -9 at random moments of a run, go on each time, and compare with a run never stopped.

python benchmarks/durability/kill.py --agents gp-ucrl psrl greedy random --episodes 60 --kills 20

Everything must be equal byte for byte, but for the times in episodes.csv. Processes are forked
from one that has imported the library and computed nothing: only that saves time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import pathlib
import random
import tempfile
import time
import warnings

from kernelmdp.experiments import RunConfig, run


def rows(folder: pathlib.Path) -> int:
    """How many rows are in the folder now."""
    path = folder / "episodes.csv"
    return max(0, path.read_bytes().count(b"\n") - 1) if path.exists() else 0


def timeless(folder: pathlib.Path) -> list[list[str]]:
    """episodes.csv without the columns that are times."""
    lines = (folder / "episodes.csv").read_text().splitlines()
    times = [i for i, name in enumerate(lines[0].split(",")) if name.endswith("_seconds")]
    return [
        [cell for place, cell in enumerate(line.split(",")) if place not in times] for line in lines
    ]


def play(config: RunConfig, folder: pathlib.Path, episodes: int, notes: pathlib.Path) -> None:
    """What the command does; what it says goes into a file."""
    with warnings.catch_warnings(record=True) as said, notes.open("a") as file:

        def track(rows, total, agent):
            file.writelines(f"{each.message}\n" for each in said)
            file.flush()
            yield from rows

        run(config, folder, episodes=episodes, track=track)


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

    config = RunConfig(options.env, agent, options.seed)
    notes = home / "notes"

    def start(folder: str) -> multiprocessing.process.BaseProcess:
        words = (config, home / folder, options.episodes, notes)
        process = multiprocessing.get_context("fork").Process(target=play, args=words)
        process.start()
        return process

    begin = time.monotonic()
    whole = start("whole")
    whole.join()
    if whole.exitcode != 0:
        raise SystemExit(f"{agent} does not play")
    killed = []
    for moment in sorted(draw.uniform(0, options.episodes - 1) for _ in range(options.kills)):
        process = start("killed")
        while rows(home / "killed") < moment and process.is_alive():
            time.sleep(0.0005)
        time.sleep(draw.uniform(0, 0.01))
        process.kill()
        process.join()
        killed.append(rows(home / "killed"))
    last = start("killed")
    last.join()
    same = {
        "episodes.csv": timeless(home / "whole") == timeless(home / "killed"),
        "checkpoint": (home / "whole" / "checkpoint").read_bytes()
        == (home / "killed" / "checkpoint").read_bytes(),
    }
    good = last.exitcode == 0 and all(same.values())
    print(
        f"{agent:<10} {'equal' if good else 'NOT EQUAL'} {same}; killed after episodes {killed}; "
        f"{len(notes.read_text().splitlines())} said so; {time.monotonic() - begin:.0f} s",
        flush=True,
    )
    return good


if __name__ == "__main__":
    main()
