"""What it costs to keep a plan until an information gain has grown by c.

    .venv/bin/python benchmarks/theory/few_plans.py rkhs --episodes 300 --seeds 5
    .venv/bin/python benchmarks/theory/few_plans.py riverswim --episodes 2000 --seeds 5

For every c the same seeds are played. A row has the regret and the number of plans, as means over
seeds with standard errors, and the largest ratio of the number of plans to its bound 1 + Σγ/c with
the gains at the end. Seconds are of the whole run, on whatever else the machine did.
"""

import argparse
import json
import pathlib
import time

import numpy as np

import kernelmdp as km
from kernelmdp.learners.stale_beliefs import deviation_gains
from kernelmdp.theory.few_plans import most_plans


def measure(kind: str, name: str, settings: dict, seed: int, episodes: int) -> dict:
    agent = {"gp-ucrl": km.GPUCRL, "psrl": km.PSRL}[kind](name, seed=seed, **settings)
    begin = time.perf_counter()
    table = agent.learn(episodes, progress=False).episodes
    seconds = time.perf_counter() - begin
    c = settings["replan_gain"]
    bound = float(episodes) if c is None else most_plans(deviation_gains(agent.beliefs), c)
    return {
        "seed": seed,
        "agent": kind,
        "c": c,
        "regret": float(table["cumulative_regret"][-1]),
        "plans": episodes if c is None else int(table["plans"][-1]),
        "most_plans": bound,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment")
    parser.add_argument("--agents", nargs="+", default=["gp-ucrl", "psrl"])
    parser.add_argument("--confidence", default="valid")
    parser.add_argument("--gains", nargs="+", type=float, default=[0.1, 0.5, 1.0, 2.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--out", type=pathlib.Path)
    chosen = parser.parse_args()
    rows: list[dict] = []
    for kind in chosen.agents:
        for c in (None, *chosen.gains):
            settings = {"replan_gain": c, "confidence": chosen.confidence}
            if kind == "psrl":
                settings["learner"] = "fixed"  # tables have a learner of counts otherwise
            played = [
                measure(kind, chosen.environment, settings, seed, chosen.episodes)
                for seed in range(chosen.seeds)
            ]
            rows += played
            if chosen.out:
                chosen.out.write_text(json.dumps(rows, indent=1) + "\n")
            regrets = np.array([row["regret"] for row in played])
            error = regrets.std(ddof=1) / np.sqrt(len(regrets)) if len(regrets) > 1 else np.nan
            plans = np.mean([row["plans"] for row in played])
            share = max(row["plans"] / row["most_plans"] for row in played)
            seconds = np.mean([row["seconds"] for row in played])
            print(
                f"{kind:8} c = {c}: regret {regrets.mean():.1f} ± {error:.1f}, "
                f"plans {plans:.0f}, at most {share:.2f} of the bound, {seconds:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
