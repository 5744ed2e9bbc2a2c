"""Returns by episode, for agents and seeds on one environment.

    .venv/bin/python benchmarks/control/returns.py Pendulum-v1 --agents psrl greedy --seeds 5

Every seed is kept, with all its returns, in benchmarks/control/results/. The table has means over
seeds with 95 % intervals (Student's t).
"""

import argparse
import json
import pathlib
import time

import numpy as np
from scipy import stats

from kernelmdp.experiments import RunConfig, interact
from kmdp import parse_value

RESULTS = pathlib.Path(__file__).parent / "results"


def one(env: str, agent: str, seed: int, episodes: int, given: dict) -> dict:
    options = {k.removeprefix("env."): v for k, v in given.items() if k.startswith("env.")}
    words = {k: v for k, v in given.items() if not k.startswith("env.")}
    learner = RunConfig(env, agent, seed, options, words).make_agent()
    begin = time.perf_counter()
    rows = list(interact(learner, episodes))
    return {
        "agent": agent,
        "seed": seed,
        "returns": [float(row["return"]) for row in rows],
        "regret": float(rows[-1].get("cumulative_regret", np.nan)),
        "plan_seconds": float(np.median([row["plan_seconds"] for row in rows[2:]])),
        "update_seconds": float(np.median([row["update_seconds"] for row in rows[2:]])),
        "seconds": time.perf_counter() - begin,
    }


def interval(values: list[float]) -> str:
    mean = np.mean(values)
    if len(values) < 2:
        return f"{mean:.1f}"
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{mean:.1f} ± {half:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("env")
    parser.add_argument("--agents", nargs="+", default=["gp-ucrl", "psrl", "greedy"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=10)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--name", help="of the file with the results")
    parser.add_argument("--show", type=int, nargs="+", help="episodes to show")
    chosen = parser.parse_args()
    given = {k: parse_value(v) for k, _, v in (text.partition("=") for text in chosen.set)}
    RESULTS.mkdir(exist_ok=True)
    place = RESULTS / f"{chosen.name or chosen.env.replace('/', '-')}.json"
    runs = json.loads(place.read_text())["runs"] if place.exists() else []
    runs = [run for run in runs if run["agent"] not in chosen.agents]
    for agent in chosen.agents:
        for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
            runs.append(one(chosen.env, agent, seed, chosen.episodes, given))
            print(agent, seed, np.round(runs[-1]["returns"], 1).tolist(), flush=True)
            place.write_text(
                json.dumps({"env": chosen.env, "set": chosen.set, "runs": runs}, indent=0) + "\n"
            )
    show = chosen.show or sorted({1, 2, 3, 5, chosen.episodes // 2, chosen.episodes})
    print("\n| agent | " + " | ".join(f"episode {n}" for n in show) + " | s in all |")
    print("|---" * (len(show) + 2) + "|")
    for agent in dict.fromkeys(run["agent"] for run in runs):
        own = [run for run in runs if run["agent"] == agent]
        cells = [interval([run["returns"][n - 1] for run in own]) for n in show]
        seconds = f"{np.mean([run['seconds'] for run in own]):.1f}"
        print(f"| {agent} | " + " | ".join(cells) + f" | {seconds} |")


if __name__ == "__main__":
    main()
