"""Regret of all agents on one environment, all seeds: a table, and the runs on disk.

python benchmarks/regret/run.py rkhs --episodes 1000 --out runs/rkhs
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

import numpy as np

from kernelmdp.experiments import RunConfig, run
from kernelmdp.report import read_columns, slope
from kmdp import parse_value


def contender(text: str) -> tuple[str, str, dict[str, object]]:
    """``name[:word=value,word=value]`` as a label, an agent and its words."""
    agent, _, words = text.partition(":")
    pairs = [word.partition("=") for word in words.split(",") if word]
    return text, agent, {name: parse_value(value) for name, _, value in pairs}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("env")
    parser.add_argument("--agents", nargs="+", type=contender, required=True)
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE for the environment")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    env_options = {w.partition("=")[0]: parse_value(w.partition("=")[2]) for w in options.set}
    results = []
    for label, agent, words in options.agents:
        rows = []
        for seed in range(options.seeds):
            folder = options.out / label.replace(":", "_").replace(",", "_") / str(seed)
            config = RunConfig(options.env, agent, seed, env_options, words)
            result = run(config, folder, episodes=options.episodes)
            rows.append(summary(folder) | {"seed": seed})
            print(f"  {label}, seed {seed}: {rows[-1]}", file=sys.stderr, flush=True)
        results.append({"agent": label, "theory": str(result.coverage), "seeds": rows})
        show(results[-1])
    text = json.dumps({"command": " ".join(sys.argv), "results": results}, indent=1)
    (options.out / "results.json").write_text(text + "\n")


def summary(folder: pathlib.Path) -> dict[str, float]:
    columns = read_columns(folder)
    covered = np.minimum(columns["covered_reward"], columns["covered_transition"])
    seconds = (columns["plan_seconds"] + columns["update_seconds"])[2:]
    good = columns["return"] >= 0.98 * columns["optimal_value"]
    late = np.flatnonzero(~good)
    return {
        "regret": float(columns["cumulative_regret"][-1]),
        "slope": slope(columns["episode"], columns["cumulative_regret"]),
        "covered": float(np.min(covered)),
        "milliseconds": 1e3 * float(np.median(seconds)),
        "optimal_value_error": float(columns["optimal_value_error"][-1]),
        "first_at_98_percent": int(np.argmax(good)) + 1 if good.any() else 0,
        "at_98_percent_from": int(late[-1]) + 2 if len(late) else 1,
        "last_return": float(columns["return"][-1]),
    }


def show(result: dict[str, object]) -> None:
    rows = result["seeds"]
    regret = np.array([row["regret"] for row in rows])
    error = regret.std(ddof=1) / np.sqrt(len(regret)) if len(regret) > 1 else float("nan")
    slopes = np.array([row["slope"] for row in rows])
    times = np.array([row["milliseconds"] for row in rows])
    held = [row["at_98_percent_from"] for row in rows]
    print(
        f"{result['agent']:<44} regret {regret.mean():9.1f} ± {error:6.1f}   slope "
        f"{np.nanmean(slopes):5.2f} (max {np.nanmax(slopes):5.2f})   covered "
        f"{np.mean([row['covered'] for row in rows]):4.0%}   {np.median(times):7.1f} ms   "
        f"98 % held from {held}   last {[round(row['last_return'], 1) for row in rows]}",
        flush=True,
    )


if __name__ == "__main__":
    main()
