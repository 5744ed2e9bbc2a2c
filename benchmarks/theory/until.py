"""How far from optimal a controller is at most, by certificate (ii), and whether that is true.

    .venv/bin/python benchmarks/theory/until.py rkhs --confidence dual --seeds 5 --episodes 300
    .venv/bin/python benchmarks/theory/until.py rkhs --confidence valid --until 0.25 --seeds 200
    .venv/bin/python benchmarks/theory/until.py pendulum-swingup --until 0.1 --penalty 0.2 --seeds 1

Every seed has a truth of its own. The controller's true value and the optimum are computed on the
environment's grid. A certificate is false if the value is below its bound, or the optimum above, by
more than the stated error of the optimum. The pendulum's motion has the additive kernel and its
norm, its reward is known, and its true value is that of an episode, because nothing is random.
"""

import argparse
import json
import pathlib

import numpy as np

import kernelmdp as km
from kernelmdp.mdp.evaluation import grid_value


def agent_for(name: str, confidence: str, seed: int, penalty: float) -> km.GPUCRL:
    if name != "pendulum-swingup":
        return km.GPUCRL(name, confidence=confidence, seed=seed)
    env = km.make(name, penalty=penalty, additive=True)
    sets = {"name": confidence, "norm_transition": env.problem.assumed_norms[1]}
    return km.GPUCRL(env, reward="known", confidence=sets, seed=seed)


def true_value(agent: km.GPUCRL) -> float:
    """The value of the controller: an episode if nothing is random, else on the grid."""
    policy, mdp, start = agent.controller_plan().policy, agent.task.mdp, agent.starts[0]
    if agent.task.name != "pendulum-swingup":
        return float(grid_value(mdp, policy, agent.task.grid, start))
    total, state = 0.0, np.asarray(start, float)[None, :]
    for period in range(mdp.horizon):
        point = np.concatenate([state, np.asarray(policy.actions(state, period))], axis=1)
        prediction = mdp.model(point)
        total += float(prediction.reward[0])
        state = np.asarray(mdp.states.nearest(prediction.state))
    return total


def measure(
    name: str, confidence: str, seed: int, episodes: int, until: float | None, penalty: float
) -> dict:
    agent = agent_for(name, confidence, seed, penalty)
    shares: dict[int, float] = {}

    def note(agent: km.GPUCRL, row: dict) -> None:
        if until is None and agent.episode in (30, 100, episodes):
            shares[agent.episode] = agent.certificate().share

    result = agent.learn(episodes, until=until, callback=note, progress=False)
    certificate = result.certificate or agent.certificate()
    start = agent.starts[0]
    optimum = agent.task.optimal_value(start)
    value = true_value(agent)
    below = certificate.value <= value + optimum.error
    holds = below and optimum.value <= certificate.optimum + optimum.error
    return {
        "seed": seed,
        "penalty": penalty if name == "pendulum-swingup" else None,
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
    parser.add_argument("--penalty", type=float, default=0.2)
    parser.add_argument("--out", type=pathlib.Path)
    chosen = parser.parse_args()
    rows = []
    for seed in range(chosen.seeds):
        settings = chosen.confidence, seed, chosen.episodes, chosen.until, chosen.penalty
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
