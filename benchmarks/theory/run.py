"""Do runs keep what the theory promises? Coverage, and regret against its bounds, in many runs.

python benchmarks/theory/run.py --runs 200

GP-UCRL with valid settings (δ = 0.1) on five toys, see toys.py. In every run: whether the reward
and the transition lay in their sets in all episodes, at all points of a net; the regret; both
certificates; the theorem. Sizes were chosen for the time that they take.
"""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import math
import multiprocessing
import pathlib
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats
from toys import DELTA, TOYS, Toy

import kernelmdp as km
from kernelmdp.mdp import play, policy_values
from kernelmdp.numerics.modules import jit
from kernelmdp.theory.certificates import (
    episode_gap,
    gap_certificate,
    sum_certificate,
    visited_widths,
)

CHECKED = 400
BOUNDS = {"first": "certificate (i)", "second": "certificate (ii)", "theorem": "theorem"}
HERE = pathlib.Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1, help="toys at a time")
    parser.add_argument("--toys", nargs="*", default=list(TOYS), choices=list(TOYS))
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results.json")
    options = parser.parse_args()
    work = [(name, options.runs) for name in options.toys]
    if options.jobs > 1:
        with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
            found = pool.starmap(study, work, chunksize=1)
    else:
        found = [study(*each) for each in work]
    results = {
        name: {column: [row[column] for row in rows] for column in rows[0]}
        for name, rows in zip(options.toys, found, strict=True)
    }
    words = {"command": " ".join(sys.argv), "delta": DELTA}
    options.out.write_text(as_text(words | results))
    show(results)


def study(name: str, runs: int) -> list[dict[str, float]]:
    """All runs of one toy, one after the other: only the first has to compile."""
    toy = TOYS[name][1]()
    made = km.GPUCRL(toy.problem, confidence=toy.confidence, planner=toy.planner)
    assert made.coverage.covered, made.coverage
    rows = []
    for seed in range(runs):
        begin = time.perf_counter()
        rows.append(one_run(toy, made, seed))
        if seed in (0, 1, 2) or (seed + 1) % 50 == 0:
            seconds = time.perf_counter() - begin
            print(f"{name}, run {seed + 1}: {seconds:.2f} s, {rows[-1]}", file=sys.stderr)
    return rows


def one_run(toy: Toy, made: km.GPUCRL, seed: int) -> dict[str, float]:
    """What is known of one run."""
    model, lipschitz = toy.truth(seed)
    known = math.isfinite(lipschitz)
    agent = copy.copy(made)  # beliefs never change in place
    agent.history, agent.seed = [], seed
    agent.problem = problem = (
        dataclasses.replace(toy.problem, lipschitz=lipschitz) if known else toy.problem
    )
    truth = problem.mdp(model)
    start = jnp.asarray(toy.start)
    grid = toy.planner.grid(truth)
    checked = jnp.asarray(problem.points.spread_points(CHECKED))
    best = policy_values(truth, toy.planner.plan(truth, key=jax.random.key(0)).policy, grid)
    ratios, regrets, widths, gaps = [], [], [], []
    for episode in range(toy.episodes):
        policy = agent.ask(toy.start)
        plan: Any = agent.planned
        key = jax.random.fold_in(jax.random.key(seed), episode)
        told = play(truth, policy, start, key=key)
        ratios.append(agent.sets.containment(model, checked))
        if toy.bound is not None:
            regrets.append(float(_at(grid, best - policy_values(truth, policy, grid), start)))
            family = agent.sets.family(problem.mdp(agent.sets.plausible))
            gaps.append(episode_gap(family, plan, grid, start))
            reward, radius = visited_widths(agent.sets, jnp.asarray(told.points))
            own = lipschitz if known else _steepest(plan.values)
            widths.append((reward, own * radius))
        agent.tell(told.states, told.actions, told.rewards, told.outcomes)
    reward, transition = np.max(np.array(ratios), axis=0)
    row = {"reward_ratio": float(reward), "transition_ratio": float(transition)}
    if toy.bound is None:
        return row
    first = sum_certificate(
        *zip(*widths, strict=True),
        lipschitz=1.0,  # is in the widths
        reward_bound=toy.reward_bound,
        horizon=problem.horizon,
        delta=DELTA,
    )
    second = gap_certificate(gaps, delta=DELTA)
    return row | {
        "regret": float(np.sum(regrets)),
        "first": first.total,
        "second": second.total,
        "worst_episode": float(np.max(np.array(regrets) - np.array(gaps))),
        "theorem": toy.bound(lipschitz).value,
        "trivial": 2 * toy.reward_bound * problem.horizon * toy.episodes,
    }


@jit
def _at(grid: Any, tables: Any, start: Any) -> Any:
    return grid.value_at(tables[0], start[None, :])[0]


def _steepest(values: Any) -> float:
    """L of a plan in a table: the largest |V_h − mean V_h| of the later periods."""
    later = np.asarray(values)[1:-1]
    return float(np.linalg.norm(later - later.mean(axis=1, keepdims=True), axis=1).max())


def share(inside: np.ndarray) -> str:
    """How often, with the exact interval of 95 %."""
    count, total = int(np.sum(inside)), len(inside)
    ends = stats.binomtest(count, total).proportion_ci(0.95)
    return f"{count}/{total} ({ends.low:.3f} to {ends.high:.3f})"


def show(results: dict[str, dict[str, list[float]]]) -> None:
    """The tables of docs/results.md."""
    print("| toy | setting | reward in its set | transition in its set |\n|---|---|---|---|")
    for name, columns in results.items():
        cells = [
            share(np.array(columns[f"{what}_ratio"]) <= 1) for what in ("reward", "transition")
        ]
        print(f"| {name} | {TOYS[name][0]} | {cells[0]} | {cells[1]} |")
    print(
        "\n| toy | bound | above the regret | median ratio to the regret | to the trivial bound |"
    )
    print("|---|---|---|---|---|")
    for name, columns in results.items():
        if "regret" not in columns:
            continue
        regret, trivial = np.array(columns["regret"]), np.array(columns["trivial"])
        for column, what in BOUNDS.items():
            bound = np.array(columns[column])
            with np.errstate(divide="ignore"):  # some runs have no regret at all
                ratio, most = np.median(bound / regret), np.median(bound / trivial)
            print(f"| {name} | {what} | {share(regret <= bound)} | {ratio:.3g} | {most:.3g} |")
        each = share(np.array(columns["worst_episode"]) <= 1e-9)
        print(f"| {name} | certificate (ii), every episode | {each} | | |")
        median, part = np.median(regret), np.median(regret / trivial)
        print(f"| {name} | the regret itself, median {median:.3g} | | 1 | {part:.3g} |")


def as_text(results: dict[str, Any]) -> str:
    """JSON with five digits: small, and one row a column."""

    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rounded(own) for key, own in value.items()}
        if isinstance(value, list):
            return [rounded(own) for own in value]
        return float(f"{value:.5g}") if isinstance(value, float) else value

    lines = [f'"{key}": {json.dumps(rounded(own))}' for key, own in results.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    main()
