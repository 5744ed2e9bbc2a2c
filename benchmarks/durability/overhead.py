"""What ``kmdp study`` costs beside a bare loop: seconds an episode, in alternating rounds.

python benchmarks/durability/overhead.py --agent psrl --episodes 800 --rounds 5

Both play in a worker process of one core, the study with its journal, rows, fsync, checkpoints,
lock and a driver that watches. The first episodes, in which programs are compiled, do not count.
On a machine that does other things these differ by more than what is measured; so the same loop is
also timed in one process, blocks of bare and of recorded episodes in turn, as medians of blocks.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import tempfile
import threading
import time

from joblib.externals.loky import ProcessPoolExecutor

from kernelmdp.agents.learning import interact
from kernelmdp.cli import keep_compiled
from kernelmdp.experiments import RunConfig, study
from kernelmdp.experiments.folder import RunFolder
from kernelmdp.experiments.worker import one_core

SKIPPED, BLOCK = 50, 25


def bare(config: RunConfig, episodes: int) -> float:
    """Seconds an episode of a loop that keeps nothing."""
    keep_compiled()
    agent = config.make_agent()
    begin = 0.0
    for row in interact(agent, agent.task, episodes):
        if row["episode"] == SKIPPED:
            begin = time.perf_counter()
    return (time.perf_counter() - begin) / (episodes - SKIPPED)


def paired(config: RunConfig, episodes: int) -> list[tuple[float, float, float, float]]:
    """Wall and processor seconds an episode of blocks in turn: bare, then recorded."""
    keep_compiled()
    agent = config.make_agent()

    def block(record) -> tuple[float, float]:
        begin, busy = time.perf_counter(), time.process_time()
        for _ in record(interact(agent, agent.task, BLOCK)):
            pass
        return (time.perf_counter() - begin) / BLOCK, (time.process_time() - busy) / BLOCK

    for _ in interact(agent, agent.task, SKIPPED):
        pass
    found = []
    with tempfile.TemporaryDirectory() as home:
        for _ in range(episodes // (2 * BLOCK)):
            bare = block(iter)
            files = RunFolder(pathlib.Path(home), agent)
            found.append((*bare, *block(files.record)))
            files.close()
    return found


class Clock(threading.Thread):
    """Sees when rows come: first SKIPPED of them, then all."""

    def __init__(self, place: pathlib.Path, episodes: int) -> None:
        super().__init__(daemon=True)
        self.place, self.episodes, self.seconds = place, episodes, float("nan")

    def run(self) -> None:
        begin, first = 0.0, 0
        while True:
            found = list(self.place.glob("trials/*/episodes.csv"))
            count = found[0].read_bytes().count(b"\n") - 1 if found else 0
            now = time.perf_counter()
            if not first and count >= SKIPPED:
                begin, first = now, count
            if count >= self.episodes:
                self.seconds = (now - begin) / (count - first)
                return
            time.sleep(0.02)


def studied(config: RunConfig, episodes: int) -> float:
    """Seconds an episode of a study of one trial."""
    words = {
        "name": "overhead",
        "episodes": episodes,
        "seeds": [config.seed],
        "environments": [{"name": config.env, "options": config.env_options}],
        "agents": [{"name": config.agent, "set": config.words}],
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
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    keep_compiled()
    config = RunConfig(options.env, options.agent)
    print(f"fsync of 500 bytes: {1e3 * sync():.2f} ms")
    with ProcessPoolExecutor(max_workers=1, env=one_core()) as pool:
        blocks = pool.submit(paired, config, options.episodes).result()
    for name, before, after in (("wall", 0, 2), ("processor", 1, 3)):
        bare_time = statistics.median(block[before] for block in blocks)
        more = statistics.median(block[after] - block[before] for block in blocks)
        print(
            f"in one process, {len(blocks)} pairs of blocks, {name}: bare {1e3 * bare_time:.3f} ms "
            f"an episode, recorded {1e3 * more:+.3f} ms ({100 * more / bare_time:+.1f} %, "
            f"{100 * more / 0.005:+.1f} % of 5 ms)",
            flush=True,
        )
    found: dict[str, list[float]] = {"bare": [], "study": []}
    for number in range(options.rounds):
        with ProcessPoolExecutor(max_workers=1, env=one_core()) as pool:
            found["bare"].append(pool.submit(bare, config, options.episodes).result())
        found["study"].append(studied(config, options.episodes))
        last = ", ".join(f"{name} {1e3 * times[-1]:.3f} ms" for name, times in found.items())
        print(f"round {number + 1}: {last}", flush=True)
    if not options.rounds:
        return
    middle = {name: statistics.median(times) for name, times in found.items()}
    ratios = [s / b for s, b in zip(found["study"], found["bare"], strict=True)]
    print(
        f"{options.agent} on {options.env}: bare {1e3 * middle['bare']:.3f} ms, "
        f"study {1e3 * middle['study']:.3f} ms an episode: "
        f"{100 * (middle['study'] / middle['bare'] - 1):+.1f} % "
        f"(by round {', '.join(f'{100 * (r - 1):+.1f}' for r in ratios)})"
    )


if __name__ == "__main__":
    main()
