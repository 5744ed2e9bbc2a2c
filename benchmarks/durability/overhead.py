"""What ``kmdp study`` costs beside a bare loop: seconds an episode, in alternating rounds.

python benchmarks/durability/overhead.py --agent psrl --episodes 800 --rounds 9

Both play in a worker process of one core, the study with its journal, rows, fsync, checkpoints,
lock and a driver that watches. The first episodes, in which programs are compiled, do not count.
Rounds are pairs, the order changes from one to the next, and the interval is that of the median of
their ratios (95 %, by the order statistics).

On a machine that does other things rounds differ by more than what is measured. So the recording
itself is timed as well, in one process: wall and processor seconds between an episode's row and
the moment the next one is asked for. What it does to the loop otherwise, as with its thread, is in
the rounds alone.
"""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import statistics
import tempfile
import threading
import time

from joblib.externals.loky import ProcessPoolExecutor

from kernelmdp.experiments import RunConfig, interact, study
from kernelmdp.experiments.run_folder import RunFolder
from kernelmdp.experiments.trial_worker import single_core_environment

SKIPPED = 50


def bare(config: RunConfig, episodes: int) -> float:
    """Seconds an episode of a loop that keeps nothing."""
    agent = config.make_agent()
    begin = 0.0
    for row in interact(agent, episodes):
        if row["episode"] == SKIPPED:
            begin = time.perf_counter()
    return (time.perf_counter() - begin) / (episodes - SKIPPED)


def recorded(config: RunConfig, episodes: int) -> tuple[float, float, list[tuple[float, float]]]:
    """Wall and processor seconds an episode, and those of them spent on recording each."""
    agent = config.make_agent()
    spent: list[tuple[float, float]] = []

    def timed(rows):
        for row in rows:
            begin, busy = time.perf_counter(), time.thread_time()
            yield row
            spent.append((time.perf_counter() - begin, time.thread_time() - busy))

    for _ in interact(agent, SKIPPED):
        pass
    with tempfile.TemporaryDirectory() as home:
        files = RunFolder(pathlib.Path(home), agent)
        begin, busy = time.perf_counter(), time.process_time()
        for _ in files.record(timed(interact(agent, episodes))):
            pass
        wall, processor = time.perf_counter() - begin, time.process_time() - busy
        files.close()
    return wall / episodes, processor / episodes, spent


class Clock(threading.Thread):
    """Sees when rows come: first SKIPPED of them, then all."""

    def __init__(self, place: pathlib.Path, episodes: int) -> None:
        super().__init__(daemon=True)
        self.place, self.episodes, self.seconds = place, episodes, float("nan")

    def run(self) -> None:
        begin, first, count, read = 0.0, 0, -1, 0
        while count < self.episodes:
            time.sleep(0.01)
            for path in self.place.glob("trials/*/episodes.csv"):
                with path.open("rb") as file:
                    file.seek(read)
                    new = file.read()
                read += len(new)
                count += new.count(b"\n")
            now = time.perf_counter()
            if not first and count >= SKIPPED:
                begin, first = now, count
        self.seconds = (now - begin) / (count - first)


def studied(config: RunConfig, episodes: int) -> float:
    """Seconds an episode of a study of one trial."""
    words = {
        "name": "overhead",
        "episodes": episodes,
        "seeds": [config.seed],
        "environments": [{"name": config.env, "options": config.env_options}],
        "agents": [{"name": config.agent, "set": config.settings}],
    }
    with tempfile.TemporaryDirectory() as home:
        clock = Clock(pathlib.Path(home) / "study", episodes)
        clock.start()
        study(words, out=pathlib.Path(home) / "study", progress=False)
        clock.join()
    return clock.seconds


def sync() -> float:
    """Median seconds of a write that is brought to disk, here and now."""
    with tempfile.NamedTemporaryFile() as file:
        times = []
        for _ in range(100):
            begin = time.perf_counter()
            file.write(b"x" * 500)
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", default="rkhs")
    parser.add_argument("--agent", default="psrl")
    parser.add_argument("--episodes", type=int, default=800)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    config = RunConfig(options.env, options.agent)
    print(f"fsync of 500 bytes: {1e3 * sync():.2f} ms")
    with ProcessPoolExecutor(max_workers=1, env=single_core_environment()) as pool:
        wall, processor, spent = pool.submit(recorded, config, options.episodes).result()
    for name, whole, column in (("wall", wall, 0), ("processor", processor, 1)):
        times = [pair[column] for pair in spent]
        mean = statistics.mean(times)
        print(
            f"recording, {name}: {1e6 * mean:.0f} us an episode (median "
            f"{1e6 * statistics.median(times):.0f}) of {1e3 * whole:.2f} ms: "
            f"{100 * mean / (whole - mean):.1f} %, {100 * mean / 0.005:.1f} % of 5 ms",
            flush=True,
        )
    found: dict[str, list[float]] = {"bare": [], "study": []}
    for number in range(options.rounds):
        for name in ("bare", "study") if number % 2 else ("study", "bare"):
            if name == "study":
                found[name].append(studied(config, options.episodes))
            else:
                with ProcessPoolExecutor(max_workers=1, env=single_core_environment()) as pool:
                    found[name].append(pool.submit(bare, config, options.episodes).result())
        last = ", ".join(f"{name} {1e3 * times[-1]:.3f} ms" for name, times in found.items())
        print(f"round {number + 1}: {last}", flush=True)
    if not options.rounds:
        return
    ratios = sorted(s / b - 1 for s, b in zip(found["study"], found["bare"], strict=True))
    middle = {name: statistics.median(times) for name, times in found.items()}
    low, high = interval(len(ratios))
    print(
        f"{options.agent} on {options.env}: bare {1e3 * middle['bare']:.3f} ms, "
        f"study {1e3 * middle['study']:.3f} ms an episode; median of {len(ratios)} ratios "
        f"{100 * statistics.median(ratios):+.1f} % "
        f"(95 %: {100 * ratios[low]:+.1f} to {100 * ratios[high]:+.1f})"
    )


def interval(count: int) -> tuple[int, int]:
    """Which of the sorted values hold the median with 95 %, or the outermost."""
    tail, outside = 0.0, -1
    while tail + math.comb(count, outside + 1) / 2**count <= 0.025:
        outside += 1
        tail += math.comb(count, outside) / 2**count
    return max(0, outside), count - 1 - max(0, outside)


if __name__ == "__main__":
    main()
