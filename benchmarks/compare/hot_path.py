"""Where an episode's time goes, agent by agent."""

import statistics
import time
from collections import defaultdict

TITLE = "Where an episode's time goes"
PLACES = ("plan", "play", "judge", "coverage", "widths", "learn", "other")
PROBLEMS = ("rkhs", "pendulum-coarse", "pendulum-swingup")


def cells(quick):
    problems, episodes = (PROBLEMS[:1], 20) if quick else (PROBLEMS, 30)
    return [
        {"problem": problem, "agent": agent, "episodes": episodes}
        for problem in problems
        for agent in ("psrl", "gp-ucrl")
    ]


def limit(cell):
    return 600.0


def run(cell):
    import jax

    from kernelmdp.envs import Environment
    from kernelmdp.experiments import RunConfig, learning_loop, regret

    agent = RunConfig(cell["problem"], cell["agent"]).make_agent()
    spent = defaultdict(float)

    def watched(place, function):
        def call(*args, **kwargs):
            begin = time.perf_counter()
            try:
                return jax.block_until_ready(function(*args, **kwargs))
            finally:
                spent[place] += time.perf_counter() - begin

        return call

    agent.ask = watched("plan", agent.ask)
    replay = agent.replay
    agent.replay = watched(
        "learn", lambda *episode: replay(*episode) or jax.tree.leaves(agent.state)
    )
    Environment.play = watched("play", Environment.play)
    evaluator = regret.RegretEvaluator
    for name in ("optimum", "value"):
        setattr(evaluator, name, watched("judge", getattr(evaluator, name)))
    evaluator.containment = watched("coverage", evaluator.containment)
    learning_loop.widths = watched("widths", learning_loop.widths)
    rows, before, begin = [], {}, time.perf_counter()
    for row in learning_loop.interact(agent, cell["episodes"]):
        now = time.perf_counter()
        whole = {**spent, "all": now - begin}
        if row["episode"] > 5:
            rows.append({k: v - before.get(k, 0.0) for k, v in whole.items()})
        before = whole
    found = {place: statistics.mean(r.get(place, 0.0) for r in rows) for place in (*PLACES, "all")}
    found["other"] = found["all"] - sum(found[place] for place in PLACES[:-1])
    return found


def table(found):
    lines = ["| problem | agent | all | " + " | ".join(PLACES) + " |", "|---" * 10 + "|"]
    for one in found:
        cell, got = one["cell"], one["found"]
        if "failed" not in got:
            times = " | ".join(f"{1e3 * got[place]:.2f}" for place in ("all", *PLACES))
            lines.append(f"| {cell['problem']} | {cell['agent']} | {times} |")
    return "\n".join(lines)


def figure(found, path):
    import matplotlib.pyplot as plt

    good = [one for one in found if "failed" not in one["found"]]
    names = [f"{one['cell']['problem']}\n{one['cell']['agent']}" for one in good]
    picture, axis = plt.subplots(figsize=(9, 0.6 * len(good) + 1.2))
    left = [0.0] * len(good)
    for place in PLACES:
        shares = [100 * one["found"][place] / one["found"]["all"] for one in good]
        axis.barh(names, shares, left=left, label=place)
        left = [a + b for a, b in zip(left, shares, strict=True)]
    axis.set_xlim(0, 100)
    axis.invert_yaxis()
    axis.set_xlabel("% of an episode")
    axis.legend(fontsize=7, ncol=len(PLACES), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    picture.tight_layout()
    picture.savefig(path, dpi=110)
