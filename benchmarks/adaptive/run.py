"""What it costs not to know lengthscale and norm: adaptive sets against the right fixed kernel.

    .venv/bin/python benchmarks/adaptive/run.py --seeds 50 --episodes 40 --out adaptive.jsonl
    .venv/bin/python benchmarks/adaptive/run.py --report adaptive.jsonl

Every seed has a truth of its own, and all agents meet the same noise. "adaptive" knows four
lengthscales and four norms; "valid" and "dual" know the right lengthscale, and the norm within a
factor of 2. The agents called wrong have the lengthscale at the other end of the family. Coverage:
the truth was in the sets in every episode of a run, at 400 points.
"""

import argparse
import itertools
import json
import pathlib
import time

import numpy as np
from truths import LENGTHSCALES, NORMS, truth

import kernelmdp as km
from kernelmdp.confidence import AdaptiveConfidence, Confidence

AGENTS = ("adaptive", "valid", "dual", "practical", "practical, wrong", "valid, wrong")


def farthest(lengthscale: float) -> float:
    """The member of the family with the most different lengthscale."""
    return max(LENGTHSCALES, key=lambda other: abs(np.log(other / lengthscale)))


def settings_of(name: str, right: dict) -> dict:
    if name == "adaptive":
        family = [(f"se({lengthscale})", norm) for lengthscale in LENGTHSCALES for norm in NORMS]
        sets = AdaptiveConfidence(reward_family=family, transition_family=family)
        return {"confidence": sets}
    lengthscales = {role: member[0] for role, member in right.items()}
    if name.endswith("wrong"):
        lengthscales = {role: farthest(value) for role, value in lengthscales.items()}
    norms = {f"norm_{role}": member[1] for role, member in right.items()}
    preset = name.split(",")[0]
    made = {
        "valid": Confidence(**norms),
        "dual": Confidence(beta="dual", **norms),
        "practical": Confidence(beta="paper", scale=0.1, **norms),
    }[preset]
    kernels = {f"{role}_kernel": f"se({value})" for role, value in lengthscales.items()}
    return {"confidence": made} | (kernels if name.endswith("wrong") else {})


def members_of(right: dict) -> list[int]:
    """The numbers of the right members."""
    number = {pair: i for i, pair in enumerate(itertools.product(LENGTHSCALES, NORMS))}
    return [number[tuple(right[role])] for role in right]


def measure(name: str, seed: int, episodes: int) -> dict:
    environment, right = truth(seed)
    agent = km.GPUCRL(environment, seed=seed, **settings_of(name, right))
    eliminated = []

    def note(agent: km.GPUCRL, row: dict) -> None:
        if name == "adaptive":
            survives = [agent.state.sets[role].survives for role in right]
            eliminated.append(not all(map(np.take, survives, members_of(right))))

    begin = time.perf_counter()
    table = agent.learn(episodes, callback=note, progress=False).episodes
    regrets = np.asarray(table["cumulative_regret"])
    inside = [table["covered_reward"], table["covered_transition"]]
    row = {
        "agent": name,
        "seed": seed,
        "episodes": episodes,
        "right": right,
        "regret": [float(regrets[i - 1]) for i in range(10, episodes + 1, 10)],
        "covered": bool(np.all(inside)),
        "claimed": agent.coverage.covered,
        "seconds": time.perf_counter() - begin,
    }
    if name == "adaptive":
        counts = [float(table[f"members_{role}"][-1]) for role in ("reward", "transition")]
        row |= {"members": counts, "right_eliminated": bool(np.any(eliminated))}
    return row


def report(path: pathlib.Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    by_agent = {name: {r["seed"]: r for r in rows if r["agent"] == name} for name in AGENTS}
    adaptive = by_agent["adaptive"]
    for name, runs in by_agent.items():
        seeds = sorted(set(runs) & set(adaptive))
        if not seeds:
            continue
        regrets = np.array([runs[seed]["regret"][-1] for seed in seeds])
        own = np.array([adaptive[seed]["regret"][-1] for seed in seeds])
        ratios = own / regrets
        covered = sum(runs[seed]["covered"] for seed in seeds)
        low, middle, high = np.quantile(ratios, (0.0, 0.5, 1.0))
        print(
            f"{name:17} {len(seeds)} truths: regret {regrets.mean():.1f}, covered {covered}, "
            f"claimed {sum(runs[seed]['claimed'] for seed in seeds)}; adaptive is {middle:.2f} "
            f"times in the median, {low:.2f} to {high:.2f}, above 3 on {int(np.sum(ratios > 3))}; "
            f"sums {own.sum() / regrets.sum():.2f}"
        )
    lost = sum(row["right_eliminated"] for row in adaptive.values())
    members = np.array([row["members"] for row in adaptive.values()])
    print(f"the right member was eliminated in {lost} runs; left over {members.mean(axis=0)} of 16")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", nargs="+", default=list(AGENTS))
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("adaptive.jsonl"))
    parser.add_argument("--report", type=pathlib.Path)
    chosen = parser.parse_args()
    if chosen.report:
        report(chosen.report)
        return
    done = set()
    if chosen.out.exists():
        done = {(r["agent"], r["seed"]) for r in map(json.loads, chosen.out.open())}
    for seed in range(chosen.seeds):
        for name in chosen.agents:
            if (name, seed) not in done:
                row = measure(name, seed, chosen.episodes)
                with chosen.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    report(chosen.out)


if __name__ == "__main__":
    main()
