"""How far from optimal a controller is at most, by certificate (ii), and whether that is true.

    .venv/bin/python benchmarks/theory/until.py rkhs --confidence dual --seeds 5 --episodes 300
    .venv/bin/python benchmarks/theory/until.py rkhs --until 0.3 --seeds 200 --episodes 300

Every seed has a truth of its own. The controller's true value and the optimum are computed on the
environment's grid. A certificate is false if the value is below its bound, or the optimum above, by
more than the stated error of the optimum.
"""

import argparse
import json
import pathlib

import numpy as np

import kernelmdp as km
from kernelmdp.mdp.evaluation import grid_value


def measure(name: str, confidence: str, seed: int, episodes: int, until: float | None) -> dict:
    agent = km.GPUCRL(name, confidence=confidence, seed=seed)
    shares: dict[int, float] = {}

    def note(agent: km.GPUCRL, row: dict) -> None:
        if until is None and agent.episode in (30, 100, episodes):
            shares[agent.episode] = agent.certificate().share

    result = agent.learn(episodes, until=until, callback=note, progress=False)
    certificate = result.certificate or agent.certificate()
    start = agent.starts[0]
    optimum = agent.task.optimal_value(start)
    policy = agent.controller_plan().policy
    value = grid_value(agent.task.mdp, policy, agent.task.grid, start)
    below = certificate.value <= value + optimum.error
    holds = below and optimum.value <= certificate.optimum + optimum.error
    return {
        "seed": seed,
        "episodes": agent.episode,
        "shares": shares,
        "value": certificate.value,
        "optimum": certificate.optimum,
        "share": certificate.share,
        "true_value": float(value),
        "true_optimum": optimum.value,
        "holds": bool(holds),
        "covered": certificate.probability is not None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("environment")
    parser.add_argument("--confidence", default="dual")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--until", type=float)
    parser.add_argument("--out", type=pathlib.Path)
    chosen = parser.parse_args()
    rows = []
    for seed in range(chosen.seeds):
        settings = chosen.confidence, seed, chosen.episodes, chosen.until
        rows.append(measure(chosen.environment, *settings))
        print({name: rows[-1][name] for name in ("seed", "episodes", "shares", "share", "holds")})
        if chosen.out:
            chosen.out.write_text(json.dumps(rows, indent=1) + "\n")
    shares = [row["share"] for row in rows]
    held = sum(row["holds"] for row in rows)
    print(f"share of the span: median {np.median(shares):.3f}, largest {max(shares):.3f}")
    print(f"true in {held} of {len(rows)}, covered {sum(row['covered'] for row in rows)}")


if __name__ == "__main__":
    main()
