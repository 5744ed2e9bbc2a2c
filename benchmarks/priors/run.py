"""Heavy-tailed noise: regret of PSRL that knows the noise law and of PSRL that holds it Gaussian.

python benchmarks/priors/run.py --episodes 200 --seeds 5

On ``rkhs`` with Student-t noise (3 degrees of freedom, scale 0.1 on rewards and states). The
Gaussian prior has the noise's true variance, 3 · 0.1², as its default is; "gaussian, scale" takes
the scale 0.1 for a standard deviation. Scale, length and contenders were chosen before any run.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time
import warnings

import numpy as np

import kernelmdp as km

CONTENDERS = {
    "random": (km.Random, {}),
    "psrl gaussian": (km.PSRL, {}),
    "psrl gaussian, scale": (km.PSRL, {"noise": 0.1}),
    "psrl student-t": (km.PSRL, {"prior": "student-t"}),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--noise", type=float, default=0.1, help="scale of the Student-t law")
    here = pathlib.Path(__file__).parent
    parser.add_argument("--out", type=pathlib.Path, default=here / "results.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore", km.errors.ApproximationWarning)  # counted in the table instead
    results = {}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for label, (kind, words) in CONTENDERS.items():
        rows = []
        for seed in seeds:
            env = km.make("rkhs", seed=seed, noise_law="student-t", noise=options.noise)
            own = {"noise": options.noise} if "noise" in words else words
            rows.append(played(kind(env, seed=seed, **own), options.episodes) | {"seed": seed})
            print(f"  {label}, seed {seed}: {rows[-1]}", file=sys.stderr, flush=True)
            results[label] = rows
            text = {"command": " ".join(sys.argv), "noise": options.noise, "results": results}
            options.out.write_text(json.dumps(text, indent=1) + "\n")
    show(results)


def played(agent: km.agents.Agent, episodes: int) -> dict[str, float]:
    """Cumulative regret, and how fast and how well mixed the episodes were."""
    mixed: list[float] = []
    begin = time.perf_counter()
    regret, seconds = 0.0, []
    for row in km.experiments.interact(agent, episodes):
        regret = row["cumulative_regret"]
        seconds.append(row["plan_seconds"] + row["update_seconds"])
        mixed.append(row.get("mixed", np.nan))
    return {
        "regret": float(regret),
        "episode_ms": 1e3 * float(np.median(seconds)),
        "last_episodes_ms": 1e3 * float(np.median(seconds[-20:])),
        "unmixed_episodes": float(np.sum(np.array(mixed) == 0)),
        "seconds": time.perf_counter() - begin,
    }


def show(results: dict[str, list[dict[str, float]]]) -> None:
    best = np.mean([row["regret"] for row in results["psrl student-t"]])
    for label, rows in results.items():
        regrets = [row["regret"] for row in rows]
        each = " ".join(f"{regret:8.2f}" for regret in regrets)
        pace = np.mean([row["episode_ms"] for row in rows])
        lost = int(sum(row["unmixed_episodes"] for row in rows))
        print(
            f"{label:22s} {each}   mean {np.mean(regrets):8.2f}   "
            f"student-t has {best / np.mean(regrets):.2f} of it   {pace:6.1f} ms/episode   "
            f"unmixed {lost}"
        )


if __name__ == "__main__":
    main()
