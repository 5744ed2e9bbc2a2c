"""Many seeds in one program beside runs one by one: seconds, and how far the numbers differ.

    .venv/bin/python benchmarks/studies/vectorised.py --pairs rkhs:psrl riverswim:psrl --jobs 2

For each pair of an environment and an agent, ``kmdp study --vectorised`` plays all seeds into a new
folder. The time includes the start of the workers, compilation and files. Then the first seed is
played one by one in this process, after a run that compiles its programs. "ratio" is the time that
all seeds would take one by one over the time of the study, and "steady ratio" the same without
start and compilation: the time of a study with twice the episodes less that of the study.
"""

import argparse
import pathlib
import tempfile
import time

import numpy as np

import kernelmdp as km
from kernelmdp.experiments import RunConfig
from kernelmdp.experiments.run_files import read_rows


def study_seconds(env: str, agent: str, seeds: int, episodes: int, jobs: int, out: str) -> float:
    definition = {
        "name": "timed",
        "episodes": episodes,
        "seeds": seeds,
        "environments": [{"name": env}],
        "agents": [{"name": agent}],
    }
    begin = time.perf_counter()
    result = km.study(definition, out=out, jobs=jobs, vectorise=True, progress=False)
    seconds = time.perf_counter() - begin
    if result.failed:
        raise SystemExit(next(iter(result.failed.values())).error)
    return seconds


def one_by_one(env: str, agent: str, episodes: int) -> tuple[float, km.experiments.Table]:
    RunConfig(env, agent).make_agent().learn(episodes=3, progress=False)
    alone = RunConfig(env, agent).make_agent()
    begin = time.perf_counter()
    result = alone.learn(episodes=episodes, progress=False)
    return (time.perf_counter() - begin) / episodes, result.episodes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", nargs="+", default=["rkhs:psrl"])
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print("| pair | study, s | one by one, ms an episode | ratio | steady ratio | difference |")
    print("|---|---|---|---|---|---|")
    for pair in options.pairs:
        env, agent = pair.split(":")
        with tempfile.TemporaryDirectory() as folder:
            arguments = (env, agent, options.seeds)
            first, second = f"{folder}/a", f"{folder}/b"
            seconds = study_seconds(*arguments, options.episodes, options.jobs, first)
            longer = study_seconds(*arguments, 2 * options.episodes, options.jobs, second)
            alone, table = one_by_one(env, agent, min(options.episodes, 300))
            trial = next(pathlib.Path(first, "trials").glob("*seed0-*"))
            returns = np.array([row["return"] for row in read_rows(trial)])
        total = alone * options.seeds * options.episodes / min(options.jobs, options.seeds)
        steady = total / max(longer - seconds, 1e-9)
        difference = np.abs(returns[: len(table)] - table["return"]).max()
        print(
            f"| {pair} | {seconds:.1f} | {1e3 * alone:.2f} | {total / seconds:.1f} "
            f"| {steady:.1f} | {difference:.1g} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
