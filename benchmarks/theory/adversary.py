"""Look for claims that do not hold: random configurations, of which many break an assumption.

    .venv/bin/python benchmarks/theory/adversary.py --configurations 100 --truths 20 --jobs 2

Whenever an agent says that its confidence sets are covered, the truth must lie in them at all
points in all episodes, in at least 1 − δ of runs. Whenever a regret bound is claimed, optimistic
values must reach the optimum up to the stated errors, and regret must stay below both certificates
and the bound. An oracle's regret must be 0 up to its error. Runs are stored, and not run again.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from configurations import draw, episode_key, make_agent, make_environment

from kernelmdp.errors import KernelMDPError
from kernelmdp.experiments import run_bound
from kernelmdp.experiments.regret import RegretEvaluator
from kernelmdp.experiments.theorem_inputs import lipschitz_of, reward_bound
from kernelmdp.theory.certificates import (
    episode_gap,
    gap_certificate,
    one_period_gap,
    sum_certificate,
)

RESULTS = pathlib.Path("runs/adversary.jsonl")
EPISODES = 4
#: Points at which the truth is compared with the sets.
POINTS = 300
#: Probability of a false alarm of each test.
LEVEL = 1e-3
#: Rounding.
ROUNDING = 1e-7


def play(config: dict[str, Any], truth: int) -> dict[str, Any]:
    """Run an agent on one truth and compare its claims with the truth."""
    env = make_environment(config, truth)
    agent = make_agent(config, env, seed=truth % 1000)
    evaluator = RegretEvaluator(env)
    points = jnp.asarray(env.mdp.points.spread_points(POINTS))
    inside, shortfall, oracle = True, -math.inf, 0.0
    rows: list[dict[str, float]] = []
    for number in range(EPISODES):
        start = env.draw_start(episode_key(truth, number))
        policy = agent.ask(np.asarray(start))
        episode = env.play(policy, start, key=episode_key(truth, number + 100))
        optimum = evaluator.optimum(start)
        value = evaluator.value(policy, start, episode)
        row = {"regret": optimum.value - value, "error": optimum.error}
        sets, plan = agent.sets, agent.planned
        if sets is not None:
            contained = sets.containment(env.agent_mdp.model, points)
            inside &= contained.reward and contained.transition
            widths = sets.half_widths(jnp.asarray(episode.points))
            row |= {"reward": float(widths[0].sum()), "transition": float(widths[1].sum())}
            family = sets.family(agent.problem.mdp(sets.plausible))
            # The stated error of the plan: an estimate for grids, a proof for certified plans.
            error = plan.error if math.isfinite(plan.error) else 0.0
            grid_error = getattr(agent.planner, "error", None)
            if callable(grid_error):
                error = grid_error(family, plan, start, key=jax.random.key(0)).error
            row["error"] += error  # the theorems are about plans without an error
            missing = optimum.value - optimum.error - (plan.value(start) + error)
            shortfall = max(shortfall, missing)
            if env.mdp.horizon == 1:
                row["gap"] = one_period_gap(family, plan, np.asarray(episode.points)[0], start)
            elif plan.table is not None:
                optimism = getattr(agent.planner, "optimism", "ball")
                row["gap"] = episode_gap(family, plan, plan.table.grid, start, optimism=optimism)
        planned = number > 0 or config["first_episode"] != "random"
        if config["agent"] == "oracle" and planned:
            # A certified plan is optimal up to its gap, which is twice its error.
            gap = 2 * plan.error if math.isfinite(plan.error) else 0.0
            oracle = max(oracle, abs(row["regret"]) - optimum.error - gap)
        rows.append(row)
        data = (episode.states, episode.actions, episode.rewards)
        told = episode.outcomes if config["outcomes"] == "told" else None
        ended = {"terminated": True} if episode.terminated else {}
        agent.tell(*data, outcomes=told, **ended)
    bound = run_bound(agent)
    coverage = agent.coverage
    result = {
        "sets_covered": bool(coverage.covered and agent.sets is not None),
        "regret_covered": bool(bound.covered),
        "reasons": list(coverage.reasons),
        "bound": bound.text,
        "inside": bool(inside),
        "shortfall": float(shortfall),
        "oracle": float(oracle),
        "regret": sum(row["regret"] for row in rows),
        "error": sum(row["error"] for row in rows),
    }
    if bound.covered:
        result["bound_value"] = float(bound.at(EPISODES).value)
        if all("reward" in row for row in rows):
            result |= _certificates(agent, rows)
    return result


def _certificates(agent: Any, rows: list[dict[str, float]]) -> dict[str, float]:
    share = 1.0 if not agent.confidence.split else (2.0 if agent.problem.reward else 3.0)
    options: dict[str, Any] = {"delta": agent.confidence.delta, "share": share, "assumes": ()}
    sums = [np.array([row[role] for row in rows]) for role in ("reward", "transition")]
    by_sums = sum_certificate(
        *sums,
        lipschitz=lipschitz_of(agent),
        reward_bound=reward_bound(agent),
        horizon=agent.problem.horizon,
        **options,
    )
    found = {"certificate_sums": float(by_sums.total)}
    if all("gap" in row for row in rows):
        gaps = np.array([row["gap"] for row in rows])
        found["certificate_gaps"] = float(gap_certificate(gaps, **options).total)
        excess = [row["regret"] - row["error"] - row["gap"] for row in rows]
        found["gap_excess"] = float(max(excess))
    return found


def tail(probabilities: list[float], misses: int) -> float:
    """P(at least ``misses`` events) for independent events of these probabilities."""
    law = np.ones(1)
    for p in probabilities:
        law = np.convolve(law, [1 - p, p])
    return float(law[misses:].sum())


def verdicts(rows: list[dict[str, Any]]) -> list[tuple[str, int, int, float]]:
    """For each claim: how often it was made, how often it failed, and the chance of that."""
    done = [row for row in rows if "error" in row["result"]]
    sets = [row for row in done if row["result"]["sets_covered"]]
    regret = [row for row in done if row["result"]["regret_covered"]]
    optimistic = [row for row in regret if row["config"]["agent"] == "gp-ucrl"]
    oracles = [row for row in done if row["config"]["agent"] == "oracle"]

    def judge(name: str, claimed: list[Any], fails: Any, level: Any) -> tuple[str, int, int, float]:
        misses = sum(bool(fails(row["result"])) for row in claimed)
        chance = tail([level(row["config"]) for row in claimed], misses)
        return name, len(claimed), misses, chance

    def delta(config: dict[str, Any]) -> float:
        return config["delta"]

    def never(config: dict[str, Any]) -> float:
        return 0.0

    def above(key: str) -> Any:
        return lambda r: key in r and r["regret"] - r["error"] > r[key] + ROUNDING

    return [
        judge("the truth is in the sets", sets, lambda r: not r["inside"], delta),
        judge("plans are optimistic", optimistic, lambda r: r["shortfall"] > ROUNDING, delta),
        judge("regret is below the bound", optimistic, above("bound_value"), delta),
        judge("regret is below certificate (i)", optimistic, above("certificate_sums"), delta),
        judge(
            "episodes' regret is below certificate (ii)",
            optimistic,
            lambda r: r.get("gap_excess", 0.0) > ROUNDING,
            delta,
        ),
        judge("an oracle has no regret", oracles, lambda r: r["oracle"] > ROUNDING, never),
    ]


def report(rows: list[dict[str, Any]]) -> bool:
    """Print what was claimed and what failed. True if no failure is beyond chance."""
    refused = [row for row in rows if "refused" in row["result"]]
    done = len(rows) - len(refused)
    configurations = {row["number"] for row in rows}
    print(
        f"{len(configurations)} configurations, {len(rows)} runs; {len(refused)} refused to start"
    )
    for key, words in (("sets_covered", "sets"), ("regret_covered", "a regret bound")):
        count = sum(row["result"].get(key, False) for row in rows)
        print(f"{words} claimed in {count} of {done} runs ({100 * count / max(done, 1):.0f} %)")
    print("\n| claim | made | failed | chance of that many failures |\n|---|---|---|---|")
    good = True
    for name, made, misses, chance in verdicts(rows):
        print(f"| {name} | {made} | {misses} | {chance:.2g} |")
        good &= misses == 0 or chance > LEVEL
    return good


def run_configuration(number: int, truths: int, seed: int) -> list[dict[str, Any]]:
    """Run one configuration on several truths."""
    config, rows = draw(seed * 1_000_000 + number), []
    for truth in range(truths):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = play(config, 1000 * number + truth)
        except KernelMDPError as error:  # a refusal in one sentence is a right answer
            result = {"refused": f"{type(error).__name__}: {error}"}
        rows.append({"number": number, "truth": truth, "config": config, "result": result})
        if "refused" in result:
            break
    return rows


def stored() -> list[dict[str, Any]]:
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--configurations", type=int, default=100)
    parser.add_argument("--truths", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--worker", type=int, nargs="+", help="configurations to run in this process"
    )
    parser.add_argument("--report", action="store_true", help="only print what is stored")
    chosen = parser.parse_args()
    if chosen.worker is not None:
        for number in chosen.worker:
            rows = run_configuration(number, chosen.truths, chosen.seed)
            RESULTS.parent.mkdir(exist_ok=True)
            with RESULTS.open("a") as file:
                file.write("".join(json.dumps(row) + "\n" for row in rows))
        return
    if not chosen.report:
        known = {row["number"] for row in stored()}
        left = [n for n in range(chosen.configurations) if n not in known]
        # A few configurations a process: compiled programs of others would fill the memory.
        batches = [left[i : i + 5] for i in range(0, len(left), 5)]
        while batches:
            running = [_start(batch, chosen) for batch in batches[: chosen.jobs]]
            batches = batches[chosen.jobs :]
            for process in running:
                process.wait()
            print(f"{len(stored())} runs", flush=True)
    sys.exit(0 if report(stored()) else 1)


def _start(batch: list[int], chosen: argparse.Namespace) -> subprocess.Popen:
    numbers = map(str, batch)
    options = ["--truths", str(chosen.truths), "--seed", str(chosen.seed)]
    return subprocess.Popen([sys.executable, __file__, *options, "--worker", *numbers])


if __name__ == "__main__":
    main()
